/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How a process that reads foreign bytes shuts itself in. In this order, since each
 * step needs what a later one takes away:
 *
 *   1. the caller opens, or is handed, all that needs privilege: /dev/fuse, the cache
 *      directory, the control socket
 *   2. the bounding set emptied; supplementary groups dropped, group and user become the
 *      unprivileged ones
 *   3. all capabilities dropped
 *   4. no_new_privs: no exec gives anything back
 *   5. dies with its parent (the kernel forgets that wish at step 2, so it comes here)
 *   6. not dumpable: nobody of the same user may trace it
 *   7. seccomp: only the listed calls
 *
 * What is left: reading world-readable files (resolver, CA certificates), sockets, and
 * the descriptors from step 1.
 *
 * The warmer reads one mount, of an image, and is told what by the worker. In the place
 * of step 2 that mount becomes its root and working directory: no path leads anywhere
 * else. It stays root without capabilities but CAP_DAC_READ_SEARCH, and its calls (step 7)
 * neither write to files nor reach other processes.
 */
#ifndef BS_KERN_SANDBOX_H
#define BS_KERN_SANDBOX_H

#include <sys/types.h>

struct bs_error;

/* Single-threaded. parent: exit when it is not our parent any more; 0: do not care. */
int bs_sandbox_enter_worker(uid_t uid, gid_t gid, pid_t parent, struct bs_error *err);

/* Single-threaded. root: of the mount, a directory. The parent's death is ours. */
int bs_sandbox_enter_warmer(int root, struct bs_error *err);

#endif
