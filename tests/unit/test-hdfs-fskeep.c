/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "hdfs/fskeep.h"

static int memory(void)
{
	int fd = bs_memfd("test");

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bs_fskeep_bytes()), 0);
	return fd;
}

static struct bs_fskeep *server(int fd, uint32_t generation)
{
	struct bs_fskeep *k = NULL;

	assert_int_equal(bs_fskeep_open(fd, generation, &k, NULL), 0);
	return k;
}

static unsigned int count_nodes(struct bs_fskeep *k, uint64_t *ret_sum)
{
	struct bs_fskeep_node n;
	unsigned int count = 0;
	uint32_t slot = 0;

	*ret_sum = 0;
	while (bs_fskeep_next_node(k, &slot, &n)) {
		*ret_sum += n.id;
		count++;
	}
	return count;
}

static void the_next_server_finds_all(void **state)
{
	bs_autofd int fd = memory();
	struct bs_fskeep *k = server(fd, 1);
	struct bs_fskeep_node n = { .parent = 1, .lookups = 3, .is_dir = 1 }, got;
	struct bs_fskeep_handle h = { .kind = BS_FSKEEP_WRITES, .node = 7, .file_id = 9 }, got_h;
	uint32_t slots[10], slot = 0;
	int thing, other;
	uint64_t sum, fh;

	for (uint64_t i = 0; i < 10; i++) {
		n.id = 10 + i;
		(void)memset(n.name, 'a', sizeof(n.name) - 1);
		slots[i] = bs_fskeep_add_node(k, &n);
		assert_true(slots[i] > 0);
	}
	bs_fskeep_drop_node(k, slots[4]);
	bs_fskeep_node(k, slots[5])->lookups = 8;
	*bs_fskeep_last_id(k) = 19;
	fh = h.fh = bs_fskeep_fh(&thing);
	assert_ptr_equal(bs_fskeep_pointer(fh), &thing);
	assert_true(bs_fskeep_add_handle(k, &h) > 0);
	slot = bs_fskeep_add_handle(k, &h);
	bs_fskeep_drop_handle(k, slot);

	(void)bs_fskeep_free(k);
	k = server(fd, 2);
	assert_true(bs_fskeep_is_whole(k));
	assert_int_equal(count_nodes(k, &sum), 9);
	assert_int_equal(sum, 145 - 14);
	assert_int_equal(*bs_fskeep_last_id(k), 19);
	slot = slots[5] - 1;
	assert_true(bs_fskeep_next_node(k, &slot, &got));
	assert_int_equal(got.lookups, 8);
	assert_int_equal(strlen(got.name), sizeof(got.name) - 1);
	slot = 0;
	assert_true(bs_fskeep_next_handle(k, &slot, &got_h));
	assert_int_equal(got_h.fh, fh);
	assert_int_equal(got_h.file_id, 9);
	assert_false(bs_fskeep_next_handle(k, &slot, &got_h));
	/* a number of the one before means nothing until it is adopted */
	assert_null(bs_fskeep_pointer(fh));
	assert_int_equal(bs_fskeep_adopt(fh, &other), 0);
	assert_ptr_equal(bs_fskeep_pointer(fh), &other);
	assert_ptr_equal(bs_fskeep_pointer(bs_fskeep_fh(&thing)), &thing);
	assert_true(bs_fskeep_fh(&thing) != fh);
	/* what was free is used before what was never used */
	assert_int_equal(bs_fskeep_add_node(k, &n), slots[4]);
	(void)bs_fskeep_free(k);
}

static void without_memory_nothing_is_kept(void **state)
{
	const struct bs_fskeep_node n = { .id = 2 };
	const struct bs_fskeep_handle h = { .kind = BS_FSKEEP_READS };

	assert_int_equal(bs_fskeep_add_node(NULL, &n), 0);
	assert_int_equal(bs_fskeep_add_handle(NULL, &h), 0);
	assert_null(bs_fskeep_node(NULL, 0));
	bs_fskeep_drop_node(NULL, 0);
	bs_fskeep_drop_handle(NULL, 0);
}

static void full_is_said(void **state)
{
	const struct bs_fskeep_handle h = { .kind = BS_FSKEEP_READS, .fh = 1 };
	bs_autofd int fd = memory();
	struct bs_fskeep *k = server(fd, 1);
	unsigned int n = 0;

	while (bs_fskeep_add_handle(k, &h))
		n++;
	assert_int_equal(n, 65536);
	assert_false(bs_fskeep_is_whole(k));
	(void)bs_fskeep_free(k);
	k = server(fd, 2);
	assert_false(bs_fskeep_is_whole(k));
	(void)bs_fskeep_free(k);
}

static void *opens_and_closes(void *cookie)
{
	struct bs_fskeep *k = cookie;
	struct bs_fskeep_handle h = { .kind = BS_FSKEEP_READS };
	uint32_t slots[64];

	for (unsigned int round = 1; round <= 64; round++) {
		for (unsigned int i = 0; i < round; i++) {
			slots[i] = bs_fskeep_add_handle(k, &h);
			if (!slots[i])
				return k;
		}
		for (unsigned int i = 0; i < round; i++)
			bs_fskeep_drop_handle(k, slots[i]);
	}
	return NULL;
}

/* The list of free entries grows while others take from it. */
static void many_threads_open_and_close(void **state)
{
	bs_autofd int fd = memory();
	struct bs_fskeep *k = server(fd, 1);
	struct bs_fskeep_handle h;
	pthread_t threads[8];
	uint32_t slot = 0;
	void *failed;

	for (size_t i = 0; i < BS_ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, opens_and_closes, k), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_false(bs_fskeep_next_handle(k, &slot, &h));
	assert_true(bs_fskeep_is_whole(k));
	(void)bs_fskeep_free(k);
}

static void what_is_no_such_memory(void **state)
{
	bs_autofd int fd = memory(), small = bs_memfd("small");
	struct bs_fskeep *k, *other;
	struct bs_fskeep_node n;
	uint32_t bad[4] = { 1, 2, UINT32_MAX, UINT32_MAX }, slot = 0;
	uint64_t sum;

	assert_int_equal(bs_fskeep_open(small, 1, &k, NULL), -EINVAL);
	assert_int_equal(bs_fskeep_open(fd, 0, &k, NULL), -EINVAL);
	assert_int_equal(bs_fskeep_open(fd, 65536, &k, NULL), -EINVAL);
	/* numbers of entries that are too large end where the memory does */
	k = server(fd, 1);
	assert_int_equal(pwrite(fd, &bad[2], 8, 16), 8);
	assert_int_equal(count_nodes(k, &sum), 0);
	assert_false(bs_fskeep_next_node(k, &slot, &n));
	assert_int_equal(pwrite(fd, bad, 8, 0), 8);
	assert_int_equal(bs_fskeep_open(fd, 2, &other, NULL), -EINVAL);
	(void)bs_fskeep_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(the_next_server_finds_all),
		UNIT_TEST(without_memory_nothing_is_kept),
		UNIT_TEST(full_is_said),
		UNIT_TEST(many_threads_open_and_close),
		UNIT_TEST(what_is_no_such_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
