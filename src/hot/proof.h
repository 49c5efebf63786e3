/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The hashes that prove the blocks of one segment of a pack: bootseer-hot(5), "Segment". */
#ifndef BS_HOT_PROOF_H
#define BS_HOT_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "hot/pack.h"

struct bs_framer;

/* Where a block of the segment belongs. */
struct bs_segment_block {
	uint32_t frame;
	uint16_t in_frame; /* its number there */
	uint16_t in_segment;
};

struct bs_segment_proof {
	const struct bs_table *table;
	struct bs_segment_block blocks[BS_PACK_SEGMENT_BLOCKS]; /* in the order of the blob */
	uint32_t n_blocks;
	uint32_t n_hashes;
};

/* The blocks of a segment that belong to one frame: those from first to last - 1. */
struct bs_segment_group {
	uint32_t first, last;
	uint32_t mask; /* which of the frame's */
};

/* The next one, in the order of the blob; zeros: the first. False: there is none. */
bool bs_segment_next_group(const struct bs_segment_proof *p, struct bs_segment_group *g);

/* extents: within the table's blob, disjoint, at most BS_PACK_SEGMENT_BLOCKS blocks. */
void bs_segment_proof_init(struct bs_segment_proof *p, const struct bs_table *table,
			   const struct bs_extent *extents, uint32_t n);

/* blocks: in the segment's order; hashes: n_hashes * 32 bytes. 0 or -EBADMSG. */
int bs_segment_proof_check(const struct bs_segment_proof *p, struct bs_framer *f,
			   const void *blocks, const void *hashes);

/*
 * Makes both from what o gives; buf: BS_FRAME_BYTES_MAX bytes for one of
 * them. Every hash is 32 bytes.
 */
int bs_segment_proof_make(const struct bs_segment_proof *p, struct bs_framer *f,
			  const struct bs_pack_write_options *o, void *buf, void *ret_blocks,
			  void *ret_hashes, struct bs_error *err);

#endif
