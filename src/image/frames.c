/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/frames.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "image/table.h"
#include "image/tree.h"

#define DEFAULT_LEVEL 9

static_assert(ZSTD_COMPRESSBOUND(BS_FRAME_BYTES_MAX) <= BS_FRAME_DATA_MAX,
	      "any content fits into the data of a frame");

struct bs_framer {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	struct bs_sha256 *hash;
};

struct bs_framer *bs_framer_free(struct bs_framer *f)
{
	if (!f)
		return NULL;
	ZSTD_freeCCtx(f->compressor);
	ZSTD_freeDCtx(f->decompressor);
	bs_sha256_free(f->hash);
	free(f);
	return NULL;
}

struct bs_framer *bs_framer_new(int level)
{
	struct bs_framer *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->compressor = ZSTD_createCCtx();
	f->decompressor = ZSTD_createDCtx();
	f->hash = bs_sha256_new();
	if (!f->compressor || !f->decompressor || !f->hash ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(f->compressor, ZSTD_c_compressionLevel,
						level ? level : DEFAULT_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(f->compressor, ZSTD_c_contentSizeFlag, 1)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(f->compressor, ZSTD_c_checksumFlag, 0)))
		return bs_framer_free(f);
	return f;
}

static void hash_leaf(struct bs_framer *f, const void *block, struct bs_digest *ret)
{
	bs_sha256_update(f->hash, "\x00", 1);
	bs_sha256_update(f->hash, block, BS_BLOCK_SIZE);
	bs_sha256_final(f->hash, ret);
}

static void hash_node(struct bs_framer *f, const struct bs_digest *left,
		      const struct bs_digest *right, struct bs_digest *ret)
{
	bs_sha256_update(f->hash, "\x01", 1);
	bs_sha256_update(f->hash, left->b, sizeof(left->b));
	bs_sha256_update(f->hash, right->b, sizeof(right->b));
	bs_sha256_final(f->hash, ret);
}

/*
 * Pairing neighbours level by level, with an odd last one carried up unchanged, gives
 * the same tree as splitting at the largest power of two from the top.
 */
void bs_frame_root_of(struct bs_framer *f, const struct bs_digest *leaves, uint32_t n,
		      struct bs_digest *ret)
{
	struct bs_digest h[BS_FRAME_BLOCKS_MAX];

	memcpy(h, leaves, n * sizeof(h[0]));
	while (n > 1) {
		for (uint32_t i = 0; i + 1 < n; i += 2)
			hash_node(f, &h[i], &h[i + 1], &h[i / 2]);
		if (n % 2)
			h[n / 2] = h[n - 1];
		n = n / 2 + n % 2;
	}
	*ret = h[0];
}

void bs_frame_leaves(struct bs_framer *f, const void *blocks, uint32_t n_blocks,
		     struct bs_digest *ret)
{
	for (uint32_t i = 0; i < n_blocks; i++)
		hash_leaf(f, (const uint8_t *)blocks + (size_t)i * BS_BLOCK_SIZE, &ret[i]);
}

void bs_frame_root(struct bs_framer *f, const void *blocks, uint32_t n_blocks,
		   struct bs_digest *ret)
{
	struct bs_digest leaves[BS_FRAME_BLOCKS_MAX];

	bs_frame_leaves(f, blocks, n_blocks, leaves);
	bs_frame_root_of(f, leaves, n_blocks, ret);
}

int bs_frame_encode(struct bs_framer *f, const void *blocks, uint32_t n_blocks, void *out,
		    size_t cap)
{
	size_t n = ZSTD_compress2(f->compressor, out, cap, blocks,
				  (size_t)n_blocks * BS_BLOCK_SIZE);

	if (!ZSTD_isError(n))
		return (int)n;
	return ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall ? -ENOBUFS : -ENOMEM;
}

