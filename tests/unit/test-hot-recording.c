/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/rmtree.h"
#include "hot/profile.h"
#include "hot/recording.h"

#define BLOCK UINT64_C(4096)
#define BLOCKS 1000u

static char dir[32];
static int dirfd_;

static int set_up(void **state)
{
	strcpy(dir, "/tmp/bootseer-unit-XXXXXX");
	dirfd_ = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return dirfd_ < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)bs_close(dirfd_);
	return bs_rmtree(AT_FDCWD, dir);
}

static struct bs_recording *open_recording(uint64_t window_ns)
{
	struct bs_recording *r = NULL;

	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, window_ns, &r, NULL), 0);
	return r;
}

static struct bs_profile_event *events(struct bs_recording *r, size_t *ret_n)
{
	struct bs_profile_event *e = NULL;
	uint32_t window;

	assert_int_equal(bs_recording_events(r, &e, ret_n, &window, NULL), 0);
	return e;
}

static void first_uses_are_kept_in_order(void **state)
{
	bs_auto(recording) struct bs_recording *r = open_recording(100 * BS_NS_PER_S);
	bs_autofree struct bs_profile_event *e = NULL;
	size_t n;

	bs_recording_note(r, 10 * BLOCK, 2 * BLOCK);
	bs_recording_note(r, 10 * BLOCK + 5, 10); /* again */
	bs_recording_note(r, 11 * BLOCK, 3 * BLOCK);
	bs_recording_note(r, 5 * BLOCK + 4095, 2); /* over a border */
	bs_recording_note(r, 999 * BLOCK, BLOCK);
	bs_recording_note(r, 999 * BLOCK, BLOCK + 1); /* beyond the blob */
	bs_recording_note(r, 0, 0);
	e = events(r, &n);
	assert_int_equal(n, 4);
	assert_int_equal(e[0].block, 10);
	assert_int_equal(e[0].n_blocks, 2);
	assert_int_equal(e[1].block, 12);
	assert_int_equal(e[1].n_blocks, 2);
	assert_int_equal(e[2].block, 5);
	assert_int_equal(e[2].n_blocks, 2);
	assert_int_equal(e[3].block, 999);
	assert_true(e[3].at_ms >= e[0].at_ms);
}

static void it_goes_on_after_a_restart(void **state)
{
	struct bs_recording *r = open_recording(100 * BS_NS_PER_S);
	bs_autofree struct bs_profile_event *e = NULL;
	int fd;
	size_t n;

	bs_recording_note(r, 10 * BLOCK, 2 * BLOCK);
	bs_recording_note(r, 50 * BLOCK, 2 * BLOCK);
	bs_recording_free(r);
	fd = openat(dirfd_, "rec", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "cut", 3), 3); /* the writer was killed in mid-write */
	close(fd);
	r = open_recording(1 * BS_NS_PER_S);
	bs_recording_note(r, 11 * BLOCK, BLOCK);
	bs_recording_note(r, 12 * BLOCK, BLOCK);
	e = events(r, &n);
	assert_int_equal(n, 3);
	assert_int_equal(e[2].block, 12);
	bs_recording_free(r);
}

static void what_is_no_recording_is_begun_anew(void **state)
{
	static const char *const wrong[] = { "", "x", "bs-rec1\n",
					     "0123456789012345678901234567890123456789"
					     "0123456789012345678901234567890123456789" };

	for (size_t i = 0; i < BS_ARRAY_LEN(wrong); i++) {
		bs_auto(recording) struct bs_recording *r = NULL;
		bs_autofree struct bs_profile_event *e = NULL;
		int fd = openat(dirfd_, "rec", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		size_t n;

		assert_int_equal(write(fd, wrong[i], strlen(wrong[i])), strlen(wrong[i]));
		close(fd);
		r = open_recording(100 * BS_NS_PER_S);
		bs_recording_note(r, 0, 1);
		e = events(r, &n);
		assert_int_equal(n, 1);
	}
}

static void only_one_that_is_there_is_gone_on_with(void **state)
{
	struct bs_recording *r;

	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, BS_NS_PER_S, &r, NULL), 0);
	bs_recording_note(r, 4096, 4096);
	bs_recording_free(r);
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, 0, &r, NULL), 0);
	assert_false(bs_recording_over(r));
	bs_recording_stop(r);
	bs_recording_free(r);
	/* also for the next one it is over */
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, 0, &r, NULL), 0);
	usleep(2000);
	assert_true(bs_recording_over(r));
	bs_recording_free(r);
	/* that of another image, or of another boot, whose clock says nothing now */
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS + 1, 7, 0, &r, NULL), -ENODATA);
	assert_int_equal(faccessat(dirfd_, "rec", F_OK, 0), -1);
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, BS_NS_PER_S, &r, NULL), 0);
	bs_recording_free(r);
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 8, 0, &r, NULL), -ENODATA);
	assert_int_equal(bs_recording_open(dirfd_, "rec", BLOCKS, 7, 0, &r, NULL), -ENODATA);
	assert_int_equal(faccessat(dirfd_, "rec", F_OK, 0), -1);
}

static void nothing_is_noted_after_the_end(void **state)
{
	bs_auto(recording) struct bs_recording *r = open_recording(50 * BS_NS_PER_MS);
	bs_autofree struct bs_profile_event *e = NULL, *later = NULL;
	size_t n;

	assert_false(bs_recording_over(r));
	bs_recording_note(r, 0, BLOCK);
	usleep(60000);
	assert_true(bs_recording_over(r));
	bs_recording_note(r, BLOCK, BLOCK);
	e = events(r, &n);
	assert_int_equal(n, 1);
	bs_recording_free(bs_take(&r));
	(void)unlinkat(dirfd_, "rec", 0);
	r = open_recording(100 * BS_NS_PER_S);
	bs_recording_stop(r);
	assert_true(bs_recording_over(r));
	bs_recording_note(r, BLOCK, BLOCK);
	later = events(r, &n);
	assert_int_equal(n, 0);
}

static struct bs_recording *shared;

static void *note_main(void *arg)
{
	for (uint64_t b = 0; b < BLOCKS; b++)
		bs_recording_note(shared, (b * 7 + (uintptr_t)arg * 13) % BLOCKS * BLOCK, BLOCK);
	return NULL;
}

static void many_threads_note_each_block_once(void **state)
{
	bs_autofree struct bs_profile_event *e = NULL;
	static uint8_t times[BLOCKS];
	pthread_t t[4];
	size_t n;

	shared = open_recording(100 * BS_NS_PER_S);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, note_main, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	e = events(shared, &n);
	assert_int_equal(n, BLOCKS);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(times[e[i].block]++, 0);
	bs_recording_free(shared);
}

#define RECORDING_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDING_TEST(first_uses_are_kept_in_order),
		RECORDING_TEST(it_goes_on_after_a_restart),
		RECORDING_TEST(what_is_no_recording_is_begun_anew),
		RECORDING_TEST(only_one_that_is_there_is_gone_on_with),
		RECORDING_TEST(nothing_is_noted_after_the_end),
		RECORDING_TEST(many_threads_note_each_block_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
