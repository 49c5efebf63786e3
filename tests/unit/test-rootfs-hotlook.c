/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rootfs/hotlook.h"

static struct bs_hotlook look;

static uint64_t in_ms(uint64_t ms)
{
	return bs_clock_ns() + ms * BS_NS_PER_MS;
}

static void no_more_than_max_are_at_it(void **state)
{
	struct bs_hotlook_turn a, b, c, d;
	char same[] = "host";
	uint64_t start;

	bs_hotlook_init(&look);
	assert_true(bs_hotlook_begin(&look, &a, "host", 2, in_ms(0)));
	assert_true(bs_hotlook_begin(&look, &b, same, 2, in_ms(0)));
	start = bs_clock_ns();
	assert_false(bs_hotlook_begin(&look, &c, "host", 2, in_ms(100)));
	assert_true(bs_clock_ns() - start >= 100 * BS_NS_PER_MS);
	assert_true(bs_clock_ns() - start < 5 * BS_NS_PER_S);
	assert_true(bs_hotlook_begin(&look, &d, "other", 1, in_ms(0)));
	bs_hotlook_end(&look, &a);
	assert_true(bs_hotlook_begin(&look, &c, "host", 2, in_ms(0)));
	bs_hotlook_end(&look, &b);
	bs_hotlook_end(&look, &c);
	bs_hotlook_end(&look, &d);
}

static void *end_main(void *arg)
{
	usleep(100000);
	bs_hotlook_end(&look, arg);
	return NULL;
}

static void who_waits_goes_on_when_another_ends(void **state)
{
	struct bs_hotlook_turn a, b;
	uint64_t start = bs_clock_ns();
	pthread_t t;

	bs_hotlook_init(&look);
	assert_true(bs_hotlook_begin(&look, &a, "host", 1, in_ms(0)));
	assert_int_equal(pthread_create(&t, NULL, end_main, &a), 0);
	assert_true(bs_hotlook_begin(&look, &b, "host", 1, in_ms(20000)));
	assert_true(bs_clock_ns() - start < 10 * BS_NS_PER_S);
	bs_hotlook_end(&look, &b);
	assert_int_equal(pthread_join(t, NULL), 0);
}

static void sources_of_a_host_are_one_place(void **state)
{
	char buf[BS_HOTLOOK_HOST_LEN];

	assert_string_equal(bs_hotlook_host("docker://host:5000/a/b", buf), "host:5000");
	assert_string_equal(bs_hotlook_host("docker://host", buf), "host");
	assert_string_equal(bs_hotlook_host("oci:/dir/a", buf), "oci:/dir/a");
	assert_string_equal(bs_hotlook_host("hdfs://c/images/a", buf), "hdfs://c");
	assert_string_equal(bs_hotlook_host("hdfs:///images/a", buf), "hdfs://");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(no_more_than_max_are_at_it),
		UNIT_TEST(sources_of_a_host_are_one_place),
		UNIT_TEST(who_waits_goes_on_when_another_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
