/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One container of which we know something on disk: where its state file is, and how
 * all that it tells of is taken back.
 */
#ifndef BS_SHIM_JOB_H
#define BS_SHIM_JOB_H

#include <errno.h>
#include <stdint.h>

struct bs_args;
struct bs_conf;
struct bs_error;
struct bs_runc;
struct bs_state;

struct bs_job {
	int run_fd, state_fd; /* RUN_DIR and its "state"; -EBADF: not there */
	int lock_fd;	      /* see bs_job_lock */
	char *key;
};
#define BS_JOB_INIT                                                                                \
	{                                                                                          \
		.run_fd = -EBADF, .state_fd = -EBADF, .lock_fd = -EBADF                            \
	}

/* make: RUN_DIR/state is made when it is absent; else -ENOENT without a text. */
int bs_job_open(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a,
		int make, struct bs_job *ret, struct bs_error *err);
void bs_job_done(struct bs_job *j);
#define bs_autojob __attribute__((cleanup(bs_job_done))) struct bs_job

/*
 * Makes this the only process that puts something in place for the container or takes it
 * back: two that create it at once, or one that deletes what another is creating, would
 * take each other's for what a dead one left. Killed, it is free again. 0 when it is locked
 * (already), -ETIMEDOUT (-EAGAIN without wait_ns) when another has it for so long.
 */
int bs_job_lock(struct bs_job *j, uint64_t wait_ns);
void bs_job_unlock(struct bs_job *j);

/*
 * Unmounts what is ours, lets go of the image and forgets the container. What cannot
 * be done is logged; then the state file stays, for the next delete.
 */
void bs_job_clean(const struct bs_job *j, const struct bs_conf *conf, const struct bs_state *s);

#endif
