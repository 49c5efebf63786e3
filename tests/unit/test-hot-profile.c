/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "hot/format.h"
#include "hot/profile.h"

static const struct bs_digest table = { { 5 } };
#define BLOCKS 10000u

static struct bs_profile *profile_of(const struct bs_profile_event *e, size_t n, uint32_t window)
{
	struct bs_profile *p = bs_profile_new(&table, BLOCKS);

	assert_non_null(p);
	assert_int_equal(bs_profile_add_run(p, e, n, window), 0);
	return p;
}

static void expect(const struct bs_profile *p, const struct bs_profile_range *want, uint32_t n)
{
	assert_int_equal(p->n_ranges, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(p->ranges[i].block, want[i].block);
		assert_int_equal(p->ranges[i].n_blocks, want[i].n_blocks);
		assert_int_equal(p->ranges[i].at_ms, want[i].at_ms);
		assert_int_equal(p->ranges[i].runs, want[i].runs);
	}
}

static void a_run_keeps_order_and_first_use(void **state)
{
	const struct bs_profile_event e[] = {
		{ 100, 2, 1 },	 { 102, 1, 1 }, /* one range */
		{ 7, 1, 3 },	 { 100, 4, 5 }, /* two of them are new */
		{ 9998, 10, 6 },		/* cut at the end of the blob */
		{ 50, 1, 101 },			/* after the window */
		{ 20000, 1, 7 },
	};
	const struct bs_profile_range want[] = {
		{ 100, 3, 1, 1 }, { 7, 1, 3, 1 }, { 103, 1, 5, 1 }, { 9998, 2, 6, 1 }
	};
	bs_auto(profile) struct bs_profile *p = profile_of(e, BS_ARRAY_LEN(e), 100);

	expect(p, want, BS_ARRAY_LEN(want));
	assert_int_equal(p->n_runs, 1);
	assert_int_equal(p->window_ms, 100);
	assert_int_equal(bs_profile_blocks(p, 1), 7);
	assert_int_equal(bs_profile_blocks(p, 2), 0);
}

static void runs_are_merged(void **state)
{
	const struct bs_profile_event a[] = { { 10, 4, 0 }, { 50, 1, 20 } };
	const struct bs_profile_event b[] = { { 50, 1, 5 }, { 12, 1, 9 }, { 80, 1, 30 } };
	const struct bs_profile_range want[] = {
		{ 10, 2, 0, 2 }, { 12, 1, 0, 3 }, { 13, 1, 0, 2 }, { 50, 1, 5, 3 }, { 80, 1, 30, 1 }
	};
	bs_auto(profile) struct bs_profile *p = profile_of(a, BS_ARRAY_LEN(a), 100);

	assert_int_equal(bs_profile_add_run(p, b, BS_ARRAY_LEN(b), 40), 0);
	expect(p, want, BS_ARRAY_LEN(want));
	assert_int_equal(p->n_runs, 2);
	assert_int_equal(p->window_ms, 100);
	assert_int_equal(bs_profile_blocks(p, 2), 2);
}

static void profiles_are_merged_as_their_runs_would_be(void **state)
{
	const struct bs_profile_event a[] = { { 10, 4, 0 }, { 50, 1, 20 } };
	const struct bs_profile_event b[] = { { 50, 1, 5 }, { 12, 1, 9 }, { 80, 1, 30 } };
	const struct bs_profile_event c[] = { { 80, 1, 2 }, { 300, 1, 3 } };
	bs_auto(profile) struct bs_profile *p = profile_of(a, BS_ARRAY_LEN(a), 100);
	bs_auto(profile) struct bs_profile *q = profile_of(b, BS_ARRAY_LEN(b), 40);
	bs_auto(profile) struct bs_profile *all = profile_of(a, BS_ARRAY_LEN(a), 100);
	bs_auto(profile) struct bs_profile *of_less = bs_profile_new(&table, BLOCKS - 1);

	assert_int_equal(bs_profile_add_run(q, c, BS_ARRAY_LEN(c), 10), 0);
	assert_int_equal(bs_profile_add_run(all, b, BS_ARRAY_LEN(b), 40), 0);
	assert_int_equal(bs_profile_add_run(all, c, BS_ARRAY_LEN(c), 10), 0);
	assert_int_equal(bs_profile_merge(p, q), 0);
	expect(p, all->ranges, all->n_ranges);
	assert_int_equal(p->n_runs, 3);
	assert_int_equal(p->window_ms, 100);
	assert_int_equal(bs_profile_merge(p, of_less), -EINVAL);
}

