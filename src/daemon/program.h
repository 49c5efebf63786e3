/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Starting the parts of this program: from where it lies, so that they are new after an
 * upgrade. Single-threaded programs only.
 */
#ifndef BS_DAEMON_PROGRAM_H
#define BS_DAEMON_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

struct bs_child;
struct bs_error;

struct bs_part {
	const char *role;
	const char *arg;    /* NULL: none */
	const char *config; /* NULL: the default */
	/* What to run in a fork of ours, with arg, in place of starting the program; NULL */
	int (*run)(void *arg);
	const int *fds; /* found from 4 on; at 3 is its end of the link */
	size_t n_fds;	/* at most BS_PART_FDS_MAX */
	bool die_with_parent;
};

#define BS_PART_FDS_MAX 6u

/* Starts it; *ret_link is our end of a socket of messages to it, blocking. */
int bs_program_start(const struct bs_part *p, struct bs_child *ret, int *ret_link,
		     struct bs_error *err);

/*
 * The absolute path of this program's file, of what replaced it, or "/proc/self/exe"
 * when nothing is there any more. Static.
 */
const char *bs_program_path(void);

/* How soon the kernel ends this process when memory is short, proc(5) oom_score_adj. Best effort. */
void bs_program_oom_score(int score);

#endif
