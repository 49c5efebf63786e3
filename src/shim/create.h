/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * create, run and restore.
 *
 *	look at config.json and the rootfs ── nothing for us ──▶ exec the runtime, untouched
 *	  │ a marker or an annotation
 *	read config.json strictly, plan the rootfs          (no change yet; errors end here)
 *	write the state file ─▶ acquire the image ─▶ swap ─▶ write config.json
 *	acquire and attach the mounts of checkpoints ─▶ write config.json
 *	run the runtime as a child ─▶ its result is ours; if there is no container after
 *	it, everything is taken back
 */
#ifndef BS_SHIM_CREATE_H
#define BS_SHIM_CREATE_H

struct bs_args;
struct bs_conf;
struct bs_runc;

/* An exit code, unless the runtime took our place. */
int bs_create(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a);

#endif