int bs_frame_unpack(struct bs_framer *f, const void *data, size_t len, void *out, size_t size)
{
	/* one frame of this size and nothing else; only then is out large enough for sure */
	if (ZSTD_getFrameContentSize(data, len) != size ||
	    ZSTD_getDictID_fromFrame(data, len) != 0 ||
	    ZSTD_findFrameCompressedSize(data, len) != len ||
	    ZSTD_decompressDCtx(f->decompressor, out, size, data, len) != size)
		return -EBADMSG;
	return 0;
}

int bs_frame_decode(struct bs_framer *f, const struct bs_frame *fr, const void *data, void *out)
{
	int r = bs_frame_unpack(f, data, fr->len, out, (size_t)fr->n_blocks * BS_BLOCK_SIZE);

	return r < 0 ? r : bs_frame_verify(f, fr, out);
}

int bs_frame_verify(struct bs_framer *f, const struct bs_frame *fr, const void *blocks)
{
	struct bs_digest root;

	bs_frame_root(f, blocks, fr->n_blocks, &root);
	return bs_digest_eq(&root, &fr->root) ? 0 : -EBADMSG;
}

/* --- proofs of some blocks ------------------------------------------------------------------- */

/* A subtree: blocks first to first + n - 1 of a frame. */
static uint32_t mask_of(uint32_t first, uint32_t n)
{
	return (uint32_t)(((UINT64_C(1) << n) - 1) << first);
}

/* The largest power of two below n > 1: where RFC 6962 splits. */
static uint32_t split_of(uint32_t n)
{
	return 1u << (31 - (uint32_t)__builtin_clz(n - 1));
}

static uint32_t count_hashes(uint32_t first, uint32_t n, uint32_t mask)
{
	uint32_t left;

	if (!(mask & mask_of(first, n)))
		return 1;
	if (n == 1)
		return 0;
	left = split_of(n);
	return count_hashes(first, left, mask) + count_hashes(first + left, n - left, mask);
}

uint32_t bs_frame_proof_len(uint32_t n_blocks, uint32_t mask)
{
	return count_hashes(0, n_blocks, mask);
}

static struct bs_digest *make_proof(struct bs_framer *f, const struct bs_digest *leaves,
				    uint32_t first, uint32_t n, uint32_t mask,
				    struct bs_digest *out)
{
	uint32_t left;

	if (!(mask & mask_of(first, n))) {
		bs_frame_root_of(f, leaves + first, n, out);
		return out + 1;
	}
	if (n == 1)
		return out;
	left = split_of(n);
	out = make_proof(f, leaves, first, left, mask, out);
	return make_proof(f, leaves, first + left, n - left, mask, out);
}

void bs_frame_proof_make(struct bs_framer *f, const struct bs_digest *leaves, uint32_t n_blocks,
			 uint32_t mask, struct bs_digest *ret)
{
	(void)make_proof(f, leaves, 0, n_blocks, mask, ret);
}

/* What a proof is checked with. */
struct proof {
	const struct bs_digest *leaves;
	uint32_t mask;
	const struct bs_digest *next; /* hash that is not used yet */
};

static void prove_subtree(struct bs_framer *f, struct proof *p, uint32_t first, uint32_t n,
			  struct bs_digest *ret)
{
	struct bs_digest left, right;
	uint32_t n_left;

	if (!(p->mask & mask_of(first, n))) {
		*ret = *p->next++;
		return;
	}
	if (n == 1) {
		*ret = p->leaves[first];
		return;
	}
	n_left = split_of(n);
	prove_subtree(f, p, first, n_left, &left);
	prove_subtree(f, p, first + n_left, n - n_left, &right);
	hash_node(f, &left, &right, ret);
}

int bs_frame_proof_check(struct bs_framer *f, const struct bs_frame *fr, uint32_t mask,
			 const struct bs_digest *leaves, const struct bs_digest *proof)
{
	struct proof p = { .leaves = leaves, .mask = mask, .next = proof };
	struct bs_digest root;

	prove_subtree(f, &p, 0, fr->n_blocks, &root);
	return bs_digest_eq(&root, &fr->root) ? 0 : -EBADMSG;
}
