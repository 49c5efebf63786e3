/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The frame table of an image: which blocks of the blob each frame holds, where its
 * compressed bytes lie in data, and the Merkle root that proves its blocks.
 * bootseer-image(5) is the format.
 */
#ifndef BS_IMAGE_TABLE_H
#define BS_IMAGE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;

#define BS_FRAME_BLOCKS_MAX 32u /* 128 KiB, the kernel's readahead window */
#define BS_FRAME_BYTES_MAX (BS_FRAME_BLOCKS_MAX * 4096u)
/* ZSTD_compressBound of that: what one frame may take in data */
#define BS_FRAME_DATA_MAX (BS_FRAME_BYTES_MAX + 1024u)
#define BS_TABLE_FRAMES_MAX (8u << 20) /* 1 TiB of blob */

struct bs_frame {
	uint64_t first_block; /* of the blob */
	uint64_t off;	      /* in data */
	uint32_t n_blocks;    /* 1 … BS_FRAME_BLOCKS_MAX */
	uint32_t len;	      /* in data; 1 … BS_FRAME_DATA_MAX */
	struct bs_digest root;
};

struct bs_table {
	struct bs_frame *frames; /* cover blob and data without gaps */
	uint32_t n_frames;
	uint64_t blob_blocks;
	uint64_t data_len;
};

/* -EBADMSG with the frame's number and reason; -EFBIG; -EPROTONOSUPPORT. */
int bs_table_read(const void *data, size_t len, struct bs_table **ret, struct bs_error *err);
struct bs_table *bs_table_free(struct bs_table *t);
DEFINE_BS_AUTO(table, struct bs_table, bs_table_free)

/* The frame that holds block < blob_blocks. */
uint32_t bs_table_find(const struct bs_table *t, uint64_t block);

/* The table's bytes (malloc'ed). n_blocks, len and root of each frame count; the rest follows. */
int bs_table_write(const struct bs_frame *frames, uint32_t n, void **ret, size_t *ret_len,
		   struct bs_error *err);

#endif
