#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""mknasty.py: an image of everything that a file system image can get wrong.

usage: mknasty.py [--list] [--engine-safe] [--without FEATURE]... [--only FEATURE]... DIR
Writes an OCI layout (tag "latest") of three layers. Each feature is one method
below, in a directory of its own. --engine-safe leaves out what containerd's own
unpacking refuses or gets wrong (ENGINE_UNSAFE has the reasons); ociunpack.py
unpacks all of it. The tar archives are written by hand, to have every byte of
the headers as wanted; the same call gives the same bytes.
"""

import argparse
import os
import struct
import tempfile

import ocilayout

BLOCK = 512
EPOCH = 1_700_000_000


# what containerd 1.6 and 2.4 make of it
ENGINE_UNSAFE = {
    "hardlink_across_layers": "refused: link target is looked for in the new layer only",
    "deep": "refused: file name too long",
    "whiteout_readd_dir": "the old directory's content shines through",
    "times_before_1970": "become 0",
    "parents_not_named": "such directories get the time of unpacking",
}


class Tar:
    """A pax archive. Names are bytes, without a leading slash."""

    def __init__(self, f):
        self.f = f

    def pad(self, size):
        self.f.write(bytes(-size % BLOCK))

    def header(self, name, kind, mode, uid, gid, size, mtime, link, major, minor):
        block = struct.pack(
            "100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x", name[:100], b"%07o" % mode,
            b"%07o" % uid, b"%07o" % gid, b"%011o" % size, b"%011o" % mtime, b" " * 8, kind,
            link[:100], b"ustar", b"00", b"", b"", b"%07o" % major, b"%07o" % minor, b"")
        self.f.write(block[:148] + b"%06o\0 " % sum(block) + block[156:])

    def pax(self, records):
        body = b""
        for key, value in records.items():
            rest = b" " + key + b"=" + value + b"\n"
            size = len(rest)
            while size != len(rest) + len(b"%d" % size):
                size = len(rest) + len(b"%d" % size)
            body += b"%d" % size + rest
        self.header(b"pax", b"x", 0o644, 0, 0, len(body), 0, b"", 0, 0)
        self.f.write(body)
        self.pad(len(body))

    def add(self, name, kind=b"0", data=b"", mode=0o644, uid=0, gid=0, mtime=EPOCH, link=b"",
            dev=(0, 0), xattrs=(), records=()):
        """mtime: seconds, or a text with a fraction."""
        records = dict(records)
        if len(name) > 100:
            records[b"path"] = name
        if len(link) > 100:
            records[b"linkpath"] = link
        if uid > 0o7777777:
            records[b"uid"], uid = b"%d" % uid, 0
        if gid > 0o7777777:
            records[b"gid"], gid = b"%d" % gid, 0
        if isinstance(mtime, str) or not 0 <= mtime <= 0o77777777777:
            records[b"mtime"], mtime = str(mtime).encode(), 0
        for key, value in dict(xattrs).items():
            records[b"SCHILY.xattr." + key] = value
        if records:
            self.pax(records)
        self.header(name, kind, mode, uid, gid, len(data), mtime, link, *dev)
        self.f.write(data)
        self.pad(len(data))

    def dir(self, name, mode=0o755, **kw):
        self.add(name.rstrip(b"/") + b"/", b"5", mode=mode, **kw)

    def symlink(self, name, target, **kw):
        self.add(name, b"2", mode=0o777, link=target, **kw)

    def hardlink(self, name, target, **kw):
        self.add(name, b"1", link=target, **kw)

    def node(self, name, kind, major=0, minor=0, mode=0o600, **kw):
        self.add(name, {"char": b"3", "block": b"4", "fifo": b"6"}[kind], mode=mode,
                 dev=(major, minor), **kw)

    def whiteout(self, name):
        head, _, tail = name.rpartition(b"/")
        self.add(head + b"/.wh." + tail)

    def opaque(self, name):
        self.add(name + b"/.wh..wh..opq")

    def end(self):
        self.f.write(bytes(2 * BLOCK))


def acl(*entries):
    """A POSIX ACL as the kernel stores it: (tag, permissions, id or None)."""
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, perm, 0xffffffff if who is None else who)
        for tag, perm, who in entries)


USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
# file capability, version 2: cap_net_raw+ep
NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)


class Nasty:
    """Each method adds one feature to the layers 1, 2, 3 (self.l[1] ...)."""

    def __init__(self, layers):
        self.l = [None] + layers

    def hardlink_across_layers(self):
        """A name in layer 2 for a file of layer 1; then the content is shared."""
        self.l[1].dir(b"xlink")
        self.l[1].add(b"xlink/old", data=b"one inode\n", mtime=EPOCH + 1)
        self.l[2].dir(b"xlink")
        self.l[2].hardlink(b"xlink/new", b"xlink/old", mtime=EPOCH + 1)

    def hardlink_first_name_gone(self):
        """Three names; the one that carries the content is whited out."""
        self.l[1].dir(b"link")
        self.l[1].add(b"link/a", data=b"still here\n" * 1000)
        self.l[1].hardlink(b"link/b", b"link/a")
        self.l[1].hardlink(b"link/c", b"link/a")
        self.l[2].dir(b"link")
        self.l[2].whiteout(b"link/a")

    def hardlink_kinds(self):
        """Hard links to a symbolic link, a device and a fifo; one in another directory."""
        t = self.l[1]
        t.dir(b"linkkinds")
        t.dir(b"linkkinds/sub")
        t.symlink(b"linkkinds/sym", b"target")
        t.hardlink(b"linkkinds/sym2", b"linkkinds/sym", mode=0o777)
        t.node(b"linkkinds/null", "char", 1, 3)
        t.hardlink(b"linkkinds/sub/null2", b"linkkinds/null", mode=0o600)
        t.node(b"linkkinds/fifo", "fifo")
        t.hardlink(b"linkkinds/fifo2", b"linkkinds/fifo", mode=0o600)

    def hardlink_many(self):
        """1000 names of one file."""
        self.l[1].dir(b"linkmany")
        self.l[1].add(b"linkmany/0", data=b"many\n")
        for i in range(1, 1000):
            self.l[1].hardlink(b"linkmany/%d" % i, b"linkmany/0")

    def opaque(self):
        """An opaque directory hides what is below it and keeps what is beside."""
        t = self.l[1]
        t.dir(b"opq")
        t.dir(b"opq/dir")
        t.add(b"opq/dir/hidden", data=b"x")
        t.dir(b"opq/dir/hiddendir")
        t.add(b"opq/dir/hiddendir/deep", data=b"x")
        t.add(b"opq/beside", data=b"y")
        t = self.l[2]
        t.dir(b"opq")
        t.dir(b"opq/dir", mode=0o750)
        t.opaque(b"opq/dir")
        t.add(b"opq/dir/shown", data=b"z")

    def whiteout(self):
        """A file, a directory with content, a symbolic link, and one again in layer 3."""
        t = self.l[1]
        t.dir(b"wh")
        for name in b"file", b"twice":
            t.add(b"wh/" + name, data=b"x")
        t.dir(b"wh/dir")
        t.add(b"wh/dir/x", data=b"x")
        t.symlink(b"wh/sym", b"file")
        self.l[2].dir(b"wh")
        for name in b"file", b"dir", b"sym", b"twice":
            self.l[2].whiteout(b"wh/" + name)
        self.l[3].dir(b"wh")
        self.l[3].add(b"wh/twice", data=b"back again\n")
        self.l[3].add(b"wh/keep", data=b"kept\n")

    def whiteout_readd(self):
        """Whited out and added again in one layer: the new one is what counts."""
        self.l[1].dir(b"readd")
        self.l[1].add(b"readd/file", data=b"old", xattrs={b"user.old": b"1"})
        self.l[2].dir(b"readd")
        self.l[2].whiteout(b"readd/file")
        self.l[2].add(b"readd/file", data=b"new", mode=0o600)

    def whiteout_readd_dir(self):
        """The same with a directory: nothing of the old one may shine through."""
        self.l[1].dir(b"readddir")
        self.l[1].dir(b"readddir/dir")
        self.l[1].add(b"readddir/dir/old", data=b"old")
        self.l[2].dir(b"readddir")
        self.l[2].whiteout(b"readddir/dir")
        self.l[2].dir(b"readddir/dir", mode=0o700)
        self.l[2].add(b"readddir/dir/new", data=b"new")

    def capability(self):
        self.l[1].dir(b"cap")
        self.l[1].add(b"cap/ping", data=b"#!\n", mode=0o755,
                      xattrs={b"security.capability": NET_RAW})

    def acl(self):
        self.l[1].dir(b"acl", xattrs={b"system.posix_acl_default": acl(
            (USER_OBJ, 7, None), (USER, 5, 1234), (GROUP_OBJ, 5, None), (MASK, 5, None),
            (OTHER, 0, None))})
        self.l[1].add(b"acl/file", mode=0o660, data=b"acl", xattrs={
            b"system.posix_acl_access": acl(
                (USER_OBJ, 6, None), (USER, 4, 1000), (GROUP_OBJ, 4, None),
                (GROUP, 6, 4_000_000_000), (MASK, 6, None), (OTHER, 0, None))})

    def xattrs(self):
        t = self.l[1]
        t.dir(b"xattr", xattrs={b"user.dir": b"on a directory"})
        t.add(b"xattr/text", xattrs={b"user.a": b"1", b"user.empty": b"", b"user.b.c": b"two\nlines"})
        t.add(b"xattr/binary", xattrs={b"user.bytes": bytes(range(256))})
        t.add(b"xattr/big", xattrs={b"user.big": b"v" * 3000})
        t.add(b"xattr/longname", xattrs={b"user." + b"n" * 250: b"1"})
        t.add(b"xattr/many", xattrs={b"user.%d" % i: b"value %d" % i for i in range(60)})
        for i in range(40):
            t.add(b"xattr/same%d" % i, xattrs={b"user.same": b"shared value" * 10})
        # engines ignore these
        t.symlink(b"xattr/sym", b"text", xattrs={b"trusted.onlink": b"1"})
        t.add(b"xattr/trusted", xattrs={b"trusted.overlay.opaque": b"y", b"user.x": b"1"})

    def sparse(self):
        """5 GiB with four pieces of data: pax sparse format 1.0."""
        self.l[1].dir(b"sparse")
        size, piece = 5 << 30, 4096
        offsets = [0, 1 << 20, (4 << 30) + 12288, size - piece]
        table = b"%d\n" % len(offsets) + b"".join(b"%d\n%d\n" % (o, piece) for o in offsets)
        table += bytes(-len(table) % BLOCK)
        data = b"".join(bytes([65 + i]) * piece for i in range(len(offsets)))
        self.l[1].add(b"sparse/GNUSparseFile.0/5G", data=table + data, records={
            b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0",
            b"GNU.sparse.name": b"sparse/5G", b"GNU.sparse.realsize": b"%d" % size})

    def sparse_small(self):
        """A hole at either end and unaligned pieces, 1 MiB."""
        self.l[1].dir(b"sparse2")
        table = b"2\n4097\n10\n1000000\n1\n"
        table += bytes(-len(table) % BLOCK)
        self.l[1].add(b"sparse2/GNUSparseFile.0/1M", data=table + b"0123456789!", records={
            b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0",
            b"GNU.sparse.name": b"sparse2/1M", b"GNU.sparse.realsize": b"1048576"})

    def names(self):
        t = self.l[1]
        t.dir(b"names")
        t.add(b"names/" + b"n" * 255, data=b"255 bytes")
        t.dir(b"names/" + b"d" * 255)
        t.add(b"names/" + b"d" * 255 + b"/" + b"f" * 255, data=b"below")
        t.add(b"names/\xff\xfe\x80bytes", data=b"not UTF-8")
        t.add("names/\u00e4\u00f6\u4e2d\u6587".encode(), data=b"UTF-8")
        for name in b" ", b"new\nline", b"tab\t", b"back\\slash", b"comma,colon:", b"-rf", \
                b"*?[", b"'\"$", b"\x01\x7f", b"...", b"..a", b".hidden":
            t.add(b"names/" + name, data=name)
        t.symlink(b"names/sym\xff", b"\xff\xfe\x80bytes")

    def symlinks(self):
        t = self.l[1]
        t.dir(b"sym")
        t.symlink(b"sym/long", b"t/" * 2000 + b"end")
        t.symlink(b"sym/absolute", b"/etc/passwd")
        t.symlink(b"sym/up", b"../../../../../../../etc/passwd")
        t.symlink(b"sym/self", b"self")
        t.symlink(b"sym/owned", b"nowhere", uid=7, gid=8, mtime="1600000000.5")

    def deep(self):
        """A path of more than 4096 bytes, 250 a step."""
        path = b"deep"
        self.l[1].dir(path)
        for i in range(20):
            path += b"/" + (b"%02d" % i) * 125
            self.l[1].dir(path)
        self.l[1].add(path + b"/bottom", data=b"past PATH_MAX")

    def nested(self):
        """500 directories in one another, of one letter each."""
        path = b"nested"
        self.l[1].dir(path)
        for _ in range(500):
            path += b"/n"
            self.l[1].dir(path)
        self.l[1].add(path + b"/bottom", data=b"bottom")

    def devices(self):
        t = self.l[1]
        t.dir(b"dev1")
        t.node(b"dev1/null", "char", 1, 3, mode=0o666)
        t.node(b"dev1/loop", "block", 7, 0, mode=0o660, gid=6)
        t.node(b"dev1/bigminor", "block", 259, 0xfffff)
        t.node(b"dev1/bigmajor", "char", 0xfff, 300)
        t.node(b"dev1/fifo", "fifo", mode=0o622)

    def bigdir(self):
        t = self.l[1]
        t.dir(b"bigdir")
        for i in range(70_000):
            t.add(b"bigdir/entry-%05d" % i, data=b"%d" % i if i % 1000 == 0 else b"")

    def ids(self):
        t = self.l[1]
        t.dir(b"ids", uid=100_000, gid=200_000)
        for uid, gid in (65534, 65534), (65535, 65535), (65536, 65537), (2**31 - 1, 2**31), \
                (2**32 - 2, 2**32 - 2), (0, 2**32 - 2):
            t.add(b"ids/%d-%d" % (uid, gid), uid=uid, gid=gid, data=b"i")

    def times(self):
        t = self.l[1]
        t.dir(b"times", mtime="1234567890.123456789")
        for when in "0", "0.000000001", "1700000000.999999999", "2147483647.999999999", \
                "2147483648", "4294967296.5", "6000000000.000000001":
            t.add(b"times/" + when.encode(), mtime=when, data=b"t")

    def times_before_1970(self):
        t = self.l[1]
        t.dir(b"oldtimes", mtime="-5.5")
        for when in "-1", "-0.5", "-0.000000001", "-1000000000.25":
            t.add(b"oldtimes/" + when.encode(), mtime=when, data=b"t")
        t.symlink(b"oldtimes/sym", b"x", mtime="-100.000000007")

    def parents_not_named(self):
        """A layer that names no directory: the lower ones stay as they are."""
        self.l[1].dir(b"parents", mode=0o711, uid=5, mtime="1500000000.25")
        self.l[1].dir(b"parents/sub", mode=0o750, xattrs={b"user.keep": b"1"})
        self.l[1].add(b"parents/sub/old", data=b"old")
        self.l[2].add(b"parents/sub/new", data=b"new")
        self.l[3].whiteout(b"parents/sub/old")

    def modes(self):
        t = self.l[1]
        t.dir(b"modes")
        for mode in 0o4755, 0o2755, 0o6755, 0o1644, 0o7777, 0o000, 0o111:
            t.add(b"modes/f%04o" % mode, mode=mode, uid=3, gid=4, data=b"m")
        for mode in 0o1777, 0o2775, 0o000, 0o3777:
            t.dir(b"modes/d%04o" % mode, mode=mode, uid=3, gid=4)

    def sizes(self):
        """Around the block size and the frame size; content that does not compress."""
        t = self.l[1]
        t.dir(b"sizes")
        state = 1
        for size in 0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 131072, 131073, 1_000_003:
            data = bytearray()
            while len(data) < size:
                state = state * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
                data += struct.pack("<Q", state ^ state >> 29)
            t.add(b"sizes/%d" % size, data=bytes(data[:size]))
        t.add(b"sizes/zeros", data=bytes(300_000))

    def type_changes(self):
        """A directory becomes a file and the other way round, and so on."""
        t = self.l[1]
        t.dir(b"type")
        t.dir(b"type/dir-file")
        t.add(b"type/dir-file/gone", data=b"x")
        t.add(b"type/file-dir", data=b"x")
        t.symlink(b"type/sym-dir", b"/etc")
        t.symlink(b"type/sym-file", b"../modes")
        t.add(b"type/file-sym", data=b"x")
        t.dir(b"type/dir-sym")
        t.add(b"type/dir-sym/gone", data=b"x")
        t.add(b"type/file-fifo", data=b"x")
        t = self.l[2]
        t.dir(b"type")
        t.add(b"type/dir-file", data=b"now a file")
        t.dir(b"type/file-dir", mode=0o700)
        t.add(b"type/file-dir/in", data=b"in")
        t.dir(b"type/sym-dir")
        t.add(b"type/sym-dir/passwd", data=b"not the host's\n")
        t.add(b"type/sym-file", data=b"file")
        t.symlink(b"type/file-sym", b"elsewhere")
        t.symlink(b"type/dir-sym", b"file-dir")
        t.node(b"type/file-fifo", "fifo")

    def attributes_change(self):
        """Layer 2 and 3 name a directory of layer 1 again: the last one's attributes."""
        self.l[1].dir(b"attr", mode=0o700, uid=1, mtime=EPOCH - 1000)
        self.l[1].add(b"attr/f", data=b"stays", mode=0o600)
        self.l[2].dir(b"attr", mode=0o711, uid=2, mtime=EPOCH - 500)
        self.l[3].dir(b"attr", mode=0o755, uid=3, mtime="1500000000.000000042",
                      xattrs={b"user.last": b"yes"})

    def replaced(self):
        """A file that is another one in each layer."""
        for i in 1, 2, 3:
            self.l[i].dir(b"replaced")
            self.l[i].add(b"replaced/f", data=b"layer %d\n" % i, mtime=EPOCH + i,
                          xattrs={b"user.l%d" % i: b"x"} if i < 3 else {})


