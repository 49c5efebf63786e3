/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The extents by block, before each how many blocks there are, and over them a binary
 * tree of minima of their places in the order of use: both questions about a range
 * (how much of it, and what touched it first) take a search and a walk up the tree.
 */
#include "config.h"

#include "hot/heat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "image/tree.h"

struct spot {
	uint32_t block, n_blocks;
	uint32_t order;
};

struct bs_heat {
	struct spot *spots; /* by block, disjoint */
	uint64_t *before;   /* n + 1: blocks of the spots before */
	uint32_t *first;    /* 2 * n: minima of order; the leaves are from n on */
	uint32_t n;
};

struct bs_heat *bs_heat_free(struct bs_heat *h)
{
	if (!h)
		return NULL;
	free(h->spots);
	free(h->before);
	free(h->first);
	free(h);
	return NULL;
}

static int by_block(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return (x->block > y->block) - (x->block < y->block);
}

/* Spots are there, n of them. */
static int finish(struct bs_heat *h)
{
	qsort(h->spots, h->n, sizeof(*h->spots), by_block);
	h->before = calloc(h->n + (size_t)1, sizeof(*h->before));
	h->first = calloc(2 * (size_t)h->n + 1, sizeof(*h->first));
	if (!h->before || !h->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n; i++) {
		h->before[i + 1] = h->before[i] + h->spots[i].n_blocks;
		h->first[h->n + i] = h->spots[i].order;
	}
	for (uint32_t i = h->n; i-- > 1;)
		h->first[i] = BS_MIN(h->first[2 * (size_t)i], h->first[2 * (size_t)i + 1]);
	return 0;
}

struct bs_heat *bs_heat_new(const struct bs_extent *extents, uint32_t n)
{
	bs_auto(heat) struct bs_heat *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->n = n;
	h->spots = calloc(n + (size_t)1, sizeof(*h->spots));
	if (!h->spots)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		h->spots[i] = (struct spot){ extents[i].block, extents[i].n_blocks, i };
	return finish(h) < 0 ? NULL : bs_take(&h);
}

struct bs_heat *bs_heat_both(const struct bs_heat *a, const struct bs_heat *b)
{
	bs_auto(heat) struct bs_heat *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	/* each step ends a spot of one of the two */
	h->spots = calloc(a->n + (size_t)b->n + 1, sizeof(*h->spots));
	if (!h->spots)
		return NULL;
	for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
		const struct spot *x = &a->spots[i], *y = &b->spots[k];
		const uint64_t x_end = (uint64_t)x->block + x->n_blocks;
		const uint64_t y_end = (uint64_t)y->block + y->n_blocks;
		const uint64_t from = BS_MAX(x->block, y->block), to = BS_MIN(x_end, y_end);

		if (from < to)
			h->spots[h->n++] = (struct spot){ (uint32_t)from, (uint32_t)(to - from),
							  x->order };
		if (x_end <= y_end)
			i++;
		else
			k++;
	}
	return finish(h) < 0 ? NULL : bs_take(&h);
}

uint64_t bs_heat_blocks(const struct bs_heat *h)
{
	return h->before[h->n];
}

/* The first spot that ends behind block; n: none. */
static uint32_t find(const struct bs_heat *h, uint64_t block)
{
	uint32_t low = 0, high = h->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if ((uint64_t)h->spots[mid].block + h->spots[mid].n_blocks > block)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Blocks of the list before block. */
static uint64_t count_before(const struct bs_heat *h, uint64_t block)
{
	uint32_t i = find(h, block);

	if (i == h->n || h->spots[i].block >= block)
		return h->before[i];
	return h->before[i] + (block - h->spots[i].block);
}

static uint32_t first_of(const struct bs_heat *h, uint32_t from, uint32_t to)
{
	uint32_t least = UINT32_MAX;

	for (uint64_t l = (uint64_t)h->n + from, r = (uint64_t)h->n + to; l < r; l /= 2, r /= 2) {
		if (l & 1)
			least = BS_MIN(least, h->first[l++]);
		if (r & 1)
			least = BS_MIN(least, h->first[--r]);
	}
	return least;
}

static struct bs_heat_file look_at(const struct bs_heat *h, const struct bs_tree *t, uint32_t entry)
{
	struct bs_heat_file f = { .entry = entry, .first = UINT32_MAX };
	const struct bs_tree_entry *e = &t->entries[entry];

	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_tree_extent *x = &t->extents[e->first_extent + k];
		const uint64_t end = x->blob_block + x->n_blocks;
		const uint64_t n = count_before(h, end) - count_before(h, x->blob_block);
		uint32_t from, to;

		if (n == 0)
			continue;
		from = find(h, x->blob_block);
		to = find(h, end - 1);
		if (to < h->n && h->spots[to].block < end)
			to++;
		f.blocks += n;
		f.first = BS_MIN(f.first, first_of(h, from, to));
	}
	return f;
}

uint64_t bs_heat_of_file(const struct bs_heat *h, const struct bs_tree *t, uint32_t entry)
{
	return look_at(h, t, entry).blocks;
}

static int by_use(const void *a, const void *b)
{
	const struct bs_heat_file *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

int bs_heat_files(const struct bs_heat *h, const struct bs_tree *t, struct bs_heat_file **ret,
		  size_t *ret_n)
{
	bs_autofree struct bs_heat_file *files = NULL;
	size_t n = 0, cap = 0;

	for (uint32_t i = 0; i < t->n_entries; i++) {
		struct bs_heat_file f;

		if (t->entries[i].inode != i || t->entries[i].n_extents == 0)
			continue;
		f = look_at(h, t, i);
		if (f.blocks == 0)
			continue;
		if (bs_grow(&files, &cap, n + 1, sizeof(*files)) < 0)
			return -ENOMEM;
		files[n++] = f;
	}
	if (n > 0)
		qsort(files, n, sizeof(*files), by_use);
	*ret = bs_take(&files);
	*ret_n = n;
	return 0;
}
