/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/frames.h"
#include "image/table.h"
#include "image/tree.h"

static int by_place(const void *a, const void *b)
{
	const struct bs_segment_block *x = a, *y = b;

	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return (int)x->in_frame - (int)y->in_frame;
}

bool bs_segment_next_group(const struct bs_segment_proof *p, struct bs_segment_group *g)
{
	uint32_t i = g->last;

	*g = (struct bs_segment_group){ .first = i, .last = i };
	for (; i < p->n_blocks && p->blocks[i].frame == p->blocks[g->first].frame; i++)
		g->mask |= 1u << p->blocks[i].in_frame;
	g->last = i;
	return g->last > g->first;
}

static const struct bs_frame *frame_of(const struct bs_segment_proof *p,
				       const struct bs_segment_group *g)
{
	return &p->table->frames[p->blocks[g->first].frame];
}

void bs_segment_proof_init(struct bs_segment_proof *p, const struct bs_table *table,
			   const struct bs_extent *extents, uint32_t n)
{
	struct bs_segment_group g = { 0 };

	p->table = table;
	p->n_blocks = p->n_hashes = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t frame = bs_table_find(table, extents[i].block);

		for (uint32_t k = 0; k < extents[i].n_blocks; k++) {
			uint64_t block = (uint64_t)extents[i].block + k;
			const struct bs_frame *fr = &table->frames[frame];

			if (block == fr->first_block + fr->n_blocks)
				fr = &table->frames[++frame];
			p->blocks[p->n_blocks] = (struct bs_segment_block){
				.frame = frame,
				.in_frame = (uint16_t)(block - fr->first_block),
				.in_segment = (uint16_t)p->n_blocks
			};
			p->n_blocks++;
		}
	}
	qsort(p->blocks, p->n_blocks, sizeof(p->blocks[0]), by_place);
	while (bs_segment_next_group(p, &g))
		p->n_hashes += bs_frame_proof_len(frame_of(p, &g)->n_blocks, g.mask);
}

int bs_segment_proof_check(const struct bs_segment_proof *p, struct bs_framer *f,
			   const void *blocks, const void *hashes)
{
	struct bs_digest leaves[BS_FRAME_BLOCKS_MAX], proof[BS_FRAME_BLOCKS_MAX];
	const uint8_t *hash = hashes;
	struct bs_segment_group g = { 0 };

	while (bs_segment_next_group(p, &g)) {
		const struct bs_frame *fr = frame_of(p, &g);
		uint32_t n = bs_frame_proof_len(fr->n_blocks, g.mask);

		for (uint32_t i = g.first; i < g.last; i++)
			bs_frame_leaves(f,
					(const uint8_t *)blocks +
						(size_t)p->blocks[i].in_segment * BS_BLOCK_SIZE,
					1, &leaves[p->blocks[i].in_frame]);
		memcpy(proof, hash, n * sizeof(proof[0]));
		hash += n * sizeof(proof[0]);
		if (bs_frame_proof_check(f, fr, g.mask, leaves, proof) < 0)
			return -EBADMSG;
	}
	return 0;
}

int bs_segment_proof_make(const struct bs_segment_proof *p, struct bs_framer *f,
			  const struct bs_pack_write_options *o, void *buf, void *ret_blocks,
			  void *ret_hashes, struct bs_error *err)
{
	struct bs_digest leaves[BS_FRAME_BLOCKS_MAX], proof[BS_FRAME_BLOCKS_MAX];
	uint8_t *hash = ret_hashes;
	struct bs_segment_group g = { 0 };

	while (bs_segment_next_group(p, &g)) {
		const struct bs_frame *fr = frame_of(p, &g);
		uint32_t n = bs_frame_proof_len(fr->n_blocks, g.mask);
		const uint32_t frame = p->blocks[g.first].frame;
		bool some = o->some && o->some(o->cookie, f, frame, g.mask, buf, proof) == 0;
		int r = some ? 0 : o->frame(o->cookie, frame, buf, err);

		if (r < 0)
			return r;
		for (uint32_t i = g.first; i < g.last; i++)
			memcpy((uint8_t *)ret_blocks +
				       (size_t)p->blocks[i].in_segment * BS_BLOCK_SIZE,
			       (const uint8_t *)buf + (size_t)p->blocks[i].in_frame * BS_BLOCK_SIZE,
			       BS_BLOCK_SIZE);
		if (n == 0)
			continue;
		if (!some) {
			bs_frame_leaves(f, buf, fr->n_blocks, leaves);
			bs_frame_proof_make(f, leaves, fr->n_blocks, g.mask, proof);
		}
		memcpy(hash, proof, n * sizeof(proof[0]));
		hash += n * sizeof(proof[0]);
	}
	return 0;
}
