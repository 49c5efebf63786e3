/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Finds earlier files of equal content: small ones by digest, large ones by size and
 * then by comparing, since few of those have one size.
 */
#ifndef BS_IMAGE_SAMEFILE_H
#define BS_IMAGE_SAMEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/map.h"
#include "image/tree.h"

struct bs_error;
struct bs_inode;

struct bs_samefile {
	struct bs_map small; /* digest → struct small */
	struct bs_map large; /* size → struct large, a chain */
};

void bs_samefile_init(struct bs_samefile *s);
void bs_samefile_done(struct bs_samefile *s);

bool bs_samefile_small(const struct bs_samefile *s, const struct bs_digest *d,
		       uint64_t *ret_first_block);
int bs_samefile_small_add(struct bs_samefile *s, const struct bs_digest *d, uint64_t first_block,
			  struct bs_error *err);

/* 1 and the extents of the earlier file (kept by s), 0: there is none, -errno. */
int bs_samefile_large(const struct bs_samefile *s, const struct bs_inode *i,
		      const struct bs_tree_extent **ret, size_t *ret_n, struct bs_error *err);
/* i must stay alive. */
int bs_samefile_large_add(struct bs_samefile *s, const struct bs_inode *i,
			  const struct bs_tree_extent *extents, size_t n, struct bs_error *err);

#endif
