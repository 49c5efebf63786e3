#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""hotliar.py: a hot pack of right form, with one byte that is not the image's.

usage: hotliar.py PACK OUT
Changes one byte of the first ELF file's head that the pack has, compresses that segment
anew, and lets all lengths of the pack's head follow (bootseer-hot(5)). Prints the digest of
the head, which a manifest names.
"""

import hashlib
import struct
import subprocess
import sys

HEAD = struct.Struct("<8sIIIIII32sQQ")
MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 4096


def zstd(data, *options):
    done = subprocess.run(["zstd", "-q", "-c", *options], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else b""


def unpack(segment, n_blocks):
    """The hashes of a segment, and its blocks."""
    at = -32
    while True:
        at = segment.index(MAGIC, at + 32 if at < 0 else at + 1)
        blocks = zstd(segment[at:], "-d") if at % 32 == 0 else b""
        if len(blocks) == n_blocks * BLOCK:
            return segment[:at], blocks


def main():
    with open(sys.argv[1], "rb") as file:
        pack = file.read()
    head = list(HEAD.unpack_from(pack))
    n_segments, n_extents, extra_len = head[4], head[5], head[9]
    lens = [list(struct.unpack_from("<II", pack, HEAD.size + 8 * i)) for i in range(n_segments)]
    extents = [struct.unpack_from("<II", pack, HEAD.size + 8 * (n_segments + i))
               for i in range(n_extents)]
    at = head_len = HEAD.size + 8 * (n_segments + n_extents) + extra_len
    segments, first, changed = [], 0, False
    for entry in lens:
        segment = pack[at:at + entry[0]]
        n_blocks = sum(n for _, n in extents[first:first + entry[1]])
        at += entry[0]
        first += entry[1]
        if not changed:
            hashes, blocks = unpack(segment, n_blocks)
            starts = [i for i in range(0, len(blocks), BLOCK) if blocks[i:i + 4] == b"\x7fELF"]
            if starts:
                bad = bytearray(blocks)
                bad[starts[0] + 24] ^= 1
                segment = hashes + zstd(bytes(bad), "-9", "--no-check",
                                        "--stream-size=%d" % len(bad))
                entry[0] = len(segment)
                changed = True
        segments.append(segment)
    if not changed:
        sys.exit("no ELF file in the pack")
    head[8] = sum(entry[0] for entry in lens)
    new = HEAD.pack(*head) + b"".join(struct.pack("<II", *entry) for entry in lens)
    new += pack[len(new):head_len]
    with open(sys.argv[2], "wb") as file:
        file.write(new + b"".join(segments))
    print("sha256:" + hashlib.sha256(new).hexdigest())


main()
