/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/latch.h"

static void *open_later(void *cookie)
{
	(void)usleep(20000);
	bs_latch_open(cookie);
	return NULL;
}

static void who_waits_goes_on_when_it_opens(void **state)
{
	struct bs_latch l = BS_LATCH_INIT;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, open_later, &l), 0);
	bs_latch_wait(&l);
	assert_true(bs_latch_wait_for(&l, 0)); /* it stays open */
	bs_latch_wait(&l);
	bs_latch_done(&l);
	assert_int_equal(pthread_join(t, NULL), 0);
}

static void who_waits_no_longer_than_so_much_is_told(void **state)
{
	struct bs_latch l = BS_LATCH_INIT;
	uint64_t start = bs_clock_ns();
	pthread_t t;

	assert_false(bs_latch_wait_for(&l, 30 * BS_NS_PER_MS));
	assert_true(bs_clock_ns() - start >= 30 * BS_NS_PER_MS);
	assert_int_equal(pthread_create(&t, NULL, open_later, &l), 0);
	assert_true(bs_latch_wait_for(&l, 60 * BS_NS_PER_S));
	assert_int_equal(pthread_join(t, NULL), 0);
	bs_latch_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(who_waits_goes_on_when_it_opens),
		UNIT_TEST(who_waits_no_longer_than_so_much_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
