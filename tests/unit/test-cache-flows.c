/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Links that are only thought of, millisecond by millisecond. */
#include "unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cache/flows.h"

#define MB UINT64_C(1000000)

struct link {
	struct bs_flows f;
	uint64_t now, each, all; /* bytes per second of a connection, and of the link */
	unsigned int most;
};

static void begin(struct link *l, uint64_t each, uint64_t all)
{
	*l = (struct link){ .now = BS_NS_PER_S, .each = each, .all = all };
	bs_flows_begin(&l->f, 8);
}

/* What came in that time; in every third millisecond nothing does, then all at once. */
static uint64_t run(struct link *l, unsigned int ms)
{
	uint64_t bytes = 0, kept = 0;

	for (unsigned int i = 0; i < ms; i++) {
		l->now += BS_NS_PER_MS;
		kept += BS_MIN(l->each * l->f.now, l->all) / 1000;
		if (i % 3 == 0)
			continue;
		(void)bs_flows_brought(&l->f, l->now, kept, true);
		l->most = BS_MAX(l->most, l->f.now);
		bytes += kept;
		kept = 0;
	}
	return bytes;
}

static void connections_that_are_given_so_much_add_up(void **state)
{
	struct link l;
	uint64_t bytes;

	begin(&l, 5 * MB, 1000 * MB);
	bytes = run(&l, 4000);
	assert_int_equal(l.f.now, 8);
	assert_true(bytes >= 4 * 40 * MB * 9 / 10);
}

static void more_than_help_are_given_up(void **state)
{
	struct link l;

	begin(&l, 25 * MB, 25 * MB);
	(void)run(&l, 900);
	assert_int_equal(l.most, 8);
	assert_int_equal(l.f.now, BS_FLOWS_FIRST);
	assert_in_range(bs_flows_rate(&l.f, l.now), 24 * MB, 26 * MB);
}

/* Seldom, since it costs something each time. */
static void a_link_that_changes_is_tried_again(void **state)
{
	struct link l;
	unsigned int tries = 0, before;

	begin(&l, 25 * MB, 25 * MB);
	before = l.f.now;
	for (int i = 0; i < 30000; i++) {
		(void)run(&l, 3);
		tries += l.f.now > before;
		before = l.f.now;
		i += 2;
	}
	assert_in_range(tries, 3, 7);
	l.each = 4 * MB;
	(void)run(&l, 17000);
	assert_int_equal(l.f.now, 8);
}

/* A burst after a pause, or before one, is no rate to live up to for ever. */
static void one_sample_that_was_wrong_is_made_good(void **state)
{
	struct link l;

	begin(&l, 5 * MB, 1000 * MB);
	(void)run(&l, 150); /* connections are made */
	(void)bs_flows_brought(&l.f, l.now, 20 * MB, true);
	(void)run(&l, 6000);
	assert_int_equal(l.f.now, 8);
	assert_in_range(bs_flows_rate(&l.f, l.now), 35 * MB, 45 * MB);
}

static void before_there_is_a_sample_the_rate_is_guessed(void **state)
{
	struct link l;

	begin(&l, 5 * MB, 1000 * MB);
	assert_int_equal(bs_flows_rate(&l.f, l.now), 0);
	(void)run(&l, 20);
	assert_int_equal(bs_flows_rate(&l.f, l.now), 0);
	(void)run(&l, 60);
	assert_in_range(bs_flows_rate(&l.f, l.now), 17 * MB, 22 * MB);
}

static void there_are_never_more_than_may_be(void **state)
{
	struct link l;

	begin(&l, MB, 1000 * MB);
	bs_flows_begin(&l.f, 3);
	(void)run(&l, 3000);
	assert_int_equal(l.most, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(connections_that_are_given_so_much_add_up),
		UNIT_TEST(more_than_help_are_given_up),
		UNIT_TEST(a_link_that_changes_is_tried_again),
		UNIT_TEST(one_sample_that_was_wrong_is_made_good),
		UNIT_TEST(before_there_is_a_sample_the_rate_is_guessed),
		UNIT_TEST(there_are_never_more_than_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
