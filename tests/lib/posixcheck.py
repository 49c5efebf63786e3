#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""posixcheck.py: what programs expect of a filesystem, one check at a time.

usage: posixcheck.py DIR [NAME...]

Each check runs in a directory of its own below DIR, which has to be empty or absent. Prints
"ok NAME" or "not ok NAME: why", at the end how many; status 1 when one failed. Run on ext4 it
passes whole, so a failure elsewhere is that filesystem's.
"""
import errno
import fcntl
import mmap
import os
import shutil
import stat
import sys
import threading
import time

CHECKS = []
MIB = 1 << 20


def check(fn):
    CHECKS.append(fn)
    return fn


def fails(code, fn, *args, **kw):
    try:
        fn(*args, **kw)
    except OSError as e:
        assert e.errno == code, "%s in place of %s" % (errno.errorcode[e.errno], errno.errorcode[code])
    else:
        raise AssertionError("no %s" % errno.errorcode[code])


def put(path, data=b"data"):
    with open(path, "wb") as f:
        f.write(data)
    return data


def get(path):
    with open(path, "rb") as f:
        return f.read()


def pattern(n, seed=0):
    block = bytes((i * 7 + (i >> 8) * 13 + seed) & 255 for i in range(65536))
    return (block * (n // 65536 + 1))[:n]


# --- files


@check
def write_and_read():
    d = put("f", pattern(3 * MIB + 17))
    assert get("f") == d


@check
def empty_file():
    put("f", b"")
    assert os.stat("f").st_size == 0 and get("f") == b""


@check
def one_byte():
    put("f", b"x")
    assert get("f") == b"x"


@check
def size_after_close():
    put("f", b"x" * 12345)
    assert os.stat("f").st_size == 12345


@check
def size_while_open():
    with open("f", "wb", buffering=0) as f:
        f.write(b"x" * 1000)
        assert os.fstat(f.fileno()).st_size == 1000
        assert os.stat("f").st_size == 1000


@check
def read_what_is_being_written():
    with open("f", "wb", buffering=0) as f:
        f.write(b"hello")
        assert get("f") == b"hello"


@check
def o_excl():
    fd = os.open("f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.close(fd)
    fails(errno.EEXIST, os.open, "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@check
def o_creat_of_an_existing_one_keeps_it():
    put("f", b"keep")
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY))
    assert get("f") == b"keep"


@check
def o_trunc():
    put("f", b"long content")
    put("f", b"new")
    assert get("f") == b"new"


@check
def o_trunc_alone():
    put("f", b"long content")
    os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))
    assert os.stat("f").st_size == 0


@check
def o_append():
    put("f", b"one")
    with open("f", "ab") as f:
        f.write(b"two")
    assert get("f") == b"onetwo"


@check
def append_often():
    for i in range(5):
        with open("f", "ab") as f:
            f.write(b"%d\n" % i)
    assert get("f") == b"0\n1\n2\n3\n4\n"


@check
def reopen_and_go_on_at_the_end():
    put("f", b"abc")
    with open("f", "r+b") as f:
        f.seek(0, 2)
        assert f.tell() == 3
        f.write(b"def")
    assert get("f") == b"abcdef"


@check
def overwrite_in_the_middle():
    put("f", pattern(MIB))
    with open("f", "r+b") as f:
        f.seek(1000)
        f.write(b"HERE")
    d = bytearray(pattern(MIB))
    d[1000:1004] = b"HERE"
    assert get("f") == bytes(d)


@check
def overwrite_the_head_of_a_new_file():
    with open("f", "wb") as f:
        f.write(b"\0" * 8 + b"body" * 1000)
        f.seek(0)
        f.write(b"12345678")
    assert get("f") == b"12345678" + b"body" * 1000


@check
def write_backwards():
    with open("f", "w+b", buffering=0) as f:
        for i in range(9, -1, -1):
            f.seek(i * 1000)
            f.write(b"%d" % i * 1000)
    assert get("f") == b"".join(b"%d" % i * 1000 for i in range(10))


@check
def hole_by_seek():
    with open("f", "wb") as f:
        f.seek(100000)
        f.write(b"end")
    assert get("f") == b"\0" * 100000 + b"end"


@check
def pwrite_pread():
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    assert os.pwrite(fd, b"abcdef", 0) == 6
    assert os.pread(fd, 3, 2) == b"cde"
    assert os.pread(fd, 10, 6) == b""
    os.close(fd)


@check
def writev_readv():
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    assert os.writev(fd, [b"ab", b"", b"cdef"]) == 6
    a, b = bytearray(2), bytearray(4)
    os.lseek(fd, 0, 0)
    assert os.readv(fd, [a, b]) == 6 and bytes(a + b) == b"abcdef"
    os.close(fd)


@check
def many_small_writes():
    with open("f", "wb", buffering=0) as f:
        for i in range(2000):
            f.write(b"%04d" % i)
    assert get("f") == b"".join(b"%04d" % i for i in range(2000))


@check
def large_file():
    d = pattern(20 * MIB + 3)
    put("f", d)
    assert get("f") == d


@check
def read_at_the_end():
    put("f", b"12345")
    with open("f", "rb") as f:
        f.seek(5)
        assert f.read() == b""
        f.seek(100)
        assert f.read() == b""
        f.seek(-2, 2)
        assert f.read() == b"45"


@check
def read_from_the_tail():
    d = put("f", pattern(9 * MIB))
    with open("f", "rb") as f:
        f.seek(-100, 2)
        assert f.read() == d[-100:]
        f.seek(0)
        assert f.read(100) == d[:100]


@check
def wrong_mode_of_open():
    put("f")
    fd = os.open("f", os.O_RDONLY)
    fails(errno.EBADF, os.write, fd, b"x")
    os.close(fd)
    fd = os.open("f", os.O_WRONLY)
    fails(errno.EBADF, os.read, fd, 1)
    os.close(fd)


# --- length


@check
def ftruncate_first():
    fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.ftruncate(fd, 3 * MIB)
    assert os.fstat(fd).st_size == 3 * MIB
    d = pattern(3 * MIB)
    for at in range(0, len(d), MIB):
        os.pwrite(fd, d[at:at + MIB], at)
    os.close(fd)
    assert get("f") == d


@check
def ftruncate_shorter():
    put("f", b"0123456789")
    with open("f", "r+b") as f:
        f.truncate(4)
    assert get("f") == b"0123"


@check
def ftruncate_longer():
    put("f", b"01")
    with open("f", "r+b") as f:
        f.truncate(6)
    assert get("f") == b"01\0\0\0\0"


@check
def truncate_by_name():
    put("f", b"0123456789")
    os.truncate("f", 3)
    assert get("f") == b"012"
    os.truncate("f", 0)
    assert os.stat("f").st_size == 0


@check
def truncate_then_append():
    put("f", b"0123456789")
    os.truncate("f", 3)
    with open("f", "ab") as f:
        f.write(b"abc")
    assert get("f") == b"012abc"


@check
def truncate_then_longer_is_zero():
    put("f", b"0123456789")
    os.truncate("f", 2)
    os.truncate("f", 5)
    assert get("f") == b"01\0\0\0"


# --- syncing


@check
def fsync_file():
    fd = os.open("f", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"x" * MIB)
    os.fsync(fd)
    os.write(fd, b"y" * 10)
    os.fdatasync(fd)
    os.close(fd)
    assert get("f") == b"x" * MIB + b"y" * 10


@check
def fsync_directory():
    put("f")
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


@check
def fsync_of_a_reader():
    put("f")
    fd = os.open("f", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


@check
def sync_file_by_duplicate():
    fd = os.open("f", os.O_WRONLY | os.O_CREAT)
    two = os.dup(fd)
    os.write(fd, b"a")
    os.close(fd)
    os.write(two, b"b")
    os.close(two)
    assert get("f") == b"ab"


# --- names


@check
def mkdir_rmdir():
    os.mkdir("d")
    assert stat.S_ISDIR(os.stat("d").st_mode)
    os.rmdir("d")
    fails(errno.ENOENT, os.stat, "d")


@check
def mkdir_exists():
    os.mkdir("d")
    fails(errno.EEXIST, os.mkdir, "d")
    put("f")
    fails(errno.EEXIST, os.mkdir, "f")


@check
def mkdir_without_parent():
    fails(errno.ENOENT, os.mkdir, "a/b")


@check
def rmdir_not_empty():
    os.mkdir("d")
    put("d/f")
    fails(errno.ENOTEMPTY, os.rmdir, "d")


@check
def rmdir_of_a_file_unlink_of_a_directory():
    put("f")
    os.mkdir("d")
    fails(errno.ENOTDIR, os.rmdir, "f")
    fails(errno.EISDIR, os.unlink, "d")


@check
def below_a_file():
    put("f")
    fails(errno.ENOTDIR, os.stat, "f/x")
    fails(errno.ENOTDIR, os.open, "f/x", os.O_CREAT | os.O_WRONLY)


@check
def write_to_a_directory():
    os.mkdir("d")
    fails(errno.EISDIR, os.open, "d", os.O_WRONLY)


@check
def absent():
    fails(errno.ENOENT, os.stat, "f")
    fails(errno.ENOENT, os.open, "f", os.O_RDONLY)
    fails(errno.ENOENT, os.unlink, "f")
    fails(errno.ENOENT, os.rmdir, "f")
    fails(errno.ENOENT, os.rename, "f", "g")


@check
def unlink():
    put("f")
    os.unlink("f")
    fails(errno.ENOENT, os.stat, "f")
    put("f", b"again")
    assert get("f") == b"again"


@check
def unlink_while_read():
    d = put("f", pattern(2 * MIB))
    with open("f", "rb", buffering=0) as f:
        assert f.read(10) == d[:10]
        os.unlink("f")
        fails(errno.ENOENT, os.stat, "f")
        f.seek(0)
        assert f.read(2 * MIB) == d
        assert os.fstat(f.fileno()).st_size == 2 * MIB


@check
def unlink_while_written():
    with open("f", "wb", buffering=0) as f:
        f.write(b"abc")
        os.unlink("f")
        f.write(b"def")
    fails(errno.ENOENT, os.stat, "f")


@check
def rename():
    put("f", b"1")
    os.rename("f", "g")
    fails(errno.ENOENT, os.stat, "f")
    assert get("g") == b"1"


@check
def rename_over_a_file():
    put("f", b"new")
    put("g", b"old")
    os.rename("f", "g")
    assert get("g") == b"new"
    fails(errno.ENOENT, os.stat, "f")


@check
def rename_to_another_directory():
    os.mkdir("a")
    os.mkdir("b")
    put("a/f", b"1")
    os.rename("a/f", "b/g")
    assert get("b/g") == b"1" and os.listdir("a") == []


@check
def rename_directory():
    os.mkdir("a")
    put("a/f", b"1")
    os.rename("a", "b")
    assert get("b/f") == b"1"
    fails(errno.ENOENT, os.stat, "a")


@check
def rename_over_an_empty_directory():
    os.mkdir("a")
    put("a/f", b"1")
    os.mkdir("b")
    os.rename("a", "b")
    assert get("b/f") == b"1"


@check
def rename_over_a_full_directory():
    os.mkdir("a")
    os.mkdir("b")
    put("b/f")
    try:
        os.rename("a", "b")
    except OSError as e:
        assert e.errno in (errno.ENOTEMPTY, errno.EEXIST), e
    else:
        raise AssertionError("it was done")


@check
def rename_file_and_directory():
    put("f")
    os.mkdir("d")
    fails(errno.EISDIR, os.rename, "f", "d")
    fails(errno.ENOTDIR, os.rename, "d", "f")


@check
def rename_into_itself():
    os.mkdir("d")
    fails(errno.EINVAL, os.rename, "d", "d/e")


@check
def rename_to_the_same_name():
    put("f", b"1")
    os.rename("f", "f")
    assert get("f") == b"1"


@check
def rename_while_read():
    d = put("f", pattern(2 * MIB))
    put("g", b"other")
    with open("f", "rb", buffering=0) as f:
        os.rename("g", "f")
        assert f.read(2 * MIB) == d
    assert get("f") == b"other"


@check
def rename_while_written():
    with open("f", "wb", buffering=0) as f:
        f.write(b"abc")
        os.rename("f", "g")
        f.write(b"def")
    assert get("g") == b"abcdef"
    fails(errno.ENOENT, os.stat, "f")


@check
def save_by_temporary():
    put("model", b"old" * 1000)
    fd = os.open("model.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, b"new" * 1000)
    os.fsync(fd)
    os.close(fd)
    os.replace("model.tmp", "model")
    assert get("model") == b"new" * 1000 and os.listdir(".") == ["model"]


@check
def long_name():
    name = "n" * 255
    put(name)
    assert os.listdir(".") == [name]
    fails(errno.ENAMETOOLONG, put, "n" * 256)


@check
def strange_names():
    names = ["a b", "a%b", "a%41", "a;b", "a+b", "a#b", "a?b", "a&b=c", "a\nb", "ä€😀", "a'b\"c", "a\\b", "-x", "...",
             " x ", "a*b", "a[b]", "a|b", "~", "a,b"]
    for n in names:
        put(n, n.encode())
    assert sorted(os.listdir(".")) == sorted(names)
    for n in names:
        assert get(n) == n.encode(), n
        os.rename(n, n + "2")
        os.unlink(n + "2")
    assert os.listdir(".") == []


@check
def name_with_a_colon():
    put("a:b")
    assert os.listdir(".") == ["a:b"]


@check
def name_that_is_no_text():
    put(b"a\xff")
    assert os.listdir(b".") == [b"a\xff"]


@check
def deep_directories():
    path = "/".join("d%d" % i for i in range(30))
    os.makedirs(path)
    put(path + "/f", b"deep")
    assert get(path + "/f") == b"deep"
    shutil.rmtree("d0")
    assert os.listdir(".") == []


# --- directories


@check
def list_empty():
    assert os.listdir(".") == []


@check
def list_many():
    names = ["f%04d" % i for i in range(300)]
    for n in names:
        put(n, b"")
    assert sorted(os.listdir(".")) == names
    assert sorted(e.name for e in os.scandir(".") if e.is_file()) == names


@check
def list_kinds():
    put("f")
    os.mkdir("d")
    os.symlink("f", "l")
    kinds = {e.name: (e.is_file(follow_symlinks=False), e.is_dir(follow_symlinks=False), e.is_symlink())
             for e in os.scandir(".")}
    assert kinds == {"f": (True, False, False), "d": (False, True, False), "l": (False, False, True)}


@check
def remove_while_listing():
    for i in range(50):
        put("f%d" % i, b"")
    for e in os.scandir("."):
        os.unlink(e.path)
    assert os.listdir(".") == []


@check
def new_entry_is_seen_at_once():
    for i in range(5):
        put("f%d" % i)
        assert len(os.listdir(".")) == i + 1


# --- links


@check
def symlink():
    put("f", b"target")
    os.symlink("f", "l")
    assert os.readlink("l") == "f" and get("l") == b"target"
    assert stat.S_ISLNK(os.lstat("l").st_mode) and os.lstat("l").st_size == 1
    fails(errno.EEXIST, os.symlink, "g", "l")


@check
def symlink_dangling():
    os.symlink("nowhere/ü", "l")
    assert os.readlink("l") == "nowhere/ü"
    fails(errno.ENOENT, os.stat, "l")
    os.unlink("l")
    assert os.listdir(".") == []


@check
def symlink_to_a_directory():
    os.mkdir("step-1")
    put("step-1/f", b"1")
    os.symlink("step-1", "latest")
    assert get("latest/f") == b"1"


@check
def symlink_replaced():
    os.mkdir("step-1")
    os.mkdir("step-2")
    os.symlink("step-1", "latest")
    os.symlink("step-2", "latest.tmp")
    os.replace("latest.tmp", "latest")
    assert os.readlink("latest") == "step-2"


@check
def readlink_of_a_file():
    put("f")
    fails(errno.EINVAL, os.readlink, "f")


@check
def hard_link():
    put("f", b"1")
    os.link("f", "g")
    assert get("g") == b"1" and os.stat("f").st_nlink == 2


# --- attributes


@check
def chmod():
    put("f")
    for mode in 0o600, 0o644, 0o444, 0o755:
        os.chmod("f", mode)
        assert stat.S_IMODE(os.stat("f").st_mode) == mode


@check
def mode_of_a_new_file():
    old = os.umask(0)
    try:
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o640))
        os.mkdir("d", 0o750)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat("f").st_mode) == 0o640, oct(os.stat("f").st_mode)
    assert stat.S_IMODE(os.stat("d").st_mode) == 0o750


@check
def umask():
    old = os.umask(0o027)
    try:
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o666))
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat("f").st_mode) == 0o640


@check
def chmod_keeps_content():
    put("f", b"1")
    os.chmod("f", 0o400)
    assert get("f") == b"1"


@check
def owner():
    put("f")
    assert os.stat("f").st_uid == os.getuid()
    os.chown("f", os.getuid(), os.getgid())


@check
def chown_to_another():
    put("f")
    os.chown("f", 1, 1)  # daemon, on Debian
    assert (os.stat("f").st_uid, os.stat("f").st_gid) == (1, 1)


@check
def utimens():
    put("f")
    os.utime("f", ns=(1500000000123000000, 1600000000456000000))
    assert os.stat("f").st_mtime_ns == 1600000000456000000


@check
def utimens_now():
    put("f")
    os.utime("f", ns=(10 ** 18, 10 ** 18))
    os.utime("f")
    assert abs(os.stat("f").st_mtime - time.time()) < 60


@check
def mtime_moves():
    put("f")
    os.utime("f", ns=(10 ** 18, 10 ** 18))
    with open("f", "ab") as f:
        f.write(b"x")
    assert abs(os.stat("f").st_mtime - time.time()) < 60


@check
def mtime_stays():
    put("f")
    os.utime("f", ns=(10 ** 18, 10 ** 18))
    get("f")
    os.rename("f", "g")
    assert os.stat("g").st_mtime_ns == 10 ** 18


@check
def inode_numbers():
    put("f")
    put("g")
    a, b = os.stat("f"), os.stat("g")
    assert a.st_ino != b.st_ino and a.st_dev == b.st_dev
    assert os.path.samefile("f", "f") and not os.path.samefile("f", "g")
    with open("f") as f:
        assert os.fstat(f.fileno()).st_ino == a.st_ino


@check
def xattrs():
    put("f")
    os.setxattr("f", "user.a", b"1\x00\xff")
    os.setxattr("f", "user.b", b"")
    assert os.getxattr("f", "user.a") == b"1\x00\xff"
    assert os.getxattr("f", "user.b") == b""
    assert sorted(os.listxattr("f")) == ["user.a", "user.b"]
    fails(errno.EEXIST, os.setxattr, "f", "user.a", b"2", os.XATTR_CREATE)
    fails(errno.ENODATA, os.setxattr, "f", "user.c", b"2", os.XATTR_REPLACE)
    os.removexattr("f", "user.a")
    fails(errno.ENODATA, os.getxattr, "f", "user.a")
    assert os.listxattr("f") == ["user.b"]


@check
def statfs():
    s = os.statvfs(".")
    assert s.f_blocks > 0 and 0 < s.f_bavail <= s.f_blocks and s.f_namemax == 255


@check
def access():
    put("f")
    assert os.access("f", os.R_OK | os.W_OK) and not os.access("g", os.F_OK)


# --- locks, mappings, others


@check
def flock():
    put("f")
    with open("f") as a, open("f") as b:
        fcntl.flock(a, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fails(errno.EAGAIN, fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(a, fcntl.LOCK_UN)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)


@check
def record_lock():
    put("f")
    with open("f", "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(f, fcntl.LOCK_UN)


@check
def map_to_read():
    d = put("f", pattern(5 * MIB))
    with open("f", "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        assert m[4 * MIB:4 * MIB + 1000] == d[4 * MIB:4 * MIB + 1000]
        assert m[:] == d
        m.close()


@check
def map_private():
    d = put("f", pattern(MIB))
    with open("f", "rb") as f:
        m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        m[0:4] = b"mine"
        assert m[0:8] == b"mine" + d[4:8]
        m.close()
    assert get("f") == d


@check
def map_shared_to_write():
    put("f", pattern(MIB))
    with open("f", "r+b") as f:
        m = mmap.mmap(f.fileno(), 0)
        m[5000:5004] = b"SEEN"
        m.flush()
        m.close()
    d = bytearray(pattern(MIB))
    d[5000:5004] = b"SEEN"
    assert get("f") == bytes(d)


@check
def map_outlives_descriptor():
    d = put("f", pattern(MIB))
    f = open("f", "rb")
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    f.close()
    assert m[:] == d
    m.close()


@check
def sendfile():
    d = put("f", pattern(MIB))
    with open("f", "rb") as a, open("g", "wb") as b:
        at = 0
        while at < MIB:
            at += os.sendfile(b.fileno(), a.fileno(), at, MIB - at)
    assert get("g") == d


@check
def copy_file_range():
    d = put("f", pattern(MIB))
    with open("f", "rb") as a, open("g", "wb") as b:
        at = 0
        while at < MIB:
            at += os.copy_file_range(a.fileno(), b.fileno(), MIB - at)
    assert get("g") == d


@check
def seek_data():
    put("f", b"x" * 5000)
    fd = os.open("f", os.O_RDONLY)
    assert os.lseek(fd, 0, os.SEEK_DATA) == 0 and os.lseek(fd, 0, os.SEEK_HOLE) == 5000
    os.close(fd)


@check
def readers_at_once():
    d = put("f", pattern(6 * MIB))
    bad = []

    def read(i):
        with open("f", "rb") as f:
            f.seek(i * 100000)
            if f.read(MIB) != d[i * 100000:i * 100000 + MIB]:
                bad.append(i)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


@check
def writers_of_files_at_once():
    def write(i):
        put("f%d" % i, pattern(MIB, i))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(8):
        assert get("f%d" % i) == pattern(MIB, i)


@check
def two_handles_of_one_file():
    with open("f", "wb", buffering=0) as a, open("f", "r+b", buffering=0) as b:
        a.write(b"aaaa")
        b.seek(4)
        b.write(b"bbbb")
    assert get("f") == b"aaaabbbb"


@check
def open_many():
    put("f", b"1")
    files = [open("f", "rb") for _ in range(200)]
    assert all(f.read() == b"1" for f in files)
    for f in files:
        f.close()


@check
def copy_tree_and_remove():
    os.makedirs("a/b")
    put("a/f", b"1")
    put("a/b/g", pattern(MIB))
    shutil.copytree("a", "c")
    assert get("c/b/g") == pattern(MIB)
    shutil.rmtree("a")
    shutil.rmtree("c")
    assert os.listdir(".") == []


def run(base, fn):
    where = os.path.join(base, fn.__name__)
    os.mkdir(where)
    os.chdir(where)
    try:
        fn()
    except Exception as e:  # whatever it is, it is this check's
        why = " ".join(str(e).split()) or "line %d" % e.__traceback__.tb_next.tb_lineno
        print("not ok %s: %s: %s" % (fn.__name__, type(e).__name__, why))
        return False
    finally:
        os.chdir("/")
        shutil.rmtree(where, ignore_errors=True)
    print("ok %s" % fn.__name__)
    return True


def main():
    base = os.path.abspath(sys.argv[1])
    os.makedirs(base, exist_ok=True)
    os.umask(0o022)
    todo = [c for c in CHECKS if not sys.argv[2:] or c.__name__ in sys.argv[2:]]
    good = sum(run(base, c) for c in todo)
    os.rmdir(base)
    print("# %d of %d" % (good, len(todo)))
    return good != len(todo)


sys.exit(main())