def features():
    return [n for n, f in vars(Nasty).items() if callable(f) and not n.startswith("_")]


def base(tar):
    """What every image has: enough of /etc for a marker's neighbours."""
    tar.dir(b"etc", mtime=EPOCH - 3)
    tar.add(b"etc/passwd", data=b"root:x:0:0:root:/:/x\n")
    tar.add(b"etc/group", data=b"root:x:0:\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[], choices=features())
    parser.add_argument("--engine-safe", action="store_true")
    parser.add_argument("--only", action="append", choices=features())
    parser.add_argument("--list", action="store_true", help="print the features")
    parser.add_argument("dir", nargs="?")
    args = parser.parse_args()
    if args.list:
        print("\n".join(features()))
        return
    if args.engine_safe:
        args.without += ENGINE_UNSAFE
    layout = ocilayout.Layout(args.dir)
    with tempfile.TemporaryDirectory(dir=args.dir) as tmp:
        names = ["%s/%d.tar" % (tmp, i) for i in (1, 2, 3)]
        files = [open(n, "wb") for n in names]
        tars = [Tar(f) for f in files]
        for tar in tars:
            tar.dir(b"./", mtime="1600000000.25")
        base(tars[0])
        nasty = Nasty(tars)
        for feature in features():
            if feature not in args.without and (not args.only or feature in args.only):
                getattr(nasty, feature)()
        for tar in tars:
            tar.end()
            tar.f.close()
        for name, codec in zip(names, ("gzip", "zstd", "none")):
            layout.add_layer(name, codec)
    print(layout.finish("latest", {"Cmd": ["/x"], "Env": ["PATH=/"], "WorkingDir": "/"}))


main()
