/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "ctl/program.h"

/* a name that no machine has installed */
#define NAME "bootseer-of-this-test"

static char dir[] = "/tmp/bootseer-program-XXXXXX";

static void put(const char *name)
{
	bs_autofree char *path = bs_strf("%s/%s", dir, name);
	bs_autofd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
}

static void finds(const char *self, const char *want)
{
	bs_autofree char *from = bs_strf("%s/%s", dir, self), *path = NULL, *there = NULL;
	struct bs_error err = BS_ERROR_INIT;

	there = bs_strf("%s/%s", dir, want);
	assert_int_equal(bs_program_find(NAME, NULL, from, &path, &err), 0);
	assert_string_equal(path, there);
}

/* bootseerctl is in bin, the others are in sbin; in a build directory all are in one. */
static void test_beside(void **state)
{
	(void)state;
	put("P/sbin/" NAME);
	finds("P/bin/bootseerctl", "P/sbin/" NAME);
	finds("P/sbin/bootseer", "P/sbin/" NAME);
	put("P/bin/" NAME);
	finds("P/bin/bootseerctl", "P/bin/" NAME);
	put("build/" NAME);
	finds("build/bootseerctl", "build/" NAME);
}

static void test_nowhere(void **state)
{
	bs_autofree char *from = bs_strf("%s/none/bin/x", dir), *path = NULL;
	struct bs_error err = BS_ERROR_INIT;

	(void)state;
	assert_int_equal(bs_program_find(NAME, NULL, from, &path, &err), -ENOENT);
	assert_null(path);
	assert_non_null(strstr(err.msg, "/none/bin/" NAME "'"));
	assert_non_null(strstr(err.msg, "/none/sbin/" NAME "'"));
	assert_null(strstr(err.msg, ".."));
}

/* What is configured counts alone, and only for bootseerd. */
static void test_configured(void **state)
{
	bs_autofree char *own = bs_strf("%s/P/sbin/" NAME, dir), *path = NULL;
	struct bs_conf c = { .file = (char[]){ "/etc/b.conf" }, .daemon = own };
	struct bs_error err = BS_ERROR_INIT;

	(void)state;
	assert_int_equal(bs_program_find("bootseerd", &c, NULL, &path, &err), 0);
	assert_string_equal(path, own);
	free(bs_take(&path));
	c.daemon = (char[]){ "/nonexistent/bootseerd" };
	assert_int_equal(bs_program_find("bootseerd", &c, NULL, &path, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/bootseerd"));
	assert_non_null(strstr(err.msg, "'daemon' in section [node] of '/etc/b.conf'"));
}

static int make_dirs(void **state)
{
	static const char *const names[] = { "P", "P/bin", "P/sbin", "build" };

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++) {
		bs_autofree char *path = bs_strf("%s/%s", dir, names[i]);

		if (!path || mkdir(path, 0755) < 0)
			return -1;
	}
	return 0;
}

static int drop_dirs(void **state)
{
	(void)state;
	return bs_rmtree(AT_FDCWD, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_configured),
	};

	return cmocka_run_group_tests(tests, make_dirs, drop_dirs);
}
