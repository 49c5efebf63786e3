/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include "base/clock.h"
#include "net/yield.h"

#define S UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

/* So many bytes in each tenth of a second, for n of them. */
static uint64_t bring(struct bs_yield_share *y, uint64_t now, uint64_t bytes, unsigned int n,
		      bool runs)
{
	for (unsigned int i = 0; i < n; i++) {
		now += S / 10;
		bs_yield_brought(y, now, bytes, runs);
	}
	return now;
}

static void a_share_is_one_of_what_was_measured(void **state)
{
	struct bs_yield_share y = { 0 };
	uint64_t now = 100 * S;

	assert_int_equal(bs_yield_rate(&y, 25, now), 0);
	bs_yield_brought(&y, now, MIB, true);
	now = bring(&y, now, MIB, 9, true);
	assert_int_equal(bs_yield_rate(&y, 25, now), 0); /* it is still measured */
	now = bring(&y, now, MIB, 1, true);
	assert_int_equal(bs_yield_rate(&y, 25, now), 10 * MIB / 4);
	assert_int_equal(bs_yield_rate(&y, 0, now), 0);
	assert_int_equal(bs_yield_rate(&y, 100, now), 0);
	/* what comes under the limit changes nothing */
	now = bring(&y, now, MIB / 4, 100, true);
	assert_int_equal(bs_yield_rate(&y, 25, now), 10 * MIB / 4);
}

static void it_is_measured_again(void **state)
{
	struct bs_yield_share y = { 0 };
	uint64_t now = 100 * S;

	now = bring(&y, now, MIB, 11, true);
	assert_int_equal(bs_yield_rate(&y, 50, now), 5 * MIB);
	now += BS_YIELD_AGAIN_NS;
	assert_int_equal(bs_yield_rate(&y, 50, now), 0);
	now = bring(&y, now, 2 * MIB, 11, true);
	assert_int_equal(bs_yield_rate(&y, 50, now), 10 * MIB);
}

static void only_what_comes_while_the_lane_runs_is_measured(void **state)
{
	struct bs_yield_share y = { 0 };
	uint64_t now = 100 * S;

	now = bring(&y, now, 1000, 50, false);
	assert_int_equal(bs_yield_rate(&y, 50, now), 0);
	now = bring(&y, now, MIB, 5, true);
	now = bring(&y, now, 1000, 1, false);
	now = bring(&y, now, MIB, 11, true);
	assert_int_equal(bs_yield_rate(&y, 50, now), 5 * MIB);
}

/* Demand that comes again and again leaves no whole second to it. */
static void it_is_measured_in_pieces(void **state)
{
	struct bs_yield_share y = { 0 };
	uint64_t now = 100 * S;

	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < 4; i++) {
			now = bring(&y, now, MIB, 3, true); /* the first one is a beginning */
			now = bring(&y, now, 1000, 1, false) + 5 * S;
		}
		assert_int_equal(bs_yield_rate(&y, 50, now), 0);
		now = bring(&y, now, MIB, 3, true);
		assert_int_equal(bs_yield_rate(&y, 50, now), 5 * MIB);
		now += BS_YIELD_AGAIN_NS;
	}
}

static void a_time_that_is_a_little_older_harms_nothing(void **state)
{
	struct bs_yield_pause pause = { 0 };
	struct bs_yield_share y = { 0 };
	uint64_t now = 100 * S;

	bs_yield_brought(&y, now, MIB, true);
	bs_yield_brought(&y, now - 1, 0, true);
	assert_int_equal(bs_yield_rate(&y, 50, now), 0);
	now = bring(&y, now, MIB, 10, true);
	assert_int_equal(bs_yield_rate(&y, 50, now - 1), 5 * MIB);
	bs_yield_demand_ended(&pause, now);
	assert_int_equal(bs_yield_wait(&pause, now - 1, 0), BS_YIELD_QUIET_NS + 1);
}

static void a_slow_link_leaves_something(void **state)
{
	struct bs_yield_share y = { 0 };
	uint64_t now = bring(&y, 100 * S, 0, 11, true);

	assert_int_equal(bs_yield_rate(&y, 1, now), BS_YIELD_RATE_MIN);
}

