/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/translate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "hot/pack.h"
#include "image/table.h"

struct translation {
	const struct bs_pack *p;
	const struct bs_table *of, *to;
	struct bs_map frames; /* of to, by root */
	uint64_t *seen;	      /* blocks of to */
	struct bs_pack *out;
	struct bs_pack_origin *origins;
	size_t cap, origins_cap;
};

static void translation_done(struct translation *t)
{
	bs_map_done(&t->frames);
	free(t->seen);
	(void)bs_pack_free(t->out);
	free(t->origins);
}

static int list_frames(struct translation *t)
{
	for (uint32_t i = t->to->n_frames; i-- > 0;) { /* the first one of equals stays */
		struct bs_frame *fr = &t->to->frames[i];

		if (bs_map_put(&t->frames, fr->root.b, sizeof(fr->root.b), fr) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Where the block of the first image is in the second one. */
static bool find(const struct translation *t, uint32_t block, uint32_t *ret)
{
	const struct bs_frame *a = &t->of->frames[bs_table_find(t->of, block)];
	const struct bs_frame *b = bs_map_get(&t->frames, a->root.b, sizeof(a->root.b));

	if (!b || b->n_blocks != a->n_blocks)
		return false;
	*ret = (uint32_t)(b->first_block + (block - a->first_block));
	return true;
}

/* Adds a block of the segment that is made now, which goes on with the last extent or begins one. */
static int add(struct translation *t, struct bs_pack_segment *s, uint32_t block,
	       const struct bs_pack_origin *from)
{
	const uint32_t n = t->out->n_extents;
	struct bs_extent *last = s->n_extents ? &t->out->extents[n - 1] : NULL;

	s->n_blocks++;
	t->out->n_blocks++;
	if (last && last->block + last->n_blocks == block &&
	    t->origins[n - 1].block + last->n_blocks == from->block &&
	    t->origins[n - 1].in_segment + last->n_blocks == from->in_segment) {
		last->n_blocks++;
		return 0;
	}
	if (bs_grow(&t->out->extents, &t->cap, n + (size_t)1, sizeof(*t->out->extents)) < 0 ||
	    bs_grow(&t->origins, &t->origins_cap, n + (size_t)1, sizeof(*t->origins)) < 0)
		return -ENOMEM;
	t->out->extents[n] = (struct bs_extent){ block, 1 };
	t->origins[n] = *from;
	t->out->n_extents++;
	s->n_extents++;
	return 0;
}

static int translate_segment(struct translation *t, uint32_t i)
{
	const struct bs_pack_segment *a = &t->p->segments[i];
	struct bs_pack_segment *s = &t->out->segments[i];
	uint32_t in_segment = 0, block;

	*s = (struct bs_pack_segment){ .off = a->off,
				       .len = a->len,
				       .first_extent = t->out->n_extents };
	for (uint32_t k = a->first_extent; k < a->first_extent + a->n_extents; k++) {
		const struct bs_extent *e = &t->p->extents[k];

		for (uint32_t b = 0; b < e->n_blocks; b++, in_segment++) {
			const struct bs_pack_origin from = { e->block + b, in_segment };
			uint64_t bit;

			if (!find(t, from.block, &block))
				continue;
			bit = UINT64_C(1) << (block % 64);
			if (t->seen[block / 64] &
			    bit) /* of a frame that the first image has twice */
				continue;
			t->seen[block / 64] |= bit;
			if (add(t, s, block, &from) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

int bs_pack_translate(const struct bs_pack *p, const struct bs_table *of, const struct bs_table *to,
		      struct bs_pack **ret, struct bs_pack_origin **ret_origins)
{
	__attribute__((cleanup(translation_done))) struct translation t = {
		.p = p,
		.of = of,
		.to = to,
		.seen = calloc(bs_div_up(to->blob_blocks, 64) + 1, sizeof(*t.seen)),
		.out = calloc(1, sizeof(*t.out)),
	};

	bs_map_init(&t.frames);
	if (!t.seen || !t.out || list_frames(&t) < 0)
		return -ENOMEM;
	t.out->head_len = p->head_len;
	t.out->len = p->len;
	t.out->n_segments = p->n_segments;
	t.out->segments = calloc(p->n_segments, sizeof(*t.out->segments));
	if (!t.out->segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_segments; i++) {
		if (translate_segment(&t, i) < 0)
			return -ENOMEM;
	}
	if (t.out->n_blocks == 0)
		return -ENOENT;
	*ret = bs_take(&t.out);
	*ret_origins = bs_take(&t.origins);
	return 0;
}

void bs_pack_pick(const struct bs_pack *translated, const struct bs_pack_origin *origins,
		  uint32_t segment, void *blocks)
{
	const struct bs_pack_segment *s = &translated->segments[segment];
	uint8_t *to = blocks;

	/* in the order of the segment: nothing is written over that is still to be read */
	for (uint32_t k = s->first_extent; k < s->first_extent + s->n_extents; k++) {
		const size_t n = (size_t)translated->extents[k].n_blocks * BS_BLOCK_BYTES;

		memmove(to, (uint8_t *)blocks + (size_t)origins[k].in_segment * BS_BLOCK_BYTES, n);
		to += n;
	}
}
