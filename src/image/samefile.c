/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/samefile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/nodes.h"
#include "image/spool.h"

/* Against images of many large files of one size, each read for each */
#define CHAIN_MAX 8u
#define PIECE (64u << 10)

struct small {
	struct bs_digest digest;
	uint64_t first_block;
};

struct large {
	uint64_t size;
	const struct bs_inode *inode;
	struct large *next;
	unsigned int n_chain; /* of the first */
	size_t n;
	struct bs_tree_extent extents[];
};

void bs_samefile_init(struct bs_samefile *s)
{
	bs_map_init(&s->small);
	bs_map_init(&s->large);
}

void bs_samefile_done(struct bs_samefile *s)
{
	size_t pos = 0;
	struct large *l;
	void *v;

	while ((v = bs_map_next(&s->small, &pos)))
		free(v);
	pos = 0;
	while ((l = bs_map_next(&s->large, &pos))) {
		while (l) {
			struct large *next = l->next;

			free(l);
			l = next;
		}
	}
	bs_map_done(&s->small);
	bs_map_done(&s->large);
}

bool bs_samefile_small(const struct bs_samefile *s, const struct bs_digest *d,
		       uint64_t *ret_first_block)
{
	const struct small *found = bs_map_get(&s->small, d->b, sizeof(d->b));

	if (found)
		*ret_first_block = found->first_block;
	return found != NULL;
}

int bs_samefile_small_add(struct bs_samefile *s, const struct bs_digest *d, uint64_t first_block,
			  struct bs_error *err)
{
	struct small *e = malloc(sizeof(*e));

	if (e) {
		e->digest = *d;
		e->first_block = first_block;
	}
	if (!e || bs_map_put(&s->small, e->digest.b, sizeof(e->digest.b), e) < 0) {
		free(e);
		return bs_fail_errno(err, -ENOMEM, "index of contents");
	}
	return 0;
}

/* 1 equal, 0 not, -errno */
static int equal(const struct bs_inode *a, const struct bs_inode *b, uint8_t *buf,
		 struct bs_error *err)
{
	uint64_t off = 0;

	while (off < a->size) {
		uint64_t skip = BS_MIN(bs_spool_next_data(a->spool, a->spool_off + off,
							  a->spool_off + a->size) -
					       a->spool_off,
				       bs_spool_next_data(b->spool, b->spool_off + off,
							  b->spool_off + b->size) -
					       b->spool_off);
		size_t len;
		int r;

		off = skip;
		if (off >= a->size)
			break;
		len = (size_t)BS_MIN(a->size - off, (uint64_t)PIECE);
		r = bs_spool_read(a->spool, a->spool_off + off, buf, len, err);
		if (r == 0)
			r = bs_spool_read(b->spool, b->spool_off + off, buf + PIECE, len, err);
		if (r < 0)
			return r;
		if (memcmp(buf, buf + PIECE, len) != 0)
			return 0;
		off += len;
	}
	return 1;
}

int bs_samefile_large(const struct bs_samefile *s, const struct bs_inode *i,
		      const struct bs_tree_extent **ret, size_t *ret_n, struct bs_error *err)
{
	const struct large *l = bs_map_get(&s->large, &i->size, sizeof(i->size));
	bs_autofree uint8_t *buf = NULL;

	if (!l)
		return 0;
	buf = malloc((size_t)2 * PIECE);
	if (!buf)
		return bs_fail_errno(err, -ENOMEM, "compare files");
	for (; l; l = l->next) {
		int r = equal(l->inode, i, buf, err);

		if (r < 0)
			return r;
		if (r == 1) {
			*ret = l->extents;
			*ret_n = l->n;
			return 1;
		}
	}
	return 0;
}

int bs_samefile_large_add(struct bs_samefile *s, const struct bs_inode *i,
			  const struct bs_tree_extent *extents, size_t n, struct bs_error *err)
{
	struct large *first = bs_map_get(&s->large, &i->size, sizeof(i->size)), *l;

	if (first && first->n_chain >= CHAIN_MAX)
		return 0;
	l = calloc(1, sizeof(*l) + n * sizeof(*extents));
	if (!l)
		return bs_fail_errno(err, -ENOMEM, "index of contents");
	l->size = i->size;
	l->inode = i;
	l->n = n;
	if (n)
		memcpy(l->extents, extents, n * sizeof(*extents));
	if (first) {
		l->next = first->next;
		first->next = l;
		first->n_chain++;
		return 0;
	}
	l->n_chain = 1;
	if (bs_map_put(&s->large, &l->size, sizeof(l->size), l) < 0) {
		free(l);
		return bs_fail_errno(err, -ENOMEM, "index of contents");
	}
	return 0;
}
