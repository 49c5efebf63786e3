/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cache-model.h"

static struct model model;
static struct bs_blob_geometry geometry;
static char dir[sizeof(MODEL_DIR)];
static int dirfd_;
static uint8_t unit[BS_UNIT_BYTES_MAX];

static int set_up(void **state)
{
	model_init(&model, &geometry);
	dirfd_ = model_dir_make(dir);
	return dirfd_ < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	return model_dir_remove(dir, dirfd_);
}

static struct bs_blob *open_blob(uint64_t epoch)
{
	struct bs_blob *b = NULL;

	assert_int_equal(bs_blob_open(dirfd_, &geometry, epoch, &b, NULL), 0);
	return b;
}

static void store(struct bs_blob *b, uint32_t i)
{
	model_content(model.units[i].blob_off, unit, model.units[i].blob_len);
	assert_int_equal(bs_blob_store(b, i, unit), 0);
}

static void what_was_stored_is_there(void **state)
{
	bs_auto(blob) struct bs_blob *b = open_blob(1);
	uint8_t got[100];

	assert_int_equal(bs_blob_next_missing(b, 0), 0);
	store(b, 0);
	store(b, 3);
	store(b, MODEL_UNITS - 1);
	assert_true(bs_blob_has(b, 3));
	assert_false(bs_blob_has(b, 4));
	assert_int_equal(bs_blob_n_present(b), 3);
	assert_int_equal(bs_blob_next_missing(b, 0), 1);
	assert_int_equal(bs_blob_next_missing(b, 3), 4);
	assert_int_equal(bs_blob_next_missing(b, MODEL_UNITS - 1), MODEL_UNITS);
	assert_int_equal(bs_blob_read_range(b, model.units[3].blob_off + 5, got, sizeof(got)), 0);
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], model_byte(model.units[3].blob_off + 5 + i));
	assert_int_equal(bs_blob_finish(b, NULL, unit), -EAGAIN);
}

static void the_same_epoch_is_believed_another_is_proven(void **state)
{
	struct bs_blob *b = open_blob(1);

	store(b, 7);
	bs_blob_free(b);
	b = open_blob(1);
	assert_true(bs_blob_has(b, 7));
	bs_blob_free(b);
	b = open_blob(2);
	assert_false(bs_blob_has(b, 7));
	assert_int_equal(bs_blob_n_present(b), 1);
	model.n_verified = 0;
	assert_true(bs_blob_check(b, 7, NULL, unit));
	assert_true(bs_blob_check(b, 7, NULL, unit));
	assert_int_equal(model.n_verified, 1);
	bs_blob_free(b);
}

/* A bit on the disk without its bytes, as after a power cut. */
static void a_stale_bit_never_gives_a_wrong_byte(void **state)
{
	struct bs_blob *b = open_blob(1);

	store(b, 7);
	assert_int_equal(fallocate(bs_blob_fd(b), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)model.units[7].blob_off, 4096),
			 0);
	bs_blob_free(b);
	b = open_blob(2);
	assert_false(bs_blob_check(b, 7, NULL, unit));
	assert_int_equal(bs_blob_n_present(b), 0);
	bs_blob_free(b);
}

static void a_cut_file_is_not_believed(void **state)
{
	bs_autofd int fd = -EBADF;
	struct bs_blob *b = open_blob(1);

	store(b, 7);
	store(b, 150);
	/* while it is open: the read says so, and the unit is fetched again */
	assert_int_equal(ftruncate(bs_blob_fd(b), (off_t)model.units[150].blob_off), 0);
	assert_int_equal(bs_blob_read_range(b, model.units[150].blob_off, unit, 4096), -ENODATA);
	assert_false(bs_blob_has(b, 150));
	bs_blob_free(b);
	/* while it was closed, within one epoch */
	b = open_blob(1);
	assert_false(bs_blob_has(b, 7));
	assert_true(bs_blob_check(b, 7, NULL, unit));
	bs_blob_free(b);
}

/* A file that was removed is made anew, all zeros, and none of them may be handed out. */
static void a_lost_file_is_not_believed(void **state)
{
	struct bs_blob *b = open_blob(1);

	store(b, 7);
	bs_blob_free(b);
	assert_int_equal(unlinkat(dirfd_, "blob", 0), 0);
	b = open_blob(1);
	assert_false(bs_blob_has(b, 7));
	assert_false(bs_blob_check(b, 7, NULL, unit));
	bs_blob_free(b);
}

