#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""fakehdfs.py STATUS BLOCKS REFUSAL: WebHDFS of a NameNode and of a DataNode that gives no bytes.

STATUS and BLOCKS are files with a real NameNode's answers to GETFILESTATUS and to
GET_BLOCK_LOCATIONS; all replicas are here. What is read is answered by 403 with REFUSAL.
Prints its port on 127.0.0.1.
"""
import http.server
import json
import sys
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        op = query["op"][0].upper()
        if op == "GETFILESTATUS":
            self.answer(200, self.server.status)
        elif op == "GET_BLOCK_LOCATIONS":
            self.answer(200, self.server.blocks)
        elif op == "OPEN" and "noredirect" in query:
            here = f"http://127.0.0.1:{self.server.server_port}{self.path}&namenoderpcaddress=here:1"
            self.answer(200, json.dumps({"Location": here}).encode())
        else:
            self.answer(403, self.server.refusal)


def replicas_here(text, port):
    blocks = json.loads(text)
    for block in blocks["LocatedBlocks"]["locatedBlocks"]:
        for node in block["locations"]:
            node.update(ipAddr="127.0.0.1", hostName="127.0.0.1", infoPort=port, xferPort=1)
    return json.dumps(blocks).encode()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[1], "rb") as file:
        server.status = file.read()
    with open(sys.argv[2], "rb") as file:
        server.blocks = replicas_here(file.read(), server.server_port)
    server.refusal = sys.argv[3].encode()
    print(server.server_port, flush=True)
    server.serve_forever()


main()
