/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The mounts of checkpoints that a container asks for: policy asked, got from bootseerd,
 * attached where the runtime finds them (rootfs/ckptdir.h), and bound by config.json.
 */
#ifndef BS_SHIM_CKPTS_H
#define BS_SHIM_CKPTS_H

struct bs_ckptasks;
struct bs_conf;
struct bs_config;
struct bs_error;
struct bs_job;
struct bs_timeline;

struct bs_ckpts_request {
	const struct bs_conf *conf;
	const struct bs_ckptasks *asks;
	const struct bs_job *job;
	const char *id; /* of the container */
	struct bs_timeline *timeline;
};

/*
 * How many there are now; those that cannot be had and need not are told of in the log. After a
 * failure bs_job_clean takes away what was attached.
 */
int bs_ckpts_attach(const struct bs_ckpts_request *q, struct bs_config *config,
		    struct bs_error *err);

/* Takes them from where the runtime found them; those in the container stay. */
void bs_ckpts_detach(const struct bs_job *j);

#endif
