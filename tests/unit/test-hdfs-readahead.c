/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdbool.h>

#include "base/mem.h"
#include "hdfs/readahead.h"

#define MIB (UINT64_C(1) << 20)
#define UNIT (4 * MIB)

static struct bs_readahead_plan note(struct bs_readahead *ra, uint64_t off, uint64_t len)
{
	struct bs_readahead_plan p;

	bs_readahead_note(ra, off, len, &p);
	assert_true(p.from <= p.to);
	assert_true(p.to <= ra->len);
	if (p.from < p.to) {
		assert_int_equal(p.from % ra->unit, 0);
		assert_true(p.to % ra->unit == 0 || p.to == ra->len);
		assert_true(p.to - p.from <= ra->window_max);
	}
	return p;
}

static void nothing_is_planned_for_nothing(void **state)
{
	struct bs_readahead ra;
	struct bs_readahead_plan p;

	bs_readahead_init(&ra, 100 * MIB, UNIT, 0, 0);
	p = note(&ra, 0, MIB); /* no memory for it */
	assert_false(p.units || p.whole || p.to);
	bs_readahead_init(&ra, 100 * MIB, UNIT, 64 * MIB, UINT64_MAX);
	p = note(&ra, 100 * MIB, 1);
	assert_false(p.units);
	p = note(&ra, 5, 0);
	assert_false(p.units);
	p = note(&ra, UINT64_MAX, UINT64_MAX);
	assert_false(p.units);
	bs_readahead_init(&ra, 0, 0, 64 * MIB, UINT64_MAX);
	p = note(&ra, 0, 1);
	assert_false(p.units);
}

static void who_reads_on_gets_a_growing_window(void **state)
{
	struct bs_readahead ra;
	struct bs_readahead_plan p;
	uint64_t last = 0;

	bs_readahead_init(&ra, 1024 * MIB, UNIT, 64 * MIB, 0);
	p = note(&ra, 0, 128 << 10); /* the beginning: maybe only a header */
	assert_true(p.units);
	assert_int_equal(p.from, p.to);
	for (uint64_t off = 128 << 10; off < 1024 * MIB; off += 128 << 10) {
		p = note(&ra, off, 128 << 10);
		assert_true(p.units);
		assert_true(p.to >= last);
		last = p.to;
		if (off == 32 * MIB)
			assert_int_equal(p.to, 32 * MIB + 64 * MIB);
	}
	assert_int_equal(last, 1024 * MIB);
}

static void the_last_short_unit_is_in_the_window(void **state)
{
	struct bs_readahead ra;
	struct bs_readahead_plan p;

	bs_readahead_init(&ra, 10 * MIB + 1, UNIT, 64 * MIB, 0);
	(void)note(&ra, 0, MIB);
	p = note(&ra, MIB, MIB);
	assert_int_equal(p.from, UNIT);
	assert_int_equal(p.to, 10 * MIB + 1);
	p = note(&ra, 9 * MIB, 2 * MIB); /* beyond the end */
	assert_int_equal(p.from, p.to);
}

static void small_files_come_whole(void **state)
{
	struct bs_readahead ra;

	bs_readahead_init(&ra, UNIT, UNIT, 64 * MIB, 0);
	assert_true(note(&ra, UNIT - 10, 10).units);
	bs_readahead_init(&ra, UNIT + 1, UNIT, 64 * MIB, 0);
	assert_false(note(&ra, UNIT - 10, 10).units);
}

static void order_may_be_mixed_a_little(void **state)
{
	static const uint64_t order[] = { 1, 0, 3, 2, 5, 7, 6, 4 };
	struct bs_readahead ra;
	struct bs_readahead_plan p;

	bs_readahead_init(&ra, 1024 * MIB, UNIT, 64 * MIB, 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(order); i++)
		p = note(&ra, 100 * MIB + (order[i] << 18), 1 << 18);
	assert_int_equal(ra.jumps, 1);
	assert_true(p.from < p.to);
}

static void several_streams_have_each_a_window(void **state)
{
	struct bs_readahead ra;
	struct bs_readahead_plan p;

	bs_readahead_init(&ra, 1024 * MIB, UNIT, 64 * MIB, 0);
	for (uint64_t i = 0; i < 10; i++) {
		for (uint64_t s = 0; s < BS_READAHEAD_STREAMS; s++) {
			p = note(&ra, s * 100 * MIB + i * MIB, MIB);
			assert_true(i == 0 || p.from >= s * 100 * MIB);
			assert_true(p.to < (s + 1) * 100 * MIB);
		}
	}
	assert_int_equal(ra.jumps, BS_READAHEAD_STREAMS - 1);
}

static void who_jumps_and_reads_little_gets_what_he_asks(void **state)
{
	struct bs_readahead ra;
	struct bs_readahead_plan p;

	bs_readahead_init(&ra, 1024 * MIB, UNIT, 64 * MIB, UINT64_MAX);
	for (uint64_t i = 0; i < 200; i++) {
		p = note(&ra, (i * 397 + 11) % 1000 * MIB, 4096);
		assert_false(p.units || p.whole);
		assert_int_equal(p.from, p.to);
	}
}

static void who_jumps_and_reads_much_gets_all(void **state)
{
	struct bs_readahead ra;
	bool whole = false;

	bs_readahead_init(&ra, 1024 * MIB, UNIT, 64 * MIB, 1024 * MIB);
	for (uint64_t i = 0; i < 20; i++)
		whole = note(&ra, (i * 397 + 11) % 1000 * MIB, MIB).whole;
	assert_true(whole);
	bs_readahead_init(&ra, 1024 * MIB + 1, UNIT, 64 * MIB, 1024 * MIB); /* too large for that */
	for (uint64_t i = 0; i < 20; i++)
		assert_false(note(&ra, (i * 397 + 11) % 1000 * MIB, MIB).whole);
}

static void numbers_at_their_ends(void **state)
{
	struct bs_readahead ra;

	bs_readahead_init(&ra, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	(void)note(&ra, 0, UINT64_MAX);
	(void)note(&ra, UINT64_MAX - 1, UINT64_MAX);
	bs_readahead_init(&ra, UINT64_MAX, 1, UINT64_MAX, UINT64_MAX);
	for (uint64_t i = 0; i < 70; i++) {
		(void)note(&ra, UINT64_MAX >> (i % 64), UINT64_MAX >> (i % 13));
		(void)note(&ra, UINT64_MAX - i, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(nothing_is_planned_for_nothing),
		UNIT_TEST(who_reads_on_gets_a_growing_window),
		UNIT_TEST(the_last_short_unit_is_in_the_window),
		UNIT_TEST(small_files_come_whole),
		UNIT_TEST(order_may_be_mixed_a_little),
		UNIT_TEST(several_streams_have_each_a_window),
		UNIT_TEST(who_jumps_and_reads_little_gets_what_he_asks),
		UNIT_TEST(who_jumps_and_reads_much_gets_all),
		UNIT_TEST(numbers_at_their_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
