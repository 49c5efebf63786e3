/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The rules of a tree that reader and writer share (bootseer-image(5)). Each check
 * returns NULL, or what is wrong as a text without the entry's number.
 */
#ifndef BS_IMAGE_TREECHECK_H
#define BS_IMAGE_TREECHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/tree.h"

struct bs_disk_entry;

#define BS_TREE_MAJOR_MAX 0xfffu
#define BS_TREE_MINOR_MAX 0xfffffu
#define BS_TREE_BLOB_MAX UINT32_MAX /* blocks; EROFS' all-ones address means a hole */

static inline uint64_t bs_tree_blocks(uint64_t size)
{
	return size / BS_BLOCK_SIZE + (size % BS_BLOCK_SIZE != 0);
}

/* A name but the root's. */
const char *bs_tree_check_name(const char *name, size_t len);

/* The attributes of an entry that carries an inode; not its target, xattrs and extents. */
const char *bs_tree_check_inode(const struct bs_tree_entry *e);

/* One xattr, against the one before it in the same inode (NULL: the first). */
const char *bs_tree_check_xattr(const struct bs_tree_xattr *x, const struct bs_tree_xattr *before);

/* One extent of a file of size bytes, against the one before it in the same file. */
const char *bs_tree_check_extent(const struct bs_tree_extent *x,
				 const struct bs_tree_extent *before, uint64_t size,
				 uint64_t blob_blocks);

/*
 * Entry i > 0 comes in path order when its parent is on the way from entry i - 1 to
 * the root. Returns the entry on that way that is its elder sibling, parent when it
 * is the first child, or -1. parents of entries below i are checked; amortised constant time.
 */
int64_t bs_tree_elder(const struct bs_disk_entry *entries, uint32_t i, uint32_t parent);

#endif
