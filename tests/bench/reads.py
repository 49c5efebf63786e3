#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""Read trees of the same content against each other.

usage: reads.py [--rounds N] NAME=DIR...

For each tree, in turns: walk (names and attributes of everything), cold and warm; the
biggest files in sequence, cold and warm; and random 4 KiB of them, cold. Cold: the
kernel's caches were dropped just before. Figures are medians; ratios are medians of those
to the first tree in the same round, of time for walks, of rates for reads: there below 1
is worse than the first.
"""
import os
import random
import statistics
import subprocess
import sys
import time

SEQUENTIAL_MAX = 256 << 20
RANDOM_READS = 1500


def drop():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def walk(top, _files):
    start = time.monotonic()
    subprocess.check_call(["find", top, "-xdev", "-printf", "%i %m %U %G %s %T@ %p\n"],
                          stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def sequential(top, files):
    n, start = 0, time.monotonic()
    for name in files:
        with open(top + name, "rb", buffering=0) as f:
            while data := f.read(1 << 20):
                n += len(data)
    return n / (time.monotonic() - start) / 1e6


def at_random(top, files):
    rand = random.Random(1)
    fds = [os.open(top + name, os.O_RDONLY) for name in files]
    sizes = [os.fstat(fd).st_size for fd in fds]
    for fd in fds:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    start = time.monotonic()
    for _ in range(RANDOM_READS):
        i = rand.randrange(len(fds))
        os.pread(fds[i], 4096, rand.randrange(sizes[i] // 4096) * 4096)
    seconds = time.monotonic() - start
    for fd in fds:
        os.close(fd)
    return RANDOM_READS / seconds


def biggest(top):
    found, total, picked = [], 0, []
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append((os.stat(path).st_size, path[len(top):]))
    for size, name in sorted(found, reverse=True):
        if total + size > SEQUENTIAL_MAX or size < 1 << 20:
            continue
        total += size
        picked.append(name)
    return picked


TESTS = [("walk, cold (s)", walk, True), ("walk, warm (s)", walk, False),
         ("sequential, cold (MB/s)", sequential, True), ("sequential, warm (MB/s)", sequential, False),
         ("random 4 KiB, cold (reads/s)", at_random, True)]


def main():
    args, rounds = sys.argv[1:], 3
    if args[0] == "--rounds":
        rounds, args = int(args[1]), args[2:]
    trees = dict(a.split("=", 1) for a in args)
    files = biggest(next(iter(trees.values())))
    print(f"{'':30}" + "".join(f"{name:>23}" for name in trees))
    for title, test, cold in TESTS:
        got = {name: [] for name in trees}
        for _ in range(rounds):
            for name, top in trees.items():
                if cold:
                    drop()
                else:
                    test(top, files)
                got[name].append(test(top, files))
        first = next(iter(got.values()))
        print(f"{title:30}" + "".join(
            f"{statistics.median(v):15.2f} ({statistics.median(x / y for x, y in zip(v, first)):5.2f})"
            for v in got.values()), flush=True)


main()
