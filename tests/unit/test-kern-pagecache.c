/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "kern/pagecache.h"

#define KIB 1024u

/* A file without a name, with so many bytes; where a disk is, for it must leave memory again. */
static int make_file(size_t bytes)
{
	char name[] = "/var/tmp/test-pagecache-XXXXXX", *content = malloc(bytes);
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_non_null(content);
	memset(content, 'x', bytes);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(bs_write_full(fd, content, bytes), 0);
	free(content);
	return fd;
}

static void what_was_written_is_there(void **state)
{
	bs_autofd int fd = make_file(300 * KIB + 1);
	uint64_t bytes = 0;
	int r = bs_pagecache_bytes(fd, &bytes);

	if (r == -ENOSYS || r == -EOPNOTSUPP)
		skip();
	assert_int_equal(r, 0);
	assert_true(bytes >= 304 * KIB);
}

static void what_was_dropped_is_not(void **state)
{
	bs_autofd int fd = make_file(300 * KIB);
	uint64_t before = 0, after = 0;

	if (bs_pagecache_bytes(fd, &before) < 0)
		skip();
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_int_equal(bs_pagecache_bytes(fd, &after), 0);
	if (after == before)
		skip(); /* a filesystem in memory */
	assert_int_equal(after, 0);
}

static void errors_leave_the_number(void **state)
{
	uint64_t bytes = 7;

	assert_int_equal(bs_pagecache_bytes(-EBADF, &bytes), -EBADF);
	assert_int_equal(bytes, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_there),
		cmocka_unit_test(what_was_dropped_is_not),
		cmocka_unit_test(errors_leave_the_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
