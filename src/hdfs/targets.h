/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The DataNodes that can be written to over WebHDFS, as an ordinary user learns of them: the
 * NameNode is asked where to CREATE, again and again without those that it named already. Of a
 * big cluster, some at random.
 *
 * Threads: any.
 */
#ifndef BS_HDFS_TARGETS_H
#define BS_HDFS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_buf;
struct bs_error;
struct bs_nn;
struct bs_target;
struct bs_targets;

#define BS_TARGETS_MAX 16u

int bs_targets_new(struct bs_nn *nn, struct bs_targets **ret, struct bs_error *err);
struct bs_targets *bs_targets_free(struct bs_targets *t);

/*
 * Learns them unless it was done a short time ago; path: of something that will be made. The
 * number of them. Blocks.
 */
int bs_targets_learn(struct bs_targets *t, const char *path, struct bs_error *err);
/* What was learned is not to be trusted any more. */
void bs_targets_forget(struct bs_targets *t);

/*
 * The one at (first mod their number) when nothing speaks against it; else, and for each later
 * attempt, the one with least to do. tried: those that were taken before, a bit each. The
 * caller gives it back. NULL: none was learned.
 */
struct bs_target *bs_targets_take(struct bs_targets *t, unsigned int first, uint32_t *tried);
/* ok: it did what it was asked for. failed: it did not, and is to be left alone for a while. */
void bs_targets_give(struct bs_targets *t, struct bs_target *target, bool ok, bool failed);
/* For a while. It stays taken. */
void bs_targets_suspect(struct bs_targets *t, struct bs_target *target);
const char *bs_target_name(const struct bs_target *target); /* as long as t lives */

struct bs_target_create {
	const char *path;
	uint64_t block_size;
	uint32_t replication, mode;
};
/* Appends the URL of CREATE, not to overwrite, at target. */
void bs_targets_url(struct bs_targets *t, const struct bs_target *target,
		    const struct bs_target_create *c, struct bs_buf *url);

#endif
