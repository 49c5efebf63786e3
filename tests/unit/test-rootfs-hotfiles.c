/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "image/tree.h"
#include "rootfs/entry.h"
#include "rootfs/hotfiles.h"

#define X(...) __VA_ARGS__

static struct bs_tree_writer *w;
static uint32_t n_added;

static void begin(void)
{
	struct bs_tree_entry root = { .name = "", .mode = S_IFDIR | 0755 };

	w = bs_tree_writer_new();
	assert_non_null(w);
	assert_int_equal(bs_tree_writer_add(w, &root, NULL, NULL, NULL), 0);
	n_added = 1;
}

static uint32_t add(uint32_t parent, const char *name, uint32_t mode,
		    const struct bs_tree_extent *x, uint32_t n)
{
	struct bs_tree_entry e = { .parent = parent,
				   .inode = n_added,
				   .name = name,
				   .name_len = (uint8_t)strlen(name),
				   .mode = mode,
				   .n_extents = n };
	struct bs_error err = BS_ERROR_INIT;

	if (n)
		e.size = (x[n - 1].file_block + x[n - 1].n_blocks) * BS_BLOCK_SIZE;
	if (bs_tree_writer_add(w, &e, NULL, x, &err) < 0)
		fail_msg("%s", err.msg);
	return n_added++;
}

static uint32_t add_dir(uint32_t parent, const char *name)
{
	return add(parent, name, S_IFDIR | 0755, NULL, 0);
}

static uint32_t add_file(uint32_t parent, const char *name, uint64_t file_block, uint64_t block,
			 uint64_t n_blocks)
{
	const struct bs_tree_extent x = { file_block, block, n_blocks };

	return add(parent, name, S_IFREG | 0644, &x, 1);
}

/* Through the compressed form, as the cache has it. */
static struct bs_hotfiles *end(uint64_t blob_blocks)
{
	bs_autofd int fd = bs_memfd("tree");
	struct bs_error err = BS_ERROR_INIT;
	struct bs_hotfiles *h = NULL;
	bs_autofree void *bytes = NULL;
	size_t len;

