/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/use.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct bs_use {
	uint64_t blob_blocks, pack_blocks;
	uint64_t *packed;	/* a bit a block; constant */
	_Atomic uint64_t *seen; /* read by somebody; of no pack: not by the warmer alone */
	void *heap;		/* what it points to */
	_Atomic uint64_t read, waited, warmed, cached, fetched, missed_reads, missed_min;
};

static bool is_packed(const struct bs_use *u, uint64_t b)
{
	return u->packed[b / 64] >> (b % 64) & 1;
}

/* false: it was seen before. */
static bool see(struct bs_use *u, uint64_t b)
{
	const uint64_t bit = UINT64_C(1) << (b % 64);

	/* most were read before: no write to shared memory for those */
	return !(atomic_load_explicit(&u->seen[b / 64], memory_order_relaxed) & bit) &&
	       !(atomic_fetch_or_explicit(&u->seen[b / 64], bit, memory_order_relaxed) & bit);
}

static void count(_Atomic uint64_t *to, uint64_t n)
{
	if (n)
		atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void bs_use_note(struct bs_use *u, const struct bs_use_read *rd)
{
	uint64_t read = 0, waited = 0, warmed = 0, cached = 0, fetched = 0, missed, last;

	last = rd->len == 0 ? 0 : (rd->off + rd->len - 1) / BS_BLOCK_BYTES;
	if (rd->len == 0 || last >= u->blob_blocks)
		return;
	for (uint64_t b = rd->off / BS_BLOCK_BYTES; b <= last; b++) {
		const bool packed = is_packed(u, b);

		/* what it reads beside the pack, at the end of a file, says nothing */
		if ((rd->warmer && !packed) || !see(u, b))
			continue;
		if (rd->warmer) {
			warmed++;
		} else if (packed) {
			read++;
			waited += !rd->there(rd->cookie, b);
		} else if (rd->there(rd->cookie, b)) {
			cached++;
		} else {
			fetched++;
		}
	}
	missed = cached + fetched;
	count(&u->read, read);
	count(&u->waited, waited);
	count(&u->warmed, warmed);
	count(&u->cached, cached);
	count(&u->fetched, fetched);
	count(&u->missed_reads, missed > 0);
	count(&u->missed_min, rd->exact ? missed : missed > 0);
}

void bs_use_get(struct bs_use *u, struct bs_use_counts *ret)
{
	*ret = (struct bs_use_counts){
		.pack_blocks = u->pack_blocks,
		.read_blocks = u->read,
		.waited_blocks = u->waited,
		.warmed_blocks = u->warmed,
		.cached_blocks = u->cached,
		.fetched_blocks = u->fetched,
		.missed_reads = u->missed_reads,
		.missed_min = u->missed_min,
	};
}

int bs_use_missed(struct bs_use *u, struct bs_extent **ret, uint32_t *ret_n)
{
	bs_autofree struct bs_extent *list = NULL;
	size_t n = 0, cap = 0;

	for (uint64_t b = 0; b < u->blob_blocks; b++) {
		const uint64_t word = atomic_load_explicit(&u->seen[b / 64], memory_order_relaxed) &
				      ~u->packed[b / 64];

		if (word == 0) {
			b |= 63;
			continue;
		}
		if (!(word >> (b % 64) & 1))
			continue;
		if (n > 0 && (uint64_t)list[n - 1].block + list[n - 1].n_blocks == b) {
			list[n - 1].n_blocks++;
			continue;
		}
		if (bs_grow(&list, &cap, n + 1, sizeof(*list)) < 0)
			return -ENOMEM;
		list[n++] = (struct bs_extent){ (uint32_t)b, 1 };
	}
	*ret = bs_take(&list);
	*ret_n = (uint32_t)n;
	return 0;
}

bool bs_use_is_bad(const struct bs_use_counts *c, unsigned int percent)
{
	return percent > 0 && c->missed_min > 0 &&
	       c->missed_min >= bs_div_up(c->pack_blocks * percent, 100);
}

struct bs_use *bs_use_new(const struct bs_extent *extents, uint32_t n, uint64_t blob_blocks)
{
	const size_t words = bs_div_up(blob_blocks, 64) + 1;
	bs_auto(use) struct bs_use *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->blob_blocks = blob_blocks;
	u->packed = calloc(words, sizeof(*u->packed));
	u->seen = u->heap = calloc(words, sizeof(*u->seen));
	if (!u->packed || !u->heap)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		for (uint64_t b = extents[i].block, k = 0; k < extents[i].n_blocks; b++, k++)
			u->packed[b / 64] |= UINT64_C(1) << (b % 64);
		u->pack_blocks += extents[i].n_blocks;
	}
	return bs_take(&u);
}

struct bs_use *bs_use_free(struct bs_use *u)
{
	if (!u)
		return NULL;
	free(u->packed);
	free(u->heap);
	free(u);
	return NULL;
}
