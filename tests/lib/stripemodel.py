#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""Edits a checkpoint file at random and compares it with what a plain array of bytes becomes.

usage: stripemodel.py URL SEED ROUNDS COMMAND...   COMMAND: hdfstool and its options
"""
import random
import subprocess
import sys

MIB = 1 << 20


def one_edit(rnd, model):
    kind = rnd.choice("fffatws")
    if kind == "f":
        off = rnd.choice([len(model), rnd.randint(0, len(model) + MIB),
                          rnd.randint(0, max(1, len(model) // MIB)) * MIB])
        n = rnd.choice([1, 100, MIB - 1, MIB, MIB + 1, 3 * MIB + 7, rnd.randint(1, 2 * MIB)])
        byte = rnd.randint(0, 255)
        if len(model) < off:
            model.extend(bytes(off - len(model)))
        model[off:off + n] = bytes([byte]) * n
        return f"f:{off}:{n}:{byte}"
    if kind == "a":
        model += b"tail"
        return "a:tail"
    if kind == "w":
        off = rnd.randint(0, len(model))
        model[off:off + 5] = b"hello"
        return f"w:{off}:hello"
    if kind == "t":
        n = rnd.choice([rnd.randint(0, len(model)), rnd.randint(0, len(model) // MIB + 1) * MIB,
                        len(model) + rnd.randint(0, 2 * MIB)])
        if n < len(model):
            del model[n:]
        else:
            model.extend(bytes(n - len(model)))
        return f"t:{n}"
    return "s"


def run(command, *args):
    return subprocess.run([*command, *args], capture_output=True, check=False)


def main():
    url, seed, rounds, command = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    rnd = random.Random(seed)
    model = bytearray()
    for i in range(rounds):
        edits = [one_edit(rnd, model) for _ in range(rnd.randint(1, 5))]
        at = rnd.randint(0, len(model))
        n = min(len(model) - at, rnd.randint(0, 2 * MIB))
        done = run(command, "--create", "ckedit", url, *edits, f"r:{at}:{n}")
        if done.returncode or done.stdout != bytes(model[at:at + n]):
            sys.exit(f"seed {seed}, round {i}: {edits}: read {at} {n}: {done.stderr[:300]}")
        back = run(command, "ckload", url)
        if back.stdout != bytes(model):
            sys.exit(f"seed {seed}, round {i}: {edits}: {len(back.stdout)} bytes, not "
                     f"{len(model)}, or others: {back.stderr[:300]}")


main()
