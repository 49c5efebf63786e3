/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "daemon/program.h"

#define LINK_FD 3

/* Says over the link what it was given: its argument, and what is in descriptors 4 and 5. */
static int tell(void *arg)
{
	char text[64];
	size_t n = strlen(arg);

	memcpy(text, arg, n);
	for (int fd = 4; fd < 6; fd++) {
		if (bs_pread_full(fd, text + n++, 1, 0) != 1)
			return 1;
	}
	return fcntl(6, F_GETFD) < 0 && write(LINK_FD, text, n) == (ssize_t)n ? 5 : 2;
}

static int holding(char c)
{
	int fd = bs_memfd("test");

	assert_int_equal(bs_write_full(fd, &c, 1), 0);
	return fd;
}

static void a_part_has_its_link_and_descriptors(void **state)
{
	const int fds[] = { holding('x'), holding('y') };
	const struct bs_part part = {
		.role = "teller", .arg = "word", .run = tell, .fds = fds, .n_fds = 2
	};
	bs_autofd int link = -EBADF;
	char got[64] = "";
	struct bs_child c;
	int status;

	assert_int_equal(bs_program_start(&part, &c, &link, NULL), 0);
	assert_int_equal(read(link, got, sizeof(got) - 1), 6);
	assert_string_equal(got, "wordxy");
	/* our end alone holds the link: it ends with the part */
	assert_int_equal(read(link, got, 1), 0);
	assert_int_equal(bs_spawn_wait(&c, bs_clock_ns() + 10 * BS_NS_PER_S, &status), 0);
	assert_int_equal(bs_spawn_exit_code(status), 5);
	(void)bs_close(fds[0]);
	(void)bs_close(fds[1]);
}

static void a_part_that_cannot_start_is_named(void **state)
{
	const int fds[BS_PART_FDS_MAX + 1] = { 0 };
	const struct bs_part part = { .role = "teller", .fds = fds, .n_fds = BS_PART_FDS_MAX + 1 };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_child c;
	int link;

	assert_int_equal(bs_program_start(&part, &c, &link, &err), -E2BIG);
	assert_non_null(strstr(bs_error_text(&err), "teller"));
}

static void the_program_is_found_by_its_path(void **state)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	assert_string_equal(bs_program_path(), self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_has_its_link_and_descriptors),
		cmocka_unit_test(a_part_that_cannot_start_is_named),
		cmocka_unit_test(the_program_is_found_by_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
