/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Directories of ours play /proc and /sys/fs/cgroup. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rmtree.h"
#include "kern/memory.h"

#define MIB (UINT64_C(1) << 20)

static char top[] = "/tmp/test-memory-XXXXXX";
static int dir = -EBADF;

static int make_top(void **state)
{
	(void)strcpy(top + strlen(top) - 6, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || mkdirat(dir, "self", 0700) < 0 || mkdirat(dir, "pressure", 0700) < 0)
		return -1;
	return 0;
}

static int remove_top(void **state)
{
	dir = bs_close(dir);
	return bs_rmtree(AT_FDCWD, top);
}

static void put(const char *path, const char *text)
{
	bs_autofd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(bs_write_full(fd, text, strlen(text)), 0);
}

static void put_meminfo(void)
{
	put("meminfo", "MemTotal:        8192 kB\nMemFree:  1 kB\nMemAvailable:    4096 kB\n");
}

static struct bs_memory_state look(void)
{
	bs_automemory m = { .meminfo = -EBADF, .pressure = -EBADF };
	struct bs_memory_state s;

	assert_int_equal(bs_memory_open(dir, dir, &m), 0);
	assert_int_equal(bs_memory_look(&m, &s), 0);
	return s;
}

static void the_node_without_groups(void **state)
{
	struct bs_memory_state s;

	put_meminfo();
	s = look();
	assert_true(s.total == 8 * MIB);
	assert_true(s.available == 4 * MIB);
	assert_true(s.group_room == UINT64_MAX);
	assert_int_equal(s.pressure_percent, 0);
	put("pressure/memory",
	    "some avg10=12.34 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.00\n");
	put("self/cgroup", "nonsense\n0::/../up\n");
	s = look();
	assert_int_equal(s.pressure_percent, 12);
	assert_true(s.group_room == UINT64_MAX);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	bs_automemory m = { .meminfo = -EBADF, .pressure = -EBADF };
	struct bs_memory_state s;

	assert_int_equal(bs_memory_open(dir, dir, &m), -ENOENT);
	put("meminfo", "MemTotal: 1 kB\n");
	assert_int_equal(bs_memory_open(dir, -EBADF, &m), 0);
	assert_int_equal(bs_memory_look(&m, &s), -EBADMSG);
}

static void the_second_hierarchy(void **state)
{
	put_meminfo();
	put("self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
	assert_int_equal(mkdirat(dir, "a", 0700), 0);
	assert_int_equal(mkdirat(dir, "a/b", 0700), 0);
	put("a/b/memory.max", "max\n");
	put("a/b/memory.current", "1000\n");
	put("a/b/memory.stat", "anon 10\n");
	assert_true(look().group_room == UINT64_MAX);
	/* the one above has a limit: cache in it counts as free */
	put("a/memory.max", "10000\n");
	put("a/memory.current", "9000\n");
	put("a/memory.stat", "anon 10\ninactive_file 2000\nactive_file 500\nxactive_file 7\n");
	assert_true(look().group_room == 3500);
	put("a/b/memory.max", "2500\n");
	assert_true(look().group_room == 1500);
	put("a/b/memory.current", "2600\n");
	assert_true(look().group_room == 0);
	put("a/b/memory.stat", "inactive_file 9999\n");
	assert_true(look().group_room == 2500);
}

static void the_first_hierarchy(void **state)
{
	put_meminfo();
	put("self/cgroup", "3:cpu,memory:/a\n2:pids:/\n0::/b\n");
	assert_int_equal(mkdirat(dir, "memory", 0700), 0);
	assert_int_equal(mkdirat(dir, "memory/a", 0700), 0);
	put("memory/a/memory.limit_in_bytes", "10000\n");
	put("memory/a/memory.usage_in_bytes", "9000\n");
	put("memory/a/memory.stat", "active_file 5000\ntotal_active_file 1000\n"
				    "total_inactive_file 1\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/memory.usage_in_bytes", "99999\n");
	put("memory/memory.stat", "");
	assert_true(look().group_room == 2001);
}

static void the_real_one(void **state)
{
	bs_autofd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bs_autofd int cgroup = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bs_automemory m = { .meminfo = -EBADF, .pressure = -EBADF };
	struct bs_memory_state s;

	assert_int_equal(bs_memory_open(proc, cgroup, &m), 0);
	assert_int_equal(bs_memory_look(&m, &s), 0);
	assert_true(s.available > 0 && s.available <= s.total);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_node_without_groups, make_top, remove_top),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_an_error, make_top,
						remove_top),
		cmocka_unit_test_setup_teardown(the_second_hierarchy, make_top, remove_top),
		cmocka_unit_test_setup_teardown(the_first_hierarchy, make_top, remove_top),
		UNIT_TEST(the_real_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
