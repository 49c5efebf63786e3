/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What stands behind an EROFS inode: xattrs and chunk indexes. */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "image/erofsdisk.h"
#include "image/treecheck.h"

/* Each name begins with one of these: the reader of the tree saw to it. */
static const struct {
	uint8_t index;
	uint8_t len;
	const char *text;
} prefixes[] = {
	{ 1, 5, "user." },
	{ 6, 9, "security." },
	{ 4, 8, "trusted." },
	{ 2, 23, "system.posix_acl_access" },
	{ 3, 24, "system.posix_acl_default" },
};

static size_t prefix_of(const struct bs_tree_xattr *x)
{
	size_t i = 0;

	while (i < BS_ARRAY_LEN(prefixes) - 1 &&
	       strncmp(x->name, prefixes[i].text, prefixes[i].len) != 0)
		i++;
	return i;
}

static uint32_t round_up_4(uint32_t n)
{
	return (n + 3) & ~3u;
}

uint32_t bs_erofs_xattr_size(const struct bs_tree *t, const struct bs_tree_entry *e)
{
	uint32_t size = sizeof(struct erofs_xattr_header);

	if (e->n_xattrs == 0)
		return 0;
	for (uint32_t i = 0; i < e->n_xattrs; i++) {
		const struct bs_tree_xattr *x = &t->xattrs[e->first_xattr + i];

		size += round_up_4((uint32_t)sizeof(struct erofs_xattr) + x->name_len -
				   prefixes[prefix_of(x)].len + x->value_len);
	}
	return size;
}

uint32_t bs_erofs_xattr_put(const struct bs_tree_xattr *x, uint8_t *to)
{
	size_t p = prefix_of(x);
	uint32_t name_len = (uint32_t)x->name_len - prefixes[p].len;
	uint32_t used = (uint32_t)sizeof(struct erofs_xattr) + name_len + x->value_len;
	struct erofs_xattr head = {
		.name_len = (uint8_t)name_len,
		.name_index = prefixes[p].index,
		.value_size = htole16((uint16_t)x->value_len),
	};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), x->name + prefixes[p].len, name_len);
	memcpy(to + sizeof(head) + name_len, x->value, x->value_len);
	memset(to + used, 0, round_up_4(used) - used);
	return round_up_4(used);
}

/*
 * A chunk may not reach over a place where the mapping changes: the begin or end of an
 * extent inside the file. So its size is the largest power of two that divides all of
 * these, and no larger than the file needs.
 */
struct erofs_chunks bs_erofs_chunks(const struct bs_tree *t, const struct bs_tree_entry *e)
{
	uint64_t n_blocks = bs_tree_blocks(e->size), changes = 0;
	struct erofs_chunks c = { 0 };

	for (uint32_t i = 0; i < e->n_extents; i++) {
		const struct bs_tree_extent *x = &t->extents[e->first_extent + i];
		uint64_t end = x->file_block + x->n_blocks;

		changes |= x->file_block | (end < n_blocks ? end : 0);
	}
	while (c.bits < EROFS_CHUNK_BITS_MAX && UINT64_C(1) << c.bits < n_blocks &&
	       !(changes >> c.bits & 1))
		c.bits++;
	c.n = bs_div_up(n_blocks, UINT64_C(1) << c.bits);
	return c;
}
