#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""A control socket that answers as a test wants it to.

	fakedaemon.py SOCKET IMAGE [--acquire ERRNO] [--unpack DIR] [--resolve DIGEST] [--log FILE]

ACQUIRE gets a descriptor of IMAGE: a directory, or an EROFS image file, which is
mounted nowhere (it has a mount of its own for the time of the program). With
--acquire, it gets that error instead. UNPACK gets DIR, or an error,
RESOLVE gets DIGEST, or an error. What was asked
goes to FILE, a line each: type, container, digest, sources.
"""
import argparse
import array
import ctypes
import os
import re
import signal
import socket
import struct
import sys



def numbers(enum):
    """The names of an enum in src/ctl/msg.h, which count from 1."""
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/ctl/msg.h")
    with open(header) as f:
        body = f.read().split("enum " + enum + " {", 1)[1].split("}", 1)[0]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return {name: i + 1 for i, name in enumerate(re.findall(r"BS_[A-Z_]+", body))}


TYPES, TAGS = numbers("bs_msg_type"), numbers("bs_msg_tag")
REPLY, ACQUIRE, UNPACK, RESOLVE = (
    TYPES["BS_MSG_" + n] for n in ("REPLY", "ACQUIRE", "UNPACK", "RESOLVE"))
RESULT, TEXT, CONTAINER, DIGEST, SOURCE, PATH = (
    TAGS["BS_TAG_" + n] for n in ("RESULT", "TEXT", "CONTAINER", "DIGEST", "SOURCE", "PATH"))
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    r = getattr(libc, name)(*args)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r


def image_fd(path):
    if os.path.isdir(path):
        return os.open(path, os.O_PATH | os.O_DIRECTORY)
    fs = call("fsopen", b"erofs", 1)
    call("fsconfig", fs, 1, b"source", path.encode(), 0)
    call("fsconfig", fs, 0, b"ro", None, 0)
    call("fsconfig", fs, 6, None, None, 0)
    return call("fsmount", fs, 1, 1)


def decode(data):
    magic, version, kind, ident, n, zero = struct.unpack_from("<4sHHIHH", data)
    assert magic == b"BSM1" and version == 1 and zero == 0, data[:16]
    fields, at = {}, 16
    for _ in range(n):
        tag, size = struct.unpack_from("<HI", data, at)
        fields.setdefault(tag, []).append(data[at + 6:at + 6 + size])
        at += 6 + size + 1
    return kind, ident, fields


def reply(conn, ident, fields, fds=()):
    data = struct.pack("<4sHHIHH", b"BSM1", 1, REPLY, ident, len(fields), 0)
    for tag, value in fields:
        data += struct.pack("<HI", tag, len(value)) + value + b"\0"
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    conn.sendmsg([data], rights)


def error(number):
    text = "the test wants error %d" % number
    return [(RESULT, struct.pack("<Q", number)), (TEXT, text.encode())]


def answer(conn, o, fd):
    data = conn.recv(65536)
    if not data:
        return False
    kind, ident, f = decode(data)
    words = [str(kind)] + [b" ".join(f.get(t, [b"-"])).decode() for t in (CONTAINER, DIGEST, SOURCE)]
    with open(o.log, "a") as log:
        log.write(" ".join(words) + "\n")
    good = [(RESULT, struct.pack("<Q", 0))]
    if kind == ACQUIRE and not o.acquire:
        own = fd if o.directory else call("open_tree", fd, b"", 0x1001)
        reply(conn, ident, good, [own])
        if own != fd:
            os.close(own)
    elif kind == ACQUIRE:
        reply(conn, ident, error(o.acquire))
    elif kind == UNPACK and o.unpack:
        reply(conn, ident, good + [(PATH, o.unpack.encode())])
    elif kind == RESOLVE and o.resolve:
        reply(conn, ident, good + [(DIGEST, o.resolve.encode())])
    elif kind in (UNPACK, RESOLVE):
        reply(conn, ident, error(5))
    else:
        reply(conn, ident, good)
    return True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("socket")
    p.add_argument("image")
    p.add_argument("--acquire", type=int, default=0)
    p.add_argument("--unpack")
    p.add_argument("--resolve")
    p.add_argument("--log", default="/dev/null")
    o = p.parse_args()
    fd = image_fd(o.image)
    o.directory = os.path.isdir(o.image)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(o.socket)
    server.listen(64)
    while True:
        conn, _ = server.accept()
        with conn:
            try:
                while answer(conn, o, fd):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass


main()
