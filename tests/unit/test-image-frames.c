/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "image/format.h"
#include "image/frames.h"
#include "image/table.h"
#include "image/tree.h"

static uint8_t blocks[BS_FRAME_BYTES_MAX], back[BS_FRAME_BYTES_MAX];
static uint8_t data[4 * BS_FRAME_DATA_MAX];
static struct bs_framer *f;

static int new_framer(void **state)
{
	uint32_t x = 1;

	f = bs_framer_new(0);
	for (size_t i = 0; i < sizeof(blocks); i++) {
		x = x * 1664525 + 1013904223;
		blocks[i] = (uint8_t)(x >> 24) & 15; /* compresses to about a half */
	}
	return f ? 0 : -1;
}

static int free_framer(void **state)
{
	f = bs_framer_free(f);
	return 0;
}

/* RFC 6962 §2.1 as it is written there. */
static void reference_root(const uint8_t *from, uint32_t n, struct bs_digest *ret)
{
	uint8_t leaf[1 + BS_BLOCK_SIZE], node[1 + 2 * BS_SHA256_LEN];
	struct bs_digest left, right;
	uint32_t k = 1;

	if (n == 1) {
		leaf[0] = 0;
		memcpy(leaf + 1, from, BS_BLOCK_SIZE);
		bs_digest_of(leaf, sizeof(leaf), ret);
		return;
	}
	while (k * 2 < n)
		k *= 2;
	reference_root(from, k, &left);
	reference_root(from + (size_t)k * BS_BLOCK_SIZE, n - k, &right);
	node[0] = 1;
	memcpy(node + 1, left.b, BS_SHA256_LEN);
	memcpy(node + 1 + BS_SHA256_LEN, right.b, BS_SHA256_LEN);
	bs_digest_of(node, sizeof(node), ret);
}

static struct bs_frame encode(uint32_t n_blocks)
{
	struct bs_frame fr = { .n_blocks = n_blocks };
	int len = bs_frame_encode(f, blocks, n_blocks, data, sizeof(data));

	assert_in_range(len, 1, BS_FRAME_DATA_MAX);
	fr.len = (uint32_t)len;
	bs_frame_root(f, blocks, n_blocks, &fr.root);
	return fr;
}

static void roots_are_those_of_the_rfc(void **state)
{
	static const char *const known[] = {
		/* of one and of two blocks of zeros */
		"sha256:b587fa297299ce9c602e58292b51379402bf7b1074f6b18679c2fb871c917ca8",
		"sha256:6857d6ed1e7ef7bfc1864855457cbdecc062238080bde025ee047d1751b3b317",
	};
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest a, b;

	for (uint32_t n = 1; n <= BS_FRAME_BLOCKS_MAX; n++) {
		bs_frame_root(f, blocks, n, &a);
		reference_root(blocks, n, &b);
		assert_true(bs_digest_eq(&a, &b));
	}
	memset(back, 0, sizeof(back));
	for (uint32_t n = 1; n <= 2; n++) {
		bs_frame_root(f, back, n, &a);
		assert_string_equal(bs_digest_text(&a, text), known[n - 1]);
	}
}

static void every_size_comes_back(void **state)
{
	for (uint32_t n = 1; n <= BS_FRAME_BLOCKS_MAX; n++) {
		struct bs_frame fr = encode(n);

		assert_int_equal(bs_frame_decode(f, &fr, data, back), 0);
		assert_memory_equal(blocks, back, (size_t)n * BS_BLOCK_SIZE);
		assert_int_equal(bs_frame_verify(f, &fr, back), 0);
	}
}

static void content_that_does_not_compress_fits(void **state)
{
	uint64_t x = 88172645463325252;
	struct bs_frame fr;

	for (size_t i = 0; i < sizeof(blocks); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		blocks[i] = (uint8_t)x;
	}
	fr = encode(BS_FRAME_BLOCKS_MAX);
	assert_in_range(fr.len, BS_FRAME_BYTES_MAX, BS_FRAME_BYTES_MAX + 64);
	assert_int_equal(bs_frame_decode(f, &fr, data, back), 0);
	assert_int_equal(bs_frame_encode(f, blocks, BS_FRAME_BLOCKS_MAX, data, 1000), -ENOBUFS);
}

