/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Hot packs: the blocks of a recorded start in the order of need, in segments that are
 * fetched and proven one by one. bootseer-hot(5) is the format.
 *
 * A pack is made by somebody: nothing of it is believed but what the image's table proves.
 */
#ifndef BS_HOT_PACK_H
#define BS_HOT_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "cache/blocks.h"

struct bs_error;
struct bs_framer;
struct bs_table;

#define BS_PACK_SEGMENT_BLOCKS 256u /* 1 MiB: what one is made of, and may have */
#define BS_PACK_SEGMENT_BYTES_MAX (BS_PACK_SEGMENT_BLOCKS * 4096u)
#define BS_PACK_SEGMENTS_MAX (1u << 16)
#define BS_PACK_BLOCKS_MAX (1u << 22) /* 16 GiB */
#define BS_PACK_EXTRA_MAX (1u << 20)
/* head, segment entries, extents and extra part, as bytes */
#define BS_PACK_HEAD_MAX                                                                           \
	(80u + 8u * BS_PACK_SEGMENTS_MAX + 8u * BS_PACK_BLOCKS_MAX + BS_PACK_EXTRA_MAX)
/* ZSTD_compressBound of 1 MiB, and five hashes for each block */
#define BS_PACK_SEGMENT_DATA_MAX                                                                   \
	(BS_PACK_SEGMENT_BYTES_MAX + 4096u + 5u * 32u * BS_PACK_SEGMENT_BLOCKS)

struct bs_pack_segment {
	uint64_t off; /* in the pack */
	uint32_t len;
	uint32_t first_extent, n_extents;
	uint32_t n_blocks; /* 1 … BS_PACK_SEGMENT_BLOCKS */
};

struct bs_pack {
	struct bs_pack_segment *segments;
	struct bs_extent *extents; /* no block is in two */
	uint32_t n_segments, n_extents, n_blocks;
	uint64_t head_len; /* where the first segment begins */
	uint64_t len;
};

/*
 * Reads what stands before the segments: len bytes, head_len at least; more may follow.
 * table and its digest are the image's; -EBADMSG with place and reason, also for a pack
 * of another image; -EPROTONOSUPPORT, -EFBIG.
 */
int bs_pack_read(const void *data, size_t len, const struct bs_table *table,
		 const struct bs_digest *table_digest, struct bs_pack **ret, struct bs_error *err);
struct bs_pack *bs_pack_free(struct bs_pack *p);
DEFINE_BS_AUTO(pack, struct bs_pack, bs_pack_free)

/*
 * Unpacks segment i from its bytes into out (n_blocks * 4096 bytes, in the order of its
 * extents) and proves every block: 0, or -EBADMSG and out is worth nothing.
 */
int bs_pack_decode(struct bs_framer *f, const struct bs_pack *p, const struct bs_table *table,
		   uint32_t i, const void *data, void *out);

/* Gives a whole frame of the image, proven, into out (its blocks * 4096 bytes). 0 or -errno. */
typedef int bs_pack_frame_fn(void *cookie, uint32_t frame, void *out, struct bs_error *err);

/*
 * The blocks of a frame that mask says, proven, at their places in out, and their proof
 * (bs_frame_proof_make) in proof. 0; else the frame is asked for.
 */
typedef int bs_pack_some_fn(void *cookie, struct bs_framer *f, uint32_t frame, uint32_t mask,
			    void *out, struct bs_digest *proof);

struct bs_pack_write_options {
	const struct bs_table *table;
	const struct bs_digest *table_digest;
	bs_pack_frame_fn *frame; /* each is asked for once a segment that has blocks of it */
	bs_pack_some_fn *some;	 /* NULL, or asked before frame */
	void *cookie;
	int level; /* zstd, 0: 9 */
};

/*
 * Writes the pack of the blocks of extents (in the order of need; of any length, none
 * twice, all within the blob) to the empty file fd. *ret_head_len, *ret_len: as in
 * struct bs_pack. -EINVAL: extents that are none, too many or not of this blob.
 */
int bs_pack_write(const struct bs_extent *extents, uint32_t n,
		  const struct bs_pack_write_options *o, int fd, uint64_t *ret_head_len,
		  uint64_t *ret_len, struct bs_error *err);

#endif
