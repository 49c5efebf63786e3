/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Frames: blocks compressed together, and the proof of each block.
 *
 * The root of a frame is a binary Merkle tree of SHA-256 as in RFC 6962 §2.1: leaf =
 * H(0x00 || block of 4096 bytes), node = H(0x01 || left || right), split at the
 * largest power of two below the count. So a block is proven with at most five
 * siblings, and the identity of a frame does not depend on the compressor.
 */
#ifndef BS_IMAGE_FRAMES_H
#define BS_IMAGE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_frame;

/* Compressor and decompressor state and a hash; one thread at a time. */
struct bs_framer;

struct bs_framer *bs_framer_new(int level); /* zstd level, 0: 9; NULL: out of memory */
struct bs_framer *bs_framer_free(struct bs_framer *f);
DEFINE_BS_AUTO(framer, struct bs_framer, bs_framer_free)

/* The hash of each of n_blocks (1 … 32) blocks, and the root over 1 … 32 such hashes. */
void bs_frame_leaves(struct bs_framer *f, const void *blocks, uint32_t n_blocks,
		     struct bs_digest *ret);
void bs_frame_root_of(struct bs_framer *f, const struct bs_digest *leaves, uint32_t n,
		      struct bs_digest *ret);

/* Both in one. */
void bs_frame_root(struct bs_framer *f, const void *blocks, uint32_t n_blocks,
		   struct bs_digest *ret);

/* Compresses into out (BS_FRAME_DATA_MAX bytes are always enough); the length, or -errno. */
int bs_frame_encode(struct bs_framer *f, const void *blocks, uint32_t n_blocks, void *out,
		    size_t cap);

/*
 * Decompresses data (fr->len bytes) into out (fr->n_blocks * 4096 bytes) and proves
 * it against fr->root. -EBADMSG when it is anything else than that one frame.
 */
int bs_frame_decode(struct bs_framer *f, const struct bs_frame *fr, const void *data, void *out);

/* Proves uncompressed blocks: 0 or -EBADMSG. */
int bs_frame_verify(struct bs_framer *f, const struct bs_frame *fr, const void *blocks);

#endif