static void what_no_run_that_is_kept_needed_is_forgotten(void **state)
{
	const struct bs_profile_event a[] = { { 10, 4, 0 }, { 50, 1, 20 } };
	const struct bs_profile_event b[] = { { 12, 1, 9 }, { 80, 1, 30 } };
	const struct bs_profile_range both[] = { { 10, 2, 0, 2 },
						 { 12, 1, 0, 3 },
						 { 13, 1, 0, 2 },
						 { 50, 1, 20, 2 },
						 { 80, 1, 30, 1 } };
	const struct bs_profile_range last[] = { { 12, 1, 0, 1 }, { 80, 1, 30, 1 } };
	bs_auto(profile) struct bs_profile *p = profile_of(a, BS_ARRAY_LEN(a), 100);

	assert_int_equal(bs_profile_add_run(p, b, BS_ARRAY_LEN(b), 100), 0);
	assert_int_equal(bs_profile_keep_runs(p, 2), 0);
	expect(p, both, BS_ARRAY_LEN(both));
	assert_int_equal(bs_profile_keep_runs(p, 1), 0);
	expect(p, last, BS_ARRAY_LEN(last));
	assert_int_equal(p->n_runs, 1);
	assert_int_equal(bs_profile_keep_runs(p, 0), 0);
	assert_int_equal(p->n_ranges + p->n_runs, 0);
}

static void ranges_that_differed_by_a_forgotten_run_are_one(void **state)
{
	const struct bs_profile_event a[] = { { 10, 2, 0 } }, b[] = { { 10, 6, 0 } };
	const struct bs_profile_range want[] = { { 10, 6, 0, 1 } };
	bs_auto(profile) struct bs_profile *p = profile_of(a, 1, 100);

	assert_int_equal(bs_profile_add_run(p, b, 1, 100), 0);
	assert_int_equal(p->n_ranges, 2);
	assert_int_equal(bs_profile_keep_runs(p, 1), 0);
	expect(p, want, 1);
}

static void of_many_runs_the_oldest_are_forgotten(void **state)
{
	bs_auto(profile) struct bs_profile *p = bs_profile_new(&table, BLOCKS);

	for (uint32_t i = 0; i < BS_PROFILE_RUNS_MAX + 3; i++) {
		const struct bs_profile_event e[] = { { 7, 1, 0 }, { 100 + i, 1, 1 + i } };

		assert_int_equal(bs_profile_add_run(p, e, 2, 1000), 0);
	}
	assert_int_equal(p->n_runs, BS_PROFILE_RUNS_MAX);
	assert_int_equal(bs_profile_blocks(p, 1), 1 + BS_PROFILE_RUNS_MAX);
	assert_int_equal(bs_profile_blocks(p, BS_PROFILE_RUNS_MAX), 1);
	assert_int_equal(p->ranges[0].runs, UINT32_MAX);
	assert_int_equal(p->ranges[1].block, 103);
	assert_int_equal(p->ranges[1].runs, UINT32_C(1) << 31);
}

static void what_one_has_beside_another_is_counted(void **state)
{
	const struct bs_profile_event a[] = { { 10, 4, 0 }, { 50, 1, 20 } };
	const struct bs_profile_event b[] = { { 12, 10, 9 }, { 9999, 1, 30 } };
	bs_auto(profile) struct bs_profile *p = profile_of(a, 2, 100), *q = profile_of(b, 2, 100);

	assert_int_equal(bs_profile_beside(p, q), 3);
	assert_int_equal(bs_profile_beside(q, p), 9);
	assert_int_equal(bs_profile_beside(q, q), 0);
}

static void an_empty_run_counts(void **state)
{
	bs_auto(profile) struct bs_profile *p = profile_of(NULL, 0, 0);

	assert_int_equal(p->n_ranges, 0);
	assert_int_equal(p->n_runs, 1);
}

static void the_bytes_say_the_same(void **state)
{
	bs_autofree struct bs_profile_event *e = calloc(5000, sizeof(*e));
	bs_auto(profile) struct bs_profile *p = NULL, *again = NULL;
	bs_autofree void *bytes = NULL, *bytes2 = NULL;
	size_t len, len2;

	for (uint32_t i = 0; i < 5000; i++)
		e[i] = (struct bs_profile_event){ i * 7919 % BLOCKS, 1 + i % 5, i / 10 };
	p = profile_of(e, 5000, 600);
	assert_int_equal(bs_profile_write(p, &bytes, &len, NULL), 0);
	assert_int_equal(bs_profile_read(bytes, len, &table, BLOCKS, &again, NULL), 0);
	expect(again, p->ranges, p->n_ranges);
	assert_int_equal(again->n_runs, 1);
	assert_int_equal(bs_profile_write(again, &bytes2, &len2, NULL), 0);
	assert_int_equal(len, len2);
	assert_memory_equal(bytes, bytes2, len);
}