static void a_complete_blob_is_believed_until_touched(void **state)
{
	struct bs_blob *b = open_blob(1);
	uint8_t byte = 0;

	for (uint32_t i = 0; i < MODEL_UNITS; i++)
		store(b, i);
	assert_false(bs_blob_complete(b));
	assert_int_equal(bs_blob_finish(b, NULL, unit), 0);
	assert_true(bs_blob_complete(b));
	bs_blob_free(b);
	model.n_verified = 0;
	b = open_blob(2);
	assert_true(bs_blob_complete(b));
	assert_true(bs_blob_has(b, 9));
	assert_int_equal(model.n_verified, 0);
	assert_int_equal(pwrite(bs_blob_fd(b), &byte, 1, 12345), 1);
	bs_blob_free(b);
	b = open_blob(3);
	assert_false(bs_blob_complete(b));
	assert_int_equal(bs_blob_finish(b, NULL, unit), -EAGAIN); /* the touched unit is wrong */
	bs_blob_free(b);
}

static void store_blocks(struct bs_blob *b, uint64_t first, uint32_t n)
{
	bs_autofree uint8_t *bytes = malloc(n * MODEL_BLOCK);

	model_content(first * MODEL_BLOCK, bytes, n * MODEL_BLOCK);
	assert_int_equal(bs_blob_store_blocks(b, first, n, bytes), 0);
}

static void blocks_are_there_alone_and_together(void **state)
{
	struct bs_blob *b = open_blob(1);
	uint64_t first = model.units[9].blob_off / MODEL_BLOCK; /* 32 blocks */
	uint64_t off = first * MODEL_BLOCK;
	uint8_t got[2 * MODEL_BLOCK];

	assert_int_equal(model.units[9].blob_len, 32 * MODEL_BLOCK);
	store_blocks(b, first + 3, 2);
	assert_true(bs_blob_has_range(b, off + 3 * MODEL_BLOCK + 7, MODEL_BLOCK));
	assert_false(bs_blob_has_range(b, off + 2 * MODEL_BLOCK, MODEL_BLOCK + 1));
	assert_false(bs_blob_has_range(b, off + 4 * MODEL_BLOCK, MODEL_BLOCK + 1));
	assert_int_equal(bs_blob_read_range(b, off + 3 * MODEL_BLOCK, got, sizeof(got)), 0);
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], model_byte(off + 3 * MODEL_BLOCK + i));
	assert_int_equal(bs_blob_read_range(b, off, got, sizeof(got)), -ENODATA);
	assert_false(bs_blob_has(b, 9));
	assert_int_equal(bs_blob_n_present(b), 0);
	assert_int_equal(bs_blob_next_missing(b, 9), 9);
	/* a range over the border of a unit that is there */
	store(b, 10);
	store_blocks(b, first + 31, 1);
	assert_true(bs_blob_has_range(b, off + 31 * MODEL_BLOCK, 2 * MODEL_BLOCK));
	/* the rest makes a whole unit of it */
	store_blocks(b, first, 3);
	assert_false(bs_blob_has(b, 9));
	store_blocks(b, first + 5, 26);
	assert_true(bs_blob_has(b, 9));
	assert_int_equal(bs_blob_n_present(b), 2);
	assert_int_equal(bs_blob_store_blocks(b, first, 4, unit), 1);
	bs_blob_free(b);
}

static void blocks_of_another_epoch_are_forgotten(void **state)
{
	uint64_t first = model.units[9].blob_off / MODEL_BLOCK;
	struct bs_blob *b = open_blob(1);

	store_blocks(b, first + 3, 2);
	bs_blob_free(b);
	b = open_blob(1);
	assert_true(bs_blob_has_range(b, (first + 3) * MODEL_BLOCK, 2 * MODEL_BLOCK));
	bs_blob_free(b);
	b = open_blob(2);
	assert_false(bs_blob_has_range(b, (first + 3) * MODEL_BLOCK, 1));
	bs_blob_free(b);
	b = open_blob(2);
	assert_false(bs_blob_has_range(b, (first + 3) * MODEL_BLOCK, 1));
	/* a cut file is found out by the read, and what was lost is forgotten */
	store_blocks(b, first + 3, 2);
	assert_int_equal(ftruncate(bs_blob_fd(b), (off_t)(first * MODEL_BLOCK)), 0);
	assert_int_equal(bs_blob_read_range(b, (first + 3) * MODEL_BLOCK, unit, 100), -ENODATA);
	assert_false(bs_blob_has_range(b, (first + 4) * MODEL_BLOCK, 1));
	bs_blob_free(b);
}

