/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "shim/args.h"
#include "shim/report.h"

struct row {
	const char *line; /* words after the program's name */
	enum bs_command command;
	const char *root, *bundle, *id;
};

static const struct row rows[] = {
	{ "create c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "--root /r create --bundle /b --pid-file /p c1", BS_COMMAND_CREATE, "/r", "/b", "c1" },
	{ "--root=/r create --bundle=/b c1", BS_COMMAND_CREATE, "/r", "/b", "c1" },
	{ "-root /r run -b /b c1", BS_COMMAND_RUN, "/r", "/b", "c1" },
	{ "--systemd-cgroup --debug=true run c1 -b /b", BS_COMMAND_RUN, NULL, "/b", "c1" },
	{ "create -b/b c1", BS_COMMAND_CREATE, NULL, "/b", "c1" },
	{ "create --pidfd-socket /s c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	/* options that nobody has told us of */
	{ "create --new-flag c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "create --new-option x c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "create c1 --new-option x", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "create --new=x c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "--new-option x create c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "--new-flag create c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "--new-flag state c1", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "delete --force c1", BS_COMMAND_DELETE, NULL, ".", "c1" },
	{ "delete -f c1", BS_COMMAND_DELETE, NULL, ".", "c1" },
	{ "delete c1 -f", BS_COMMAND_DELETE, NULL, ".", "c1" },
	{ "restore --image-path /i c1", BS_COMMAND_RESTORE, NULL, ".", "c1" },
	{ "create -- -odd", BS_COMMAND_CREATE, NULL, ".", "-odd" },
	{ "create", BS_COMMAND_CREATE, NULL, ".", NULL },
	{ "create --bundle", BS_COMMAND_CREATE, NULL, ".", NULL },
	{ "", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "--root", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "--", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "-- create c1", BS_COMMAND_CREATE, NULL, ".", "c1" },
	{ "state create", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "frobnicate create c1", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "exec c1 delete", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "--version", BS_COMMAND_VERSION, NULL, NULL, NULL },
	{ "--root /r -v", BS_COMMAND_VERSION, "/r", NULL, NULL },
	{ "exec c1 prog --version", BS_COMMAND_OTHER, NULL, NULL, NULL },
	{ "features", BS_COMMAND_FEATURES, NULL, ".", NULL },
};

static void check(const struct row *row)
{
	bs_autostrv words = { 0 };
	struct bs_args a;

	assert_int_equal(bs_strv_add(&words, "bootseer"), 0);
	assert_int_equal(bs_strv_split(&words, row->line, " "), 0);
	bs_args_parse((int)words.n, words.v, &a);
	assert_int_equal(a.command, row->command);
	assert_string_equal(a.root ?: "-", row->root ?: "-");
	assert_string_equal(a.bundle ?: "-", row->bundle ?: "-");
	assert_string_equal(a.id ?: "-", row->id ?: "-");
}

static void test_command_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(rows); i++) {
		print_message("[ line   ] %s\n", rows[i].line);
		check(&rows[i]);
	}
}

static void test_members(void **state)
{
	const char *words[] = { "x",	   "--log", "/l", "--log-format", "json",
				"--debug", "run",   "-d", "--keep",	  "id" };
	const char *delete[] = { "x", "delete", "-f", "--detach=false", "id" };
	const char *crun[] = { "x", "create", "-f", "other.json", "id" };
	struct bs_args a;

	(void)state;
	bs_args_parse(BS_ARRAY_LEN(words), (char **)(uintptr_t)words, &a);
	assert_string_equal(a.log, "/l");
	assert_true(a.log_json && a.debug && a.detach && a.keep && !a.force);
	bs_args_parse(BS_ARRAY_LEN(delete), (char **)(uintptr_t) delete, &a);
	assert_true(a.force && !a.detach && !a.config);
	bs_args_parse(BS_ARRAY_LEN(crun), (char **)(uintptr_t)crun, &a);
	assert_string_equal(a.config, "other.json");
	assert_string_equal(a.id, "id");
}

static void test_ids(void **state)
{
	char name[223];

	(void)state;
	assert_true(bs_args_id_ok("a"));
	assert_true(bs_args_id_ok("..."));
	assert_true(bs_args_id_ok("A_1+b,c-d.e"));
	assert_false(bs_args_id_ok(""));
	assert_false(bs_args_id_ok("."));
	assert_false(bs_args_id_ok(".."));
	assert_false(bs_args_id_ok("a/b"));
	assert_false(bs_args_id_ok("a b"));
	assert_false(bs_args_id_ok("a@b"));
	memset(name, 'a', sizeof(name));
	name[220] = '\0';
	assert_true(bs_args_id_ok(name));
	name[220] = 'a';
	name[221] = '\0';
	assert_false(bs_args_id_ok(name));
}

static void test_neutral_texts(void **state)
{
	char text[] = "open 'x': No such file or directory; stat: Permission denied, "
		      "Executable file not found in $PATH";

	(void)state;
	bs_report_neutral(text);
	assert_null(strcasestr(text, "no such file"));
	assert_null(strcasestr(text, "permission denied"));
	assert_null(strcasestr(text, "executable file not found"));
	assert_non_null(strstr(text, "open 'x': it does not exist; stat: access refused, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_command_lines),
		UNIT_TEST(test_members),
		UNIT_TEST(test_ids),
		UNIT_TEST(test_neutral_texts),
	};

	return cmocka_run_group_tests_name("shim/args", tests, NULL, NULL);
}
