/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How a daemon that a runtime started leaves it behind: nothing of the caller's may
 * end it or be held by it.
 */
#ifndef BS_DAEMON_LEAVE_H
#define BS_DAEMON_LEAVE_H

struct bs_error;

/*
 * Forks. The parent waits until the daemon says it has started and exits (0), or fails
 * (1). The child returns, with the descriptor to say it on in ret_started_fd, in a
 * session of its own, the root cgroups, pid 1's mount namespace, "/", with no
 * descriptors of the caller's, standard error going to LOG in run_dir.
 */
int bs_leave(const char *run_dir, int *ret_started_fd, struct bs_error *err);

#endif
