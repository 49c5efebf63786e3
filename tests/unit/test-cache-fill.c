/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The miss path against repositories that fail in every way they can. (Over real
 * servers it is tested in tests/integration.)
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "cache-fake.h"
#include "cache/origin.h"
#include "net/loop.h"
#include "net/repo.h"

static char dead_name[] = "dead";

static int set_up(void **state)
{
	return set_up_with(20 * BS_NS_PER_S, false);
}

static int set_up_impatient(void **state)
{
	return set_up_with(300 * BS_NS_PER_MS, false);
}

static int completed; /* 1, or the failure; 0: not yet */

static void note_completed(void *cookie, int result)
{
	__atomic_store_n(&completed, result == 0 ? 1 : result, __ATOMIC_RELEASE);
}

static void wait_completed(void)
{
	for (int i = 0; i < 10000 && !__atomic_load_n(&completed, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	assert_int_equal(completed, 1);
	assert_true(bs_blob_complete(blob));
}

/* --- the tests -------------------------------------------------------------------------------------- */

static void a_miss_is_fetched_once_and_then_a_hit(void **state)
{
	assert_int_equal(read_and_check(5000, 200000), 0);
	assert_int_equal(fakes[0].n_reads, 1); /* neighbours in one range */
	assert_int_equal(read_and_check(5000, 200000), 0);
	assert_int_equal(fakes[0].n_reads, 1);
	assert_true(stats().hits > 0);
	assert_int_equal(read_and_check(model.bytes - 1, 1), 0);
	assert_int_equal(read_and_check(0, 1), 0);
}

static void readers_share_and_never_see_a_fault(void **state)
{
	fakes[0].fail = -EBADMSG;
	fakes[0].n_fail = 40;
	fakes[1].fail = -EHOSTUNREACH;
	fakes[1].n_fail = 40;
	run_readers();
	assert_true(stats().retries > 0);
	assert_true(stats().bad_units > 0);
	assert_int_equal(stats().failed_reads, 0);
}

static void a_dead_first_source_is_asked_once(void **state)
{
	fakes[0].fail = -EHOSTUNREACH;
	fakes[0].n_fail = 1000000;
	completed = 0;
	assert_int_equal(read_and_check(0, 4096), 0);
	assert_int_equal(fakes[0].n_reads, 1);
	assert_int_equal(read_and_check(model.units[50].blob_off, 4096), 0);
	assert_int_equal(fakes[0].n_reads, 1); /* the second is remembered */
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	wait_completed();
	assert_int_equal(fakes[0].n_reads, 1);
}

static void what_gave_right_bytes_makes_no_room(void **state)
{
	struct fake many[2 * BS_ORIGIN_SOURCES_MAX] = { 0 };
	char names[BS_ARRAY_LEN(many)][8];
	struct bs_origin *o = bs_origin_new(bs_origin_data(origin));
	size_t n;

	for (size_t i = 0; i < BS_ARRAY_LEN(many); i++) {
		struct bs_repo *repo = &many[i].repo;

		(void)snprintf(names[i], sizeof(names[i]), "%zu", i);
		many[i] = (struct fake){ .repo = { &fake_ops, 1, names[i] } };
		bs_origin_add(o, &repo, 1);
		bs_origin_add(o, &repo, 1);
		if (i == 0 || i == BS_ORIGIN_SOURCES_MAX - 1)
			bs_origin_right(o, 0, i);
	}
	/* all but two were the last that gave nothing, in turn */
	for (size_t i = 0; i < BS_ORIGIN_SOURCES_MAX; i++) {
		struct bs_repo *repo = bs_origin_pick(o, i, &n);
		size_t want = i == BS_ORIGIN_SOURCES_MAX - 2 ? BS_ARRAY_LEN(many) - 1 : i;

		assert_int_equal(n, BS_ORIGIN_SOURCES_MAX);
		assert_string_equal(repo->name, names[want]);
		(void)bs_repo_unref(repo);
	}
	/* when each gave some, the last */
	for (size_t i = 0; i < BS_ORIGIN_SOURCES_MAX; i++)
		bs_origin_right(o, 0, i);
	bs_origin_add(o, &(struct bs_repo *){ &many[20].repo }, 1);
	assert_ptr_equal(bs_origin_pick(o, BS_ORIGIN_SOURCES_MAX - 1, &n), &many[20].repo);
	(void)bs_repo_unref(&many[20].repo);
	(void)bs_origin_unref(o);
}

static void a_new_start_takes_no_source_away(void **state)
{
	/* static: the origin has it until the end */
	static struct fake dead;
	struct bs_repo *repo = &dead.repo;
	size_t n;

	dead = (struct fake){ .repo = { &fake_ops, 1000, dead_name },
			      .fail = -EHOSTUNREACH,
			      .spoilt = UINT64_MAX,
			      .n_fail = 1000000 };
	bs_origin_add(origin, &repo, 1);
	bs_origin_add(origin, &repo, 1);
	(void)bs_repo_unref(bs_origin_pick(origin, 0, &n));
	assert_int_equal(n, 3);
	run_readers();
	assert_int_equal(dead.n_reads, 0);
	assert_int_equal(stats().failed_reads, 0);
}

static void all_sources_gone_and_back(void **state)
{
	fakes[0].fail = fakes[1].fail = -EHOSTUNREACH;
	fakes[0].n_fail = fakes[1].n_fail = 4;
	assert_int_equal(read_and_check(0, 4096), 0);
	assert_true(n_events >= 1);
}

static void a_deadline_ends_a_read_and_the_next_one_heals(void **state)
{
	fakes[0].fail = fakes[1].fail = -ETIMEDOUT;
	fakes[0].n_fail = fakes[1].n_fail = 1000000;
	assert_int_equal(read_and_check(0, 4096), -EIO);
	assert_int_equal(stats().failed_reads, 1);
	fakes[0].n_fail = 0;
	assert_int_equal(read_and_check(0, 4096), 0);
}

/* Both sources give these bytes wrong, for good or until it is UINT64_MAX. */
static void spoil(uint64_t off)
{
	__atomic_store_n(&fakes[0].spoilt, off, __ATOMIC_RELEASE);
	__atomic_store_n(&fakes[1].spoilt, off, __ATOMIC_RELEASE);
}

static int n_reads(void)
{
	return __atomic_load_n(&fakes[0].n_reads, __ATOMIC_RELAXED) +
	       __atomic_load_n(&fakes[1].n_reads, __ATOMIC_RELAXED);
}

static void wrong_bytes_everywhere_fail_that_unit_alone(void **state)
{
	const struct bs_unit *u = &model.units[9];
	uint64_t start;
	int asked, told;

	spoil(u->blob_off + u->blob_len / 2);
	/* in the midst of others, which come with it */
	assert_int_equal(read_and_check(model.units[5].blob_off, 500000), -EIO);
	start = bs_clock_ns();
	asked = n_reads();
	told = n_events;
	assert_in_range(asked, 6, 7);
	/* each page of it: at once, without asking, without a word */
	for (uint64_t off = u->blob_off; off < u->blob_off + u->blob_len; off += 4096)
		assert_int_equal(read_and_check(off, 4096), -EIO);
	assert_int_equal(read_and_check(model.units[8].blob_off, 4096), 0);
	assert_int_equal(read_and_check(model.units[10].blob_off, 4096), 0);
	assert_int_equal(n_reads(), asked);
	assert_int_equal(n_events, told);
	/* then it is asked for again, and not again for twice as long */
	while (bs_clock_ns() < start + WRONG_WAIT_NS)
		usleep(1000);
	assert_int_equal(read_and_check(u->blob_off, 4096), -EIO);
	assert_int_equal(n_reads(), asked + 6);
	spoil(UINT64_MAX);
	usleep(WRONG_WAIT_NS * 3 / 2 / 1000);
	assert_int_equal(read_and_check(u->blob_off, 4096), -EIO);
	assert_int_equal(n_reads(), asked + 6);
	usleep(WRONG_WAIT_NS / 1000);
	assert_int_equal(read_and_check(u->blob_off, 4096), 0);
}

static void a_new_source_is_asked_for_what_was_wrong(void **state)
{
	/* static: the origin has it until the end */
	static struct fake good;
	struct bs_repo *repo = &good.repo;

	good = (struct fake){ .repo = { &fake_ops, 1000, dead_name }, .spoilt = UINT64_MAX };
	spoil(model.units[9].blob_off);
	assert_int_equal(read_and_check(model.units[9].blob_off, 4096), -EIO);
	assert_true(bs_origin_is_wrong(origin, 9));
	bs_origin_add(origin, &repo, 1);
	assert_int_equal(read_and_check(model.units[9].blob_off, 4096), 0);
	assert_false(bs_origin_is_wrong(origin, 9));
}

/* All but that unit are fetched, it is asked for now and then, and completed when it heals. */
static void a_completion_goes_round_what_is_wrong(void **state)
{
	spoil(model.units[9].blob_off);
	completed = 0;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	for (int i = 0; i < 10000 && bs_blob_n_present(blob) < MODEL_UNITS - 1; i++)
		usleep(1000);
	assert_int_equal(bs_blob_n_present(blob), MODEL_UNITS - 1);
	wait_quiet();
	assert_true(n_reads() < 60);
	spoil(UINT64_MAX);
	wait_completed();
}

static void no_more_is_remembered_than_there_is_room_for(void **state)
{
	for (uint32_t i = 0; i < 2 * BS_ORIGIN_WRONG_MAX; i++)
		bs_origin_wrong(origin, i, BS_NS_PER_S);
	assert_true(bs_origin_is_wrong(origin, BS_ORIGIN_WRONG_MAX - 1));
	assert_false(bs_origin_is_wrong(origin, BS_ORIGIN_WRONG_MAX));
	for (uint32_t i = 0; i < 2 * BS_ORIGIN_WRONG_MAX; i++)
		bs_origin_right(origin, i, 0);
	assert_false(bs_origin_is_wrong(origin, 0));
}

static void cut_bodies_are_no_wrong_bytes(void **state)
{
	fakes[0].fail = fakes[1].fail = -EBADMSG;
	fakes[0].cut = fakes[1].cut = true;
	fakes[0].n_fail = fakes[1].n_fail = 5;
	assert_int_equal(read_and_check(0, 4096), 0);
	assert_int_equal(stats().failed_reads, 0);
}

static void what_came_of_a_broken_range_is_kept(void **state)
{
	const uint32_t first = 16, n = 8;
	uint64_t len = model.units[first + n].blob_off - model.units[first].blob_off, right = 0;

	fakes[0].fail = -ETIMEDOUT;
	fakes[0].keep = SIZE_MAX;
	fakes[0].n_fail = 1;
	assert_int_equal(read_and_check(model.units[first].blob_off, (uint32_t)len), 0);
	for (uint32_t i = first; right + model.units[i].data_len <= len / 2; i++)
		right += model.units[i].data_len;
	assert_true(right > 0);
	assert_int_equal(fakes[0].n_bytes, len);
	assert_int_equal(fakes[1].n_bytes, len - right);
	assert_int_equal(stats().fetched_units, n);
	/* of another lane, and wherever it breaks */
	fakes[0].n_fail = fakes[1].n_fail = 20;
	fakes[1].fail = -ETIMEDOUT;
	fakes[1].keep = 70000;
	completed = 0;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	run_readers();
	wait_completed();
	assert_int_equal(stats().failed_reads, 0);
	assert_int_equal(stats().fetched_units, MODEL_UNITS);
}

static void a_full_disk_is_served_from_memory(void **state)
{
	/* a descriptor that cannot be written: every store fails */
	bs_autofd int null = open("/dev/full", O_RDWR | O_CLOEXEC);

	assert_true(dup2(null, bs_blob_fd(blob)) >= 0);
	assert_int_equal(read_and_check(0, 100000), 0);
	assert_int_equal(read_and_check(0, 100000), 0);
	assert_true(stats().unstored_units > 0);
	assert_int_equal(bs_blob_n_present(blob), 0);
}

static void a_full_disk_ends_a_completion(void **state)
{
	bs_autofd int null = open("/dev/full", O_RDWR | O_CLOEXEC);

	assert_true(dup2(null, bs_blob_fd(blob)) >= 0);
	completed = 0;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	for (int i = 0; i < 10000 && !__atomic_load_n(&completed, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	assert_int_equal(completed, -ENOSPC);
	/* told once, not fetched again and again */
	assert_true(fakes[0].n_reads <= 20);
}

static void the_background_completes_whatever_happens(void **state)
{
	completed = 0;
	fakes[0].fail = -EBADMSG;
	fakes[0].n_fail = 5;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	run_readers();
	wait_completed();
	assert_int_equal(stats().failed_reads, 0);
}

static void demand_joins_what_is_on_the_wire(void **state)
{
	pthread_t t[8];

	completed = 0;
	fakes[0].hold = 1;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, reader_main, (void *)(i + 1)), 0);
	usleep(50000);
	__atomic_store_n(&fakes[0].hold, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	wait_completed();
	assert_true(stats().joined > 0);
}

/* --- a second image with the same units, of which it has every second one ---------------------- */

static char dir2[sizeof(MODEL_DIR)];
static struct bs_blob *other;

static bool alias(void *cookie, uint32_t i, struct bs_blob **ret_blob, uint32_t *ret_unit)
{
	*ret_blob = other;
	*ret_unit = i;
	return true;
}

static int n_scratches;

static void *scratch_of_three(void)
{
	return n_scratches++ < 2 ? malloc(1) : NULL;
}

/* One that could not run would be waited for, for ever. */
static void an_unpacker_without_memory_is_no_unpacker(void **state)
{
	const struct bs_fill_options o = { .loop = loop,
					   .n_unpackers = 3,
					   .read_wait_ns = BS_NS_PER_S,
					   .scratch_new = scratch_of_three,
					   .scratch_free = free };
	struct bs_fill *f = NULL;

	n_scratches = 0;
	assert_int_equal(bs_fill_new(&o, &f, NULL), -ENOMEM);
	assert_null(f);
}

/* What a builder of packs misses: no reader's fetch, and of that unit alone. */
static void who_is_in_no_hurry_is_nobodys_demand(void **state)
{
	uint8_t *unit = malloc(BS_UNIT_BYTES_MAX), *want = malloc(BS_UNIT_BYTES_MAX);
	const struct bs_unit *u = &model.units[7];
	struct bs_error err = BS_ERROR_INIT;

	model_content(u->blob_off, want, u->blob_len);
	/* the first source fails, the next one gives wrong bytes, then it is right */
	fakes[0].fail = -ETIMEDOUT;
	fakes[0].n_fail = 3;
	fakes[1].fail = -EBADMSG;
	fakes[1].n_fail = 1;
	assert_int_equal(bs_fill_bring(fill, blob, origin, 7, NULL, unit, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "two: wrong bytes"));
	assert_false(bs_blob_has(blob, 7));
	assert_int_equal(bs_fill_bring(fill, blob, origin, 7, NULL, unit, &err), 0);
	assert_memory_equal(unit, want, u->blob_len);
	assert_int_equal(fakes[0].n_lane[BS_LANE_BACKGROUND], 2);
	assert_int_equal(fakes[1].n_lane[BS_LANE_BACKGROUND], 2);
	/* it is here now, and nothing else is */
	memset(unit, 0, u->blob_len);
	assert_int_equal(bs_fill_bring(fill, blob, origin, 7, NULL, unit, &err), 0);
	assert_memory_equal(unit, want, u->blob_len);
	assert_int_equal(fakes[0].n_reads + fakes[1].n_reads, 4);
	assert_int_equal(bs_blob_n_present(blob), 1);
	assert_int_equal(stats().fetched_units, 1);
	assert_int_equal(stats().reads + stats().misses, 0);
	assert_int_equal(read_and_check(u->blob_off, u->blob_len), 0);
	free(unit);
	free(want);
}

static void equal_units_are_copied_not_fetched(void **state)
{
	static struct bs_blob_ops ops;
	uint8_t *unit = malloc(BS_UNIT_BYTES_MAX);
	int fd;

	fd = model_dir_make(dir2);
	assert_int_equal(bs_blob_open(fd, &geometry, 1, &other, NULL), 0);
	for (uint32_t i = 0; i < MODEL_UNITS; i += 2) {
		model_content(model.units[i].blob_off, unit, model.units[i].blob_len);
		assert_int_equal(bs_blob_store(other, i, unit), 0);
	}
	bs_blob_free(blob);
	ops = model_ops;
	ops.alias = alias;
	geometry.ops = &ops;
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 1, &blob, NULL), 0);
	assert_int_equal(read_and_check(model.units[10].blob_off, 4096), 0);
	assert_int_equal(fakes[0].n_reads, 0);
	assert_int_equal(stats().copied_units, 1);
	/* bytes of the other that went bad on the disk are not taken */
	memset(unit, 0, 4096);
	assert_int_equal(pwrite(bs_blob_fd(other), unit, 4096, (off_t)model.units[12].blob_off),
			 4096);
	assert_int_equal(read_and_check(model.units[12].blob_off, 4096), 0);
	assert_int_equal(fakes[0].n_reads, 1);
	completed = 0;
	assert_int_equal(bs_fill_complete(fill, blob, origin, note_completed, NULL), 0);
	wait_completed();
	assert_int_equal(stats().copied_units, MODEL_UNITS / 2 - 1);
	assert_int_equal(stats().fetched_units, MODEL_UNITS / 2 + 1);
	other = bs_blob_free(other);
	assert_int_equal(model_dir_remove(dir2, fd), 0);
	free(unit);
}

static void the_window_is_what_a_round_trip_carries(void **state)
{
	const uint64_t ms = BS_NS_PER_MS;

	assert_int_equal(bs_origin_ahead(origin), BS_ORIGIN_AHEAD_FIRST);
	for (int i = 0; i < 20; i++)
		bs_origin_learn(origin, 1 << 20, 40 * ms, 3 * ms);
	assert_int_equal(bs_origin_ahead(origin), BS_ORIGIN_AHEAD_MAX);
	/* waits behind other ranges say nothing */
	for (int i = 0; i < 20; i++)
		bs_origin_learn(origin, 1 << 20, i == 0 ? 2 * ms : 100 * ms, 9 * ms);
	assert_int_equal(bs_origin_ahead(origin), BS_ORIGIN_AHEAD_MIN);
	/* a source on this machine */
	for (int i = 0; i < 20; i++)
		bs_origin_learn(origin, 1 << 20, 0, 1);
	assert_int_equal(bs_origin_ahead(origin), BS_ORIGIN_AHEAD_MIN);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_miss_is_fetched_once_and_then_a_hit),
		CASE(readers_share_and_never_see_a_fault),
		CASE(all_sources_gone_and_back),
		CASE(a_dead_first_source_is_asked_once),
		CASE(what_gave_right_bytes_makes_no_room),
		CASE(a_new_start_takes_no_source_away),
		CASE(a_full_disk_ends_a_completion),
		cmocka_unit_test_setup_teardown(a_deadline_ends_a_read_and_the_next_one_heals,
						set_up_impatient, tear_down),
		CASE(wrong_bytes_everywhere_fail_that_unit_alone),
		CASE(a_new_source_is_asked_for_what_was_wrong),
		CASE(a_completion_goes_round_what_is_wrong),
		CASE(no_more_is_remembered_than_there_is_room_for),
		CASE(cut_bodies_are_no_wrong_bytes),
		CASE(what_came_of_a_broken_range_is_kept),
		CASE(a_full_disk_is_served_from_memory),
		CASE(the_background_completes_whatever_happens),
		CASE(demand_joins_what_is_on_the_wire),
		CASE(an_unpacker_without_memory_is_no_unpacker),
		CASE(who_is_in_no_hurry_is_nobodys_demand),
		CASE(equal_units_are_copied_not_fetched),
		CASE(the_window_is_what_a_round_trip_carries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