static void every_changed_byte_is_seen(void **state)
{
	struct bs_frame fr = encode(1);

	for (uint32_t i = 0; i < fr.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			int r;

			data[i] ^= (uint8_t)(1 << bit);
			r = bs_frame_decode(f, &fr, data, back);
			data[i] ^= (uint8_t)(1 << bit);
			/* a reserved bit may be ignored by the decompressor, never a wrong block */
			if (r == 0)
				assert_memory_equal(blocks, back, BS_BLOCK_SIZE);
			else
				assert_int_equal(r, -EBADMSG);
		}
	}
	for (uint32_t i = 0; i < BS_SHA256_LEN; i++) {
		fr.root.b[i] ^= 1;
		assert_int_equal(bs_frame_decode(f, &fr, data, back), -EBADMSG);
		assert_int_equal(bs_frame_verify(f, &fr, blocks), -EBADMSG);
		fr.root.b[i] ^= 1;
	}
	back[BS_BLOCK_SIZE - 1] ^= 0x80;
	assert_int_equal(bs_frame_verify(f, &fr, back), -EBADMSG);
}

static void only_one_frame_of_the_right_size_is_decoded(void **state)
{
	struct bs_frame fr = encode(4), other;
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0 };
	uint32_t len = fr.len;
	size_t n;

	for (fr.len = 1; fr.len < len; fr.len++)
		assert_int_equal(bs_frame_decode(f, &fr, data, back), -EBADMSG);
	memcpy(data + len, data, len);
	fr.len = 2 * len;
	assert_int_equal(bs_frame_decode(f, &fr, data, back), -EBADMSG);
	memcpy(data + len, skippable, sizeof(skippable));
	fr.len = len + sizeof(skippable);
	assert_int_equal(bs_frame_decode(f, &fr, data, back), -EBADMSG);
	fr.len = sizeof(skippable);
	assert_int_equal(bs_frame_decode(f, &fr, skippable, back), -EBADMSG);

	/* smaller and larger than the table says, and a bomb */
	other = encode(3);
	other.n_blocks = 4;
	assert_int_equal(bs_frame_decode(f, &other, data, back), -EBADMSG);
	other.n_blocks = 2;
	assert_int_equal(bs_frame_decode(f, &other, data, back), -EBADMSG);
	{
		bs_autofree uint8_t *zeros = calloc(1, 64 << 20);

		n = ZSTD_compress(data, sizeof(data), zeros, 64 << 20, 3);
		assert_in_range(n, 1, BS_FRAME_DATA_MAX);
		fr.len = (uint32_t)n;
		fr.n_blocks = 1;
		assert_int_equal(bs_frame_decode(f, &fr, data, back), -EBADMSG);
	}
}

/* --- the table ------------------------------------------------------------------------------- */

static void *write_table(const struct bs_frame *frames, uint32_t n, size_t *ret_len)
{
	struct bs_error err = BS_ERROR_INIT;
	void *bytes = NULL;

	if (bs_table_write(frames, n, &bytes, ret_len, &err) < 0)
		fail_msg("%s", err.msg);
	return bytes;
}

static void a_table_comes_back(void **state)
{
	struct bs_frame frames[100];
	bs_auto(table) struct bs_table *t = NULL;
	bs_autofree void *bytes = NULL;
	uint64_t block = 0, off = 0;
	size_t len;

	for (uint32_t i = 0; i < 100; i++) {
		frames[i] = (struct bs_frame){ .n_blocks = 1 + i % 32, .len = 1 + i * 1300 };
		memset(frames[i].root.b, (int)i, BS_SHA256_LEN);
	}
	frames[99].len = BS_FRAME_DATA_MAX;
	bytes = write_table(frames, 100, &len);
	assert_int_equal(len, 48 + 3600);
	assert_int_equal(bs_table_read(bytes, len, &t, NULL), 0);
	for (uint32_t i = 0; i < 100; i++) {
		const struct bs_frame *fr = &t->frames[i];

		assert_int_equal(fr->n_blocks, frames[i].n_blocks);
		assert_int_equal(fr->len, frames[i].len);
		assert_int_equal(fr->first_block, block);
		assert_int_equal(fr->off, off);
		assert_memory_equal(fr->root.b, frames[i].root.b, BS_SHA256_LEN);
		for (uint32_t k = 0; k < fr->n_blocks; k++)
			assert_int_equal(bs_table_find(t, block + k), i);
		block += fr->n_blocks;
		off += fr->len;
	}
	assert_int_equal(t->blob_blocks, block);
	assert_int_equal(t->data_len, off);
}

