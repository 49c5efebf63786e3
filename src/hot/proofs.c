/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/proofs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "hot/proof.h"
#include "image/frames.h"
#include "image/table.h"

/* What one segment has of one frame. */
struct piece {
	uint32_t frame, mask;
	uint64_t off; /* of its hashes in the file */
};

/* The hashes of a frame's tree that are known, by the leaves that they are over. */
struct nodes {
	struct bs_digest hash[BS_FRAME_BLOCKS_MAX][BS_FRAME_BLOCKS_MAX + 1];
	bool known[BS_FRAME_BLOCKS_MAX][BS_FRAME_BLOCKS_MAX + 1];
};

struct bs_proofs {
	const struct bs_table *table;
	int fd;
	struct piece *pieces; /* in the order of frames */
	size_t n;
	struct nodes nodes; /* of the frame that is looked at */
};

static uint32_t bits(uint32_t from, uint32_t to)
{
	return (to - from == 32 ? UINT32_MAX : (1u << (to - from)) - 1) << from;
}

/* Where the tree over n > 1 leaves is split: the largest power of two below n. */
static uint32_t split(uint32_t n)
{
	uint32_t k = 1;

	while (k * 2 < n)
		k *= 2;
	return k;
}

int bs_proofs_keep(int fd, const struct bs_pack *p, const struct bs_table *table, uint32_t i,
		   const void *data)
{
	const struct bs_pack_segment *s = &p->segments[i];
	struct bs_segment_proof proof;

	bs_segment_proof_init(&proof, table, p->extents + s->first_extent, s->n_extents);
	return bs_pwrite_full(fd, data, (size_t)proof.n_hashes * BS_SHA256_LEN, s->off);
}

static int by_frame(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int add_pieces(struct bs_proofs *ps, size_t *cap, const struct bs_pack *p, uint32_t i)
{
	const struct bs_pack_segment *s = &p->segments[i];
	struct bs_segment_proof proof;
	struct bs_segment_group g = { 0 };
	uint64_t off = s->off;

	bs_segment_proof_init(&proof, ps->table, p->extents + s->first_extent, s->n_extents);
	while (bs_segment_next_group(&proof, &g)) {
		uint32_t frame = proof.blocks[g.first].frame;

		if (bs_grow(&ps->pieces, cap, ps->n + 1, sizeof(*ps->pieces)) < 0)
			return -ENOMEM;
		ps->pieces[ps->n++] = (struct piece){ frame, g.mask, off };
		off += (uint64_t)BS_SHA256_LEN *
		       bs_frame_proof_len(ps->table->frames[frame].n_blocks, g.mask);
	}
	return 0;
}

struct bs_proofs *bs_proofs_new(const struct bs_pack *p, const struct bs_table *table, int fd)
{
	bs_auto(proofs) struct bs_proofs *ps = calloc(1, sizeof(*ps));
	size_t cap = 0;

	if (!ps)
		return NULL;
	ps->table = table;
	ps->fd = fd;
	for (uint32_t i = 0; i < p->n_segments; i++) {
		if (add_pieces(ps, &cap, p, i) < 0)
			return NULL;
	}
	qsort(ps->pieces, ps->n, sizeof(*ps->pieces), by_frame);
	return bs_take(&ps);
}

struct bs_proofs *bs_proofs_free(struct bs_proofs *p)
{
	if (!p)
		return NULL;
	free(p->pieces);
	free(p);
	return NULL;
}

/* The first piece of the frame, or of a later one. */
static size_t find(const struct bs_proofs *p, uint32_t frame)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->pieces[mid].frame < frame)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void know(struct nodes *n, uint32_t from, uint32_t to, const struct bs_digest *hash)
{
	n->hash[from][to] = *hash;
	n->known[from][to] = true;
}

/* The hashes of a proof, in their order, to their places. */
static const struct bs_digest *place(struct nodes *n, uint32_t mask, uint32_t from, uint32_t to,
				     const struct bs_digest *hash)
{
	uint32_t mid;

	if (!(mask & bits(from, to))) {
		know(n, from, to, hash);
		return hash + 1;
	}
	if (to - from == 1)
		return hash;
	mid = from + split(to - from);
	return place(n, mask, mid, to, place(n, mask, from, mid, hash));
}

/* The hash over some leaves from what is known. */
static bool work_out(struct nodes *n, struct bs_framer *f, uint32_t from, uint32_t to)
{
	struct bs_digest pair[2];
	uint32_t mid;

	if (n->known[from][to])
		return true;
	if (to - from == 1)
		return false;
	mid = from + split(to - from);
	if (!work_out(n, f, from, mid) || !work_out(n, f, mid, to))
		return false;
	pair[0] = n->hash[from][mid];
	pair[1] = n->hash[mid][to];
	bs_frame_root_of(f, pair, 2, &n->hash[from][to]);
	n->known[from][to] = true;
	return true;
}

/* Those of the proof of mask, in their order; NULL: one is not to be had. */
static struct bs_digest *collect(struct nodes *n, struct bs_framer *f, uint32_t mask, uint32_t from,
				 uint32_t to, struct bs_digest *ret)
{
	uint32_t mid;

	if (!(mask & bits(from, to))) {
		if (!work_out(n, f, from, to))
			return NULL;
		*ret = n->hash[from][to];
		return ret + 1;
	}
	if (to - from == 1)
		return ret;
	mid = from + split(to - from);
	ret = collect(n, f, mask, from, mid, ret);
	return ret ? collect(n, f, mask, mid, to, ret) : NULL;
}

int bs_proofs_make(struct bs_proofs *p, struct bs_framer *f, uint32_t frame, uint32_t mask,
		   bs_proofs_block_fn *block, void *cookie, void *blocks, struct bs_digest *ret)
{
	struct bs_digest leaves[BS_FRAME_BLOCKS_MAX], proof[BS_FRAME_BLOCKS_MAX];
	const struct bs_frame *fr = &p->table->frames[frame];
	struct nodes *n = &p->nodes;
	uint32_t had = mask;

	memset(n->known, 0, sizeof(n->known));
	for (size_t i = find(p, frame); i < p->n && p->pieces[i].frame == frame; i++) {
		const struct piece *q = &p->pieces[i];
		size_t len = bs_frame_proof_len(fr->n_blocks, q->mask) * sizeof(proof[0]);

		if (bs_pread_full(p->fd, proof, len, q->off) != (ssize_t)len)
			return -ENODATA;
		(void)place(n, q->mask, 0, fr->n_blocks, proof);
		had |= q->mask;
	}
	for (uint32_t i = 0; i < fr->n_blocks; i++) {
		void *at = (uint8_t *)blocks + (size_t)i * BS_BLOCK_BYTES;

		if (!(had >> i & 1))
			continue;
		if (block(cookie, fr->first_block + i, at) < 0) {
			if (mask >> i & 1)
				return -ENODATA;
			continue;
		}
		bs_frame_leaves(f, at, 1, &leaves[i]);
		know(n, i, i + 1, &leaves[i]);
	}
	if (!collect(n, f, mask, 0, fr->n_blocks, ret) ||
	    bs_frame_proof_check(f, fr, mask, leaves, ret) < 0)
		return -ENODATA;
	return 0;
}
