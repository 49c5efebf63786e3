/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/blocks.h"

#include <stdlib.h>

struct bs_blocks *bs_blocks_ref(struct bs_blocks *b)
{
	(void)__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
	return b;
}

static void free_block(struct bs_block *k)
{
	for (unsigned int i = 0; i < k->n_replicas; i++) {
		free(k->replicas[i].address);
		free(k->replicas[i].host);
	}
	free(k->replicas);
	free(k->pool);
	bs_token_done(&k->token);
}

struct bs_blocks *bs_blocks_unref(struct bs_blocks *b)
{
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (size_t i = 0; i < b->n; i++)
		free_block(&b->v[i]);
	free(b->v);
	free(b);
	return NULL;
}

const struct bs_block *bs_blocks_find(const struct bs_blocks *b, uint64_t off)
{
	size_t low = 0, high = b->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct bs_block *k = &b->v[mid];

		if (off < k->off)
			high = mid;
		else if (off - k->off >= k->len)
			low = mid + 1;
		else
			return k;
	}
	return NULL;
}
