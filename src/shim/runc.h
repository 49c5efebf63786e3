/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The wrapped runtime: found, exec'ed in our place, or run as a child that looks to
 * everybody as if it stood in our place: same descriptors, terminal, signals, result.
 */
#ifndef BS_SHIM_RUNC_H
#define BS_SHIM_RUNC_H

#include <stdbool.h>
#include <stddef.h>

struct bs_args;
struct bs_conf;
struct bs_error;

struct bs_runc {
	char *path;		  /* absolute or as configured with a '/' */
	const char *default_root; /* where it keeps its state without --root */
};

/*
 * Looks the configured name up in PATH (never ourselves under another name).
 * -ENOENT with the key to set.
 */
int bs_runc_find(const struct bs_conf *conf, struct bs_runc *ret, struct bs_error *err);
void bs_runc_done(struct bs_runc *r);

/* Becomes the runtime with our arguments; returns only on failure. */
int bs_runc_exec(const struct bs_runc *r, const struct bs_args *a, struct bs_error *err);

/*
 * Runs it with our arguments, giving on the signals we get, until it ends; *ret_status
 * as wait(2) gives it. It does not outlive us.
 */
int bs_runc_run(const struct bs_runc *r, const struct bs_args *a, int *ret_status,
		struct bs_error *err);

/* The same with its standard output (at most max bytes) collected; malloc'ed, NUL behind. */
int bs_runc_capture(const struct bs_runc *r, const struct bs_args *a, size_t max, char **ret_out,
		    size_t *ret_len, int *ret_status, struct bs_error *err);

/* Ends as the child did: with its exit code, or by its signal. Does not return. */
void bs_runc_end_as(int status) __attribute__((noreturn));

/* The runtime's state directory, and whether it has a container of that name in it. */
const char *bs_runc_root(const struct bs_runc *r, const struct bs_args *a);
bool bs_runc_knows(const struct bs_runc *r, const struct bs_args *a, const char *id);

#endif
