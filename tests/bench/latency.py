#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""Read 4 KiB of a file at random places, one after the other, each place once.

usage: latency.py FILE COUNT PART PARTS

Places are 256 KiB apart, shuffled, and shared out among PARTS calls, of which this is
PART (from 0): so no call reads what another one read before. Prints how many, and the
median, the 99th of a hundred and the longest time in milliseconds.
"""
import os
import random
import sys
import time

name, count, part, parts = sys.argv[1], *map(int, sys.argv[2:5])
fd = os.open(name, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
places = list(range(0, os.fstat(fd).st_size - 4096, 256 << 10))
random.Random(1).shuffle(places)
times = []
for place in places[part::parts][:count]:
    start = time.monotonic()
    if len(os.pread(fd, 4096, place)) != 4096:
        sys.exit("short")
    times.append((time.monotonic() - start) * 1e3)
times.sort()
print(len(times), *(f"{t:.1f}" for t in (times[len(times) // 2], times[-(-len(times) * 99 // 100) - 1], times[-1])))
