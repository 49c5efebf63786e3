#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""faultproxy.py: a proxy in front of a real registry that fails on demand.

All requests go to --upstream unless a rule of the control file says otherwise.
The file is read again when it has changed, so a test switches faults while
transfers run. It is one JSON object:

  {"rules": [RULE...]}

A request takes the first rule that fits. A rule says which requests:
  method   "GET" ...                 path     regular expression, searched in path + query
  blob     "sha256:..." in the path  range    true/false: with or without a Range header
  skip     let the first N that fit pass        count    then act on N only
  from, until   act only in this span of seconds since the file was read
and what happens (action):
  status       answer with `status`, and `retry_after`, `headers`, `body` when given
  delay        wait `seconds`, then go on as usual
  stall        send nothing; with `bytes`: stop after that many bytes of the body.
               Ends when the rules change, the client leaves, or after `seconds`.
  truncate     promise the whole body, close after `bytes`
  flip         invert the bytes [offset, offset+length) of the blob, wherever the
               answer covers them (offsets count in the blob, not in the answer)
  redirect     307 to a second port, with a signature that lives `seconds`; there
               the same request is served until then, and is 403 afterwards
  ignore_range 200 and the whole body
  wrong_range  206 with bytes that start `shift` further on than asked for
  chunked      the right body, but without a Content-Length
  slow         the right body at `rate` bytes a second
  trickle      after `bytes` of the right body, the rest byte by byte, one each `pause`
               seconds, for as long as the client stays
  drop         reset the connection; with `bytes`: after that many of the body
  refuse       401 with the WWW-Authenticate of the upstream, as if the token were dead
The redirect's second port obeys rules too: these have "port": "redirect".

