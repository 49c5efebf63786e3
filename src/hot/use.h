/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the reads of a start did with a hot pack: numbers that say whether it is a good one.
 *
 * Each block counts once, where it was read first. The kernel keeps what it has read, so
 * what comes here is not what the start needed but what it needed first: a block that the
 * warmer has read is in the page cache, and whether anybody wants it there is not to be
 * known. And while the kernel reads ahead, it reads what nobody needs: then only one block
 * of each read is surely missed.
 *
 * Threads: any, but for new and free.
 */
#ifndef BS_HOT_USE_H
#define BS_HOT_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "cache/blocks.h"

struct bs_use;

/* extents: of the pack, disjoint, within the blob. NULL: out of memory. */
struct bs_use *bs_use_new(const struct bs_extent *extents, uint32_t n, uint64_t blob_blocks);
struct bs_use *bs_use_free(struct bs_use *u);
DEFINE_BS_AUTO(use, struct bs_use, bs_use_free)

struct bs_use_read {
	uint64_t off, len; /* bytes of the blob */
	bool warmer;	   /* it is the warmer's */
	bool exact;	   /* the kernel reads nothing ahead */
	/* Whether the cache has a block, before the read is answered. */
	bool (*there)(void *cookie, uint64_t block);
	void *cookie;
};
void bs_use_note(struct bs_use *u, const struct bs_use_read *rd);

struct bs_use_counts {
	uint64_t pack_blocks;
	/* of the pack; what is in none of these was read by nobody */
	uint64_t read_blocks;	/* by others than the warmer */
	uint64_t waited_blocks; /* of them, those that had not come yet */
	uint64_t warmed_blocks; /* by the warmer, before anybody else */
	/* of no pack, by others than the warmer */
	uint64_t cached_blocks;	 /* the cache had them */
	uint64_t fetched_blocks; /* it had not: they came on demand */
	uint64_t missed_reads;	 /* reads with any of these */
	uint64_t missed_min;	 /* blocks of these that were surely needed */
};
void bs_use_get(struct bs_use *u, struct bs_use_counts *ret);

/* The blocks of no pack that were read, in the order of the blob (malloc'ed). -ENOMEM. */
int bs_use_missed(struct bs_use *u, struct bs_extent **ret, uint32_t *ret_n);

/* Whether a start needed so many percent of the pack's size beside it; 0: that is never so. */
bool bs_use_is_bad(const struct bs_use_counts *c, unsigned int percent);

#endif
