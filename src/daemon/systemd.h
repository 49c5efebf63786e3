/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What a service manager does for the supervisor that it started (sd_listen_fds(3),
 * sd_notify(3)): a listening socket given at the start, being told that we are ready,
 * and descriptors that it holds while the unit is restarted. No library of it is used;
 * without a service manager all of it does nothing.
 *
 * A stored descriptor has its name of kept.c, with '@' for ':', which names may not
 * hold there. The worker's pidfd is not stored: a unit is only started anew when all
 * of its processes are gone.
 *
 * Single-threaded.
 */
#ifndef BS_DAEMON_SYSTEMD_H
#define BS_DAEMON_SYSTEMD_H

#include <stdbool.h>

struct bs_error;

#define BS_SYSTEMD_SOCKET "bootseerd" /* the listening socket's name (FileDescriptorName) */

/*
 * Takes what the environment says, and the variables out of it, so that no child
 * believes itself meant. The descriptors given are marked close-on-exec. Once, early.
 * heed: false: only that last; what is there means the program that started us.
 */
void bs_systemd_begin(bool heed);

/* Descriptor i that was given, as name and number, taken over; -ENOENT behind the last. */
int bs_systemd_next(unsigned int i, char *name, unsigned int size);

/* That fd is a socket that clients can connect to as to ours. */
int bs_systemd_check_socket(int fd, struct bs_error *err);

/* A line as of sd_notify(3), such as "READY=1". */
void bs_systemd_tell(const char *line);
void bs_systemd_store(const char *name, int fd);
void bs_systemd_forget(const char *name);

#endif