The log has one JSON object a request: t, conn, port, method, path, range, status,
bytes (of the body that were sent), action (of the rule that was used), seconds.
"""

import argparse
import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import secrets
import socket
import ssl
import struct
import threading
import time
import urllib.parse

CHUNK = 1 << 16
HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer",
       "upgrade", "content-length"}


class Dropped(Exception):
    """The connection has been cut on purpose."""


class Control:
    """The rules, as the control file has them now."""

    def __init__(self, path):
        self.path, self.stamp, self.rules, self.since = path, None, [], time.monotonic()
        self.lock = threading.Lock()

    def refresh(self):
        try:
            st = os.stat(self.path)
            stamp = (st.st_mtime_ns, st.st_ino)
        except OSError:
            stamp = None
        if stamp == self.stamp:
            return
        self.stamp, self.rules, self.since = stamp, [], time.monotonic()
        if stamp:
            with open(self.path) as f:
                self.rules = json.load(f).get("rules", [])

    def current(self):
        with self.lock:
            self.refresh()
            return self.stamp

    def find(self, port, method, path, ranged):
        with self.lock:
            self.refresh()
            age = time.monotonic() - self.since
            for rule in self.rules:
                if (rule.get("port", "main") != port
                        or rule.get("method", method) != method
                        or not re.search(rule.get("path", ""), path)
                        or rule.get("blob", "") not in path
                        or rule.get("range", ranged) != ranged
                        or not rule.get("from", 0) <= age < rule.get("until", float("inf"))):
                    continue
                seen = rule["seen"] = rule.get("seen", 0) + 1
                skip = rule.get("skip", 0)
                if seen <= skip or seen > skip + rule.get("count", float("inf")):
                    continue
                return rule
        return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.upstream = None
        self.conn = self.server.shared.next_conn()

    def finish(self):
        if self.upstream:
            self.upstream.close()
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *_):
        pass

    # what goes up

    def body(self):
        """The request's body as (bytes iterator or None, length or None)."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self.chunks(), None
        length = int(self.headers.get("Content-Length") or 0)
        return (self.plain(length) if length else None), length

    def plain(self, left):
        self.begun = True
        while left > 0:
            data = self.rfile.read(min(CHUNK, left))
            if not data:
                raise ConnectionError("request body cut short")
            left -= len(data)
            yield data

    def chunks(self):
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            yield from self.plain(size)
            self.rfile.readline()
            if size == 0:
                return

    def send_up(self, headers, body, length):
        """A header that comes several times (Accept) goes on several times."""
        up = self.upstream
        up.putrequest(self.command, self.real_path, skip_host=True, skip_accept_encoding=True)
        for key, value in headers.items():
            if key.lower() not in HOP:
                up.putheader(key, value)
        if length is None:
            up.putheader("Transfer-Encoding", "chunked")
        elif length or self.command in ("POST", "PUT", "PATCH"):
            up.putheader("Content-Length", str(length))
        up.endheaders(body, encode_chunked=length is None)

    def ask(self, headers):
        """Send the request upstream; once more when a kept connection was dead."""
        body, length = self.body()
        if body is not None and self.upstream:
            # a body cannot be sent twice: not over a connection that may have died meanwhile
            self.upstream.close()
            self.upstream = None
        for again in (True, False):
            fresh = self.upstream is None
            if fresh:
                self.upstream = http.client.HTTPConnection(self.server.shared.args.upstream, timeout=120)
            try:
                self.send_up(headers, body, length)
                return self.upstream.getresponse()
            except (OSError, http.client.HTTPException):
                self.upstream.close()
                self.upstream = None
                if fresh or body is not None or not again:
                    raise
        return None

    # what comes down

    def answer(self, status, headers, length):
        self.status = status
        self.send_response_only(status)
        for key, value in headers:
            if key.lower() not in HOP:
                self.send_header(key, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.flush()

    def short_answer(self, status, headers=(), text=""):
        for _ in self.body()[0] or ():
            pass
        data = text.encode()
        self.answer(status, headers, len(data))
        if self.command != "HEAD":
            self.wfile.write(data)
            self.sent += len(data)

    def drop(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Dropped

    def stall(self, seconds):
        """Hold the connection until the rules change or the client leaves."""
        stamp, end = self.server.shared.control.current(), time.monotonic() + seconds
        while time.monotonic() < end and self.server.shared.control.current() == stamp:
            self.connection.settimeout(0.1)
            try:
                if self.connection.recv(1, socket.MSG_PEEK) == b"":
                    break
            except (TimeoutError, ssl.SSLWantReadError, ValueError):
                time.sleep(0.1)
            except OSError:
                break
        self.drop()

    def trickle(self, response, pause):
        while data := response.read(1):
            self.wfile.write(data)
            self.sent += 1
            time.sleep(pause)

    def relay(self, response, rule):
        action = rule.get("action")
        length = response.headers.get("Content-Length")
        length = int(length) if length is not None else None
        status = response.status
        if self.command == "HEAD" or status in (204, 304):
            self.answer(status, response.getheaders(), length or 0)
            response.read()
            return
        self.answer(status, response.getheaders(), None if action == "chunked" else length)
        chunked = action == "chunked" or length is None
        # position in the blob of the next byte
        m = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        pos = int(m.group(1)) if m else 0
        stop = rule.get("bytes", 0) if action == "trickle" else None
        if action in ("truncate", "stall", "drop"):
            stop = rule.get("bytes")
        while True:
            want = CHUNK if stop is None else min(CHUNK, stop - self.sent)
            if want == 0:
                self.wfile.flush()
                if action == "stall":
                    self.stall(rule.get("seconds", 3600))
                if action == "drop":
                    self.drop()
                if action == "trickle":
                    self.trickle(response, rule.get("pause", 1))
                raise Dropped
            data = response.read1(want)
            if not data:
                break
            if action == "flip":
                data = flip(data, pos, rule.get("offset", 0), rule.get("length", 1))
            if action == "slow":
                time.sleep(len(data) / rule["rate"])
            pos += len(data)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            self.sent += len(data)
        response.read()  # an empty one is only over then, and the connection is free
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    # the rules

    def signed(self, path, seconds):
        until = "%d" % ((time.time() + seconds) * 1000)
        return urllib.parse.urlencode({"bst-until": until, "bst-sig": self.signature(path, until)})

    def signature(self, path, until):
        return hmac.new(self.server.shared.secret, (path + until).encode(), hashlib.sha256).hexdigest()

    def check_signature(self):
        """On the redirect port: is it ours and still alive? Strips it."""
        path, _, query = self.path.partition("?")
        values = dict(urllib.parse.parse_qsl(query))
        until, sig = values.pop("bst-until", "0"), values.pop("bst-sig", "")
        self.real_path = path + ("?" + urllib.parse.urlencode(values) if values else "")
        return hmac.compare_digest(sig, self.signature(self.real_path, until)) \
            and int(until) > time.time() * 1000

    def act(self, rule):
        action = rule.get("action")
        headers = self.headers
        if action == "status":
            extra = list(rule.get("headers", {}).items())
            if "retry_after" in rule:
                extra.append(("Retry-After", str(rule["retry_after"])))
            return self.short_answer(rule.get("status", 500), extra, rule.get("body", ""))
        if action == "delay":
            time.sleep(rule.get("seconds", 1))
        elif action == "stall" and "bytes" not in rule:
            self.stall(rule.get("seconds", 3600))
        elif action == "drop" and "bytes" not in rule:
            self.drop()
        elif action == "redirect":
            host, port = self.connection.getsockname()[0], self.server.shared.redirect_port
            url = "%s://%s:%d%s%s%s" % (self.server.shared.scheme, host, port, self.real_path,
                                        "&" if "?" in self.real_path else "?",
                                        self.signed(self.real_path, rule.get("seconds", 5)))
            return self.short_answer(rule.get("status", 307), [("Location", url)])
        elif action in ("ignore_range", "wrong_range", "refuse"):
            del headers["Range" if action != "refuse" else "Authorization"]
            m = re.match(r"bytes=(\d+)-(\d*)", self.range or "")
            if action == "wrong_range" and m:
                start, shift = int(m.group(1)), rule.get("shift", 1)
                end = str(int(m.group(2)) + shift) if m.group(2) else ""
                headers["Range"] = "bytes=%d-%s" % (start + shift, end)
        elif action == "truncate" and "bytes" not in rule:
            rule = dict(rule, bytes=0)
        return self.relay(self.ask(headers), rule)

    def handle_request(self):
        shared, start = self.server.shared, time.time()
        self.sent, self.status, self.range = 0, 0, self.headers.get("Range")
        self.begun = False  # to read the request's body
        self.real_path = self.path
        rule = {}
        try:
            if self.server.port_name == "redirect" and not self.check_signature():
                self.short_answer(403, [], "Request has expired")
                return
            rule = shared.control.find(self.server.port_name, self.command, self.path,
                                       self.range is not None)
            self.act(rule)
        except Dropped:
            self.close_connection = True
        except (OSError, http.client.HTTPException) as e:
            self.close_connection = True
            if not self.status and not self.begun:
                try:
                    self.short_answer(502, [], "%r\n" % e)
                except OSError:
                    pass
        finally:
            shared.log({"t": start, "conn": self.conn, "port": self.server.port_name,
                        "method": self.command, "path": self.path, "range": self.range,
                        "status": self.status, "bytes": self.sent, "action": rule.get("action"),
                        "seconds": round(time.time() - start, 3)})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request


def flip(data, pos, offset, length):
    first, last = max(pos, offset), min(pos + len(data), offset + length)
    if first >= last:
        return data
    data = bytearray(data)
    for i in range(first - pos, last - pos):
        data[i] ^= 0xff
    return bytes(data)


class Shared:
    def __init__(self, args):
        self.args, self.control, self.secret = args, Control(args.control), secrets.token_bytes(16)
        self.lock, self.conns = threading.Lock(), 0
        self.scheme = "https" if args.tls_cert else "http"

    def next_conn(self):
        with self.lock:
            self.conns += 1
            return self.conns

    def log(self, line):
        with self.lock, open(self.args.log, "a") as f:
            f.write(json.dumps(line) + "\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host, port, shared, port_name):
        self.shared, self.port_name = shared, port_name
        super().__init__((host, port), Handler)
        if shared.args.tls_cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(shared.args.tls_cert, shared.args.tls_key)
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)

    def handle_error(self, request, client_address):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", required=True, help="HOST:PORT of the real registry")
    parser.add_argument("--listen", default="127.0.0.1:0", help="HOST:PORT, 0 = any")
    parser.add_argument("--port-file", required=True, help="gets the port when it listens")
    parser.add_argument("--control", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--tls-cert")
    parser.add_argument("--tls-key")
    args = parser.parse_args()
    shared = Shared(args)
    host, port = args.listen.rsplit(":", 1)
    second = Server(host, 0, shared, "redirect")
    shared.redirect_port = second.server_port
    threading.Thread(target=second.serve_forever, daemon=True).start()
    server = Server(host, int(port), shared, "main")
    with open(args.port_file, "w") as f:
        f.write("%d\n" % server.server_port)
    server.serve_forever()


main()
