#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""fakesystemd.py: play the service manager of one unit, as far as bootseerd sees it.

usage: fakesystemd.py SOCKET LOG COMMAND...
Listens at SOCKET and gives it to COMMAND as descriptor "bootseerd"; takes READY=1,
FDSTORE=1 and FDSTOREREMOVE=1; when the main process ends, ends what it left (the
unit's control group) and starts it again with the stored descriptors. LOG gets a line
for each of these. SIGTERM stops the unit, then this.
"""

import array
import ctypes
import os
import select
import signal
import socket
import sys

PR_SET_CHILD_SUBREAPER = 36
FIRST = 3


def note(text):
    with open(sys.argv[2], "a") as f:
        print(text, file=f)


class Unit:
    def __init__(self, path, command):
        self.command, self.stored, self.stopping, self.pid = command, {}, False, 0
        self.listen = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self.listen.bind(path)
        os.chmod(path, 0o600)
        self.listen.listen(128)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify_path = path + ".notify"
        self.notify.bind(self.notify_path)

    def start(self):
        fds = [("bootseerd", self.listen.fileno())] + sorted(self.stored.items())
        self.pid = os.fork()
        if self.pid > 0:
            note("start with %d" % len(fds))
            return
        # out of the way first, then to their places
        high = [os.dup(fd) for _, fd in fds]
        high = [os.dup2(fd, 200 + i) for i, fd in enumerate(high)]
        for i, fd in enumerate(high):
            os.dup2(fd, FIRST + i, inheritable=True)
        os.closerange(FIRST + len(fds), 4096)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)),
                          LISTEN_FDNAMES=":".join(n for n, _ in fds), NOTIFY_SOCKET=self.notify_path)
        os.execv(self.command[0], self.command)

    def heard(self):
        data, ancillary, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(4))
        fds = array.array("i")
        for _, _, raw in ancillary:
            fds.frombytes(raw)
        said = dict(line.split("=", 1) for line in data.decode().splitlines())
        name = said.get("FDNAME", "stored")
        if ":" in name or len(name) > 255:
            sys.exit("systemd takes no such name: " + name)
        if said.get("FDSTORE") == "1":
            # as systemd does: what it polls must be pollable
            if said.get("FDPOLL") != "0":
                select.epoll().register(fds[0])
            if name in self.stored:
                os.close(self.stored[name])
            self.stored[name] = fds[0]
            note("store " + name)
        elif said.get("FDSTOREREMOVE") == "1" and name in self.stored:
            os.close(self.stored.pop(name))
            note("remove " + name)
        elif said.get("READY") == "1":
            note("ready")
        elif said.get("STOPPING") == "1":
            note("stopping")

    def descendants(self):
        """Of this process: whoever lost its parent has become a child of ours."""
        children = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % name) as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
        todo, found = [os.getpid()], []
        while todo:
            mine = children.get(todo.pop(), [])
            found += mine
            todo += mine
        return found

    def end_rest(self):
        while left := self.descendants():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.reap()

    def reap(self):
        """Whether the main process has ended."""
        ended = False
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                ended = ended or pid == self.pid
        except ChildProcessError:
            pass
        return ended

    def stop(self, *_):
        self.stopping = True
        os.kill(self.pid, signal.SIGTERM)

    def run(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGTERM, self.stop)
        self.start()
        while True:
            ready, _, _ = select.select([self.notify], [], [], 0.05)
            if ready:
                self.heard()
            if not self.reap():
                continue
            note("main process ended")
            if self.stopping:
                break
            self.end_rest()
            self.start()
        self.end_rest()
        os.unlink(self.notify_path)


Unit(sys.argv[1], sys.argv[3:]).run()