	assert_int_equal(bs_tree_writer_finish(w, blob_blocks, &bytes, &len, NULL), 0);
	w = bs_tree_writer_free(w);
	assert_int_equal(bs_write_full(fd, bytes, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	if (bs_hotfiles_read(fd, &h, &err) < 0)
		fail_msg("%s", err.msg);
	return h;
}

static int note(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	assert_int_equal(off % 4096, 0);
	assert_int_equal(len % 4096, 0);
	return bs_buf_addf(cookie, "%s:%" PRIu64 "+%" PRIu64 " ", path, off / 4096, len / 4096);
}

static void expect(const struct bs_hotfiles *h, const struct bs_extent *x, size_t n,
		   const char *want)
{
	bs_autobuf got = BS_BUF_INIT(1 << 20);

	assert_int_equal(bs_hotfiles_runs(h, x, n, note, &got), 0);
	assert_string_equal(bs_buf_str(&got), want);
}
#define EXPECT(H, WANT, ...)                                                                       \
	expect(H, (const struct bs_extent[]){ __VA_ARGS__ },                                       \
	       BS_ARRAY_LEN(((const struct bs_extent[]){ __VA_ARGS__ })), WANT)

static void blocks_become_files(void **state)
{
	const struct bs_tree_extent two[] = { { 0, 50, 2 }, { 7, 40, 3 } };
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	struct bs_tree_entry link = { .name = "z", .name_len = 1 };
	uint32_t d, e, file;

	begin();
	d = add_dir(0, "d");
	e = add_dir(d, "e");
	file = add_file(e, "f", 0, 10, 5);
	add_file(e, "g", 0, 15, 5);
	add_dir(0, "e");
	add_file(0, "h", 3, 20, 1);
	add(0, "t", S_IFREG, two, 2);
	link.inode = file;
	assert_true(bs_tree_writer_add(w, &link, NULL, NULL, NULL) > 0);
	h = end(100);
	EXPECT(h, "d/e/f:0+5 ", X({ 10, 5 }));
	EXPECT(h, "d/e/f:2+1 ", X({ 12, 1 }));
	EXPECT(h, "d/e/f:4+1 d/e/g:0+5 h:3+1 ", X({ 14, 20 }));
	/* in the order of the extents; what continues is joined */
	EXPECT(h, "d/e/g:1+1 d/e/f:0+3 ", X({ 16, 1 }, { 10, 1 }, { 11, 2 }));
	EXPECT(h, "t:0+2 t:7+3 ", X({ 50, 2 }, { 40, 3 }));
	EXPECT(h, "t:8+2 d/e/f:0+1 t:0+1 ", X({ 41, 1 }, { 10, 1 }, { 42, 1 }, { 50, 1 }));
	EXPECT(h, "", X({ 0, 10 }, { 21, 19 }, { 52, UINT32_MAX - 52 }, { UINT32_MAX, 1 }));
	expect(h, NULL, 0, "");
}

static void sharers_have_their_own_runs(void **state)
{
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	bs_autobuf want = BS_BUF_INIT(1 << 16);
	char name[8];

	begin();
	add_file(0, "a", 0, 10, 4);
	add_file(0, "b", 5, 12, 4);
	for (unsigned int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "s%02u", i);
		add_file(0, name, 0, 70, 2);
		if (i < BS_HOTFILES_SHARED_MAX)
			(void)bs_buf_addf(&want, "%s:0+2 ", name);
	}
	add_file(0, "t", 0, 80, 1);
	h = end(100);
	EXPECT(h, "a:2+2 b:5+2 ", X({ 12, 1 }, { 13, 1 }));
	EXPECT(h, "a:0+4 b:5+4 ", X({ 10, 6 }));
	EXPECT(h, bs_buf_str(&want), X({ 70, 2 }));
	(void)bs_buf_adds(&want, "t:0+1 ");
	EXPECT(h, bs_buf_str(&want), X({ 70, 1 }, { 71, 10 }));
}

static void an_image_of_nothing(void **state)
{
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;

	begin();
	add_dir(0, "d");
	add(0, "empty", S_IFREG | 0644, NULL, 0);
	h = end(0);
	EXPECT(h, "", X({ 0, UINT32_MAX }));
	assert_true(bs_hotfiles_bytes(h) < 1024);
}

static void too_long_paths_are_left_out(void **state)
{
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	bs_autobuf want = BS_BUF_INIT(1 << 20);
	uint32_t parent = 0;
	char name[256];

	begin();
	memset(name, 'n', 255);
	for (unsigned int i = 0; i < 15; i++) { /* 15 * 256 = 3840 */
		name[255] = '\0';
		parent = add_dir(parent, name);
		(void)bs_buf_addf(&want, "%s/", name);
	}
	name[255] = '\0';
	add_file(parent, name, 0, 1, 1); /* 4095: fits with its NUL */
	memset(name, 'o', 254);
	name[254] = '\0';
	parent = add_dir(parent, name);
	add_file(parent, "f", 0, 3, 1); /* 3840 + 254 + 2 */
	h = end(10);
	memset(name, 'n', 255);
	(void)bs_buf_addf(&want, "%.255s:0+1 ", name);
	EXPECT(h, bs_buf_str(&want), X({ 1, 1 }, { 3, 1 }));
}

static int stop_at_second(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	return ++*(int *)cookie == 2 ? -EPIPE : 0;
}

static void the_callback_ends_it(void **state)
{
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	struct bs_extent x[64];
	char name[8];
	int calls = 0;

	begin();
	for (uint32_t i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "f%02u", i);
		add_file(0, name, 0, 2 * i, 1);
		x[i] = (struct bs_extent){ 2 * i, 1 };
	}
	h = end(200);
	assert_int_equal(bs_hotfiles_runs(h, x, 64, stop_at_second, &calls), -EPIPE);
	assert_int_equal(calls, 2);
}

