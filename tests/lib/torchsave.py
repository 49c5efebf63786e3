#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""torchsave.py: what PyTorch and those who train with it save and load, on a filesystem.

usage: torchsave.py save DIR... | load DIR...

What is saved is the same in each DIR, to the byte, but for the files .metadata, which name
the save, and those in "sharded", whose tensors stand in any order. Two processes save what is
distributed; one loads it.
"""
import json
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

torch.manual_seed(7)
TENSORS = {"layer.%d.weight" % i: torch.randn(512, 700 + i) for i in range(6)}
TENSORS["half"] = torch.randn(1025, 511).bfloat16()
TENSORS["ids"] = torch.randint(1 << 60, (1000, 9))
TENSORS["empty"] = torch.empty(0, 4)
# of which shards are made
SHARDED = {name: t for name, t in TENSORS.items() if t.numel() and t.is_floating_point()}
FILES = {name: 1 + i % 2 for i, name in enumerate(SHARDED)}


def same(a, b):
    assert a.keys() == b.keys()
    for name, t in a.items():
        assert t.dtype == b[name].dtype and torch.equal(t, b[name]), name


def fsync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def save_alone():
    torch.save(TENSORS, "state.pt")
    torch.save(TENSORS, "state.pt")  # in place of another
    torch.save(TENSORS, "legacy.pt", _use_new_zipfile_serialization=False)
    with open("opened.pt", "wb") as f:
        torch.save({"epoch": 3}, f)
        f.flush()
        os.fsync(f.fileno())
    for step in 1, 2, 3:  # as trainers do, the last two are kept
        name = "checkpoint-%d" % step
        os.mkdir("tmp-" + name)
        save_file(TENSORS, "tmp-%s/model.safetensors" % name, metadata={"format": "pt"})
        torch.save(TENSORS, "tmp-%s/optimizer.pt" % name)
        with open("tmp-%s/trainer_state.json" % name, "w") as f:
            json.dump({"global_step": step}, f)
        fsync("tmp-" + name)
        os.rename("tmp-" + name, name)
        fsync(".")
        os.symlink(name, "latest.new")
        os.rename("latest.new", "latest")
        if step > 2:
            shutil.rmtree("checkpoint-%d" % (step - 2))


def save_together(rank, mesh):
    state = {name: distribute_tensor(t, mesh, [Replicate() if name == "half" else Shard(0)])
             for name, t in SHARDED.items()}
    dcp.save(state, checkpoint_id="dcp")
    dcp.save(state, checkpoint_id="dcp")  # over another
    dcp.async_save(state, checkpoint_id="async").result()
    # "sharded" and what it is made to, then the same made by hand
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(
        "hf", FILES, save_distributed=True, enable_consolidation=True))
    if rank == 0:
        os.mkdir("consolidated")
        consolidate_safetensors_files("hf/sharded", "consolidated", FILES, num_threads=2)
        dcp_to_torch_save("dcp", "from-dcp.pt")
    dist.barrier()


def rank_saves(rank, where, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    mesh = dist.init_device_mesh("cpu", (2,))
    for top in where:
        os.chdir(top)
        if rank == 0:
            save_alone()
        save_together(rank, mesh)
    dist.destroy_process_group()


def save(where):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    for top in where:
        os.makedirs(top, exist_ok=True)
    with tempfile.NamedTemporaryFile() as store:
        torch.multiprocessing.start_processes(rank_saves, (where, store.name), 2, start_method="fork")


def load(top):
    os.chdir(top)
    for mmap in False, True:
        same(torch.load("state.pt", mmap=mmap, weights_only=True), TENSORS)
    same(torch.load("legacy.pt", weights_only=True), TENSORS)
    assert torch.load("opened.pt", weights_only=True) == {"epoch": 3}
    same(torch.load("from-dcp.pt", mmap=True, weights_only=True), SHARDED)
    same(load_file("latest/model.safetensors"), TENSORS)
    same(torch.load("latest/optimizer.pt", mmap=True), TENSORS)
    with safe_open("checkpoint-2/model.safetensors", framework="pt") as f:
        for name in f.keys():
            assert torch.equal(f.get_slice(name)[1:7], TENSORS[name][1:7])
    for name, reader in ("dcp", None), ("async", None), ("hf", HuggingFaceStorageReader("hf")):
        state = {name: torch.zeros_like(t) for name, t in SHARDED.items()}
        dcp.load(state, checkpoint_id=None if reader else name, storage_reader=reader)
        same(state, SHARDED)
    for name in "hf", "consolidated":
        state = {}
        for i in 1, 2:
            state.update(load_file("%s/model-%05d-of-00002.safetensors" % (name, i)))
        same(state, SHARDED)
    assert sorted(os.listdir(".")) == ["async", "checkpoint-2", "checkpoint-3", "consolidated", "dcp", "from-dcp.pt",
                                       "hf", "latest", "legacy.pt", "opened.pt", "state.pt"]


if sys.argv[1] == "save":
    save([os.path.abspath(top) for top in sys.argv[2:]])
else:
    for top in [os.path.abspath(top) for top in sys.argv[2:]]:
        load(top)
