#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""tokenserver.py: issues bearer tokens that docker-registry accepts.

The registry's token scheme (auth: token): GET or POST /token with service and
scope, answered by a signed JWT. Signing is openssl's work, so only the standard
library is needed.

docker-registry gives each token 60 s of grace after it has expired. For a life
shorter than that to be a fact, the date in the token is 60 s earlier than what
is said in expires_in: a token with life 5 is refused by the registry after 5 s.

The control file, read at each request, is a JSON object; all members optional:
  life    seconds that a token lives (default: --life)
  status  answer every request with this status instead (500, 401, 429 ...)
  retry_after   value of Retry-After for that answer
  delay   seconds to wait before each answer
The log has one JSON object for each request.
"""

import argparse
import base64
import hashlib
import http.server
import json
import secrets
import subprocess
import threading
import time
import urllib.parse

GRACE = 60


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_id(key):
    """The name docker-registry knows a key by: libtrust's fingerprint."""
    der = subprocess.check_output(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"])
    text = base64.b32encode(hashlib.sha256(der).digest()[:30]).decode()
    return ":".join(text[i:i + 4] for i in range(0, len(text), 4))


def sign(args, subject, access, life):
    now = int(time.time())
    header = {"typ": "JWT", "alg": "RS256", "kid": args.kid}
    claims = {
        "iss": args.issuer, "sub": subject, "aud": args.service, "jti": secrets.token_hex(8),
        "iat": now - GRACE, "nbf": now - GRACE, "exp": now + life - GRACE, "access": access,
    }
    text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", args.key],
                               input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    return text + "." + b64(signature)


def parse_scopes(scopes, may_push):
    access = []
    for scope in " ".join(scopes).split():
        kind, name, actions = scope.split(":", 1)[0], scope.split(":", 1)[1].rsplit(":", 1)[0], \
            scope.rsplit(":", 1)[1].split(",")
        if not may_push:
            actions = [a for a in actions if a == "pull"]
        access.append({"type": kind, "name": name, "actions": actions})
    return access


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for key, value in headers:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)
        line = {"t": time.time(), "method": self.command, "path": self.path, "status": status,
                "user": self.user}
        with self.server.lock, open(self.server.args.log, "a") as f:
            f.write(json.dumps(line) + "\n")

    def control(self):
        try:
            with open(self.server.args.control) as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def credentials(self, form):
        if form.get("grant_type") == ["password"]:
            return form["username"][0] + ":" + form["password"][0]
        value = self.headers.get("Authorization", "")
        if value.startswith("Basic "):
            return base64.b64decode(value[6:]).decode()
        return None

    def handle_token(self):
        args, control = self.server.args, self.control()
        url = urllib.parse.urlsplit(self.path)
        form = urllib.parse.parse_qs(url.query)
        if self.command == "POST":
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            form.update(urllib.parse.parse_qs(body.decode()))
        given = self.credentials(form)
        self.user = given.split(":")[0] if given else None
        time.sleep(control.get("delay", 0))
        if "status" in control:
            after = control.get("retry_after")
            return self.reply(control["status"], {"errors": []},
                              [("Retry-After", str(after))] if after is not None else [])
        if url.path != "/token":
            return self.reply(404, {})
        if given is not None and given != args.user or given is None and args.require_user:
            return self.reply(401, {"details": "incorrect username or password"})
        life = control.get("life", args.life)
        may_push = given is not None or args.user is None
        token = sign(args, self.user or "", parse_scopes(form.get("scope", []), may_push), life)
        return self.reply(200, {"token": token, "access_token": token, "expires_in": life,
                                "issued_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})

    do_GET = do_POST = handle_token


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--key", required=True, help="RSA key, PEM")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--control", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--life", type=int, default=300)
    parser.add_argument("--user", help="USER:PASSWORD; pushes need it when given")
    parser.add_argument("--require-user", action="store_true", help="pulls need it as well")
    parser.add_argument("--issuer", default="bootseer-tests")
    parser.add_argument("--service", default="bootseer-tests")
    args = parser.parse_args()
    args.kid = key_id(args.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    server.args, server.lock = args, threading.Lock()
    with open(args.port_file, "w") as f:
        f.write("%d\n" % server.server_port)
    server.serve_forever()


main()
