/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Making a hot pack: cut into segments, then segment by segment into the file. */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fd.h"
#include "hot/format.h"
#include "hot/pack.h"
#include "hot/proof.h"
#include "image/frames.h"
#include "image/table.h"

/* What is known of the pack while it is made. */
struct plan {
	const struct bs_pack_write_options *o;
	struct bs_disk_segment *segments;
	struct bs_extent *extents; /* cut at the segments' borders */
	size_t extents_cap;
	uint32_t n_segments, n_extents, n_blocks;
	uint64_t segments_len;
};

static void plan_done(struct plan *p)
{
	free(p->segments);
	free(p->extents);
}

static int count_blocks(const struct bs_extent *extents, uint32_t n, uint64_t blob_blocks,
			uint32_t *ret, struct bs_error *err)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += extents[i].n_blocks;
		if (extents[i].n_blocks == 0 || extents[i].block >= blob_blocks ||
		    extents[i].n_blocks > blob_blocks - extents[i].block)
			return bs_fail(err, -EINVAL, "hot pack: %u blocks at %u: not of this image",
				       extents[i].n_blocks, extents[i].block);
	}
	if (sum == 0)
		return bs_fail(err, -EINVAL, "hot pack: no blocks");
	if (sum > BS_PACK_BLOCKS_MAX)
		return bs_fail(err, -EINVAL, "hot pack: more than %u blocks", BS_PACK_BLOCKS_MAX);
	*ret = (uint32_t)sum;
	return 0;
}

/* Cuts the extents so that each segment but the last has BS_PACK_SEGMENT_BLOCKS blocks. */
static int plan_segments(struct plan *p, const struct bs_extent *extents, uint32_t n,
			 struct bs_error *err)
{
	uint32_t left = BS_PACK_SEGMENT_BLOCKS;
	int r = count_blocks(extents, n, p->o->table->blob_blocks, &p->n_blocks, err);

	if (r < 0)
		return r;
	p->n_segments = (uint32_t)bs_div_up(p->n_blocks, BS_PACK_SEGMENT_BLOCKS);
	p->segments = calloc(p->n_segments, sizeof(*p->segments));
	if (!p->segments)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	for (uint32_t i = 0, segment = 0; i < n; i++) {
		struct bs_extent e = extents[i];

		while (e.n_blocks > 0) {
			uint32_t take = BS_MIN(e.n_blocks, left);

			if (bs_grow(&p->extents, &p->extents_cap, p->n_extents + (size_t)1,
				    sizeof(*p->extents)) < 0)
				return bs_fail(err, -ENOMEM, "hot pack: out of memory");
			p->extents[p->n_extents++] = (struct bs_extent){ e.block, take };
			p->segments[segment].n_extents++;
			e.block += take;
			e.n_blocks -= take;
			left -= take;
			if (left == 0) {
				left = BS_PACK_SEGMENT_BLOCKS;
				segment++;
			}
		}
	}
	return 0;
}

/* Buffers for one segment. */
struct bench {
	uint8_t *frame, *blocks, *data;
};

static void bench_done(struct bench *b)
{
	free(b->frame);
	free(b->blocks);
	free(b->data);
}

static int write_segment(struct plan *p, struct bs_framer *f, struct bench *b, uint32_t i,
			 uint32_t first_extent, int fd, uint64_t off, struct bs_error *err)
{
	struct bs_segment_proof proof;
	size_t hashes;
	int r, n;

	bs_segment_proof_init(&proof, p->o->table, p->extents + first_extent,
			      p->segments[i].n_extents);
	hashes = (size_t)proof.n_hashes * BS_SHA256_LEN;
	r = bs_segment_proof_make(&proof, f, p->o, b->frame, b->blocks, b->data, err);
	if (r < 0)
		return r;
	n = bs_frame_encode(f, b->blocks, proof.n_blocks, b->data + hashes,
			    BS_PACK_SEGMENT_DATA_MAX - hashes);
	if (n < 0)
		return bs_fail_errno(err, n, "hot pack: compress segment %u", i);
	p->segments[i].len = (uint32_t)(hashes + (size_t)n);
	p->segments_len += p->segments[i].len;
	r = bs_pwrite_full(fd, b->data, p->segments[i].len, off);
	return r < 0 ? bs_fail_errno(err, r, "hot pack: write segment %u", i) : 0;
}

static int write_segments(struct plan *p, int fd, uint64_t head_len, struct bs_error *err)
{
	bs_auto(framer) struct bs_framer *f = bs_framer_new(p->o->level);
	__attribute__((cleanup(bench_done))) struct bench b = {
		.frame = malloc(BS_FRAME_BYTES_MAX),
		.blocks = malloc(BS_PACK_SEGMENT_BYTES_MAX),
		.data = malloc(BS_PACK_SEGMENT_DATA_MAX),
	};

	if (!f || !b.frame || !b.blocks || !b.data)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	for (uint32_t i = 0, extent = 0; i < p->n_segments; i++) {
		int r = write_segment(p, f, &b, i, extent, fd, head_len + p->segments_len, err);

		if (r < 0)
			return r;
		extent += p->segments[i].n_extents;
	}
	return 0;
}

static int write_head(const struct plan *p, int fd, uint64_t head_len, struct bs_error *err)
{
	bs_autofree uint8_t *head = malloc(head_len);
	struct bs_disk_pack h = {
		.version = htole32(BS_DISK_HOT_VERSION),
		.n_segments = htole32(p->n_segments),
		.n_extents = htole32(p->n_extents),
		.n_blocks = htole32(p->n_blocks),
		.segments_len = htole64(p->segments_len),
	};
	uint8_t *at = head;
	int r;

	if (!head)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	memcpy(h.magic, BS_DISK_PACK_MAGIC, sizeof(h.magic));
	memcpy(h.table, p->o->table_digest->b, sizeof(h.table));
	memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	for (uint32_t i = 0; i < p->n_segments; i++) {
		struct bs_disk_segment d = { htole32(p->segments[i].len),
					     htole32(p->segments[i].n_extents) };

		memcpy(at, &d, sizeof(d));
		at += sizeof(d);
	}
	for (uint32_t i = 0; i < p->n_extents; i++) {
		struct bs_disk_hot_extent d = { htole32(p->extents[i].block),
						htole32(p->extents[i].n_blocks) };

		memcpy(at, &d, sizeof(d));
		at += sizeof(d);
	}
	r = bs_pwrite_full(fd, head, head_len, 0);
	return r < 0 ? bs_fail_errno(err, r, "hot pack: write its head") : 0;
}

int bs_pack_write(const struct bs_extent *extents, uint32_t n,
		  const struct bs_pack_write_options *o, int fd, uint64_t *ret_head_len,
		  uint64_t *ret_len, struct bs_error *err)
{
	__attribute__((cleanup(plan_done))) struct plan p = { .o = o };
	uint64_t head_len;
	int r = plan_segments(&p, extents, n, err);

	if (r < 0)
		return r;
	head_len = sizeof(struct bs_disk_pack) + p.n_segments * sizeof(struct bs_disk_segment) +
		   p.n_extents * sizeof(struct bs_disk_hot_extent);
	r = write_segments(&p, fd, head_len, err);
	if (r < 0)
		return r;
	r = write_head(&p, fd, head_len, err);
	if (r < 0)
		return r;
	*ret_head_len = head_len;
	*ret_len = head_len + p.segments_len;
	return 0;
}
