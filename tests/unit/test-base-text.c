/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/limit.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/str.h"

static void errors_gain_context_and_never_overflow(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	char big[2 * BS_ERROR_MSG_MAX];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(bs_fail_errno(&err, -ENOTDIR, "open '%s'", "p"), -ENOTDIR);
	assert_int_equal(bs_error_context(&err, "image %d", 7), -ENOTDIR);
	assert_string_equal(bs_error_text(&err), "image 7: open 'p': Not a directory");
	assert_int_equal(bs_error_context(&err, "%s", big), -ENOTDIR);
	assert_int_equal(strlen(err.msg), BS_ERROR_MSG_MAX - 1);
	assert_int_equal(bs_fail(NULL, -EIO, "x"), -EIO);
}

static void foreign_names_cannot_drive_a_terminal(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "", "" },
		{ "usr/lib/x-1.0.so", "usr/lib/x-1.0.so" },
		{ "\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600" },
		{ "a\033[2Jb\n", "a\\033[2Jb\\012" },
		{ "a\\033", "a\\\\033" },
		{ "\x7f\xff\xc3", "\\177\\377\\303" },
		{ "\xc2\x9b"
		  "31m",
		  "\\302\\23331m" }, /* the one-character CSI */
		{ "\u202e"
		  "gpj",
		  "\\342\\200\\256gpj" },
		{ "\xed\xa0\x80", "\\355\\240\\200" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *shown = bs_str_shown(cases[i].name, strlen(cases[i].name));

		assert_string_equal(shown, cases[i].shown);
	}
}

