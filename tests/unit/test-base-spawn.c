/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/spawn.h"

/* 7: descriptor 3 is ours, 4 and up are closed, signals are as in a new program. */
static int look_around(void *cookie)
{
	struct sigaction sa;
	sigset_t mask;

	if (write(3, cookie, 1) != 1 || fcntl(4, F_GETFD) >= 0 || fcntl(9, F_GETFD) >= 0)
		return 1;
	if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0 || sigismember(&mask, SIGTERM))
		return 2;
	if (sigaction(SIGPIPE, NULL, &sa) < 0 || sa.sa_handler != SIG_DFL)
		return 3;
	return 7;
}

static void a_function_runs_as_a_program_would(void **state)
{
	const char *argv[] = { "look", NULL };
	struct bs_spawn s = BS_SPAWN_INIT;
	struct bs_child c;
	int p[2], status, high;
	sigset_t term, old;
	char byte = 'x', got = 0;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	high = fcntl(p[1], F_DUPFD_CLOEXEC, 9);
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, &old);
	s.argv = argv;
	s.run = look_around;
	s.cookie = &byte;
	s.fds = &p[1];
	s.n_fds = 1;
	assert_int_equal(bs_spawn_start(&s, &c, NULL), 0);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(bs_spawn_wait(&c, bs_clock_ns() + 10 * BS_NS_PER_S, &status), 0);
	assert_int_equal(bs_spawn_exit_code(status), 7);
	assert_int_equal(read(p[0], &got, 1), 1);
	assert_int_equal(got, 'x');
	(void)bs_close(high);
	(void)bs_close(p[0]);
	(void)bs_close(p[1]);
}

static void a_program_that_is_not_there_is_named(void **state)
{
	const char *argv[] = { "/nonesuch/program", NULL };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_spawn s = BS_SPAWN_INIT;
	struct bs_child c;

	s.argv = argv;
	assert_int_equal(bs_spawn_start(&s, &c, &err), -ENOENT);
	assert_non_null(strstr(bs_error_text(&err), "/nonesuch/program"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_runs_as_a_program_would),
		cmocka_unit_test(a_program_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
