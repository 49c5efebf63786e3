/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Extents sorted by their first block, and over each CHUNK of them the end of the one
 * that reaches furthest; over these a binary tree of maxima, so that those that hold a
 * block are found in steps of the logarithm however they overlap.
 *
 *   maxima:           1                  index 1 is the root, i has 2i and 2i + 1
 *                2        3
 *              4   5    6   7            the last row: one a chunk
 *   spans:    [..][..] [..][..]
 */
#include "config.h"

#include "rootfs/hotfiles.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/tree.h"
#include "rootfs/entry.h"

#define CHUNK 16u
#define OPEN_RUNS 8u		 /* that a later extent may continue */
#define TREE_DATA_MAX (1u << 30) /* compressed */
#define NOT_KEPT UINT32_MAX

struct span {
	uint32_t block; /* of the blob */
	uint32_t n_blocks;
	uint32_t file_block;
	uint32_t node;
};

struct node {
	uint32_t parent; /* its own: the root */
	uint32_t name;	 /* in names */
};

struct bs_hotfiles {
	struct span *spans;
	uint32_t n_spans;
	uint64_t *furthest; /* the maxima; 2 * n_leaves */
	uint32_t n_leaves;  /* a power of two */
	struct node *nodes;
	uint32_t n_nodes;
	char *names;
	size_t names_len;
};

struct bs_hotfiles *bs_hotfiles_free(struct bs_hotfiles *h)
{
	if (!h)
		return NULL;
	free(h->spans);
	free(h->furthest);
	free(h->nodes);
	free(h->names);
	free(h);
	return NULL;
}

size_t bs_hotfiles_bytes(const struct bs_hotfiles *h)
{
	return sizeof(*h) + h->n_spans * sizeof(*h->spans) +
	       2 * (size_t)h->n_leaves * sizeof(*h->furthest) + h->n_nodes * sizeof(*h->nodes) +
	       h->names_len;
}

/* --- making --------------------------------------------------------------------------------- */

static int by_block(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Files with content, and the directories above them: a parent comes before its children. */
static int keep_nodes(struct bs_hotfiles *h, const struct bs_tree *t, uint32_t *kept)
{
	size_t names = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_entries; i++)
		kept[i] = NOT_KEPT;
	for (uint32_t i = t->n_entries; i-- > 0;) {
		const struct bs_tree_entry *e = &t->entries[i];

		if (e->inode == i && e->n_extents > 0)
			kept[i] = 0;
		if (kept[i] == NOT_KEPT)
			continue;
		kept[e->parent] = 0;
		names += e->name_len + 1u;
		n++;
	}
	h->nodes = calloc(n + 1u, sizeof(*h->nodes));
	h->names = malloc(names + 1);
	if (!h->nodes || !h->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];

		if (kept[i] == NOT_KEPT)
			continue;
		kept[i] = h->n_nodes;
		h->nodes[h->n_nodes++] = (struct node){ .parent = kept[e->parent],
							.name = (uint32_t)h->names_len };
		memcpy(h->names + h->names_len, e->name, e->name_len + 1u);
		h->names_len += e->name_len + 1u;
	}
	return 0;
}

static int keep_spans(struct bs_hotfiles *h, const struct bs_tree *t, const uint32_t *kept)
{
	uint32_t n = 0;

	h->spans = calloc(t->n_extents + (size_t)1, sizeof(*h->spans));
	if (!h->spans)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];

		if (e->inode != i)
			continue;
		for (uint32_t k = 0; k < e->n_extents; k++) {
			const struct bs_tree_extent *x = &t->extents[e->first_extent + k];

			if (x->file_block + x->n_blocks > UINT32_MAX)
				continue;
			h->spans[n++] = (struct span){ .block = (uint32_t)x->blob_block,
						       .n_blocks = (uint32_t)x->n_blocks,
						       .file_block = (uint32_t)x->file_block,
						       .node = kept[i] };
		}
	}
	qsort(h->spans, n, sizeof(*h->spans), by_block);
	for (uint32_t i = 0; i < n; i++) {
		/* the spans before this one are in their last places */
		if (h->n_spans >= BS_HOTFILES_SHARED_MAX &&
		    h->spans[h->n_spans - BS_HOTFILES_SHARED_MAX].block == h->spans[i].block)
			continue;
		h->spans[h->n_spans++] = h->spans[i];
	}
	return 0;
}

static int make_maxima(struct bs_hotfiles *h)
{
	h->n_leaves = 1;
	while ((uint64_t)h->n_leaves * CHUNK < h->n_spans)
		h->n_leaves *= 2;
	h->furthest = calloc(2 * (size_t)h->n_leaves, sizeof(*h->furthest));
	if (!h->furthest)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		uint64_t *leaf = &h->furthest[h->n_leaves + i / CHUNK];

		*leaf = BS_MAX(*leaf, (uint64_t)h->spans[i].block + h->spans[i].n_blocks);
	}
	for (uint32_t i = h->n_leaves - 1; i > 0; i--)
		h->furthest[i] = BS_MAX(h->furthest[2 * i], h->furthest[2 * i + 1]);
	return 0;
}

int bs_hotfiles_new(const struct bs_tree *t, struct bs_hotfiles **ret)
{
	bs_auto(hotfiles) struct bs_hotfiles *h = calloc(1, sizeof(*h));
	bs_autofree uint32_t *kept = calloc(t->n_entries, sizeof(*kept));

	if (!h || !kept || keep_nodes(h, t, kept) < 0 || keep_spans(h, t, kept) < 0 ||
	    make_maxima(h) < 0)
		return -ENOMEM;
	*ret = bs_take(&h);
	return 0;
}

