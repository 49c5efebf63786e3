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

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "obs/timeline.h"

static char dir[] = "/tmp/bootseer-unit-XXXXXX";
static int run_fd;

static int set_up(void **state)
{
	strcpy(dir, "/tmp/bootseer-unit-XXXXXX");
	run_fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return run_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	bs_close(run_fd);
	return bs_rmtree(AT_FDCWD, dir);
}

/* Line n of a timeline, which must be JSON. */
static struct bs_json *line(const char *id, size_t n)
{
	bs_autofree char *name = bs_strf("timeline/%s.jsonl", id), *text = NULL;
	bs_autostrv lines = { 0 };
	struct bs_json *v = NULL;

	assert_int_equal(bs_read_file_at(run_fd, name, 0, 1 << 20, &text, NULL), 0);
	assert_int_equal(bs_strv_split(&lines, text, "\n"), 0);
	if (n >= lines.n)
		return NULL;
	assert_int_equal(bs_json_parse("line", lines.v[n], strlen(lines.v[n]), 1 << 16, &v, NULL),
			 0);
	return v;
}

static void every_line_is_an_object(void **state)
{
	bs_auto(json) struct bs_json *clock = NULL, *span = NULL, *mark = NULL;
	struct bs_timeline t;
	uint64_t start = bs_clock_ns(), n;

	bs_timeline_open(&t, run_fd, "c1", "test");
	assert_true(t.fd >= 0);
	bs_timeline_span(&t, BS_SPAN_SWAP, start, 42, "a \"text\" with \xff in it\n");
	bs_timeline_mark(&t, BS_MARK_FIRST_READ, start, NULL);
	bs_timeline_done(&t);
	clock = line("c1", 0);
	assert_string_equal(bs_json_str(bs_json_get(clock, "event")), "clock");
	assert_string_equal(bs_json_str(bs_json_get(clock, "id")), "c1");
	span = line("c1", 1);
	assert_string_equal(bs_json_str(bs_json_get(span, "name")), "swap");
	assert_int_equal(bs_json_u64(bs_json_get(span, "start_ns"), &n), 0);
	assert_true(n == start);
	assert_int_equal(bs_json_u64(bs_json_get(span, "end_ns"), &n), 0);
	assert_true(n >= start);
	assert_int_equal(bs_json_u64(bs_json_get(span, "bytes"), &n), 0);
	assert_int_equal(n, 42);
	mark = line("c1", 2);
	assert_string_equal(bs_json_str(bs_json_get(mark, "event")), "mark");
	assert_null(line("c1", 3));
}

static void programs_add_to_one_another_a_new_start_begins_anew(void **state)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_timeline a, b;

	bs_timeline_begin(&a, run_fd, "c", "one");
	bs_timeline_open(&b, run_fd, "c", "two");
	bs_timeline_mark(&a, BS_MARK_FALLBACK, 1, "x");
	bs_timeline_mark(&b, BS_MARK_FALLBACK, 2, "y");
	bs_timeline_done(&b);
	v = line("c", 2);
	assert_string_equal(bs_json_str(bs_json_get(v, "program")), "two");
	bs_timeline_begin(&b, run_fd, "c", "three");
	bs_timeline_mark(&a, BS_MARK_FALLBACK, 3, "late");
	assert_null(line("c", 1));
	bs_timeline_done(&a);
	bs_timeline_done(&b);
}

static void a_timeline_never_fails_its_caller(void **state)
{
	static const char *const bad[] = { "", ".", "..", "a/b", "../../etc/x" };
	struct bs_timeline t;

	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		bs_timeline_open(&t, run_fd, bad[i], "test");
		assert_true(t.fd < 0);
		bs_timeline_span(&t, BS_SPAN_CREATE, 0, 0, NULL);
		bs_timeline_done(&t);
	}
	assert_int_equal(mkdirat(run_fd, "timeline", 0700) == 0 || errno == EEXIST, 1);
	assert_int_equal(symlinkat("/etc/passwd", run_fd, "timeline/l.jsonl"), 0);
	bs_timeline_open(&t, run_fd, "l", "test");
	assert_true(t.fd < 0);
}

static void old_ones_go(void **state)
{
	bs_autofd int d = bs_mkdir_open(run_fd, "timeline", 0700);
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	char name[32];

	for (unsigned int i = 0; i <= BS_TIMELINES_MAX; i++) {
		snprintf(name, sizeof(name), "%u.jsonl", i);
		bs_close(openat(d, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		if (i < BS_TIMELINES_MAX / 2)
			assert_int_equal(utimensat(d, name, old, 0), 0);
	}
	bs_timeline_prune(run_fd);
	assert_int_equal(faccessat(d, "0.jsonl", F_OK, 0), -1);
	snprintf(name, sizeof(name), "%u.jsonl", BS_TIMELINES_MAX);
	assert_int_equal(faccessat(d, name, F_OK, 0), 0);
}

static void each_name_has_a_meaning(void **state)
{
	for (int i = 0; i < BS_SPAN_MAX; i++) {
		assert_non_null(bs_timeline_names[i].name);
		assert_true(strlen(bs_timeline_names[i].name) <= 13);
		assert_non_null(bs_timeline_names[i].meaning);
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(every_line_is_an_object),
		CASE(programs_add_to_one_another_a_new_start_begins_anew),
		CASE(a_timeline_never_fails_its_caller),
		CASE(old_ones_go),
		CASE(each_name_has_a_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
