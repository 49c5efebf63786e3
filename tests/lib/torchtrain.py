#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""torchtrain.py: trains a model of two layers and saves each step, goes on where it was.

usage: torchtrain.py DIR STEPS [HALF]

Prints "from STEP SUM" at its start, "saved STEP SUM" when a step's checkpoint is whole, and
"end SUM LOSSES"; SUM is that of model, optimizer and schedule. In step HALF it says "half" when
half of the checkpoint is written, and waits to be killed.
"""
import hashlib
import io
import os
import shutil
import sys
import time
import types

import torch

# the compiler, which nothing here uses and every optimizer imports: half of the time
torch._dynamo = sys.modules["torch._dynamo"] = types.ModuleType("torch._dynamo")
torch._dynamo.disable = lambda fn=None, recursive=True, **_: fn
torch._dynamo.graph_break = lambda: None

top, steps, half = sys.argv[1], int(sys.argv[2]), int((sys.argv + ["0"])[3])
torch.set_num_threads(1)
torch.manual_seed(11)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                            torch.nn.Linear(1024, 256))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
losses = []


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
            "random": torch.get_rng_state(), "losses": losses}


def digest(what):
    """The same for the same values, however they are kept."""
    if isinstance(what, torch.Tensor):
        what = what.dtype, what.shape, what.numpy().tobytes()
    elif isinstance(what, dict):
        what = [(name, digest(value)) for name, value in what.items()]
    elif isinstance(what, list):
        what = [digest(value) for value in what]
    return hashlib.sha256(repr(what).encode()).hexdigest()


def say(*what):
    print(*what, flush=True)


def save(step):
    name = "%s/checkpoint-%d" % (top, step)
    tmp = "%s/tmp-%d" % (top, step)
    os.mkdir(tmp)
    if step == half:
        data = io.BytesIO()
        torch.save(state(), data)
        with open(tmp + "/state.pt", "wb", buffering=0) as f:
            f.write(data.getvalue()[:len(data.getvalue()) // 2])
            say("half")
            time.sleep(1000)
    torch.save(state(), tmp + "/state.pt")
    fd = os.open(tmp + "/state.pt", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.rename(tmp, name)
    os.symlink("checkpoint-%d" % step, top + "/latest.new")
    os.rename(top + "/latest.new", top + "/latest")
    shutil.rmtree("%s/checkpoint-%d" % (top, step - 2), ignore_errors=True)


os.makedirs(top, exist_ok=True)
for name in os.listdir(top):
    if name.startswith("tmp-"):
        shutil.rmtree(top + "/" + name)
first = 1
if os.path.lexists(top + "/latest"):
    saved = torch.load(top + "/latest/state.pt", mmap=True, weights_only=True)
    first = 1 + int(os.readlink(top + "/latest").rsplit("-", 1)[1])
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
    torch.set_rng_state(saved["random"].clone())
    losses = saved["losses"]
say("from", first - 1, digest(state()))
for step in range(first, steps + 1):
    x = torch.randn(64, 256)
    loss = torch.nn.functional.mse_loss(model(x), x.roll(1, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item().hex())
    save(step)
    say("saved", step, digest(state()))
say("end", digest(state()), *losses)
