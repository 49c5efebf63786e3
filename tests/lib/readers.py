#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readers.py sums DIR             print "SHA256  PATH" of every regular file below DIR
readers.py check DIR SUMS N [SEED] N processes read every file below DIR, each in an order of
                                   its own, every second one through mmap, and compare.
Prints one line for each wrong or unreadable file; the exit code says whether there was any."""
import hashlib
import mmap
import os
import random
import sys


def files(top):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def digest(path, mapped):
    total = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        if mapped and os.fstat(file.fileno()).st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                total.update(view)
        else:
            while chunk := file.read(1 << 17):
                total.update(chunk)
    return total.hexdigest()


def check(top, sums, number, seed):
    mapped = number % 2 == 1
    todo = list(sums.items())
    random.Random(seed * 1000 + number).shuffle(todo)
    bad = 0
    for path, want in todo:
        try:
            got = digest(os.path.join(top, path), mapped)
        except OSError as error:
            got = str(error)
        if got != want:
            print(f"reader {number}: {path}: {got}, not {want}", flush=True)
            bad = 1
    os._exit(bad)


def main():
    if sys.argv[1] == "sums":
        top = sys.argv[2]
        for path in sorted(files(top)):
            print(digest(path, False), os.path.relpath(path, top), sep="  ")
        return 0
    top, listed, n = sys.argv[2], sys.argv[3], int(sys.argv[4])
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    sums = {}
    with open(listed, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            want, path = line.rstrip("\n").split("  ", 1)
            sums[path] = want
    pids = []
    for number in range(n):
        pid = os.fork()
        if pid == 0:
            check(top, sums, number, seed)
        pids.append(pid)
    return int(any([os.waitpid(pid, 0)[1] for pid in pids]))


if __name__ == "__main__":
    sys.exit(main())
