/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include "cache/near.h"

#define UNITS 1000u

static struct bs_near near_;

static int set_up(void **state)
{
	return bs_near_init(&near_, UNITS);
}

static int tear_down(void **state)
{
	bs_near_done(&near_);
	return 0;
}

static uint32_t after_of(uint32_t unit)
{
	uint32_t after, before;

	bs_near_window(&near_, unit, &after, &before);
	assert_true(after >= 1 && after <= BS_NEAR_AFTER_MAX);
	assert_int_equal(before, after / 2);
	return after;
}

static void where_more_was_read_more_is_brought(void **state)
{
	const uint32_t first = after_of(500);
	uint32_t was = first;

	assert_true(first > 1);
	for (uint32_t i = 0; i < 12; i++) {
		bs_near_read(&near_, 490 - i, 490 - i);
		assert_true(after_of(500) > was);
		was = after_of(500);
		assert_int_equal(after_of(700), first);
	}
	/* reading the same again says nothing */
	bs_near_read(&near_, 480, 485);
	assert_int_equal(after_of(500), was);
	bs_near_read(&near_, 400, 600);
	assert_int_equal(after_of(500), BS_NEAR_AFTER_MAX);
}

static void the_ends_of_the_blob_are_no_trouble(void **state)
{
	bs_near_read(&near_, 0, UNITS - 1);
	assert_true(after_of(0) > 1);
	assert_int_equal(after_of(UNITS - 1), after_of(0));
	bs_near_done(&near_);
	assert_int_equal(bs_near_init(&near_, 1), 0);
	bs_near_read(&near_, 0, 0);
	assert_true(after_of(0) >= 1);
	bs_near_done(&near_);
	assert_int_equal(bs_near_init(&near_, 0), 0);
}

static void who_reads_at_random_is_brought_next_to_nothing(void **state)
{
	uint32_t before = after_of(900), i;

	for (i = 0; i < 400; i++)
		bs_near_brought(&near_, i);
	assert_int_equal(after_of(900), 1);
	/* and as much as ever once what comes is read */
	for (i = 0; i < 400; i++) {
		bs_near_brought(&near_, 400 + i);
		bs_near_read(&near_, 400 + i, 400 + i);
	}
	assert_int_equal(after_of(900), before);
}

static void a_third_of_use_is_enough(void **state)
{
	const uint32_t before = after_of(900);

	for (uint32_t i = 0; i < 600; i++) {
		bs_near_brought(&near_, i);
		if (i % 3 == 0)
			bs_near_read(&near_, i, i);
		assert_int_equal(after_of(900), before);
	}
}

/* What was read and then brought again (it was lost) is no use of what was brought. */
static void only_what_came_unasked_is_judged(void **state)
{
	bs_near_read(&near_, 0, 99);
	assert_int_equal(near_.useful, 0);
	bs_near_brought(&near_, 200);
	bs_near_read(&near_, 200, 200);
	bs_near_read(&near_, 200, 200);
	assert_int_equal(near_.useful, 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(where_more_was_read_more_is_brought),
		CASE(the_ends_of_the_blob_are_no_trouble),
		CASE(who_reads_at_random_is_brought_next_to_nothing),
		CASE(a_third_of_use_is_enough),
		CASE(only_what_came_unasked_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
