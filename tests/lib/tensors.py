#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""tensors.py: what programs of machine learning write and read, on a filesystem.

usage: tensors.py save DIR | load DIR
"""
import os
import sys

import h5py
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

rnd = numpy.random.default_rng(7)
TENSORS = {"layer.%d.weight" % i: rnd.standard_normal((512, 700 + i), dtype=numpy.float32) for i in range(12)}


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all()


def save(where):
    os.makedirs(where, exist_ok=True)
    os.chdir(where)
    save_file(TENSORS, "model.safetensors")
    numpy.save("one.npy", TENSORS["layer.3.weight"])
    numpy.savez("all.npz", **TENSORS)
    m = numpy.memmap("map.bin", dtype=numpy.float32, mode="w+", shape=(512, 705))
    m[:] = TENSORS["layer.5.weight"]
    m.flush()
    del m
    with h5py.File("all.h5", "w") as f:
        for name, t in TENSORS.items():
            f.create_dataset(name, data=t)
    for step in 1, 2, 3:  # as trainers do, the last two are kept
        name = "checkpoint-%d" % step
        os.mkdir("tmp-" + name)
        save_file(TENSORS, "tmp-%s/model.safetensors" % name)
        fd = os.open("tmp-" + name, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        os.rename("tmp-" + name, name)
        if os.path.lexists("latest"):
            os.unlink("latest")
        os.symlink(name, "latest")
    os.unlink("checkpoint-1/model.safetensors")
    os.rmdir("checkpoint-1")


def load(where):
    os.chdir(where)
    for name, t in load_file("model.safetensors").items():
        same(t, TENSORS[name])
    with safe_open("latest/model.safetensors", framework="np") as f:
        for name in f.keys():
            same(f.get_tensor(name), TENSORS[name])
    same(numpy.load("one.npy"), TENSORS["layer.3.weight"])
    same(numpy.load("one.npy", mmap_mode="r"), TENSORS["layer.3.weight"])
    with numpy.load("all.npz") as f:
        for name, t in TENSORS.items():
            same(f[name], t)
    same(numpy.memmap("map.bin", dtype=numpy.float32, mode="r", shape=(512, 705)), TENSORS["layer.5.weight"])
    with h5py.File("all.h5") as f:
        for name, t in TENSORS.items():
            same(f[name][:], t)
    assert sorted(os.listdir(".")) == ["all.h5", "all.npz", "checkpoint-2", "checkpoint-3", "latest", "map.bin",
                                       "model.safetensors", "one.npy"]


{"save": save, "load": load}[sys.argv[1]](sys.argv[2])