/* --- things that happen at once ------------------------------------------------------------- */

static struct bs_blob *hooked; /* what the hooks below act upon, once */

/* The file is cut for a moment, in which a read of the unit finds it out. */
static void lose_unit(struct bs_blob *b, uint32_t i)
{
	uint64_t off = model.units[i].blob_off, len = geometry.bytes - off;
	bs_autofree uint8_t *rest = malloc(len);
	uint8_t byte;

	model_content(off, rest, len);
	assert_int_equal(ftruncate(bs_blob_fd(b), (off_t)off), 0);
	assert_int_equal(bs_blob_read_range(b, off, &byte, 1), -ENODATA);
	assert_int_equal(pwrite(bs_blob_fd(b), rest, len, (off_t)off), (ssize_t)len);
}

/* Between the check of all units and the end of a completion one of them is lost. */
static int verify_and_lose(void *cookie, void *scratch, uint32_t i, const void *bytes)
{
	if (hooked && i == MODEL_UNITS - 1) {
		lose_unit(hooked, 3);
		hooked = NULL;
	}
	return model_verify(cookie, scratch, i, bytes);
}

static void a_unit_that_is_lost_during_completion_is_missed(void **state)
{
	struct bs_blob_ops ops = model_ops;
	struct bs_blob *b = open_blob(1);

	for (uint32_t i = 0; i < MODEL_UNITS; i++)
		store(b, i);
	bs_blob_free(b);
	ops.verify = verify_and_lose;
	geometry.ops = &ops;
	hooked = b = open_blob(2);
	assert_int_equal(bs_blob_finish(b, NULL, unit), -EAGAIN);
	assert_false(bs_blob_complete(b));
	assert_int_equal(bs_blob_next_missing(b, 0), 3);
	bs_blob_free(b);
	b = open_blob(3);
	assert_false(bs_blob_complete(b));
	store(b, 3);
	assert_int_equal(bs_blob_finish(b, NULL, unit), 0);
	/* a complete one that is found wrong is no complete one after a crash either */
	lose_unit(b, 3);
	bs_blob_free(b);
	b = open_blob(4);
	assert_false(bs_blob_complete(b));
	assert_false(bs_blob_has(b, 2));
	bs_blob_free(b);
}

/* bs_blob_finish with a file that cannot be synced in the place of blob. */
static int finish_on_a_bad_disk(struct bs_blob *b)
{
	bs_autofd int good = bs_dup(bs_blob_fd(b));
	bs_autofd int bad = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r;

	assert_true(dup2(bad, bs_blob_fd(b)) >= 0);
	r = bs_blob_finish(b, NULL, unit);
	assert_true(dup2(good, bs_blob_fd(b)) >= 0);
	return r;
}

static void what_could_not_be_synced_is_not_believed(void **state)
{
	struct bs_blob *b = open_blob(1);

	for (uint32_t i = 0; i < MODEL_UNITS; i++)
		store(b, i);
	assert_int_equal(finish_on_a_bad_disk(b), -EINVAL);
	assert_false(bs_blob_complete(b));
	assert_int_equal(bs_blob_n_present(b), 0);
	for (uint32_t i = 0; i < MODEL_UNITS; i++) {
		assert_false(bs_blob_has(b, i));
		assert_false(bs_blob_check(b, i, NULL, unit));
	}
	store(b, 7);
	assert_int_equal(bs_blob_n_present(b), 1);
	bs_blob_free(b);
	/* within the same epoch, too */
	b = open_blob(1);
	assert_false(bs_blob_has(b, 7));
	assert_true(bs_blob_check(b, 7, NULL, unit));
	for (uint32_t i = 0; i < MODEL_UNITS; i++) {
		if (i != 7)
			store(b, i);
	}
	assert_int_equal(bs_blob_finish(b, NULL, unit), 0);
	bs_blob_free(b);
}

static void unit_and_fail(void *cookie, uint32_t i, struct bs_unit *ret)
{
	struct bs_blob *b = hooked;

	hooked = NULL;
	model_unit(cookie, i, ret);
	if (b)
		assert_int_equal(finish_on_a_bad_disk(b), -EINVAL);
}

