#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""treedump.py: print everything about a tree, one line for each name.

usage: treedump.py [--no-content] [--skip PATH]... ROOT
Two trees are equal when their dumps are. A line has, separated by tabs: path,
type, mode, uid, gid, size (of files and links), mtime with nanoseconds, device
number, link group (the first name of the same inode, for files with several
names in the tree), symbolic link target, xattrs in hex, SHA-256 of the content. "-" where
there is nothing. Directories have neither size nor link count: file systems
differ in these without a difference in content. Names are escaped like Python
bytes; the order is that of the bytes. Works by descriptors from directory to
directory, so no path is ever too long. --skip: a path as printed, left out with
all below it.
"""

import argparse
import hashlib
import os
import stat
import sys

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFCHR: "char",
         stat.S_IFBLK: "block", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
# what the file system below or the security module says, not the image
FOREIGN = ("security.selinux", "trusted.overlay.", "user.overlay.")


def shown(name):
    return "".join(chr(b) if 0x20 < b < 0x7f and b != 0x5c else "\\x%02x" % b for b in name)


def digest(fd, size):
    h = hashlib.sha256()
    buf = memoryview(bytearray(1 << 20))
    done = 0
    while n := os.readv(fd, [buf]):
        h.update(buf[:n])
        done += n
    if done != size:
        return "SHORT:%d" % done
    return h.hexdigest()


class Dump:
    def __init__(self, args, out):
        self.args, self.out = args, out
        self.first, self.names = {}, {}
        self.lines = []
        self.skip = set(args.skip)

    def xattrs(self, path):
        """path: through /proc/self/fd, so that it is short and never followed."""
        found = []
        for key in sorted(os.listxattr(path, follow_symlinks=False)):
            if not key.startswith(FOREIGN):
                value = os.getxattr(path, key, follow_symlinks=False)
                found.append("%s=%s" % (shown(os.fsencode(key)), value.hex()))
        return ";".join(found) or "-"

    def line(self, path, name, dirfd, st):
        kind = stat.S_IFMT(st.st_mode)
        size = group = target = content = device = "-"
        if kind in (stat.S_IFREG, stat.S_IFLNK):
            size = st.st_size
        if kind in (stat.S_IFCHR, stat.S_IFBLK):
            device = "%d:%d" % (os.major(st.st_rdev), os.minor(st.st_rdev))
        if kind != stat.S_IFDIR and st.st_nlink > 1:
            # the kernel's count is of no use: overlayfs counts hidden names
            group = self.first.setdefault((st.st_dev, st.st_ino), path)
            self.names[group] = self.names.get(group, 0) + 1
        if kind == stat.S_IFLNK:
            target = shown(os.readlink(name, dir_fd=dirfd))
        if kind == stat.S_IFREG and not self.args.no_content:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=dirfd)
            try:
                content = digest(fd, st.st_size)
            except OSError as e:
                content = "ERROR:%s" % e.strerror
            finally:
                os.close(fd)
        xattrs = self.xattrs(b"/proc/self/fd/%d/%s" % (dirfd, name))
        fields = (path, TYPES[kind], "%04o" % stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, size,
                  "%d.%09d" % divmod(st.st_mtime_ns, 10**9), device, group, target, xattrs, content)
        self.lines.append(fields)

    def write(self):
        for fields in self.lines:
            if self.names.get(fields[8]) == 1:
                fields = fields[:8] + ("-",) + fields[9:]
            self.out.write("\t".join(map(str, fields)) + "\n")

    def walk(self, root):
        """Depth first without recursion and with one descriptor for each level."""
        top = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.line("/", b".", top, os.fstat(top))
        stack = [(top, "", iter(sorted(os.fsencode(n) for n in os.listdir(top))))]
        while stack:
            fd, prefix, names = stack[-1]
            name = next(names, None)
            if name is None:
                os.close(stack.pop()[0])
                continue
            path = prefix + "/" + shown(name)
            if path in self.skip:
                continue
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            self.line(path, name, fd, st)
            if stat.S_ISDIR(st.st_mode):
                sub = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                stack.append((sub, path, iter(sorted(os.fsencode(n) for n in os.listdir(sub)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-content", action="store_true", help="no SHA-256 of files")
    parser.add_argument("--skip", action="append", default=[], metavar="PATH")
    parser.add_argument("root")
    args = parser.parse_args()
    dump = Dump(args, sys.stdout)
    dump.walk(args.root)
    dump.write()


main()
