/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/pack.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "hot/format.h"
#include "hot/proof.h"
#include "image/frames.h"
#include "image/table.h"

static_assert(ZSTD_COMPRESSBOUND(BS_PACK_SEGMENT_BYTES_MAX) <= BS_PACK_SEGMENT_BYTES_MAX + 4096u,
	      "any content fits into the data of a segment");

struct bs_pack *bs_pack_free(struct bs_pack *p)
{
	if (!p)
		return NULL;
	free(p->segments);
	free(p->extents);
	free(p);
	return NULL;
}

static int read_head(const struct bs_disk_pack *h, size_t len, const struct bs_digest *table_digest,
		     uint64_t *ret_head_len, struct bs_error *err)
{
	uint32_t n_segments = le32toh(h->n_segments), n_extents = le32toh(h->n_extents);
	uint32_t n_blocks = le32toh(h->n_blocks);
	uint64_t extra = le64toh(h->extra_len), need;

	if (len < sizeof(*h) || memcmp(h->magic, BS_DISK_PACK_MAGIC, sizeof(h->magic)) != 0)
		return bs_fail(err, -EBADMSG, "hot pack: it does not begin as one");
	if (le32toh(h->version) != BS_DISK_HOT_VERSION || (le32toh(h->must) & ~BS_DISK_HOT_MUST))
		return bs_fail(err, -EPROTONOSUPPORT,
			       "hot pack: its format (version %u, features %#x) is newer than this "
			       "program: upgrade bootseer",
			       le32toh(h->version), le32toh(h->must));
	if (memcmp(h->table, table_digest->b, sizeof(h->table)) != 0)
		return bs_fail(err, -EBADMSG, "hot pack: it is of another image");
	if (n_segments > BS_PACK_SEGMENTS_MAX || n_blocks > BS_PACK_BLOCKS_MAX ||
	    n_extents > n_blocks)
		return bs_fail(err, -EFBIG,
			       "hot pack: %u segments, %u extents, %u blocks: too many", n_segments,
			       n_extents, n_blocks);
	if (extra > BS_PACK_EXTRA_MAX)
		return bs_fail(err, -EFBIG, "hot pack: its extra part is too large");
	if (n_segments == 0 || n_extents < n_segments)
		return bs_fail(err, -EBADMSG,
			       "hot pack: it has a segment without extents, or none");
	if (extra && !h->may)
		return bs_fail(err, -EBADMSG,
			       "hot pack: it has an extra part that no feature explains");
	need = sizeof(*h) + (uint64_t)n_segments * sizeof(struct bs_disk_segment) +
	       (uint64_t)n_extents * sizeof(struct bs_disk_hot_extent) + extra;
	if (need > len)
		return bs_fail(err, -EBADMSG, "hot pack: its head is cut off");
	*ret_head_len = need;
	return 0;
}

static int read_segments(struct bs_pack *p, const uint8_t *data, struct bs_error *err)
{
	p->len = p->head_len;
	for (uint32_t i = 0, extent = 0; i < p->n_segments; i++) {
		struct bs_pack_segment *s = &p->segments[i];
		struct bs_disk_segment d;

		memcpy(&d, data + (size_t)i * sizeof(d), sizeof(d));
		*s = (struct bs_pack_segment){ .off = p->len,
					       .len = le32toh(d.len),
					       .first_extent = extent,
					       .n_extents = le32toh(d.n_extents) };
		if (s->len < 1 || s->len > BS_PACK_SEGMENT_DATA_MAX)
			return bs_fail(err, -EBADMSG,
				       "hot pack: segment %u: its length is out of range", i);
		if (s->n_extents < 1 || s->n_extents > p->n_extents - extent)
			return bs_fail(err, -EBADMSG,
				       "hot pack: segment %u: it has no extents, "
				       "or more than there are",
				       i);
		extent += s->n_extents;
		if (i + 1 == p->n_segments && extent != p->n_extents)
			return bs_fail(err, -EBADMSG, "hot pack: extents that no segment has");
		p->len += s->len;
	}
	return 0;
}

/* The blocks of a blob that were named already. */
struct seen {
	uint64_t *bits;
	uint64_t blob_blocks;
};

