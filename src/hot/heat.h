/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Which files of an image a list of blocks is made of: for people who look at a profile.
 * However many extents share blocks, the cost is one of logarithms for each extent of the
 * tree. A block that several files have counts for each of them.
 */
#ifndef BS_HOT_HEAT_H
#define BS_HOT_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "cache/blocks.h"

struct bs_heat;
struct bs_tree;

/* extents are disjoint, in the order of use. NULL: out of memory. */
struct bs_heat *bs_heat_new(const struct bs_extent *extents, uint32_t n);
/* The blocks that both have, in the order of a. */
struct bs_heat *bs_heat_both(const struct bs_heat *a, const struct bs_heat *b);
struct bs_heat *bs_heat_free(struct bs_heat *h);
DEFINE_BS_AUTO(heat, struct bs_heat, bs_heat_free)

uint64_t bs_heat_blocks(const struct bs_heat *h); /* of all extents */

struct bs_heat_file {
	uint32_t entry;	 /* of the tree: its first name */
	uint32_t first;	 /* the extent (as given to bs_heat_new) that touched it first */
	uint64_t blocks; /* of it that are in the list */
};

/* The files with any such block, in the order of first use (malloc'ed). -ENOMEM. */
int bs_heat_files(const struct bs_heat *h, const struct bs_tree *t, struct bs_heat_file **ret,
		  size_t *ret_n);

/* How many blocks of a file are in the list. */
uint64_t bs_heat_of_file(const struct bs_heat *h, const struct bs_tree *t, uint32_t entry);

#endif