static void refuse(const uint8_t *bytes, size_t len, int want, const char *word)
{
	bs_auto(profile) struct bs_profile *p = NULL;
	struct bs_error err = BS_ERROR_INIT;
	uint8_t data[4096];
	size_t n = ZSTD_compress(data, sizeof(data), bytes, len, 1);

	assert_false(ZSTD_isError(n));
	assert_int_equal(bs_profile_read(data, n, &table, BLOCKS, &p, &err), want);
	if (!strstr(err.msg, word))
		fail_msg("'%s' does not say '%s'", err.msg, word);
}

static void wrong_bytes_are_refused(void **state)
{
	const struct bs_profile_event e[] = { { 100, 2, 1 }, { 7, 1, 3 } };
	bs_auto(profile) struct bs_profile *p = profile_of(e, 2, 100), *none = NULL;
	uint8_t good[sizeof(struct bs_disk_profile) + 2 * sizeof(struct bs_disk_range)];
	uint8_t bytes[sizeof(good)];
	struct bs_disk_profile *h = (void *)bytes;
	struct bs_disk_range *g = (void *)(bytes + sizeof(*h));
	struct bs_digest other = { { 6 } };
	bs_autofree void *data = NULL;
	size_t len;

	assert_int_equal(bs_profile_write(p, &data, &len, NULL), 0);
	assert_int_equal(ZSTD_decompress(good, sizeof(good), data, len), sizeof(good));
	assert_int_equal(bs_profile_read(data, len, &other, BLOCKS, &none, NULL), -EBADMSG);
	assert_int_equal(bs_profile_read(data, len, &table, BLOCKS + 1, &none, NULL), -EBADMSG);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(bs_profile_read(data, n, &table, BLOCKS, &none, NULL), -EBADMSG);
	for (size_t n = 0; n < sizeof(good); n++)
		refuse(good, n, -EBADMSG, n < sizeof(*h) ? "begin as one" : "length");
#define WITH(change, want, word)                                                                   \
	do {                                                                                       \
		memcpy(bytes, good, sizeof(good));                                                 \
		change;                                                                            \
		refuse(bytes, sizeof(bytes), want, word);                                          \
	} while (0)
	WITH(h->version = htole32(9), -EPROTONOSUPPORT, "upgrade");
	WITH(h->must = htole32(1), -EPROTONOSUPPORT, "upgrade");
	WITH(h->n_runs = 0, -EBADMSG, "recordings");
	WITH(h->n_runs = htole32(33), -EBADMSG, "recordings");
	WITH(h->n_ranges = htole32(UINT32_MAX), -EBADMSG, "recordings");
	WITH(h->n_ranges = htole32(1), -EBADMSG, "length");
	WITH(h->extra_len = htole64(1), -EBADMSG, "length");
	WITH(g[0].n_blocks = 0, -EBADMSG, "range 0: it is empty");
	WITH(g[1].block = htole32(BLOCKS), -EBADMSG, "range 1: it is empty");
	WITH(g[1].n_blocks = htole32(UINT32_MAX), -EBADMSG, "range 1: it is empty");
	WITH(g[1].at_ms = 0, -EBADMSG, "range 1: its time");
	WITH(g[1].at_ms = htole32(101), -EBADMSG, "range 1: its time");
	WITH(g[0].runs = htole32(2), -EBADMSG, "range 0: it was needed");
	WITH(g[0].runs = 0, -EBADMSG, "range 0: it was needed");
	WITH(g[1].block = htole32(101), -EBADMSG, "another too");
	WITH((g[1].block = htole32(102), g[1].at_ms = htole32(1)), -EBADMSG, "one with");
#undef WITH
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_run_keeps_order_and_first_use),
		UNIT_TEST(runs_are_merged),
		UNIT_TEST(profiles_are_merged_as_their_runs_would_be),
		UNIT_TEST(what_no_run_that_is_kept_needed_is_forgotten),
		UNIT_TEST(ranges_that_differed_by_a_forgotten_run_are_one),
		UNIT_TEST(of_many_runs_the_oldest_are_forgotten),
		UNIT_TEST(what_one_has_beside_another_is_counted),
		UNIT_TEST(an_empty_run_counts),
		UNIT_TEST(the_bytes_say_the_same),
		UNIT_TEST(wrong_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
