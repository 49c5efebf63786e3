/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The pack of one image for another that has frames in common with it, as two versions of
 * an image have. Frames with the same root have the same bytes, so that a block which the
 * first image's table has proven is proven for the second one, at another place.
 */
#ifndef BS_HOT_TRANSLATE_H
#define BS_HOT_TRANSLATE_H

#include <stdint.h>

struct bs_pack;
struct bs_table;

/* Where an extent of the translated pack was. */
struct bs_pack_origin {
	uint32_t block;	     /* of the first image's blob */
	uint32_t in_segment; /* its place among the segment's blocks */
};

/*
 * p, of the image with table of, for that with table to: the segments stay where they are in
 * the pack, but have only the blocks of common frames; some have none. *ret_origins: one an
 * extent (malloc'ed). -ENOENT: nothing is common; -ENOMEM.
 */
int bs_pack_translate(const struct bs_pack *p, const struct bs_table *of, const struct bs_table *to,
		      struct bs_pack **ret, struct bs_pack_origin **ret_origins);

/* Of a segment that bs_pack_decode unpacked by the first image's: the blocks that are left, in order. */
void bs_pack_pick(const struct bs_pack *translated, const struct bs_pack_origin *origins,
		  uint32_t segment, void *blocks);

#endif
