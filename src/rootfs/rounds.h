/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Asking sources one after the other, round and round, until one has what is wanted, none
 * is worth another try, or time is up. Blocks; any thread.
 */
#ifndef BS_ROOTFS_ROUNDS_H
#define BS_ROOTFS_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_repo;

/* Opens the place that a source text names ("docker://HOST/NAME", "oci:DIR"). */
typedef int bs_open_source_fn(void *cookie, const char *source, struct bs_repo **ret,
			      struct bs_error *err);

/* 0: repo had it. */
typedef int bs_try_source_fn(void *cookie, struct bs_repo *repo, struct bs_error *err);

struct bs_rounds {
	bs_open_source_fn *open_source;
	void *cookie; /* its */
	const char *const *sources;
	size_t n;
	uint64_t deadline_ns; /* bs_clock_ns; the first round is made in any case */
};

/* On failure the error is that of the source that is most likely to come back, and names it. */
int bs_rounds_run(const struct bs_rounds *o, bs_try_source_fn *try_source, void *cookie,
		  struct bs_error *err);

#endif