static void it_waits_while_there_is_demand_and_a_moment_longer(void **state)
{
	struct bs_yield_pause y = { 0 };
	uint64_t now = 100 * S;

	assert_int_equal(bs_yield_wait(&y, now, 0), 0);
	assert_int_equal(bs_yield_wait(&y, now, 1), BS_YIELD_PAUSE_NS);
	bs_yield_demand_ended(&y, now);
	assert_int_equal(bs_yield_wait(&y, now, 0), BS_YIELD_QUIET_NS);
	assert_int_equal(bs_yield_wait(&y, now + BS_YIELD_QUIET_NS - 1, 0), 1);
	assert_int_equal(bs_yield_wait(&y, now + BS_YIELD_QUIET_NS, 0), 0);
}

static void demand_that_never_ends_lets_one_pass_at_times(void **state)
{
	struct bs_yield_pause y = { 0 };
	uint64_t now = 100 * S;

	assert_int_equal(bs_yield_wait(&y, now, 3), BS_YIELD_PAUSE_NS);
	now += BS_YIELD_PAUSE_NS - 1;
	bs_yield_demand_ended(&y, now);
	assert_int_equal(bs_yield_wait(&y, now, 2), 1);
	now++;
	assert_int_equal(bs_yield_wait(&y, now, 2), 0);
	assert_int_equal(bs_yield_wait(&y, now, 2), 0); /* until it is used */
	bs_yield_started(&y);
	assert_int_equal(bs_yield_wait(&y, now, 2), BS_YIELD_PAUSE_NS);
}

static void others_make_room_for_whose_demand_it_is(void **state)
{
	struct bs_yield_demand d = { 0 };
	uint64_t now = 7 * BS_NS_PER_S;
	int a, b;

	assert_false(bs_yield_makes_room(&d, now, NULL));
	bs_yield_demand_began(&d, now, &a);
	assert_true(bs_yield_makes_room(&d, now, NULL));
	assert_true(bs_yield_makes_room(&d, now, &b));
	assert_false(bs_yield_makes_room(&d, now, &a));
	bs_yield_demand_over(&d, now, &a);
	now += BS_YIELD_QUIET_NS - 1;
	assert_true(bs_yield_makes_room(&d, now, &b));
	assert_false(bs_yield_makes_room(&d, now, &a));
	/* both want something: neither makes room for the other, and all others do */
	bs_yield_demand_began(&d, now, &b);
	assert_false(bs_yield_makes_room(&d, now, &a));
	assert_false(bs_yield_makes_room(&d, now, &b));
	assert_true(bs_yield_makes_room(&d, now, NULL));
	now++; /* the first one's moment is over */
	assert_true(bs_yield_makes_room(&d, now, &a));
	assert_false(bs_yield_makes_room(&d, now, &b));
	bs_yield_demand_began(&d, now, &a);
	bs_yield_demand_over(&d, now, &a);
	assert_false(bs_yield_makes_room(&d, now, &a));
	bs_yield_demand_over(&d, now, &b);
	now += BS_YIELD_QUIET_NS;
	assert_false(bs_yield_makes_room(&d, now, NULL));
	bs_yield_demand_began(&d, now, &b);
	assert_false(bs_yield_makes_room(&d, now, &b));
}

/* What is asked for in nobody's name, as manifests are, makes no two of one. */
static void demand_of_nobody_in_particular(void **state)
{
	struct bs_yield_demand d = { 0 };
	uint64_t now = 7 * BS_NS_PER_S;
	int a, b;

	bs_yield_demand_began(&d, now, NULL);
	assert_true(bs_yield_makes_room(&d, now, &a));
	assert_true(bs_yield_makes_room(&d, now, NULL));
	bs_yield_demand_began(&d, now, &a);
	bs_yield_demand_began(&d, now, NULL);
	assert_false(bs_yield_makes_room(&d, now, &a));
	assert_true(bs_yield_makes_room(&d, now, &b));
	assert_true(bs_yield_makes_room(&d, now, NULL));
	bs_yield_demand_over(&d, now, &a);
	now += BS_YIELD_QUIET_NS;
	assert_true(bs_yield_makes_room(&d, now, &a));
}

