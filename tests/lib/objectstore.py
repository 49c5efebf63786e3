#!/usr/bin/python3
"""objectstore.py: stands where a registry redirects to, and remembers what it was sent.

Serves the file --file for every GET, with ranges. The log has one JSON object a
request: method, path, range, authorization, cookie.
"""

import argparse
import http.server
import json
import re
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        line = {"method": self.command, "path": self.path, "range": self.headers.get("Range"),
                "authorization": self.headers.get("Authorization"),
                "cookie": self.headers.get("Cookie")}
        with server.lock, open(server.args.log, "a") as f:
            f.write(json.dumps(line) + "\n")
        with open(server.args.file, "rb") as f:
            data = f.read()
        total = len(data)
        m = re.match(r"bytes=(\d+)-(\d*)$", self.headers.get("Range", ""))
        if m:
            first = int(m.group(1))
            last = min(int(m.group(2)) if m.group(2) else total - 1, total - 1)
            data = data[first:last + 1]
            self.send_response(206)
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, total))
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--log", required=True)
    args = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.args, server.lock = args, threading.Lock()
    with open(args.port_file, "w") as f:
        f.write("%d\n" % server.server_port)
    server.serve_forever()


main()