static void numbers_are_strict(void **state)
{
	static const char *const bad[] = { "", " 1", "1 ", "+1", "-1", "0x1", "1e3", "1.0", "a" };
	uint64_t v = 7;
	uint32_t w;
	int64_t i;

	for (size_t k = 0; k < BS_ARRAY_LEN(bad); k++)
		assert_int_equal(bs_parse_u64(bad[k], &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(bs_parse_u64("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(bs_parse_u64("18446744073709551616", &v), -ERANGE);
	assert_int_equal(bs_parse_u32("4294967296", &w), -ERANGE);
	assert_int_equal(bs_parse_i64("-9223372036854775808", &i), 0);
	assert_true(i == INT64_MIN);
	assert_int_equal(bs_parse_i64("9223372036854775808", &i), -ERANGE);
	assert_int_equal(bs_parse_i64("--1", &i), -EINVAL);
}

static void sizes_and_durations_have_units(void **state)
{
	uint64_t v;
	bool b;

	assert_int_equal(bs_parse_size("3MiB", &v), 0);
	assert_int_equal(v, 3 << 20);
	assert_int_equal(bs_parse_size("16777216T", &v), -ERANGE);
	assert_int_equal(bs_parse_size("3 M", &v), -EINVAL);
	assert_int_equal(bs_parse_size("M", &v), -EINVAL);
	assert_int_equal(bs_parse_duration("250ms", &v), 0);
	assert_int_equal(v, 250000000);
	assert_int_equal(bs_parse_duration("2", &v), 0);
	assert_int_equal(v, 2000000000);
	assert_int_equal(bs_parse_duration("2d", &v), -EINVAL);
	assert_int_equal(bs_parse_bool("off", &b), 0);
	assert_false(b);
	assert_int_equal(bs_parse_bool("maybe", &b), -EINVAL);
}

static void paths_are_cleaned_lexically(void **state)
{
	static const char *const cases[][2] = {
		{ "/a//b/../c/.", "/a/c" }, { "", "/" },	  { "/", "/" },
		{ "../../x", "/x" },	    { "a/./b/", "/a/b" }, { "/..", "/" },
		{ "/a/...", "/a/..." },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *got = bs_path_clean(cases[i][0]);

		assert_string_equal(got, cases[i][1]);
		assert_true(bs_path_is_clean(got));
	}
	assert_false(bs_path_is_clean("/a/"));
	assert_false(bs_path_is_clean("/a/../b"));
	assert_false(bs_path_is_clean("a"));
	assert_true(bs_path_is_below("/a/b", "/a"));
	assert_true(bs_path_is_below("/a", "/a"));
	assert_false(bs_path_is_below("/ab", "/a"));
	assert_true(bs_path_is_below("/ab", "/"));
	assert_false(bs_path_name_ok("..", 2));
	assert_true(bs_path_name_ok("..a", 3));
	assert_false(bs_path_name_ok("a/b", 3));
	assert_false(bs_path_name_ok("a\0b", 3));
}

static char scratch[] = "/tmp/bootseer-unit-XXXXXX";
static int scratch_fd;

static int make_scratch(void **state)
{
	if (!mkdtemp(scratch))
		return -1;
	scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return scratch_fd < 0 ? -1 : 0;
}

static int remove_scratch(void **state)
{
	const char *const argv[] = { "rm", "-rf", scratch, NULL };
	struct bs_spawn s = BS_SPAWN_INIT;
	struct bs_child c;
	int status;

	bs_close(scratch_fd);
	s.argv = argv;
	if (bs_spawn_start(&s, &c, NULL) < 0)
		return -1;
	return bs_spawn_wait(&c, 0, &status);
}

static void nothing_resolves_outside_a_root(void **state)
{
	bs_autofd int root = -EBADF, fd = -EBADF;

	root = bs_mkdir_open(scratch_fd, "root/etc", 0755);
	root = bs_close(root);
	root = openat(scratch_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bs_atomicfile_write(scratch_fd, "passwd", "host", 4, 0644, false), 0);
	assert_int_equal(symlinkat("/passwd", root, "abs"), 0);
	assert_int_equal(symlinkat("../../../passwd", root, "rel"), 0);
	assert_int_equal(bs_path_open_in_root(root, "abs", O_RDONLY, 0), -ENOENT);
	assert_int_equal(bs_path_open_in_root(root, "rel", O_RDONLY, 0), -ENOENT);
	assert_int_equal(bs_path_open_in_root(root, "../passwd", O_RDONLY, 0), -ENOENT);
	assert_int_equal(bs_path_open_beneath(root, "../passwd", O_RDONLY, 0), -EXDEV);
	assert_int_equal(bs_path_open_beneath(root, "abs", O_RDONLY, 0), -ELOOP);
	fd = bs_path_open_in_root(root, "/etc", O_PATH, 0);
	assert_true(fd >= 0);
	fd = bs_close(fd);
	fd = bs_path_open_beneath(root, "new", O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
}

static void files_appear_whole(void **state)
{
	bs_autofree char *text = NULL;
	bs_autofd int fd = -EBADF;
	size_t len;

	assert_int_equal(bs_atomicfile_write(scratch_fd, "f", "one", 3, 0640, true), 0);
	assert_int_equal(bs_atomicfile_write(scratch_fd, "f", "three", 5, 0600, false), 0);
	assert_int_equal(bs_read_file_at(scratch_fd, "f", 0, 5, &text, &len), 0);
	assert_string_equal(text, "three");
	free(bs_take(&text));
	assert_int_equal(bs_read_file_at(scratch_fd, "f", 0, 4, &text, &len), -EFBIG);
	assert_int_equal(bs_atomicfile_write(scratch_fd, "no/f", "x", 1, 0600, false), -ENOENT);
	fd = bs_atomicfile_open(scratch_fd, 0600);
	assert_true(fd >= 0);
	assert_int_equal(faccessat(scratch_fd, "g", F_OK, 0), -1);
	assert_int_equal(bs_atomicfile_publish(fd, scratch_fd, "g", false), 0);
	assert_int_equal(faccessat(scratch_fd, "g", F_OK, 0), 0);
}

static void locks_exclude(void **state)
{
	int a = bs_lock_open(scratch_fd, "lock", 0);

	assert_true(a >= 0);
	assert_int_equal(bs_lock_open(scratch_fd, "lock", 0), -EAGAIN);
	assert_int_equal(bs_lock_open(scratch_fd, "lock", 20 * BS_NS_PER_MS), -ETIMEDOUT);
	bs_close(a);
	a = bs_lock_open(scratch_fd, "lock", 0);
	assert_true(a >= 0);
	bs_close(a);
}

static void buffers_stop_at_their_cap(void **state)
{
	bs_autobuf b = BS_BUF_INIT(8);

	assert_string_equal(bs_buf_str(&b), "");
	assert_int_equal(bs_buf_adds(&b, "12345678"), 0);
	assert_int_equal(bs_buf_adds(&b, ""), 0);
	assert_int_equal(bs_buf_adds(&b, "9"), -E2BIG);
	assert_int_equal(bs_buf_adds(&b, ""), -E2BIG); /* sticks */
	assert_string_equal(bs_buf_str(&b), "12345678");
	bs_buf_clear(&b);
	assert_int_equal(bs_buf_addf(&b, "%d", 42), 0);
	assert_string_equal(bs_buf_str(&b), "42");
}

static void a_map_keeps_what_was_put(void **state)
{
	static char keys[5000][8];
	struct bs_map m;
	size_t pos = 0, n = 0;

	bs_map_init(&m);
	assert_null(bs_map_get(&m, "x", 1));
	assert_null(bs_map_remove(&m, "x", 1));
	for (size_t i = 0; i < 5000; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%zu", i);
		assert_int_equal(bs_map_put(&m, keys[i], strlen(keys[i]), keys[i]), 0);
	}
	for (size_t i = 0; i < 5000; i += 2)
		assert_ptr_equal(bs_map_remove(&m, keys[i], strlen(keys[i])), keys[i]);
	for (size_t i = 0; i < 5000; i++)
		assert_ptr_equal(bs_map_get(&m, keys[i], strlen(keys[i])), i % 2 ? keys[i] : NULL);
	while (bs_map_next(&m, &pos))
		n++;
	assert_int_equal(n, 2500);
	assert_int_equal(m.n, 2500);
	/* put and remove for ever does not grow the table */
	for (size_t i = 0; i < 100000; i++) {
		assert_int_equal(bs_map_put(&m, keys[i % 5000], 3, keys[0]), 0);
		bs_map_remove(&m, keys[i % 5000], 3);
	}
	assert_true(m.n_slots <= 32768);
	bs_map_done(&m);
}

static void digests_are_sha256(void **state)
{
	char buf[BS_DIGEST_TEXT_LEN];
	struct bs_digest d, e;
	struct bs_sha256 *h = bs_sha256_new();

	/* FIPS 180-4, the one-block example */
	bs_digest_of("abc", 3, &d);
	assert_string_equal(bs_digest_text(&d, buf), "sha256:ba7816bf8f01cfea414140de5dae2223"
						     "b00361a396177a9cb410ff61f20015ad");
	for (int i = 0; i < 2; i++) {
		bs_sha256_update(h, "a", 1);
		bs_sha256_update(h, "bc", 2);
		bs_sha256_final(h, &e);
		assert_true(bs_digest_eq(&d, &e));
	}
	bs_sha256_free(h);
	assert_int_equal(bs_digest_parse(buf, strlen(buf), &e), 0);
	assert_true(bs_digest_eq(&d, &e));
	buf[70] = 'A';
	assert_int_equal(bs_digest_parse(buf, 71, &e), -EINVAL);
	assert_int_equal(bs_digest_parse("sha512:00", 9, &e), -EINVAL);
}

static void a_file_is_hashed_as_far_as_is_asked(void **state)
{
	bs_autofd int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct bs_digest d, want;
	uint64_t size;

	assert_true(fd >= 0);
	assert_int_equal(bs_pwrite_full(fd, "abcdef", 6, 0), 0);
	bs_digest_of("abc", 3, &want);
	assert_int_equal(bs_digest_of_file(fd, 3, &d, &size), 0);
	assert_true(size == 3 && bs_digest_eq(&d, &want));
	bs_digest_of("abcdef", 6, &want);
	assert_int_equal(bs_digest_of_file(fd, 7, &d, &size), 0);
	assert_true(size == 6 && bs_digest_eq(&d, &want));
	assert_int_equal(bs_digest_of_file(fd, 0, &d, &size), 0);
	assert_true(size == 0);
	assert_int_equal(bs_digest_of_file(-1, 7, &d, &size), -EBADF);
}

static void a_limit_refills_with_time(void **state)
{
	struct bs_limit l;

	bs_limit_init(&l, 10, 5, 0);
	assert_true(bs_limit_take(&l, 5, 0));
	assert_false(bs_limit_take(&l, 1, 50 * BS_NS_PER_MS));
	assert_int_equal(bs_limit_wait_ns(&l, 1, 50 * BS_NS_PER_MS), 100 * BS_NS_PER_MS + 1);
	assert_true(bs_limit_take(&l, 1, 101 * BS_NS_PER_MS));
	assert_true(bs_limit_take(&l, 99, 10 * BS_NS_PER_S)); /* more than the bucket: when full */
	bs_limit_init(&l, 0, 0, 0);
	assert_true(bs_limit_take(&l, UINT64_MAX, 0));
}

static void clocks_read_well(void **state)
{
	char buf[BS_CLOCK_RFC3339_LEN];

	assert_string_equal(bs_clock_rfc3339(1700000000123456789ull, buf),
			    "2023-11-14T22:13:20.123456789Z");
	assert_string_equal(bs_clock_human(1234567890, buf, sizeof(buf)), "1.23 s");
	assert_string_equal(bs_clock_human(412345678, buf, sizeof(buf)), "412 ms");
	assert_string_equal(bs_clock_human(0, buf, sizeof(buf)), "0 ns");
}

static int run(const char *const *argv, uint64_t deadline_ns, size_t max, char **ret_out)
{
	struct bs_spawn s = BS_SPAWN_INIT;

	s.argv = argv;
	return bs_spawn_capture(&s, "hello", 5, deadline_ns, max, ret_out, NULL, NULL);
}

static void children_are_run_and_reaped(void **state)
{
	const char *const cat[] = { "cat", NULL };
	const char *const fails[] = { "sh", "-c", "exit 7", NULL };
	const char *const hangs[] = { "sleep", "100", NULL };
	const char *const talks[] = { "yes", NULL };
	const char *const absent[] = { "/nonexistent/program", NULL };
	const char *const fds[] = { "sh", "-c", "ls /proc/self/fd | wc -l", NULL };
	bs_autofree char *out = NULL;
	struct bs_spawn s = BS_SPAWN_INIT;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_child c;

	assert_int_equal(run(cat, 0, 100, &out), 0);
	assert_string_equal(out, "hello");
	free(bs_take(&out));
	assert_int_equal(run(fails, 0, 100, &out), 7);
	free(bs_take(&out));
	assert_int_equal(run(hangs, bs_clock_ns() + 50 * BS_NS_PER_MS, 100, &out), -ETIMEDOUT);
	assert_int_equal(run(talks, 0, 10000, &out), -EFBIG);
	assert_int_equal(run(fds, 0, 100, &out), 0);
	assert_string_equal(out, "4\n"); /* 0, 1, 2 and ls's own */
	s.argv = absent;
	assert_int_equal(bs_spawn_start(&s, &c, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/program"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void quantities_read_well(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 102348, "99.9 KiB" },
		{ 102399, "100 KiB" },
		{ (1 << 20) - 1, "1.0 MiB" },
		{ 12897485, "12.3 MiB" },
		{ 412ull << 30, "412 GiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char buf[BS_HUMAN_LEN];

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++)
		assert_string_equal(bs_human_bytes(cases[i].bytes, buf), cases[i].text);
	assert_string_equal(bs_human_rate(3 << 20, 2 * BS_NS_PER_S, buf), "1.5 MiB/s");
	assert_string_equal(bs_human_rate(1, 0, buf), "0 B/s");
}

static void test_the_last_of_two_options_counts(void **state)
{
	static const struct {
		const char *list;
		bool on;
	} cases[] = {
		{ "", false },
		{ ",", false },
		{ "noexec", true },
		{ "rw,noexec,user=a", true },
		{ "exec", false },
		{ "noexec,exec", false },
		{ "exec,noexec,", true },
		{ "noexecs,xnoexec,noexe,noexec=1,a=noexec", false },
		{ "noexec,exec=1,,rw", true },
	};

	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++)
		assert_int_equal(bs_str_option(cases[i].list, "noexec", "exec"), cases[i].on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_the_last_of_two_options_counts),
		UNIT_TEST(errors_gain_context_and_never_overflow),
		UNIT_TEST(foreign_names_cannot_drive_a_terminal),
		UNIT_TEST(numbers_are_strict),
		UNIT_TEST(sizes_and_durations_have_units),
		UNIT_TEST(paths_are_cleaned_lexically),
		UNIT_TEST(nothing_resolves_outside_a_root),
		UNIT_TEST(files_appear_whole),
		UNIT_TEST(locks_exclude),
		UNIT_TEST(buffers_stop_at_their_cap),
		UNIT_TEST(a_map_keeps_what_was_put),
		UNIT_TEST(digests_are_sha256),
		UNIT_TEST(a_file_is_hashed_as_far_as_is_asked),
		UNIT_TEST(a_limit_refills_with_time),
		UNIT_TEST(clocks_read_well),
		UNIT_TEST(quantities_read_well),
		UNIT_TEST(children_are_run_and_reaped),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
