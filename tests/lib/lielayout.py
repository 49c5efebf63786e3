#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""lielayout.py: converted images that lie, and are addressed validly.

usage: lielayout.py LAYOUT DIGEST LIE
Takes the artifact DIGEST of an OCI layout directory, changes it as LIE says, gives all
that follows new digests, and adds it to the layout; prints the new artifact's digest.
lielayout.py --list prints the lies, each with a word that the complaint must have.
"""

import hashlib
import json
import struct
import subprocess
import sys

TREE = struct.Struct("<8sIIIIIIQQQQQ")
ENTRY = struct.Struct("<IIHHIIIIIQQ")
EXTENT = struct.Struct("<QII")
TABLE = struct.Struct("<8sIIIIQQQ")
DIR, REG = 0o040000, 0o100000


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c", "--stream-size=%d" % len(data)], input=data,
                          stdout=subprocess.PIPE, check=True).stdout


def bomb(size):
    """A frame of zeros that says its size."""
    head = subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE)
    out = subprocess.run(["zstd", "-q", "-c", "--stream-size=%d" % size], stdin=head.stdout,
                         stdout=subprocess.PIPE, check=True).stdout
    head.wait()
    return out


class Image:
    def __init__(self, layout, digest):
        self.layout = layout
        self.manifest = json.loads(self.get(digest))
        self.parts = {}
        for layer in self.manifest["layers"]:
            kind = layer["mediaType"].split(".")[3]
            self.parts[kind] = (layer, bytearray(self.get(layer["digest"])))
        self.tree = bytearray(subprocess.run(["zstd", "-dcq"], input=bytes(self.parts["tree"][1]),
                                             stdout=subprocess.PIPE, check=True).stdout)
        self.table, self.data = self.parts["table"][1], self.parts["data"][1]
        self.packed_tree = None

    def get(self, digest):
        with open("%s/blobs/%s" % (self.layout, digest.replace(":", "/")), "rb") as f:
            return f.read()

    def put(self, data):
        name = hashlib.sha256(data).hexdigest()
        with open("%s/blobs/sha256/%s" % (self.layout, name), "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + name, "size": len(data)}

    def seal(self):
        """Blobs as they are now; descriptors follow. The manifest comes last."""
        self.parts["tree"][0].update(self.put(self.packed_tree or zstd(bytes(self.tree))))
        self.parts["table"][0].update(self.put(bytes(self.table)))
        self.parts["data"][0].update(self.put(bytes(self.data)))

    def publish(self):
        return self.put(json.dumps(self.manifest).encode())["digest"]

    # parts of the tree

    def entry(self, want):
        """The number of the first entry whose type is that."""
        n = TREE.unpack_from(self.tree)[4]
        for i in range(1, n):
            fields = self.fields(i)
            if fields[1] == 0 and fields[2] & 0o170000 == want and (want != REG or fields[4]):
                return i
        raise ValueError("the image has no such entry")

    def fields(self, i):
        return list(ENTRY.unpack_from(self.tree, TREE.size + i * ENTRY.size))

    def set_field(self, i, field, value):
        fields = self.fields(i)
        fields[field] = value
        ENTRY.pack_into(self.tree, TREE.size + i * ENTRY.size, *fields)

    def set_head(self, field, value):
        head = list(TREE.unpack_from(self.tree))
        head[field] = value
        TREE.pack_into(self.tree, 0, *head)

    def set_extent(self, hole, delta, n):
        at = TREE.size + TREE.unpack_from(self.tree)[4] * ENTRY.size
        EXTENT.pack_into(self.tree, at, hole, delta, n)

    def set_name(self, old, new):
        assert self.tree.count(b"\0" + old + b"\0") == 1 and len(old) == len(new)
        self.tree[:] = self.tree.replace(b"\0" + old + b"\0", b"\0" + new + b"\0")

    # parts of the table

    def set_table(self, field, value):
        head = list(TABLE.unpack_from(self.table))
        head[field] = value
        TABLE.pack_into(self.table, 0, *head)

    def set_frame(self, i, blocks, size):
        struct.pack_into("<I", self.table, TABLE.size + i * 36, blocks << 24 | size)

    def bomb_frame(self):
        """Frame 0 unpacks to 1 GiB; its length in table and data fits."""
        blocks, old = divmod(struct.unpack_from("<I", self.table, TABLE.size)[0], 1 << 24)
        new = bomb(1 << 30)
        self.set_frame(0, blocks, len(new))
        self.data[:] = new + self.data[old:]
        self.set_table(6, len(self.data))


def layer(kind, **members):
    """A lie of the manifest alone."""
    def tell(image):
        image.seal()
        image.parts[kind][0].update(members)
    return tell


def without(kind):
    def tell(image):
        image.seal()
        image.manifest["layers"].remove(image.parts[kind][0])
    return tell


LIES = {
    "extent-behind-blob": ("tree: entry", lambda i: i.set_extent(0, 0x7fffffff, 0)),
    "extent-overflow": ("tree: entry", lambda i: i.set_extent(2**64 - 1, 0, 0)),
    "extent-too-long": ("tree: entry", lambda i: i.set_extent(0, 0, 2**32 - 1)),
    "parent-cycle": ("tree: entry", lambda i: i.set_field(i.entry(DIR), 0, i.entry(DIR))),
    "parent-later": ("tree: entry", lambda i: i.set_field(1, 0, 2**32 - 1)),
    "parent-file": ("tree: entry", lambda i: i.set_field(i.entry(REG) + 1, 0, i.entry(REG))),
    "name-slash": ("tree: entry", lambda i: i.set_name(b"name-of-17-bytes", b"../../../etc/pwn")),
    "name-dotdot": ("tree: entry", lambda i: i.set_name(b"zz", b"..")),
    "name-empty": ("tree: entry", lambda i: i.set_name(b"zz", b"\0z")),
    "link-to-directory": ("tree: entry", lambda i: i.set_field(i.entry(REG), 1, i.entry(DIR))),
    "size-2-63": ("tree: entry", lambda i: i.set_field(i.entry(REG), 10, 2**63)),
    "type-unknown": ("tree: entry", lambda i: i.set_field(i.entry(REG), 2, 0o170644)),
    "entries-too-many": ("tree", lambda i: i.set_head(4, 2**32 - 1)),
    "extents-too-many": ("tree", lambda i: i.set_head(6, 2**32 - 1)),
    "blob-too-large": ("tree", lambda i: i.set_head(7, 2**52)),
    "blob-of-other-size": ("tree", lambda i: i.set_head(7, TREE.unpack_from(i.tree)[7] + 1)),
    "names-overflow": ("tree", lambda i: i.set_head(8, 2**64 - 8)),
    "tree-newer": ("newer", lambda i: i.set_head(1, 2)),
    "tree-bomb": ("tree", lambda i: setattr(i, "packed_tree", bomb(5 << 30))),
    "tree-no-zstd": ("tree", lambda i: setattr(i, "packed_tree", b"no frame at all")),
    "table-frames-too-many": ("table", lambda i: i.set_table(4, 2**32 - 1)),
    "table-blob-size": ("table", lambda i: i.set_table(5, TABLE.unpack_from(i.table)[5] + 1)),
    "table-data-size": ("table", lambda i: i.set_table(6, 2**63)),
    "table-frame-empty": ("table", lambda i: i.set_frame(0, 0, 0)),
    "table-frame-large": ("table", lambda i: i.set_frame(0, 255, 0xffffff)),
    "table-cut": ("table", lambda i: i.table.__delitem__(slice(60, None))),
    "manifest-tree-size": ("tree", layer("tree", size=7)),
    "manifest-tree-huge": ("tree", layer("tree", size=2**62)),
    "manifest-table-huge": ("table", layer("table", size=2**62)),
    "manifest-data-size": ("data", layer("data", size=12345)),
    "manifest-negative": ("size", layer("tree", size=-1)),
    "manifest-digest": ("digest", layer("tree", digest="sha256:../../../../etc/passwd")),
    "manifest-no-table": ("", without("table")),
    "manifest-no-tree": ("", without("tree")),
    # these are found out when they are read: an error for the frame, not for the start
    "read-frame-bomb": ("", Image.bomb_frame),
    "read-root": ("", lambda i: i.table.__setitem__(slice(TABLE.size + 4, TABLE.size + 36), bytes(32))),
    "read-no-zstd": ("", lambda i: i.data.__setitem__(slice(0, 16), b"\xff" * 16)),
}


def main():
    if sys.argv[1:] == ["--list"]:
        for name, (word, _) in LIES.items():
            print(name, word, sep="\t")
        return
    layout, digest, lie = sys.argv[1:]
    image = Image(layout, digest)
    LIES[lie][1](image)
    if not lie.startswith("manifest-"):
        image.seal()
    print(image.publish())


main()