#define MANY 3000u
#define BLOCKS 2048u

struct brute {
	uint32_t first[MANY], n[MANY]; /* of file i */
	uint8_t seen[MANY][64];	       /* blocks that were given, from first on */
};

static int note_seen(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	struct brute *b = cookie;
	unsigned long i = strtoul(path + 1, NULL, 10);

	assert_true(i < MANY);
	for (uint64_t k = off / 4096; k < (off + len) / 4096; k++) {
		assert_true(k < b->n[i]);
		b->seen[i][k]++;
	}
	return 0;
}

/* However they overlap: as if all had been looked at. */
static void overlaps_are_all_found(void **state)
{
	bs_autofree struct brute *b = calloc(1, sizeof(*b));
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	unsigned int missing = 0, given = 0;
	char name[16];

	assert_non_null(b);
	srand(1);
	begin();
	for (uint32_t i = 0; i < MANY; i++) {
		/* few enough at one place that none is over the bound */
		b->first[i] = i % BLOCKS;
		b->n[i] = rand() % 200 ? 1 + (uint32_t)rand() % 3 : 64;
		(void)snprintf(name, sizeof(name), "f%06u", i);
		add_file(0, name, 0, b->first[i], b->n[i]);
	}
	h = end(BLOCKS + 64);
	for (uint32_t block = 0; block < BLOCKS + 64; block++) {
		const struct bs_extent x = { block, 1 };
		uint32_t holders = 0, got = 0;

		assert_int_equal(bs_hotfiles_runs(h, &x, 1, note_seen, b), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			if (block < b->first[i] || block - b->first[i] >= b->n[i])
				continue;
			holders++;
			got += b->seen[i][block - b->first[i]];
		}
		assert_int_equal(got, BS_MIN(holders, BS_HOTFILES_SHARED_MAX));
		given += got;
		missing += holders - got;
	}
	assert_true(given > 5000);
	assert_true(missing < given / 10);
}

static void a_tree_that_is_none(void **state)
{
	bs_autofd int fd = bs_memfd("tree");
	struct bs_error err = BS_ERROR_INIT;
	struct bs_hotfiles *h = NULL;

	assert_int_equal(bs_write_full(fd, "x", 1), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(bs_hotfiles_read(fd, &h, &err), -EBADMSG);
	assert_int_equal(bs_hotfiles_read(-EBADF, &h, &err), -EBADF);
	assert_null(h);
}

struct reader {
	int fd;
	int done; /* atomic */
	pthread_t thread;
};

static void *read_main(void *arg)
{
	struct reader *r = arg;
	struct bs_hotfiles *h = NULL;

	(void)bs_hotfiles_read(r->fd, &h, NULL);
	(void)bs_hotfiles_free(h);
	__atomic_store_n(&r->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* However many warmers: all trees that are being read share one bound. */
static void a_tree_waits_for_memory(void **state)
{
	struct reader r = { .fd = bs_memfd("tree") };

	assert_int_equal(bs_write_full(r.fd, "x", 1), 0);
	assert_int_equal(lseek(r.fd, 0, SEEK_SET), 0);
	bs_entry_memory_take(BS_TREE_BYTES_MAX + 1);
	assert_int_equal(pthread_create(&r.thread, NULL, read_main, &r), 0);
	usleep(200000);
	assert_int_equal(__atomic_load_n(&r.done, __ATOMIC_ACQUIRE), 0);
	bs_entry_memory_give(BS_TREE_BYTES_MAX + 1);
	assert_int_equal(pthread_join(r.thread, NULL), 0);
	assert_int_equal(r.done, 1);
	(void)bs_close(r.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(blocks_become_files),	 UNIT_TEST(sharers_have_their_own_runs),
		UNIT_TEST(an_image_of_nothing),	 UNIT_TEST(too_long_paths_are_left_out),
		UNIT_TEST(the_callback_ends_it), UNIT_TEST(overlaps_are_all_found),
		UNIT_TEST(a_tree_that_is_none),	 UNIT_TEST(a_tree_waits_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