/* It may have been written before the sync and be told of after it. */
static void what_is_stored_while_a_sync_fails_is_not_believed(void **state)
{
	struct bs_blob_ops ops = model_ops;
	struct bs_blob *b;

	ops.unit = unit_and_fail;
	geometry.ops = &ops;
	b = open_blob(1);
	for (uint32_t i = 0; i < MODEL_UNITS; i++)
		store(b, i);
	hooked = b;
	assert_int_equal(bs_blob_store(b, 7, unit), -EIO);
	assert_int_equal(bs_blob_n_present(b), 0);
	assert_false(bs_blob_has(b, 7));
	store(b, 7);
	assert_true(bs_blob_has(b, 7));
	bs_blob_free(b);
}

struct race {
	struct bs_blob *b;
	uint32_t unit;
	int round; /* atomic: which may begin */
	int done;  /* atomic: of the other thread */
};

#define ROUNDS 30000

static void *store_main(void *arg)
{
	uint8_t bytes[MODEL_BLOCK];
	struct race *r = arg;

	model_content(model.units[r->unit].blob_off, bytes, sizeof(bytes));
	for (int i = 1; i <= ROUNDS; i++) {
		while (__atomic_load_n(&r->round, __ATOMIC_ACQUIRE) < i)
			(void)sched_yield();
		if (bs_blob_store(r->b, r->unit, bytes) < 0)
			abort();
		__atomic_store_n(&r->done, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int verify_never(void *cookie, void *scratch, uint32_t i, const void *bytes)
{
	return -EBADMSG;
}

/* A unit that is found wrong while its right bytes are stored: there or not, but not both. */
static void to_forget_and_to_store_at_once_is_one_or_the_other(void **state)
{
	struct bs_blob_ops ops = model_ops;
	bs_auto(blob) struct bs_blob *b = NULL;
	struct race r = { .unit = 32 };
	pthread_t t;

	ops.verify = verify_never;
	geometry.ops = &ops;
	r.b = b = open_blob(1);

	assert_int_equal(model.units[r.unit].blob_len, MODEL_BLOCK);
	assert_int_equal(pthread_create(&t, NULL, store_main, &r), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		bool is_missing;

		__atomic_store_n(&r.round, i, __ATOMIC_RELEASE);
		for (int spin = 0; spin < i * 7 % 20000; spin++)
			(void)__atomic_load_n(&r.done, __ATOMIC_ACQUIRE);
		(void)bs_blob_prove(b, r.unit, NULL, unit); /* forgets it */
		while (__atomic_load_n(&r.done, __ATOMIC_ACQUIRE) < i)
			(void)sched_yield();
		is_missing = bs_blob_next_missing(b, r.unit) == r.unit;
		assert_int_equal(bs_blob_has(b, r.unit), !is_missing);
		assert_int_equal(bs_blob_n_present(b), !is_missing);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
}

static void strange_files_are_survived(void **state)
{
	struct bs_blob *b;
	int fd = openat(dirfd_, "state", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "{\"epoch\":1,\"comp", 16), 16);
	bs_close(fd);
	fd = openat(dirfd_, "present", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	memset(unit, 0xff, 4096);
	assert_int_equal(write(fd, unit, 4096), 4096);
	bs_close(fd);
	b = open_blob(1);
	assert_true(bs_blob_n_present(b) <= MODEL_UNITS);
	for (uint32_t i = 0; i < MODEL_UNITS; i++)
		assert_false(bs_blob_check(b, i, NULL, unit));
	bs_blob_free(b);
	assert_int_equal(unlinkat(dirfd_, "blob", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dirfd_, "blob"), 0);
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 1, &b, NULL), -ELOOP);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(what_was_stored_is_there),
		CASE(the_same_epoch_is_believed_another_is_proven),
		CASE(a_stale_bit_never_gives_a_wrong_byte),
		CASE(a_cut_file_is_not_believed),
		CASE(a_lost_file_is_not_believed),
		CASE(a_complete_blob_is_believed_until_touched),
		CASE(blocks_are_there_alone_and_together),
		CASE(blocks_of_another_epoch_are_forgotten),
		CASE(a_unit_that_is_lost_during_completion_is_missed),
		CASE(what_could_not_be_synced_is_not_believed),
		CASE(what_is_stored_while_a_sync_fails_is_not_believed),
		CASE(to_forget_and_to_store_at_once_is_one_or_the_other),
		CASE(strange_files_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
