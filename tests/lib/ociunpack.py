#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""ociunpack.py: what an image's root file system must look like.

usage: ociunpack.py LAYOUT ROOT
Unpacks the (one) image of an OCI layout into the empty directory ROOT, as root.
This is the tests' second opinion beside containerd's: slow, simple, by the
letter of the OCI layer rules, and able where engines are not (paths past
PATH_MAX, hard links across layers, dates before 1970). The rules, for each layer:
- Its whiteouts and opaque marks count first, and only against lower layers.
- Then its entries, in order. A directory over a directory keeps the content and
  takes the new attributes, all of them; anything else replaces what is there.
- A directory that the layer changes within but does not name keeps its dates.
Everything goes from descriptor to descriptor and never follows a link.
"""

import decimal
import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

WHITEOUT, OPAQUE = b".wh.", b".wh..wh..opq"
DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def parts_of(name):
    parts = [p for p in os.fsencode(name).split(b"/") if p not in (b"", b".")]
    if b".." in parts:
        raise ValueError("name with '..': %r" % name)
    return parts


def remove(dirfd, name):
    """Remove a name and all below it."""
    st = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    if not stat.S_ISDIR(st.st_mode):
        os.unlink(name, dir_fd=dirfd)
        return
    fd = os.open(name, DIR, dir_fd=dirfd)
    try:
        for child in os.listdir(fd):
            remove(fd, os.fsencode(child))
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=dirfd)


def exists(dirfd, name):
    try:
        return os.stat(name, dir_fd=dirfd, follow_symlinks=False)
    except FileNotFoundError:
        return None


class Unpacker:
    def __init__(self, root):
        self.root = os.open(root, DIR)
        self.times = {}

    def open_dir(self, parts, make=False):
        """A new descriptor of the directory; None when there is none."""
        fd = os.dup(self.root)
        for part in parts:
            try:
                new = os.open(part, DIR, dir_fd=fd)
            except FileNotFoundError:
                if not make:
                    os.close(fd)
                    return None
                os.mkdir(part, 0o755, dir_fd=fd)
                new = os.open(part, DIR, dir_fd=fd)
            os.close(fd)
            fd = new
        return fd

    def parent(self, parts, make=False):
        """The directory that holds parts[-1]; its dates will be put back."""
        fd = self.open_dir(parts[:-1], make)
        if fd is not None:
            self.times.setdefault(tuple(parts[:-1]), os.stat(fd).st_mtime_ns)
        return fd

    def white_out(self, parts):
        if parts[-1] == OPAQUE:
            fd = self.open_dir(parts[:-1])
            if fd is None:
                return
            self.times.setdefault(tuple(parts[:-1]), os.stat(fd).st_mtime_ns)
            for child in os.listdir(fd):
                remove(fd, os.fsencode(child))
        else:
            fd = self.parent(parts)
            if fd is None:
                return
            name = parts[-1][len(WHITEOUT):]
            if exists(fd, name):
                remove(fd, name)
        os.close(fd)

    def attributes(self, fd, name, member):
        """Owner, mode, xattrs and dates, in the order that keeps all of them."""
        link = member.issym()
        os.chown(name, member.uid, member.gid, dir_fd=fd, follow_symlinks=False)
        if not link:
            os.chmod(name, member.mode & 0o7777, dir_fd=fd)
        path = b"/proc/self/fd/%d/%s" % (fd, name)
        for key in os.listxattr(path, follow_symlinks=False):
            if not key.startswith("security.selinux"):
                os.removexattr(path, key, follow_symlinks=False)
        for key, value in member.pax_headers.items():
            # engines ignore trusted attributes in an archive
            if key.startswith("SCHILY.xattr.") and not key.startswith("SCHILY.xattr.trusted."):
                os.setxattr(path, os.fsencode(key[13:]), os.fsencode(value), follow_symlinks=False)
        # a float would lose the nanoseconds
        when = decimal.Decimal(member.pax_headers.get("mtime", str(int(member.mtime))))
        ns = int((when * 10**9).to_integral_value(decimal.ROUND_FLOOR))
        os.utime(name, ns=(ns, ns), dir_fd=fd, follow_symlinks=False)
        return ns

    def content(self, fd, name, tar, member):
        out = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=fd)
        with os.fdopen(out, "wb") as f:
            src = tar.extractfile(member)
            if member.sparse is None:
                while data := src.read(1 << 20):
                    f.write(data)
            else:
                for offset, size in member.sparse:
                    src.seek(offset)
                    f.seek(offset)
                    f.write(src.read(size))
            f.truncate(member.size)

    def add(self, tar, member):
        parts = parts_of(member.name)
        if not parts:
            self.times[()] = self.attributes(self.root, b".", member)
            return
        name = parts[-1]
        fd = self.parent(parts, make=True)
        old = exists(fd, name)
        if old and not (member.isdir() and stat.S_ISDIR(old.st_mode)):
            remove(fd, name)
            old = None
        if member.isdir():
            if not old:
                os.mkdir(name, 0o700, dir_fd=fd)
        elif member.issym():
            os.symlink(os.fsencode(member.linkname), name, dir_fd=fd)
        elif member.islnk():
            target = parts_of(member.linkname)
            there = self.open_dir(target[:-1])
            os.link(target[-1], name, src_dir_fd=there, dst_dir_fd=fd, follow_symlinks=False)
            os.close(there)
        elif member.ischr() or member.isblk() or member.isfifo():
            kind = {tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFBLK}.get(
                member.type, stat.S_IFIFO)
            os.mknod(name, kind | 0o600, os.makedev(member.devmajor, member.devminor), dir_fd=fd)
        else:
            self.content(fd, name, tar, member)
        # a hard link has the attributes of its inode
        if not member.islnk():
            ns = self.attributes(fd, name, member)
            if member.isdir():
                self.times[tuple(parts)] = ns
        os.close(fd)

    def layer(self, path, media_type):
        self.times = {}
        with tempfile.TemporaryFile(dir="/var/tmp") as f:
            decompress(path, media_type, f)
            # whiteouts first: they are about lower layers, wherever in the archive they are
            for marks in (True, False):
                f.seek(0)
                with tarfile.open(fileobj=f, mode="r:", encoding="utf-8",
                                  errors="surrogateescape") as tar:
                    for member in tar:
                        parts = parts_of(member.name)
                        if marks != (bool(parts) and parts[-1].startswith(WHITEOUT)):
                            continue
                        if marks:
                            self.white_out(parts)
                        else:
                            self.add(tar, member)
        for parts, ns in self.times.items():
            try:
                fd = self.open_dir(parts)
            except NotADirectoryError:
                continue
            if fd is not None:
                os.utime(fd, ns=(ns, ns))
                os.close(fd)


def decompress(path, media_type, out):
    if media_type.endswith("gzip"):
        with gzip.open(path) as f:
            shutil.copyfileobj(f, out, 1 << 20)
    elif media_type.endswith("zstd"):
        subprocess.run(["zstd", "-dcq", path], stdout=out, check=True)
    else:
        with open(path, "rb") as f:
            shutil.copyfileobj(f, out, 1 << 20)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    layout, root = sys.argv[1:]
    os.umask(0o022)

    def blob(digest):
        return layout + "/blobs/" + digest.replace(":", "/")

    with open(layout + "/index.json") as f:
        (entry,) = json.load(f)["manifests"]
    with open(blob(entry["digest"])) as f:
        manifest = json.load(f)
    unpacker = Unpacker(root)
    for layer in manifest["layers"]:
        unpacker.layer(blob(layer["digest"]), layer["mediaType"])


main()