static void a_table_may_be_empty(void **state)
{
	bs_auto(table) struct bs_table *t = NULL;
	bs_autofree void *bytes = NULL;
	size_t len;

	bytes = write_table(NULL, 0, &len);
	assert_int_equal(bs_table_read(bytes, len, &t, NULL), 0);
	assert_int_equal(t->n_frames, 0);
	assert_int_equal(t->blob_blocks, 0);
}

static void frames_out_of_range_are_not_written(void **state)
{
	static const struct bs_frame bad[] = {
		{ .n_blocks = 0, .len = 1 },
		{ .n_blocks = 33, .len = 1 },
		{ .n_blocks = 1, .len = 0 },
		{ .n_blocks = 1, .len = BS_FRAME_DATA_MAX + 1 },
	};
	void *bytes = NULL;
	size_t len;

	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++)
		assert_int_equal(bs_table_write(&bad[i], 1, &bytes, &len, NULL), -EINVAL);
	assert_int_equal(bs_table_write(bad, BS_TABLE_FRAMES_MAX + 1, &bytes, &len, NULL), -EFBIG);
}

static void a_table_that_lies_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t size;
		uint64_t value;
		int code;
		const char *why;
	} cases[] = {
		{ 0, 1, 'B', -EBADMSG, "begin as one" },
		{ offsetof(struct bs_disk_table, version), 4, 2, -EPROTONOSUPPORT, "upgrade" },
		{ offsetof(struct bs_disk_table, must), 4, 1, -EPROTONOSUPPORT, "upgrade" },
		{ offsetof(struct bs_disk_table, n_frames), 4, 1, -EBADMSG, "length" },
		{ offsetof(struct bs_disk_table, n_frames), 4, 3, -EBADMSG, "length" },
		{ offsetof(struct bs_disk_table, n_frames), 4, UINT32_MAX, -EFBIG, "frames" },
		{ offsetof(struct bs_disk_table, blob_blocks), 8, 34, -EBADMSG, "add up" },
		{ offsetof(struct bs_disk_table, data_len), 8, 31, -EBADMSG, "add up" },
		{ offsetof(struct bs_disk_table, extra_len), 8, 1, -EBADMSG, "length" },
		{ 48, 4, 10, -EBADMSG, "frame 0: it has no blocks" },
		{ 48, 4, 33u << 24 | 10, -EBADMSG, "frame 0: it has no blocks" },
		{ 48, 4, 1u << 24, -EBADMSG, "frame 0: its length" },
		{ 84, 4, 32u << 24 | (BS_FRAME_DATA_MAX + 1), -EBADMSG, "frame 1: its length" },
	};
	static const struct bs_frame frames[] = { { .n_blocks = 1, .len = 10 },
						  { .n_blocks = 32, .len = 20 } };
	struct bs_error err = BS_ERROR_INIT;
	bs_auto(table) struct bs_table *t = NULL;
	bs_autofree uint8_t *bytes = NULL;
	uint32_t may = htole32(8);
	uint64_t extra = htole64(5);
	size_t len;

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		uint64_t value = htole64(cases[i].value);
		int r;

		bytes = write_table(frames, 2, &len);
		memcpy(bytes + cases[i].at, &value, cases[i].size);
		r = bs_table_read(bytes, len, &t, &err);
		free(bs_take(&bytes));
		if (r != cases[i].code || !strstr(err.msg, cases[i].why))
			fail_msg("case %zu ('%s'): %d %s", i, cases[i].why, r, err.msg);
	}
	bytes = write_table(frames, 2, &len);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(bs_table_read(bytes, n, &t, &err), -EBADMSG);
	/* an extra part is for a feature that may be ignored */
	bytes = realloc(bytes, len + 5);
	assert_int_equal(bs_table_read(bytes, len + 5, &t, &err), -EBADMSG);
	memcpy(bytes + offsetof(struct bs_disk_table, extra_len), &extra, 8);
	assert_int_equal(bs_table_read(bytes, len + 5, &t, &err), -EBADMSG);
	memcpy(bytes + offsetof(struct bs_disk_table, may), &may, 4);
	assert_int_equal(bs_table_read(bytes, len + 5, &t, &err), 0);
}

