/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One container of which we know something on disk: where its state file is, and how
 * all that it tells of is taken back.
 */
#ifndef BS_SHIM_JOB_H
#define BS_SHIM_JOB_H

struct bs_args;
struct bs_conf;
struct bs_error;
struct bs_runc;
struct bs_state;

struct bs_job {
	int run_fd, state_fd; /* RUN_DIR and its "state"; -EBADF: not there */
	char *key;
};

/* make: RUN_DIR/state is made when it is absent; else -ENOENT without a text. */
int bs_job_open(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a,
		int make, struct bs_job *ret, struct bs_error *err);
void bs_job_done(struct bs_job *j);
#define bs_autojob __attribute__((cleanup(bs_job_done))) struct bs_job

/*
 * Unmounts what is ours, lets go of the image and forgets the container. What cannot
 * be done is logged; then the state file stays, for the next delete.
 */
void bs_job_clean(const struct bs_job *j, const struct bs_conf *conf, const struct bs_state *s);

#endif
