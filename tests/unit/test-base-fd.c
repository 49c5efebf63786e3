/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rmtree.h"

/* Nobody writes to the FIFO: an open that waits for that ends with the alarm. */
static void only_regular_files_are_read(void **state)
{
	char dir[] = "/tmp/bootseer-unit-XXXXXX";
	bs_autofd int fd = -EBADF, file = -EBADF;
	bs_autofree char *text = NULL;
	size_t len;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(mkdirat(fd, "dir", 0700), 0);
	assert_int_equal(symlinkat("file", fd, "link"), 0);
	file = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(bs_write_full(file, "text", 4), 0);
	alarm(10);
	assert_int_equal(bs_read_regular_at(fd, "fifo", 100, &text, &len), -EINVAL);
	alarm(0);
	assert_int_equal(bs_read_regular_at(fd, "dir", 100, &text, &len), -EINVAL);
	assert_int_equal(bs_read_regular_at(fd, "link", 100, &text, &len), -ELOOP);
	assert_int_equal(bs_read_regular_at(fd, "none", 100, &text, &len), -ENOENT);
	assert_int_equal(bs_read_regular_at(fd, "file", 3, &text, &len), -EFBIG);
	assert_int_equal(bs_read_regular_at(fd, "file", 4, &text, &len), 0);
	assert_string_equal(text, "text");
	assert_int_equal(bs_rmtree(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(only_regular_files_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
