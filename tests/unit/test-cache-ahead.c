/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What is fetched around misses, and ahead of who reads in sequence. */
#include "cache-fake.h"

static int set_up_ahead(void **state)
{
	return set_up_with(20 * BS_NS_PER_S, true);
}

/* 105 is as long as a unit can be: a file may go on in 106. */
static void what_lies_around_a_miss_comes_in_the_same_request(void **state)
{
	const uint32_t unit = 106;

	assert_int_equal(read_and_check(model.units[unit].blob_off, 1), 0);
	wait_quiet();
	assert_int_equal(fakes[0].n_reads, 1);
	assert_true(bs_blob_has(blob, unit - 1) && bs_blob_has(blob, unit + 1));
	assert_false(bs_blob_has(blob, unit - 2));
	assert_int_equal(fakes[0].n_bytes, stats().fetched_bytes);
	/* what came is no miss, and nothing of it comes again */
	assert_int_equal(read_and_check(model.units[unit - 1].blob_off, 1), 0);
	assert_int_equal(read_and_check(model.units[unit + 1].blob_off, 1), 0);
	assert_int_equal(fakes[0].n_reads, 1);
	run_readers();
	wait_quiet();
	assert_int_equal(stats().failed_reads, 0);
	assert_int_equal(fakes[0].n_bytes, stats().fetched_bytes);
}

static void no_more_than_the_way_carries_is_brought(void **state)
{
	assert_int_equal(read_and_check(model.units[50].blob_off, 1), 0);
	wait_quiet();
	assert_true(fakes[0].n_bytes > model.units[50].data_len);
	assert_true(fakes[0].n_bytes <= model.units[50].data_len + 6 * BS_ORIGIN_AHEAD_FIRST);
}

static void *read_one(void *arg)
{
	return (void *)(intptr_t)read_and_check(model.units[(uintptr_t)arg].blob_off, 1);
}

/* The range comes to a stop behind the unit that was asked for. */
static void who_asked_does_not_wait_for_what_comes_along(void **state)
{
	const uint32_t unit = 100;
	void *result;
	pthread_t t;

	fakes[0].stop = model.units[unit].data_len + 50000;
	assert_int_equal(read_and_check(model.units[unit].blob_off, 1), 0);
	assert_int_equal(fakes[0].n_open, 1);
	assert_false(bs_blob_has(blob, unit + 4));
	/* who wants the rest waits for it, and asks for nothing */
	assert_int_equal(pthread_create(&t, NULL, read_one, (void *)(uintptr_t)(unit + 4)), 0);
	while (stats().joined == 0)
		usleep(1000);
	assert_false(bs_blob_has(blob, unit + 4));
	__atomic_store_n(&fakes[0].stop, 0, __ATOMIC_RELEASE);
	pthread_join(t, &result);
	assert_null(result);
	assert_int_equal(fakes[0].n_reads, 1);
}

static void of_a_failed_range_only_what_was_asked_for_is_tried_again(void **state)
{
	fakes[0].fail = -ETIMEDOUT;
	fakes[0].n_fail = 1;
	assert_int_equal(read_and_check(model.units[100].blob_off, 1), 0);
	wait_quiet();
	assert_true(fakes[0].n_bytes > model.units[100].data_len);
	assert_int_equal(fakes[1].n_bytes, model.units[100].data_len);
	assert_int_equal(stats().fetched_units, 1);
	assert_int_equal(stats().retries, 1);
	/* what had come before it broke off is kept */
	fakes[0].keep = SIZE_MAX;
	fakes[0].n_fail = fakes[1].n_fail = 1;
	fakes[1].fail = -ETIMEDOUT;
	fakes[1].keep = SIZE_MAX;
	assert_int_equal(read_and_check(model.units[50].blob_off, 1), 0);
	wait_quiet();
	assert_true(stats().fetched_units > 2);
	assert_int_equal(stats().failed_reads, 0);
}