#define FRAMES_TEST(t) cmocka_unit_test_setup_teardown(t, new_framer, free_framer)

/* All masks of small frames, and many of the largest: right hashes prove, others do not. */
static void some_blocks_are_proven(void **state)
{
	struct bs_digest leaves[BS_FRAME_BLOCKS_MAX], some[BS_FRAME_BLOCKS_MAX],
		proof[BS_FRAME_BLOCKS_MAX];
	uint32_t x = 1;

	for (uint32_t n = 1; n <= BS_FRAME_BLOCKS_MAX; n++) {
		struct bs_frame fr = { .n_blocks = n };
		uint64_t all = (UINT64_C(1) << n) - 1;

		reference_root(blocks, n, &fr.root);
		bs_frame_leaves(f, blocks, n, leaves);
		for (uint32_t k = 1; k <= BS_MIN(all, (uint64_t)300); k++) {
			uint32_t mask = n <= 8 ? k : 0, n_hashes, which;

			while (mask == 0) {
				x = x * 1664525 + 1013904223;
				mask = (x ^ x >> 13) & (uint32_t)all;
			}
			n_hashes = bs_frame_proof_len(n, mask);
			assert_true(n_hashes <= BS_FRAME_BLOCKS_MAX - 1);
			assert_int_equal(n_hashes == 0, mask == all);
			bs_frame_proof_make(f, leaves, n, mask, proof);
			memset(some, 0xee, sizeof(some));
			for (uint32_t i = 0; i < n; i++) {
				if (mask >> i & 1)
					some[i] = leaves[i];
			}
			assert_int_equal(bs_frame_proof_check(f, &fr, mask, some, proof), 0);
			which = (uint32_t)__builtin_ctz(mask);
			some[which].b[31] ^= 1;
			assert_int_equal(bs_frame_proof_check(f, &fr, mask, some, proof), -EBADMSG);
			some[which].b[31] ^= 1;
			if (n_hashes == 0)
				continue;
			proof[x % n_hashes].b[0] ^= 1;
			assert_int_equal(bs_frame_proof_check(f, &fr, mask, some, proof), -EBADMSG);
		}
	}
}

static void one_block_takes_five_hashes(void **state)
{
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(bs_frame_proof_len(32, 1u << i), 5);
	assert_int_equal(bs_frame_proof_len(32, 0xffff), 1);
	assert_int_equal(bs_frame_proof_len(1, 1), 0);
	assert_int_equal(bs_frame_proof_len(3, 4), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRAMES_TEST(roots_are_those_of_the_rfc),
		FRAMES_TEST(every_size_comes_back),
		FRAMES_TEST(content_that_does_not_compress_fits),
		FRAMES_TEST(every_changed_byte_is_seen),
		FRAMES_TEST(only_one_frame_of_the_right_size_is_decoded),
		FRAMES_TEST(some_blocks_are_proven),
		UNIT_TEST(one_block_takes_five_hashes),
		UNIT_TEST(a_table_comes_back),
		UNIT_TEST(a_table_may_be_empty),
		UNIT_TEST(frames_out_of_range_are_not_written),
		UNIT_TEST(a_table_that_lies_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
