/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A directory of ours plays /sys/class/bdi; the real one is only listed. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rmtree.h"
#include "kern/bdi.h"

static char top[] = "/tmp/test-bdi-XXXXXX";
static int dir = -EBADF;

static int make_class(void **state)
{
	(void)strcpy(top + strlen(top) - 6, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int remove_class(void **state)
{
	dir = bs_close(dir);
	return bs_rmtree(AT_FDCWD, top);
}

static void add(const char *name, const char *kib)
{
	bs_autofd int fd = -EBADF;
	char path[64];

	assert_int_equal(mkdirat(dir, name, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/read_ahead_kb", name);
	fd = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(bs_write_full(fd, kib, strlen(kib)), 0);
}

static void only_erofs_is_listed(void **state)
{
	static const char *const others[] = {
		"8:0",	    "erofs-",	"erofs-x",
		"erofs-01", "erofs-1x", "xerofs-1",
		"fuse-1",   "erofs--1", "erofs-18446744073709551616"
	};
	bs_autobdilist l = { 0 };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		add(others[i], "128\n");
	assert_int_equal(bs_bdi_list(dir, &l), 0);
	assert_int_equal(l.n, 0);
	add("erofs-10", "128\n");
	add("erofs-9", "128\n");
	add("erofs-0", "128\n");
	assert_int_equal(bs_bdi_list(dir, &l), 0);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.numbers[0], 0);
	assert_int_equal(l.numbers[1], 9);
	assert_int_equal(l.numbers[2], 10);
}

static void the_one_new_is_found(void **state)
{
	bs_autobdilist before = { 0 };
	char name[BS_BDI_NAME_LEN] = "as it was";

	add("erofs-1", "128\n");
	add("erofs-12", "128\n");
	assert_int_equal(bs_bdi_list(dir, &before), 0);
	assert_int_equal(bs_bdi_find_new(dir, &before, name), -ENOENT);
	assert_string_equal(name, "as it was");
	add("erofs-11", "128\n");
	assert_int_equal(bs_bdi_find_new(dir, &before, name), 0);
	assert_string_equal(name, "erofs-11");
	/* one that goes does not matter */
	assert_int_equal(bs_rmtree(dir, "erofs-1"), 0);
	assert_int_equal(bs_bdi_find_new(dir, &before, name), 0);
	(void)strcpy(name, "as it was");
	add("erofs-13", "128\n");
	assert_int_equal(bs_bdi_find_new(dir, &before, name), -EAGAIN);
	assert_string_equal(name, "as it was");
}

static void readahead_is_set_and_read(void **state)
{
	static const char *const bad[] = { "",		 "erofs-",   "erofs-../x", "../erofs-3",
					   "erofs-3/..", "/erofs-3", "erofs-03",   "erofs-3 ",
					   "8:0",	 "fuse-3",   "erofs-3\n" };
	uint32_t kib = 7;

	add("erofs-3", "128\n");
	add("8:0", "128\n");
	assert_int_equal(bs_bdi_get_readahead(dir, "erofs-3", &kib), 0);
	assert_int_equal(kib, BS_BDI_READAHEAD_KIB);
	assert_int_equal(bs_bdi_set_readahead(dir, "erofs-3", 1024), 0);
	assert_int_equal(bs_bdi_get_readahead(dir, "erofs-3", &kib), 0);
	assert_int_equal(kib, 1024);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(bs_bdi_set_readahead(dir, bad[i], 0), -EINVAL);
		assert_int_equal(bs_bdi_get_readahead(dir, bad[i], &kib), -EINVAL);
	}
	assert_int_equal(bs_bdi_set_readahead(dir, "erofs-4", 0), -ENOENT);
	add("erofs-5", "lots\n");
	assert_int_equal(bs_bdi_get_readahead(dir, "erofs-5", &kib), -EBADMSG);
	assert_int_equal(kib, 1024);
}

static void the_real_one_is_listed(void **state)
{
	bs_autofd int real = bs_bdi_open();
	bs_autobdilist l = { 0 };

	if (real == -ENOENT)
		skip(); /* a sandbox without sysfs */
	assert_true(real >= 0);
	assert_int_equal(bs_bdi_list(real, &l), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_erofs_is_listed, make_class, remove_class),
		cmocka_unit_test_setup_teardown(the_one_new_is_found, make_class, remove_class),
		cmocka_unit_test_setup_teardown(readahead_is_set_and_read, make_class,
						remove_class),
		UNIT_TEST(the_real_one_is_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
