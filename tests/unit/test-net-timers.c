/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "unit.h"

#include "net/timers.h"

static void soonest_first_and_equal_ones_as_they_came(void **state)
{
	struct bs_timer t[] = {
		{ .at_ns = 30 }, { .at_ns = 10 }, { .at_ns = 20 }, { .at_ns = 10 }, { .at_ns = 0 }
	};
	struct bs_list timers;

	bs_list_init(&timers);
	assert_null(bs_timers_take(&timers, UINT64_MAX - 1));
	assert_true(bs_timers_wait(&timers, 0) == UINT64_MAX);
	for (size_t i = 0; i < BS_ARRAY_LEN(t); i++)
		bs_timers_add(&timers, &t[i]);
	assert_ptr_equal(bs_timers_take(&timers, 9), &t[4]);
	assert_null(bs_timers_take(&timers, 9));
	assert_int_equal(bs_timers_wait(&timers, 9), 1);
	assert_int_equal(bs_timers_wait(&timers, 11), 0);
	assert_ptr_equal(bs_timers_take(&timers, 25), &t[1]);
	assert_ptr_equal(bs_timers_take(&timers, 25), &t[3]);
	assert_ptr_equal(bs_timers_take(&timers, 25), &t[2]);
	assert_null(bs_timers_take(&timers, 25));
	assert_ptr_equal(bs_timers_take(&timers, 30), &t[0]);
	assert_true(bs_list_empty(&timers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(soonest_first_and_equal_ones_as_they_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