/* Why the extent cannot be; NULL: it can. Its blocks are seen now. */
static const char *see_extent(struct seen *seen, const struct bs_extent *e)
{
	if (e->n_blocks < 1 || e->n_blocks > seen->blob_blocks ||
	    e->block > seen->blob_blocks - e->n_blocks)
		return "it is empty, or beyond the end of the blob";
	for (uint64_t b = e->block; b < (uint64_t)e->block + e->n_blocks; b++) {
		if (seen->bits[b / 64] >> (b % 64) & 1)
			return "it has a block that is in another too";
		seen->bits[b / 64] |= UINT64_C(1) << (b % 64);
	}
	return NULL;
}

static int read_extents(struct bs_pack *p, const uint8_t *data, const struct bs_table *table,
			struct bs_error *err)
{
	bs_autofree uint64_t *bits = calloc(bs_div_up(table->blob_blocks, 64) + 1, sizeof(*bits));
	struct seen seen = { bits, table->blob_blocks };

	if (!bits)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	for (uint32_t i = 0; i < p->n_segments; i++) {
		struct bs_pack_segment *s = &p->segments[i];

		for (uint32_t k = s->first_extent; k < s->first_extent + s->n_extents; k++) {
			struct bs_extent *e = &p->extents[k];
			struct bs_disk_hot_extent d;
			const char *wrong;

			memcpy(&d, data + (size_t)k * sizeof(d), sizeof(d));
			*e = (struct bs_extent){ le32toh(d.block), le32toh(d.n_blocks) };
			if (e->n_blocks > BS_PACK_SEGMENT_BLOCKS - s->n_blocks)
				return bs_fail(err, -EBADMSG,
					       "hot pack: segment %u has too many blocks", i);
			wrong = see_extent(&seen, e);
			if (wrong)
				return bs_fail(err, -EBADMSG, "hot pack: extent %u: %s", k, wrong);
			s->n_blocks += e->n_blocks;
		}
		p->n_blocks += s->n_blocks;
	}
	return 0;
}

static struct bs_pack *new_pack(uint32_t n_segments, uint32_t n_extents)
{
	struct bs_pack *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->n_segments = n_segments;
	p->n_extents = n_extents;
	p->segments = calloc(n_segments, sizeof(*p->segments));
	p->extents = calloc(n_extents, sizeof(*p->extents));
	return p->segments && p->extents ? p : bs_pack_free(p);
}

int bs_pack_read(const void *data, size_t len, const struct bs_table *table,
		 const struct bs_digest *table_digest, struct bs_pack **ret, struct bs_error *err)
{
	const uint8_t *at = (const uint8_t *)data + sizeof(struct bs_disk_pack);
	bs_auto(pack) struct bs_pack *p = NULL;
	struct bs_disk_pack h = { 0 };
	uint64_t head_len = 0;
	int r;

	memcpy(&h, data, BS_MIN(len, sizeof(h)));
	r = read_head(&h, len, table_digest, &head_len, err);
	if (r < 0)
		return r;
	p = new_pack(le32toh(h.n_segments), le32toh(h.n_extents));
	if (!p)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	p->head_len = head_len;
	r = read_segments(p, at, err);
	if (r < 0)
		return r;
	at += (size_t)p->n_segments * sizeof(struct bs_disk_segment);
	r = read_extents(p, at, table, err);
	if (r < 0)
		return r;
	if (p->n_blocks != le32toh(h.n_blocks) || p->len - p->head_len != le64toh(h.segments_len))
		return bs_fail(err, -EBADMSG,
			       "hot pack: its segments do not add up to what its head says");
	*ret = bs_take(&p);
	return 0;
}

int bs_pack_decode(struct bs_framer *f, const struct bs_pack *p, const struct bs_table *table,
		   uint32_t i, const void *data, void *out)
{
	const struct bs_pack_segment *s = &p->segments[i];
	size_t size = (size_t)s->n_blocks * 4096u, hashes;
	struct bs_segment_proof proof;

	bs_segment_proof_init(&proof, table, p->extents + s->first_extent, s->n_extents);
	hashes = (size_t)proof.n_hashes * BS_SHA256_LEN;
	if (hashes >= s->len)
		return -EBADMSG;
	if (bs_frame_unpack(f, (const uint8_t *)data + hashes, s->len - hashes, out, size) < 0)
		return -EBADMSG;
	return bs_segment_proof_check(&proof, f, out, data);
}