/* More than can be told apart: what is known of the others holds. */
static void demand_of_many_images(void **state)
{
	struct bs_yield_demand d = { 0 };
	uint64_t now = 7 * BS_NS_PER_S;
	char images[BS_YIELD_IMAGES + 1];
	const char *last = &images[BS_YIELD_IMAGES];

	for (size_t i = 0; i < sizeof(images); i++)
		bs_yield_demand_began(&d, now, &images[i]);
	assert_false(bs_yield_makes_room(&d, now, &images[0]));
	assert_false(bs_yield_makes_room(&d, now, last - 1));
	assert_true(bs_yield_makes_room(&d, now, last));
	bs_yield_demand_over(&d, now, last);
	bs_yield_demand_over(&d, now, &images[0]);
	assert_false(bs_yield_makes_room(&d, now, &images[0]));
	now += BS_YIELD_QUIET_NS;
	bs_yield_demand_began(&d, now, last);
	assert_false(bs_yield_makes_room(&d, now, last));
	assert_true(bs_yield_makes_room(&d, now, &images[0]));
	assert_false(bs_yield_makes_room(&d, now, &images[1]));
	bs_yield_demand_over(&d, now, last);
	for (size_t i = 1; i < BS_YIELD_IMAGES; i++)
		bs_yield_demand_over(&d, now, &images[i]);
	assert_int_equal(d.all.running, 0);
	assert_false(bs_yield_makes_room(&d, now + BS_YIELD_QUIET_NS, NULL));
}

static void after_a_transfer_there_is_a_rest_as_long(void **state)
{
	struct bs_yield_demand d = { 0 };
	const uint64_t now = 7 * BS_NS_PER_S;

	assert_int_equal(bs_yield_room_wait(&d, now), 0);
	bs_yield_room_over(&d, now, 40 * BS_NS_PER_MS);
	assert_int_equal(bs_yield_room_wait(&d, now), 40 * BS_NS_PER_MS);
	assert_int_equal(bs_yield_room_wait(&d, now + 39 * BS_NS_PER_MS), BS_NS_PER_MS);
	assert_int_equal(bs_yield_room_wait(&d, now + 40 * BS_NS_PER_MS), 0);
	/* but one that was stuck is no reason to wait for ever */
	bs_yield_room_over(&d, now, 60 * BS_NS_PER_S);
	assert_int_equal(bs_yield_room_wait(&d, now), BS_YIELD_QUIET_NS);
}

static void a_budget_that_is_overdrawn_fills_up_to_nothing(void **state)
{
	struct bs_yield_budget b = { .bytes = -1000, .filled_ns = BS_NS_PER_S };

	bs_yield_refill(&b, BS_NS_PER_S + 999, 1000000); /* less than a byte: it adds up */
	assert_int_equal(b.bytes, -1000);
	bs_yield_refill(&b, BS_NS_PER_S + 1000, 1000000);
	assert_int_equal(b.bytes, -999);
	bs_yield_refill(&b, 2 * BS_NS_PER_S, 1000000);
	assert_int_equal(b.bytes, 0);
	b.bytes = -5;
	bs_yield_refill(&b, 2 * BS_NS_PER_S, 0);
	assert_int_equal(b.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_share_is_one_of_what_was_measured),
		UNIT_TEST(it_is_measured_again),
		UNIT_TEST(only_what_comes_while_the_lane_runs_is_measured),
		UNIT_TEST(it_is_measured_in_pieces),
		UNIT_TEST(a_time_that_is_a_little_older_harms_nothing),
		UNIT_TEST(a_slow_link_leaves_something),
		UNIT_TEST(it_waits_while_there_is_demand_and_a_moment_longer),
		UNIT_TEST(demand_that_never_ends_lets_one_pass_at_times),
		UNIT_TEST(others_make_room_for_whose_demand_it_is),
		UNIT_TEST(demand_of_nobody_in_particular),
		UNIT_TEST(demand_of_many_images),
		UNIT_TEST(after_a_transfer_there_is_a_rest_as_long),
		UNIT_TEST(a_budget_that_is_overdrawn_fills_up_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
