/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "hot/warmlist.h"

#define GIB (UINT64_C(1) << 30)

static void expect_next(struct bs_warmlist_reader *r, const char *path, uint64_t off, uint32_t len)
{
	struct bs_warmlist_run run;

	assert_true(bs_warmlist_next(r, &run));
	assert_string_equal(run.path, path);
	assert_true(run.off == off);
	assert_int_equal(run.len, len);
}

static void what_is_added_is_read(void **state)
{
	bs_autofree struct bs_warmlist *w = malloc(sizeof(*w));
	struct bs_warmlist_reader r;
	struct bs_warmlist_run run;

	bs_warmlist_init(w);
	assert_true(bs_warmlist_empty(w));
	assert_int_equal(bs_warmlist_open(&r, w->data, w->len), -EBADMSG);
	assert_int_equal(bs_warmlist_add(w, "a/b", 4096, 8192), 0);
	assert_false(bs_warmlist_empty(w));
	assert_int_equal(bs_warmlist_add(w, "a/b", 0, 1), 0);
	assert_int_equal(bs_warmlist_add(w, "..c", INT64_MAX - 1, 1), 0);
	assert_int_equal(bs_warmlist_add(w, "a/b", 0, 2 * GIB + 1), 0);
	assert_int_equal(bs_warmlist_open(&r, w->data, w->len), 0);
	expect_next(&r, "a/b", 4096, 8192);
	expect_next(&r, "a/b", 0, 1);
	expect_next(&r, "..c", INT64_MAX - 1, 1);
	expect_next(&r, "a/b", 0, GIB);
	expect_next(&r, "a/b", GIB, GIB);
	expect_next(&r, "a/b", 2 * GIB, 1);
	assert_false(bs_warmlist_next(&r, &run));
}

static void wrong_runs_are_not_added(void **state)
{
	static const char *const paths[] = { "",     "/",     "/a",   "a/",   ".",     "..",
					     "a//b", "a/./b", "a/..", "../a", "a/../b" };
	bs_autofree struct bs_warmlist *w = malloc(sizeof(*w));
	char path[PATH_MAX + 1];

	bs_warmlist_init(w);
	for (size_t i = 0; i < BS_ARRAY_LEN(paths); i++)
		assert_int_equal(bs_warmlist_add(w, paths[i], 0, 1), -EINVAL);
	assert_int_equal(bs_warmlist_add(w, "a", 0, 0), -EINVAL);
	assert_int_equal(bs_warmlist_add(w, "a", INT64_MAX, 1), -EINVAL);
	assert_int_equal(bs_warmlist_add(w, "a", UINT64_MAX, UINT64_MAX), -EINVAL);
	assert_int_equal(bs_warmlist_add(w, "a", 0, INT64_MAX), -EINVAL);
	memset(path, 'p', PATH_MAX);
	path[PATH_MAX] = '\0';
	assert_int_equal(bs_warmlist_add(w, path, 0, 1), -EINVAL);
	path[PATH_MAX - 1] = '\0';
	assert_true(bs_warmlist_empty(w));
	assert_int_equal(bs_warmlist_add(w, path, 0, 1), 0);
}

static void a_full_one_says_so(void **state)
{
	bs_autofree struct bs_warmlist *w = malloc(sizeof(*w));
	struct bs_warmlist_reader r;
	struct bs_warmlist_run run;
	unsigned int n = 0, got = 0;
	char path[] = "file-000000";
	size_t len;

	bs_warmlist_init(w);
	for (;; n++) {
		path[8] = (char)('a' + n % 26);
		len = w->len;
		if (bs_warmlist_add(w, path, n, 1) < 0)
			break;
	}
	assert_int_equal(bs_warmlist_add(w, path, n, 1), -E2BIG);
	assert_int_equal(w->len, len);
	assert_true(BS_WARMLIST_BYTES_MAX - len < 16 + sizeof(path));
	assert_int_equal(bs_warmlist_open(&r, w->data, w->len), 0);
	while (bs_warmlist_next(&r, &run))
		assert_int_equal(run.off, got++);
	assert_int_equal(got, n);
}

static void refuse(const uint8_t *data, size_t len)
{
	/* on the heap, so that a sanitizer sees what is read beyond it */
	bs_autofree uint8_t *copy = malloc(len + !len);
	struct bs_warmlist_reader r;

	memcpy(copy, data, len);
	assert_int_equal(bs_warmlist_open(&r, copy, len), -EBADMSG);
}

static void wrong_bytes_are_refused(void **state)
{
	bs_autofree struct bs_warmlist *w = malloc(sizeof(*w));
	bs_autofree uint8_t *huge = calloc(1, BS_WARMLIST_BYTES_MAX + 1);
	uint8_t bytes[128];
	size_t len;

	bs_warmlist_init(w);
	assert_int_equal(bs_warmlist_add(w, "a/b", 4096, 8192), 0); /* 8: 16 bytes, 24: path */
	assert_int_equal(bs_warmlist_add(w, "a/b", 0, 1), 0);	    /* 28 */
	assert_int_equal(bs_warmlist_add(w, "c", 0, 1), 0);	    /* 44, 60: path */
	len = w->len;
	assert_int_equal(len, 62);
	for (size_t n = 0; n < len; n++) {
		if (n != 28 && n != 44) /* where a run ends */
			refuse(w->data, n);
	}
#define WITH(change)                                                                               \
	do {                                                                                       \
		memcpy(bytes, w->data, len);                                                       \
		change;                                                                            \
		refuse(bytes, len);                                                                \
	} while (0)
	WITH(bytes[0] = 'x');
	WITH(bytes[15] = 0x80);				    /* offset */
	WITH(memset(bytes + 8, 0xff, 7); bytes[15] = 0x7f); /* offset + length */
	WITH(memset(bytes + 16, 0, 4));			    /* no length */
	WITH(bytes[19] = 0x41);				    /* too long a run */
	WITH(bytes[20] = 0);				    /* no path yet */
	WITH(bytes[20] = 3);				    /* without its NUL */
	WITH(bytes[20] = 5);				    /* more than the path */
	WITH(bytes[21] = 1);				    /* more than there is */
	WITH(bytes[22] = 1);				    /* reserved */
	WITH(bytes[24] = '/');				    /* absolute */
	WITH(bytes[25] = 0);				    /* inner NUL */
	WITH(memcpy(bytes + 24, "./b", 3));		    /* not clean */
	WITH(memcpy(bytes + 24, "../", 3));		    /* not beneath */
	WITH(memcpy(bytes + 24, "a/b/", 4));		    /* no end */
	memcpy(bytes, w->data, 28);
	memcpy(bytes + 28, w->data + 8, 20); /* the same path once more */
	refuse(bytes, 48);
	memcpy(huge, w->data, len);
	refuse(huge, BS_WARMLIST_BYTES_MAX + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(what_is_added_is_read),
		UNIT_TEST(wrong_runs_are_not_added),
		UNIT_TEST(a_full_one_says_so),
		UNIT_TEST(wrong_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
