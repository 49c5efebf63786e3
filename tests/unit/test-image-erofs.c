/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What needs no kernel; that it reads these images is for tests/integration/10-erofs.bats. */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "erofstree.h"
#include "image/erofs.h"
#include "image/erofsdisk.h"

static struct et et;

static struct bs_tree *finish(void)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	struct bs_tree *t = NULL;
	size_t len;

	bytes = et_finish(&et, &len);
	et_done(&et);
	if (bs_tree_read(bytes, len, &t, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

/* The image of et; malloc'ed. */
static uint8_t *image_of(const struct bs_tree *t, size_t *ret_len)
{
	bs_autofd int fd = bs_memfd("meta");
	struct bs_error err = BS_ERROR_INIT;
	uint64_t bytes = 0;
	char *image = NULL;

	if (bs_erofs_write(t, fd, &bytes, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(bs_read_file(fd, SIZE_MAX / 2, &image, ret_len), 0);
	assert_int_equal(*ret_len, bytes);
	return (uint8_t *)image;
}

static void the_first_block_is_as_the_kernel_wants_it(void **state)
{
	bs_auto(tree) struct bs_tree *t = NULL, *other = NULL;
	bs_autofree uint8_t *image = NULL, *other_image = NULL;
	struct erofs_super s, o;
	struct erofs_device d;
	uint32_t crc = ~0u;
	size_t len;

	et_init(&et);
	(void)et_file(&et, "f", 4097);
	t = finish();
	image = image_of(t, &len);
	assert_int_equal(len, 4096);
	memcpy(&s, image + 1024, sizeof(s));
	memcpy(&d, image + 1024 + sizeof(s), sizeof(d));
	assert_int_equal(le32toh(s.magic), 0xe0f5e1e2);
	assert_int_equal(s.blkszbits, 12);
	assert_int_equal(le64toh(s.inos), 2);
	assert_int_equal(le32toh(s.blocks), 1);
	assert_int_equal(le16toh(s.extra_devices), 1);
	assert_int_equal(le16toh(s.devt_slotoff) * 128, 1024 + sizeof(s));
	assert_int_equal(le32toh(d.blocks), 2);
	assert_int_equal(s.uuid[6] >> 4, 8);
	/* CRC-32C of the rest of the block, with zero for itself */
	memset(image + 1024 + 4, 0, 4);
	for (size_t i = 1024; i < 4096; i++) {
		crc ^= image[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	assert_int_equal(le32toh(s.checksum), crc);

	et_init(&et);
	(void)et_file(&et, "g", 4097);
	other = finish();
	other_image = image_of(other, &len);
	memcpy(&o, other_image + 1024, sizeof(o));
	assert_memory_not_equal(s.uuid, o.uuid, sizeof(s.uuid));
}

static void chunks_are_as_large_as_holes_and_borders_allow(void **state)
{
	static const struct {
		uint64_t size;
		struct bs_tree_extent x[3];
		uint32_t bits;
		uint64_t n;
	} cases[] = {
		{ 1, { { 0, 9, 1 } }, 0, 1 },
		{ 4097, { { 0, 9, 2 } }, 1, 1 },
		{ 5 * 4096, { { 0, 9, 5 } }, 3, 1 },
		{ 5 * 4096, { { 0 } }, 3, 1 }, /* a hole */
		{ 5 * 4096, { { 0, 9, 4 } }, 2, 2 },
		{ 5 * 4096, { { 4, 9, 1 } }, 2, 2 },
		{ 5 * 4096, { { 3, 9, 2 } }, 0, 5 },
		{ 64 * 4096, { { 0, 0, 32 }, { 32, 100, 32 } }, 5, 2 },
		{ 64 * 4096, { { 0, 0, 32 }, { 48, 100, 16 } }, 4, 4 },
		{ 64 * 4096, { { 0, 0, 32 }, { 48, 100, 15 } }, 0, 64 },
		{ UINT64_C(1) << 43, { { 0 } }, 31, 1 },
		{ (UINT64_C(1) << 43) + 1, { { 0 } }, 31, 2 },
		{ INT64_MAX, { { 0 } }, 31, 1 << 20 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_tree_extent x[3];
		struct bs_tree t = { .extents = x };
		struct bs_tree_entry e = { .mode = S_IFREG, .size = cases[i].size };
		struct erofs_chunks c;

		memcpy(x, cases[i].x, sizeof(x));
		while (e.n_extents < 3 && x[e.n_extents].n_blocks)
			e.n_extents++;
		c = bs_erofs_chunks(&t, &e);
		if (c.bits != cases[i].bits || c.n != cases[i].n)
			fail_msg("case %zu: %u, %lu", i, c.bits, (unsigned long)c.n);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct bs_error err = BS_ERROR_INIT;
	uint64_t bytes = 7;

	et_init(&et); /* 4 KiB chunks all along */
	et.e.size = UINT64_C(3) << 40;
	et_extent(&et, 1, 1);
	(void)et_add(&et, "tattered", S_IFREG);
	t = finish();
	assert_int_equal(bs_erofs_write(t, null, &bytes, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "'tattered'"));
	assert_int_equal(bytes, 7);
	t->blob_blocks = UINT64_C(1) << 32;
	assert_int_equal(bs_erofs_write(t, null, &bytes, &err), -EFBIG);
}

static void a_full_disk_is_an_error(void **state)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofd int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct bs_error err = BS_ERROR_INIT;
	uint64_t bytes;

	et_init(&et);
	et_many(&et, 20000);
	t = finish();
	assert_int_equal(bs_erofs_write(t, full, &bytes, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "metadata"));
}

static void the_same_tree_gives_the_same_image(void **state)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;

	et_init(&et);
	et_nasty(&et);
	t = finish();
	for (int i = 0; i < 2; i++) {
		size_t len;
		bs_autofree uint8_t *image = image_of(t, &len);

		/* the UUID comes from the compressed tree, and so from the library's version */
		memset(image + 1024 + offsetof(struct erofs_super, uuid), 0, 16);
		memset(image + 1024 + offsetof(struct erofs_super, checksum), 0, 4);
		bs_digest_of(image, len, &d);
		assert_string_equal(
			bs_digest_text(&d, text),
			"sha256:8faac9e14e7d0eca3d8c99b4acf5d545311e9f214ba65e3777ce7cb50da9f74f");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(the_first_block_is_as_the_kernel_wants_it),
		UNIT_TEST(chunks_are_as_large_as_holes_and_borders_allow),
		UNIT_TEST(what_does_not_fit_is_refused),
		UNIT_TEST(a_full_disk_is_an_error),
		UNIT_TEST(the_same_tree_gives_the_same_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
