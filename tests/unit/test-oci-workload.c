/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "oci/workload.h"

static void names_of_workloads(void **state)
{
	char longest[BS_WORKLOAD_MAX + 2];

	memset(longest, 'a', sizeof(longest));
	longest[BS_WORKLOAD_MAX] = '\0';
	assert_true(bs_workload_ok(longest));
	longest[BS_WORKLOAD_MAX] = 'a';
	longest[BS_WORKLOAD_MAX + 1] = '\0';
	assert_false(bs_workload_ok(longest));
	assert_true(bs_workload_ok("team/llama-7b:train+eval@v1.2_x"));
	assert_false(bs_workload_ok(""));
	assert_false(bs_workload_ok("a b"));
	assert_false(bs_workload_ok("a\n"));
	assert_false(bs_workload_ok("\xc3\xa4"));
}

/* What the commands would take for something else is no name. */
static void names_that_mean_something_else(void **state)
{
	char digest[] = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

	assert_false(bs_workload_ok(digest));
	digest[sizeof(digest) - 2] = 'g';
	assert_true(bs_workload_ok(digest));
	assert_false(bs_workload_ok("-x"));
	assert_false(bs_workload_ok("--json"));
	assert_true(bs_workload_ok("x-"));
}

static void errors_say_what_is_wrong(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	char name[130];

	memset(name, 'a', 129);
	name[129] = '\0';
	assert_int_equal(bs_workload_check(name, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "129 characters"));
	assert_non_null(strstr(err.msg, "128"));
	assert_non_null(strstr(err.msg, "aaa…'"));
	assert_int_equal(bs_workload_check("a b", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "'a b'"));
	assert_null(strstr(err.msg, "…"));
	assert_int_equal(bs_workload_check("-x", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "begins with '-'"));
}

static void expect(const char *a, const char *b, bool same)
{
	bs_auto(json) struct bs_json *x = NULL, *y = NULL;
	char of_x[64], of_y[64];

	assert_int_equal(bs_json_parse("a", a, strlen(a), 4096, &x, NULL), 0);
	assert_int_equal(bs_json_parse("b", b, strlen(b), 4096, &y, NULL), 0);
	bs_workload_of_args(x, of_x, sizeof(of_x));
	bs_workload_of_args(y, of_y, sizeof(of_y));
	assert_true(bs_workload_ok(of_x));
	if (same)
		assert_string_equal(of_x, of_y);
	else
		assert_string_not_equal(of_x, of_y);
}

static void ranks_and_ports_make_no_difference(void **state)
{
	expect("[\"torchrun\",\"--node-rank=3\",\"--rdzv=node17:29500\",\"t.py\"]",
	       "[\"torchrun\",\"--node-rank=12\",\"--rdzv=node4:1\",\"t.py\"]", true);
	expect("[\"/usr/bin/python3\",\"a.py\"]", "[\"/usr/bin/python3\",\"b.py\"]", false);
	expect("[\"a\",\"b\"]", "[\"ab\"]", false);
	expect("[\"a\",\"\"]", "[\"a\"]", false);
	expect("[\"a1\"]", "[\"a\"]", false);
	expect("[\"-bash\"]", "[\"bash\"]", false);
}

static void names_show_the_program(void **state)
{
	static const char args[] = "[\"/opt/my env/bin/py thon3\",\"x\"]";
	bs_auto(json) struct bs_json *v = NULL;
	char name[64], longest[64];

	assert_int_equal(bs_json_parse("a", args, strlen(args), 4096, &v, NULL), 0);
	bs_workload_of_args(v, name, sizeof(name));
	assert_memory_equal(name, "py_thon3-", 9);
	assert_int_equal(strlen(name), 9 + 16);
	bs_workload_of_args(NULL, longest, sizeof(longest));
	assert_memory_equal(longest, "none-", 5);
	assert_true(bs_workload_ok(longest));
}

static void strange_arguments_do_no_harm(void **state)
{
	expect("[1,null,{}]", "[]", true);
	expect("[\"\"]", "[\"/\"]", false);
	expect("{}", "[]", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(names_of_workloads),	     UNIT_TEST(names_that_mean_something_else),
		UNIT_TEST(errors_say_what_is_wrong), UNIT_TEST(ranks_and_ports_make_no_difference),
		UNIT_TEST(names_show_the_program),   UNIT_TEST(strange_arguments_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
