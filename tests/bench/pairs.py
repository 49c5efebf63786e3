#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""Time several commands against each other, in turns, so that what else the machine does
falls on all of them alike.

usage: pairs.py [OPTION...] NAME=COMMAND...

  --reps N          rounds; each runs every command once (default 15), after one that is not counted
  --before COMMAND  run before each measured command, not timed; {} is the command's name
  --count NAME=COMMAND
                    prints a number before and after: the table shows the median difference
  --first-line      time to the first line of output, not to the end
  --unit ms|s       of the table
  --keep-cold       no uncounted round first (each start is made cold by --before)
  --json FILE       append the raw figures, one object a line

COMMAND is split as a shell would and run without one. The first NAME is what the others
are compared with: the column "ratio" is their median over its, "more" the median of the
paired differences.
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reps", type=int, default=15)
    p.add_argument("--before")
    p.add_argument("--count", action="append", default=[])
    p.add_argument("--first-line", action="store_true")
    p.add_argument("--unit", choices=("ms", "s"), default="ms")
    p.add_argument("--keep-cold", action="store_true")
    p.add_argument("--json")
    p.add_argument("--title", default="")
    p.add_argument("cases", nargs="+")
    return p.parse_args()


def run_once(command, first_line):
    start = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as p:
        line = p.stdout.readline()
        first = time.monotonic() - start
        p.stdout.read()
        status = p.wait()
    if status or (first_line and not line):
        sys.exit(f"{shlex.join(command)}: status {status}, first line {line!r}")
    return first if first_line else time.monotonic() - start


def number(command):
    return float(subprocess.check_output(shlex.split(command)))


def measure(a, name, command, counts):
    if a.before:
        subprocess.check_call(shlex.split(a.before.replace("{}", shlex.quote(name))), stdout=sys.stderr)
    before = {c: number(what) for c, what in counts.items()}
    r = {"seconds": run_once(command, a.first_line)}
    r.update({c: number(what) - before[c] for c, what in counts.items()})
    if a.json:
        with open(a.json, "a", encoding="utf-8") as f:
            f.write(json.dumps({"title": a.title, "name": name, **r}) + "\n")
    return r


def table(a, got, counts):
    scale = 1000 if a.unit == "ms" else 1
    base = [r["seconds"] for r in next(iter(got.values()))]
    print(f"\n{a.title}  ({a.reps} rounds, {a.unit})".lstrip())
    print(f"{'':34}{'median':>9}{'min':>9}{'max':>9}{'ratio':>8}{'more':>9}",
          "".join(f"{c:>12}" for c in counts))
    for name, runs in got.items():
        t = [r["seconds"] for r in runs]
        more = statistics.median(x - y for x, y in zip(t, base))
        print(f"{name:34}{statistics.median(t) * scale:9.2f}{min(t) * scale:9.2f}"
              f"{max(t) * scale:9.2f}{statistics.median(t) / statistics.median(base):8.2f}"
              f"{more * scale:9.2f}",
              "".join(f"{statistics.median(r[c] for r in runs):12.2f}" for c in counts))


def main():
    a = parse()
    cases = {n: shlex.split(c) for n, c in (x.split("=", 1) for x in a.cases)}
    counts = dict(x.split("=", 1) for x in a.count)
    got = {name: [] for name in cases}
    for i in range(a.reps + (not a.keep_cold)):
        for name, command in cases.items():
            r = measure(a, name, command, counts)
            if i or a.keep_cold:
                got[name].append(r)
    table(a, got, counts)


main()
