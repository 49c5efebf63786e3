/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Transfers on links that are only thought of, second by second. */
#include "unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/pace.h"

#define WINDOW (15 * BS_NS_PER_S)
#define MBIT (UINT64_C(1000000) / 8)

struct link {
	struct bs_pace_host host;
	struct bs_pace pace[64];
	uint64_t bytes[64];
	uint64_t now;
};

/* Seconds in which n transfers share rate; until the first is found stalled, or -1. */
static int run(struct link *l, unsigned int n, uint64_t rate, int seconds)
{
	for (unsigned int i = 0; i < n; i++)
		bs_pace_begin(&l->pace[i], l->now, l->bytes[i]);
	for (int s = 0; s < seconds; s++) {
		l->now += BS_NS_PER_S;
		for (unsigned int i = 0; i < n; i++) {
			l->bytes[i] += rate / n;
			bs_pace_host_brought(&l->host, l->now, rate / n, false);
		}
		for (unsigned int i = 0; i < n; i++) {
			if (bs_pace_stalled(&l->pace[i], &l->host, l->now, WINDOW, l->bytes[i], n))
				return s + 1;
		}
	}
	return -1;
}

static void a_slow_link_is_no_stall(void **state)
{
	static const unsigned int n[] = { 1, 4, 16, 20, 64 };

	for (size_t i = 0; i < BS_ARRAY_LEN(n); i++) {
		struct link l = { .now = 1 };

		assert_int_equal(run(&l, n[i], MBIT, 300), -1);
	}
}

/* A neighbour takes the link: what was seen before is no measure. */
static void a_link_that_becomes_slow_is_no_stall(void **state)
{
	static const unsigned int n[] = { 1, 4, 16, 20, 64 };

	for (size_t i = 0; i < BS_ARRAY_LEN(n); i++) {
		struct link l = { .now = 1 };

		assert_int_equal(run(&l, n[i], 10000 * MBIT, 60), -1);
		assert_int_equal(run(&l, n[i], MBIT, 300), -1);
	}
}

/* Flows share unevenly: one gets nothing for seconds, then its part. */
static void uneven_shares_are_no_stall(void **state)
{
	struct link l = { .now = 1 };

	for (int s = 0; s < 600; s++) {
		l.now += BS_NS_PER_S;
		for (unsigned int i = 0; i < 16; i++) {
			uint64_t came = s / 10 % 16 == (int)i ? MBIT : MBIT / 100;

			l.bytes[i] += came;
			bs_pace_host_brought(&l.host, l.now, came, false);
			if (s == 0)
				bs_pace_begin(&l.pace[i], l.now, l.bytes[i]);
			assert_false(bs_pace_stalled(&l.pace[i], &l.host, l.now, WINDOW, l.bytes[i],
						     16));
		}
	}
}

static void a_trickle_is_a_stall(void **state)
{
	static const uint64_t rates[] = { 0, 1, 100, 255 };

	for (size_t i = 0; i < BS_ARRAY_LEN(rates); i++) {
		struct link l = { .now = 1 };

		assert_int_equal(run(&l, 1, rates[i], 100), 15);
		/* however many of its like there are */
		l = (struct link){ .now = 1 };
		assert_int_equal(run(&l, 20, rates[i], 100), 15);
	}
}

/* A few kilobytes per second are one where more came before, until that is forgotten. */
static void what_a_host_brought_is_asked_of_it(void **state)
{
	struct link l = { .now = 1 };
	int n = 0;

	assert_int_equal(run(&l, 1, 4000, 100), -1);
	assert_int_equal(run(&l, 1, 100 * MBIT, 100), -1);
	while (run(&l, 1, 4000, 100) == 15)
		n++;
	assert_in_range(n, 2, 5);
}

/* One among many that are quick. */
static void the_one_that_starves_is_found(void **state)
{
	struct link l = { .now = 1 };
	int s = 0;

	bs_pace_begin(&l.pace[0], l.now, 0);
	do {
		l.now += BS_NS_PER_S;
		l.bytes[0] += 500;
		bs_pace_host_brought(&l.host, l.now, 100 * MBIT, false);
	} while (!bs_pace_stalled(&l.pace[0], &l.host, l.now, WINDOW, l.bytes[0], 8) && s++ < 100);
	assert_int_equal(s, 14);
}

static void short_transfers_teach_too(void **state)
{
	struct bs_pace_host h = { 0 };

	bs_pace_host_begin(&h, 1);
	bs_pace_host_brought(&h, 1 + BS_NS_PER_S / 100, 100000, true);
	assert_int_equal(h.rate, 10000000);
	bs_pace_host_begin(&h, BS_NS_PER_S);
	bs_pace_host_brought(&h, 2 * BS_NS_PER_S - 1, 100, true);
	assert_int_equal(h.rate, 10000000); /* a redirect's few bytes */
}

/* The machine slept: nobody looked, and nobody is blamed. */
static void a_sleep_is_no_stall(void **state)
{
	struct bs_pace p;

	bs_pace_begin(&p, 1, 0);
	assert_false(bs_pace_stalled(&p, NULL, 1 + 3600 * BS_NS_PER_S, WINDOW, 10, 1));
	assert_false(bs_pace_stalled(&p, NULL, 1 + 3610 * BS_NS_PER_S, WINDOW, 10, 1));
	assert_true(bs_pace_stalled(&p, NULL, 1 + 3615 * BS_NS_PER_S, WINDOW, 10, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_slow_link_is_no_stall),
		UNIT_TEST(a_link_that_becomes_slow_is_no_stall),
		UNIT_TEST(uneven_shares_are_no_stall),
		UNIT_TEST(a_trickle_is_a_stall),
		UNIT_TEST(what_a_host_brought_is_asked_of_it),
		UNIT_TEST(the_one_that_starves_is_found),
		UNIT_TEST(short_transfers_teach_too),
		UNIT_TEST(a_sleep_is_no_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
