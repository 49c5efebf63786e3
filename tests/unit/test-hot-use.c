/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "hot/use.h"

#define BLOCKS 200u

static const struct bs_extent pack[] = { { 10, 20 }, { 100, 5 }, { 63, 2 } };
static bool here[BLOCKS];

static bool there(void *cookie, uint64_t block)
{
	assert_true(block < BLOCKS);
	return here[block];
}

static int make(void **state)
{
	memset(here, 0, sizeof(here));
	*state = bs_use_new(pack, BS_ARRAY_LEN(pack), BLOCKS);
	return *state ? 0 : -1;
}

static int drop(void **state)
{
	*state = bs_use_free(*state);
	return 0;
}

static void note(struct bs_use *u, uint64_t first, uint64_t n, bool warmer, bool exact)
{
	const struct bs_use_read rd = { .off = first * BS_BLOCK_BYTES,
					.len = n * BS_BLOCK_BYTES,
					.warmer = warmer,
					.exact = exact,
					.there = there };

	bs_use_note(u, &rd);
}

static struct bs_use_counts get(struct bs_use *u)
{
	struct bs_use_counts c;

	bs_use_get(u, &c);
	return c;
}

static void each_block_counts_once_where_it_was_read_first(void **state)
{
	struct bs_use *u = *state;
	struct bs_use_counts c = get(u);

	assert_int_equal(c.pack_blocks, 27);
	assert_int_equal(c.read_blocks + c.warmed_blocks + c.missed_reads, 0);
	memset(here + 10, 1, 15);
	note(u, 20, 10, false, true); /* five of them had not come yet */
	note(u, 10, 20, true, true);  /* the other ten; and again what was read */
	note(u, 10, 20, false, true);
	c = get(u);
	assert_int_equal(c.read_blocks, 10);
	assert_int_equal(c.waited_blocks, 5);
	assert_int_equal(c.warmed_blocks, 10);
	assert_int_equal(c.cached_blocks + c.fetched_blocks + c.missed_reads + c.missed_min, 0);
}

static void what_the_pack_lacks_is_missed_from_the_cache_or_the_source(void **state)
{
	struct bs_use *u = *state;
	struct bs_use_counts c;

	here[31] = here[32] = true;
	note(u, 29, 6, false, true); /* one of the pack, two here, three not */
	note(u, 29, 6, false, true);
	c = get(u);
	assert_int_equal(c.read_blocks, 1);
	assert_int_equal(c.cached_blocks, 2);
	assert_int_equal(c.fetched_blocks, 3);
	assert_int_equal(c.missed_reads, 1);
	assert_int_equal(c.missed_min, 5);
}

static void readahead_proves_one_block_of_each_read(void **state)
{
	struct bs_use *u = *state;
	struct bs_use_counts c;

	note(u, 110, 32, false, false);
	note(u, 142, 32, false, false);
	note(u, 100, 5, false, false); /* of the pack: nothing is missed */
	c = get(u);
	assert_int_equal(c.fetched_blocks, 64);
	assert_int_equal(c.missed_reads, 2);
	assert_int_equal(c.missed_min, 2);
}

static void the_warmers_reads_beside_the_pack_count_for_nobody(void **state)
{
	struct bs_use *u = *state;
	struct bs_use_counts c;

	note(u, 100, 20, true, true);
	c = get(u);
	assert_int_equal(c.warmed_blocks, 5);
	assert_int_equal(c.missed_reads, 0);
	note(u, 105, 15, false, true);
	c = get(u);
	assert_int_equal(c.fetched_blocks, 15);
}

static void reads_that_are_none_count_nothing(void **state)
{
	struct bs_use *u = *state;

	note(u, 5, 0, false, true);
	note(u, BLOCKS - 1, 2, false, true);
	note(u, BLOCKS, 1, false, true);
	assert_int_equal(get(u).missed_reads, 0);
	note(u, BLOCKS - 1, 1, false, true);
	assert_int_equal(get(u).missed_reads, 1);
}

static void missed_blocks_are_listed_by_block(void **state)
{
	struct bs_use *u = *state;
	bs_autofree struct bs_extent *list = NULL;
	uint32_t n;

	assert_int_equal(bs_use_missed(u, &list, &n), 0);
	assert_int_equal(n, 0);
	free(list);
	note(u, 199, 1, false, true);
	note(u, 60, 10, false, true); /* 63 and 64 are the pack's */
	note(u, 0, 1, false, true);
	note(u, 127, 2, false, true);
	assert_int_equal(bs_use_missed(u, &list, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(list[0].block, 0);
	assert_int_equal(list[1].block, 60);
	assert_int_equal(list[1].n_blocks, 3);
	assert_int_equal(list[2].block, 65);
	assert_int_equal(list[2].n_blocks, 5);
	assert_int_equal(list[3].block, 127);
	assert_int_equal(list[3].n_blocks, 2);
	assert_int_equal(list[4].block, 199);
}

static void a_pack_is_bad_from_a_share_on(void **state)
{
	struct bs_use_counts c = { .pack_blocks = 1000, .missed_min = 99 };

	assert_false(bs_use_is_bad(&c, 10));
	c.missed_min = 100;
	assert_true(bs_use_is_bad(&c, 10));
	assert_false(bs_use_is_bad(&c, 0));
	assert_false(bs_use_is_bad(&c, 11));
	c.missed_min = 0;
	assert_false(bs_use_is_bad(&c, 1));
	c = (struct bs_use_counts){ .pack_blocks = 1, .missed_min = 1 };
	assert_true(bs_use_is_bad(&c, 10));
}

#define WITH_USE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_USE(each_block_counts_once_where_it_was_read_first),
		WITH_USE(what_the_pack_lacks_is_missed_from_the_cache_or_the_source),
		WITH_USE(readahead_proves_one_block_of_each_read),
		WITH_USE(the_warmers_reads_beside_the_pack_count_for_nobody),
		WITH_USE(reads_that_are_none_count_nothing),
		WITH_USE(missed_blocks_are_listed_by_block),
		UNIT_TEST(a_pack_is_bad_from_a_share_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
