/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Profiles: which blocks of an image a start needed, in the order of first use.
 * bootseer-hot(5) is the format. One thread at a time.
 */
#ifndef BS_HOT_PROFILE_H
#define BS_HOT_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;

#define BS_PROFILE_RANGES_MAX (1u << 22)
#define BS_PROFILE_RUNS_MAX 32u
#define BS_PROFILE_RUNS_KEPT 4u		/* when a workload is recorded again, with the new one */
#define BS_PROFILE_DATA_MAX (96u << 20) /* compressed */

struct bs_profile_range {
	uint32_t block; /* of the blob */
	uint32_t n_blocks;
	uint32_t at_ms; /* since the start */
	uint32_t runs;	/* recordings that needed it: a bit each, bit 0 is the newest one */
};

struct bs_profile {
	struct bs_digest table; /* of the image's table */
	uint64_t blob_blocks;
	struct bs_profile_range *ranges; /* disjoint, at_ms does not descend */
	uint32_t n_ranges, n_runs, window_ms;
	size_t cap;
};

/* An empty one of no recording. NULL: out of memory. */
struct bs_profile *bs_profile_new(const struct bs_digest *table, uint64_t blob_blocks);
struct bs_profile *bs_profile_free(struct bs_profile *p);
DEFINE_BS_AUTO(profile, struct bs_profile, bs_profile_free)

/* -EBADMSG with place and reason, also for one of another image; -EPROTONOSUPPORT; -EFBIG. */
int bs_profile_read(const void *data, size_t len, const struct bs_digest *table,
		    uint64_t blob_blocks, struct bs_profile **ret, struct bs_error *err);
/* The compressed form (malloc'ed); same profile, same bytes. */
int bs_profile_write(const struct bs_profile *p, void **ret, size_t *ret_len, struct bs_error *err);

/* One thing that a start did; its blocks may have been needed before. */
struct bs_profile_event {
	uint32_t block;
	uint32_t n_blocks;
	uint32_t at_ms;
};

/*
 * Adds a recording, the newest: its events in the order of use, whatever they say beyond the
 * blob or after window_ms is cut off. A block's place is that of the run that needed it
 * first. Of more than BS_PROFILE_RUNS_MAX the oldest ones are forgotten, and with them the
 * blocks that only they needed. -ENOMEM, -EFBIG.
 */
int bs_profile_add_run(struct bs_profile *p, const struct bs_profile_event *events, size_t n,
		       uint32_t window_ms);

/* The same for all recordings of another profile of the image, newer than those of p. -EINVAL. */
int bs_profile_merge(struct bs_profile *p, const struct bs_profile *newer);
/* Forgets all recordings but the last n < BS_PROFILE_RUNS_MAX. */
int bs_profile_keep_runs(struct bs_profile *p, uint32_t n);

/* How many blocks there are that at least min_runs recordings needed. */
uint64_t bs_profile_blocks(const struct bs_profile *p, uint32_t min_runs);

/* How many blocks it has that the other has not. -ENOMEM. */
int64_t bs_profile_beside(const struct bs_profile *p, const struct bs_profile *other);

#endif
