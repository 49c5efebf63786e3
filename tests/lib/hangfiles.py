#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""hangfiles.py: files that hang whoever opens them, as on a server that is gone.

usage: hangfiles.py FILE...
Says "ready", and holds up all opens of the files, uninterruptibly but for SIGKILL, until it
ends; then they go through. Opens under way stay as they are, of directories too.
"""

import ctypes
import os
import signal
import sys

FAN_CLASS_CONTENT, FAN_CLOEXEC, FAN_MARK_ADD, FAN_OPEN_PERM = 0x4, 0x1, 0x1, 0x10000
AT_FDCWD = -100

libc = ctypes.CDLL(None, use_errno=True)


def call(result, what):
    if result < 0:
        sys.exit("%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result


fd = call(libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY), "fanotify_init")
for path in sys.argv[1:]:
    call(libc.fanotify_mark(fd, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_PERM), AT_FDCWD,
                            os.fsencode(path)), path)
print("ready", flush=True)
signal.pause()
