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

/*
 * Compresses any number of blocks into out (for those of one frame BS_FRAME_DATA_MAX
 * bytes are always enough); the length, or -errno.
 */
int bs_frame_encode(struct bs_framer *f, const void *blocks, uint32_t n_blocks, void *out,
		    size_t cap);

/* Decompresses what is one Zstandard frame of size bytes and nothing else; -EBADMSG. */
int bs_frame_unpack(struct bs_framer *f, const void *data, size_t len, void *out, size_t size);

/*
 * Decompresses data (fr->len bytes) into out (fr->n_blocks * 4096 bytes) and proves
 * it against fr->root. -EBADMSG when it is anything else than that one frame.
 */
int bs_frame_decode(struct bs_framer *f, const struct bs_frame *fr, const void *data, void *out);

/* Proves uncompressed blocks: 0 or -EBADMSG. */
int bs_frame_verify(struct bs_framer *f, const struct bs_frame *fr, const void *blocks);

/*
 * The proof of some blocks of a frame: which of its n_blocks there are says mask (bit 0:
 * the first; at least one). Its hashes are the roots of the largest subtrees without any
 * of them, from left to right (bootseer-hot(5), "Segment").
 */
uint32_t bs_frame_proof_len(uint32_t n_blocks, uint32_t mask); /* how many, at most 31 */
/* Makes it from all leaves of the frame. */
void bs_frame_proof_make(struct bs_framer *f, const struct bs_digest *leaves, uint32_t n_blocks,
			 uint32_t mask, struct bs_digest *ret);
/* Checks it: leaves has that of each block of mask at its place. 0 or -EBADMSG. */
int bs_frame_proof_check(struct bs_framer *f, const struct bs_frame *fr, uint32_t mask,
			 const struct bs_digest *leaves, const struct bs_digest *proof);

#endif