static void a_wrong_unit_that_came_along_spoils_no_other(void **state)
{
	const uint32_t unit = 100;

	fakes[0].spoilt = model.units[unit + 1].blob_off;
	assert_int_equal(read_and_check(model.units[unit].blob_off, 1), 0);
	wait_quiet();
	assert_int_equal(fakes[0].n_reads, 1);
	assert_int_equal(fakes[1].n_bytes, model.units[unit + 1].data_len);
	assert_true(bs_blob_has(blob, unit + 1) && bs_blob_has(blob, unit + 2));
	assert_int_equal(stats().bad_units, 1);
	/* nor one that was asked for */
	fakes[1].spoilt = model.units[50].blob_off;
	assert_int_equal(read_and_check(model.units[50].blob_off, 1), 0);
	wait_quiet();
	assert_true(bs_blob_has(blob, 51));
	assert_int_equal(stats().failed_reads, 0);
}

static uint32_t n_present_of(uint32_t from, uint32_t n)
{
	uint32_t present = 0;

	for (uint32_t i = from; i < from + n; i++)
		present += bs_blob_has(blob, i);
	return present;
}

static void read_unit(uint32_t unit)
{
	assert_int_equal(read_and_check(model.units[unit].blob_off, model.units[unit].blob_len), 0);
}

static void wait_present_of(uint32_t from, uint32_t n)
{
	for (int i = 0; i < 5000 && n_present_of(from, n) < n; i++)
		usleep(1000);
	assert_int_equal(n_present_of(from, n), n);
}

static void a_scan_is_run_ahead_of_by_what_it_went_through(void **state)
{
	const uint32_t from = 20;

	for (uint32_t i = 0; i < 16; i++)
		read_unit(from + i);
	/* windows are filled by quarters, so some of the last may not have been asked for yet */
	wait_present_of(from + 16, 12);
	wait_quiet();
	/* nor was more, but for what lies around the first reads */
	assert_true(n_present_of(0, MODEL_UNITS) <= 32 + 8);
	for (uint32_t i = 16; from + i < MODEL_UNITS; i++)
		read_unit(from + i);
	wait_quiet();
	/* everything once, in few ranges */
	assert_int_equal(stats().fetched_units, n_present_of(0, MODEL_UNITS));
	assert_true(fakes[0].n_reads + fakes[1].n_reads < 60);
}

static void two_scans_and_one_who_reads_at_random(void **state)
{
	for (uint32_t i = 0; i < 60; i++) {
		read_unit(i);
		read_unit(80 + (i ^ 1)); /* a little out of order */
		read_unit(150 + i * 7 % 40);
	}
	/* of 160 units: a request each if nothing knew a scan */
	assert_true(fakes[0].n_reads + fakes[1].n_reads < 125);
	assert_int_equal(stats().failed_reads, 0);
}

/* Of a blob that a pack told of: a single miss brings its own unit, a second one behind it more. */
static void only_who_reads_on_is_read_ahead_for_after_a_pack(void **state)
{
	const uint32_t unit = 100;
	uint8_t block[4096];

	model_content(0, block, sizeof(block));
	assert_int_equal(bs_blob_store_blocks(blob, 0, 1, block), 0);
	assert_int_equal(read_and_check(model.units[unit].blob_off, 1), 0);
	usleep(50000);
	assert_int_equal(stats().fetched_units, 1);
	assert_int_equal(read_and_check(model.units[unit + 1].blob_off, 1), 0);
	for (int i = 0; i < 5000 && stats().fetched_units < 3; i++)
		usleep(1000);
	assert_true(stats().fetched_units >= 3);
	assert_true(bs_blob_has(blob, unit + 2));
	assert_false(bs_blob_has(blob, unit - 1));
}

static void ahead_of_readers_faults_do_no_harm(void **state)
{
	fakes[0].fail = -EBADMSG;
	fakes[0].n_fail = 40;
	fakes[1].fail = -EHOSTUNREACH;
	fakes[1].n_fail = 40;
	run_readers();
	assert_int_equal(stats().failed_reads, 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up_ahead, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(what_lies_around_a_miss_comes_in_the_same_request),
		CASE(no_more_than_the_way_carries_is_brought),
		CASE(who_asked_does_not_wait_for_what_comes_along),
		CASE(of_a_failed_range_only_what_was_asked_for_is_tried_again),
		CASE(a_wrong_unit_that_came_along_spoils_no_other),
		CASE(a_scan_is_run_ahead_of_by_what_it_went_through),
		CASE(two_scans_and_one_who_reads_at_random),
		CASE(only_who_reads_on_is_read_ahead_for_after_a_pack),
		CASE(ahead_of_readers_faults_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
