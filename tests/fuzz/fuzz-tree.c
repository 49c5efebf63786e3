/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Of a tree that the reader accepts, the writer must make the same bytes again, and
 * the EROFS writer an image. Input is a Zstandard frame, or else the bytes within one.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fd.h"
#include "image/erofs.h"
#include "image/erofsdisk.h"
#include "image/format.h"
#include "image/tree.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define PLAIN_MAX (8u << 20)

static void write_again(const struct bs_tree *t, const void *plain, size_t len)
{
	bs_auto(tree_writer) struct bs_tree_writer *w = bs_tree_writer_new();
	bs_autofree void *packed = NULL, *again = malloc(len);
	size_t packed_len;

	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];

		if (bs_tree_writer_add(w, e, t->xattrs + e->first_xattr,
				       t->extents + e->first_extent, NULL) != i)
			abort();
	}
	if (bs_tree_writer_finish(w, t->blob_blocks, &packed, &packed_len, NULL) < 0 ||
	    ZSTD_decompress(again, len, packed, packed_len) != len ||
	    memcmp(again, plain, len) != 0)
		abort();
}

/* Indexes of holes cost nothing in the tree, but time here. */
static bool is_small(const struct bs_tree *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->n_entries && n < 100000; i++) {
		if (t->entries[i].inode == i && t->entries[i].size)
			n += bs_erofs_chunks(t, &t->entries[i]).n;
	}
	return n < 100000;
}

static void write_erofs(const struct bs_tree *t)
{
	bs_autofd int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t bytes;

	if (bs_erofs_write(t, fd, &bytes, NULL) < 0 || bytes % BS_BLOCK_SIZE || bytes == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bool packed = size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
	unsigned long long stated = ZSTD_getFrameContentSize(data, size);
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofree uint8_t *frame = NULL, *plain = NULL;
	size_t len = size;

	if (packed && stated > PLAIN_MAX && stated != ZSTD_CONTENTSIZE_ERROR &&
	    stated != ZSTD_CONTENTSIZE_UNKNOWN)
		return 0;
	if (!packed) {
		frame = malloc(ZSTD_compressBound(size));
		len = ZSTD_compress(frame, ZSTD_compressBound(size), data, size, 1);
	}
	if (bs_tree_read(packed ? data : frame, len, &t, NULL) < 0)
		return 0;
	plain = malloc(PLAIN_MAX);
	len = ZSTD_decompress(plain, PLAIN_MAX, packed ? data : frame, len);
	if (!((const struct bs_disk_tree *)(void *)plain)->may)
		write_again(t, plain, len);
	if (is_small(t))
		write_erofs(t);
	return 0;
}
