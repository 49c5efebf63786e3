/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Child processes: argv, environment and a descriptor map given explicitly, waited
 * for through a pidfd with a deadline. The child gets no descriptor but those of
 * the map, default signal handling, an empty signal mask, and the limit of open files
 * that we had before we raised ours (base/nofile).
 * Not for programs with threads other than through posix_spawn-like care: the
 * child does only async-signal-safe calls between vfork-like fork and exec.
 */
#ifndef BS_BASE_SPAWN_H
#define BS_BASE_SPAWN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bs_error;

struct bs_spawn {
	const char *const *argv; /* argv[0] is looked up in PATH unless it holds a '/' */
	/*
	 * In place of an exec: called in the child, whose exit code it returns; argv[0] is then
	 * only a name for errors. The caller must have a single thread. NULL: argv is exec'ed.
	 */
	int (*run)(void *cookie);
	void *cookie;
	const char *const *envp; /* NULL: ours */
	const char *dir;	 /* working directory, NULL: ours */
	int stdio[3];		 /* -EBADF: /dev/null */
	const int *fds;		 /* further descriptors, become 3, 4, … */
	size_t n_fds;
	bool new_session;     /* setsid */
	bool die_with_parent; /* PR_SET_PDEATHSIG SIGKILL */
};

#define BS_SPAWN_INIT ((struct bs_spawn){ .stdio = { -EBADF, -EBADF, -EBADF } })

struct bs_child {
	pid_t pid;
	int pidfd;
};

/* Starts it; a failed exec is reported here, with the program's name in err. */
int bs_spawn_start(const struct bs_spawn *s, struct bs_child *ret, struct bs_error *err);

/*
 * Waits until the child ends; deadline_ns on bs_clock_ns (0: none), after which it
 * is killed and -ETIMEDOUT returned. *ret_status as wait(2) gives it. The child is
 * reaped and ret->pidfd closed in every case.
 */
int bs_spawn_wait(struct bs_child *c, uint64_t deadline_ns, int *ret_status);

/* 0..255 as a shell would give it: 128 + signal when it was killed. */
int bs_spawn_exit_code(int status);

/*
 * Runs it to the end, feeds input to its stdin and collects at most max bytes of
 * its stdout (malloc'ed, NUL behind). The exit code is the result, or -errno
 * (-EFBIG: too much output). stderr as s->stdio[2] says.
 */
int bs_spawn_capture(const struct bs_spawn *s, const char *input, size_t input_len,
		     uint64_t deadline_ns, size_t max, char **ret_out, size_t *ret_len,
		     struct bs_error *err);

#endif