static int read_tree(const char *bytes, size_t len, struct bs_hotfiles **ret, struct bs_error *err)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	int r = bs_tree_read(bytes, len, &t, err);

	if (r < 0)
		return r;
	r = bs_hotfiles_new(t, ret);
	return r < 0 ? bs_fail(err, r, "out of memory") : 0;
}

int bs_hotfiles_read(int tree_fd, struct bs_hotfiles **ret, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	uint64_t size;
	size_t len;
	int r = bs_read_file(tree_fd, TREE_DATA_MAX, &bytes, &len);

	if (r < 0)
		return bs_fail_errno(err, r, "read the tree");
	size = bs_tree_bytes(bytes, len);
	bs_entry_memory_take(size);
	r = read_tree(bytes, len, ret, err);
	bs_entry_memory_give(size);
	return r;
}

/* --- asking --------------------------------------------------------------------------------- */

struct run {
	uint32_t node;
	uint64_t block; /* of the file */
	uint64_t n_blocks;
};

struct asked {
	const struct bs_hotfiles *h;
	bs_hotfiles_fn *fn;
	void *cookie;
	struct run open[OPEN_RUNS]; /* oldest first */
	unsigned int n_open;
	uint64_t block, end; /* of the extent in hand */
	uint64_t left;	     /* runs that it may still have */
	char path[PATH_MAX];
	uint32_t path_node; /* whose path that is */
};

/* *ret points into buf; NULL: it is too long. */
static const char *make_path(const struct bs_hotfiles *h, uint32_t node, char buf[PATH_MAX])
{
	char *at = buf + PATH_MAX - 1;

	for (*at = '\0'; h->nodes[node].parent != node; node = h->nodes[node].parent) {
		const char *name = h->names + h->nodes[node].name;
		size_t len = strlen(name), slash = *at != '\0';

		if ((size_t)(at - buf) < len + slash)
			return NULL;
		if (slash)
			*--at = '/';
		at -= len;
		memcpy(at, name, len);
	}
	return at;
}

static int give(struct asked *a, const struct run *run)
{
	char buf[PATH_MAX];

	if (a->path_node != run->node) {
		const char *path = make_path(a->h, run->node, buf);

		a->path_node = run->node;
		a->path[0] = '\0';
		if (path)
			memcpy(a->path, path, strlen(path) + 1);
	}
	if (!a->path[0])
		return 0;
	return a->fn(a->cookie, a->path, run->block * BS_BLOCK_BYTES,
		     run->n_blocks * BS_BLOCK_BYTES);
}

static int add_run(struct asked *a, const struct run *run)
{
	int r = 0;

	for (unsigned int i = 0; i < a->n_open; i++) {
		struct run *o = &a->open[i];

		if (o->node == run->node && o->block + o->n_blocks == run->block) {
			o->n_blocks += run->n_blocks;
			return 0;
		}
	}
	if (a->n_open == OPEN_RUNS) {
		r = give(a, &a->open[0]);
		memmove(a->open, a->open + 1, --a->n_open * sizeof(*a->open));
	}
	a->open[a->n_open++] = *run;
	return r;
}

static int look_at(struct asked *a, const struct span *s)
{
	const uint64_t end = (uint64_t)s->block + s->n_blocks;
	const uint64_t from = BS_MAX((uint64_t)s->block, a->block), to = BS_MIN(end, a->end);
	struct run run = { .node = s->node,
			   .block = s->file_block + (from - s->block),
			   .n_blocks = to - from };

	if (from >= to || a->left == 0)
		return 0;
	a->left--;
	return add_run(a, &run);
}

/* What is below node i of the maxima, whose row has width nodes. At most 2^24 spans: 20 deep. */
static int descend(struct asked *a, uint32_t i, uint32_t width) /* NOLINT(misc-no-recursion) */
{
	const struct bs_hotfiles *h = a->h;
	const uint64_t first = (uint64_t)(i - width) * (h->n_leaves / width) * CHUNK;
	int r = 0;

	if (a->left == 0 || h->furthest[i] <= a->block || first >= h->n_spans ||
	    h->spans[first].block >= a->end)
		return 0;
	if (width < h->n_leaves) {
		r = descend(a, 2 * i, 2 * width);
		return r ? r : descend(a, 2 * i + 1, 2 * width);
	}
	for (uint64_t k = first; r == 0 && k < BS_MIN(first + CHUNK, (uint64_t)h->n_spans); k++)
		r = look_at(a, &h->spans[k]);
	return r;
}

int bs_hotfiles_runs(const struct bs_hotfiles *h, const struct bs_extent *extents, size_t n,
		     bs_hotfiles_fn *fn, void *cookie)
{
	struct asked a = { .h = h, .fn = fn, .cookie = cookie, .path_node = NOT_KEPT };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		a.block = extents[i].block;
		a.end = a.block + extents[i].n_blocks;
		a.left = (uint64_t)extents[i].n_blocks * BS_HOTFILES_SHARED_MAX;
		r = descend(&a, 1, 1);
	}
	for (unsigned int i = 0; r == 0 && i < a.n_open; i++)
		r = give(&a, &a.open[i]);
	return r;
}
