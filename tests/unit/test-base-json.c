/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/jsonw.h"

static int parse(const char *text, size_t len, struct bs_json **ret)
{
	return bs_json_parse("input", text, len, 1 << 20, ret, NULL);
}

static void what_is_written_is_what_was_read(void **state)
{
	static const char *const texts[] = {
		"{\"a\":[1,-2.5e+3,\"x\xc3\xa9\",null,true,false,{\"b\":{}}],\"a.b\":\"/\"}",
		"123456789012345678901234567890",
		"[18446744073709551615,1.0,1e400,-0]",
		"\"\"",
		"[]",
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		bs_auto(json) struct bs_json *v = NULL;
		bs_autobuf out = BS_BUF_INIT(4096);

		assert_int_equal(parse(texts[i], strlen(texts[i]), &v), 0);
		assert_int_equal(bs_json_write(v, &out), 0);
		assert_string_equal(bs_buf_str(&out), texts[i]);
	}
}

static void what_two_readers_could_read_differently_is_refused(void **state)
{
	static const char *const texts[] = {
		"{\"a\":1,\"a\":2}",
		"{\"a\":{\"b\":1,\"c\":2,\"b\":3}}",
		"{\"a\\u0000x\":1}",
		"\"ab\\u0000cd\"",
		"\"ab\\udc00\"",
		"{\"a\\ude9d\\u58ed\":1}",
		"/* c */ 1",
		"1 2",
		"{} x",
		"\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"",
		"[1,]",
		"{\"a\":1,}",
		"'a'",
		"01",
		"+1",
		"NaN",
		"",
		" ",
		"[",
		"{\"a\"",
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		struct bs_json *v = NULL;
		struct bs_error err = BS_ERROR_INIT;
		int r = bs_json_parse("f.json", texts[i], strlen(texts[i]), 1 << 20, &v, &err);

		if (r != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_null(v);
		assert_non_null(strstr(err.msg, "f.json: not acceptable JSON"));
	}
}

static void nesting_is_bounded(void **state)
{
	char text[2 * BS_JSON_DEPTH_MAX + 3];
	bs_auto(json) struct bs_json *v = NULL;

	memset(text, '[', BS_JSON_DEPTH_MAX);
	memset(text + BS_JSON_DEPTH_MAX, ']', BS_JSON_DEPTH_MAX);
	assert_int_equal(parse(text, (size_t)2 * BS_JSON_DEPTH_MAX, &v), 0);
	v = bs_json_free(v);
	memset(text, '[', BS_JSON_DEPTH_MAX + 1);
	memset(text + BS_JSON_DEPTH_MAX + 1, ']', BS_JSON_DEPTH_MAX + 1);
	assert_int_equal(parse(text, (size_t)2 * BS_JSON_DEPTH_MAX + 2, &v), -EINVAL);
}

static void size_is_bounded(void **state)
{
	struct bs_json *v = NULL;

	assert_int_equal(bs_json_parse("x", "1234", 4, 3, &v, NULL), -E2BIG);
	assert_int_equal(bs_json_parse("x", "123", 3, 3, &v, NULL), 0);
	bs_json_free(v);
}

static void many_members_are_quick(void **state)
{
	bs_autobuf text = BS_BUF_INIT(8 << 20);
	bs_auto(json) struct bs_json *v = NULL;

	bs_buf_adds(&text, "{");
	for (int i = 0; i < 200000; i++)
		bs_buf_addf(&text, "%s\"k%d\":%d", i ? "," : "", i, i);
	bs_buf_adds(&text, "}");
	assert_int_equal(bs_json_parse("x", text.data, text.len, 8 << 20, &v, NULL), 0);
	assert_int_equal(bs_json_n(v), 200000);
}

static void values_are_read_strictly(void **state)
{
	static const char text[] = "{\"n\":12,\"s\":\"x\",\"neg\":-1,\"f\":1.5,\"o\":{\"p\":[7]}}";
	bs_auto(json) struct bs_json *v = NULL;
	uint64_t n = 99;
	int64_t i = 99;

	assert_int_equal(parse(text, sizeof(text) - 1, &v), 0);
	assert_int_equal(bs_json_u64(bs_json_get(v, "n"), &n), 0);
	assert_int_equal(n, 12);
	assert_int_equal(bs_json_u64(bs_json_get(v, "neg"), &n), -EINVAL);
	assert_int_equal(bs_json_u64(bs_json_get(v, "f"), &n), -EINVAL);
	assert_int_equal(bs_json_u64(bs_json_get(v, "s"), &n), -EINVAL);
	assert_int_equal(bs_json_u64(bs_json_get(v, "absent"), &n), -EINVAL);
	assert_int_equal(n, 12);
	assert_int_equal(bs_json_i64(bs_json_get(v, "neg"), &i), 0);
	assert_int_equal(i, -1);
	assert_null(bs_json_str(bs_json_get(v, "n")));
	assert_int_equal(bs_json_u64(bs_json_at(bs_json_find(v, "o.p"), 0), &n), 0);
	assert_int_equal(n, 7);
	assert_null(bs_json_find(v, "o.q.r"));
}

static void names_that_differ_in_case_only_are_found(void **state)
{
	static const char text[] = "{\"ROOT\":1,\"hoo\xe2\x84\xaas\":1,\"proce\xc5\xbf"
				   "s\":1,\"mounts\":1}";
	bs_auto(json) struct bs_json *v = NULL;

	assert_int_equal(parse(text, sizeof(text) - 1, &v), 0);
	assert_string_equal(bs_json_variant(v, "root"), "ROOT");
	assert_non_null(bs_json_variant(v, "hooks"));
	assert_non_null(bs_json_variant(v, "process"));
	assert_null(bs_json_variant(v, "mounts"));
	assert_null(bs_json_variant(v, "linux"));
}

static void a_document_can_be_changed(void **state)
{
	static const char text[] = "{\"keep\":1.50,\"list\":[1,2,3],\"gone\":{}}";
	bs_auto(json) struct bs_json *v = NULL, *copy = NULL;
	bs_autobuf out = BS_BUF_INIT(4096);

	assert_int_equal(parse(text, sizeof(text) - 1, &v), 0);
	copy = bs_json_copy(v);
	assert_true(bs_json_equal(v, copy));
	bs_json_remove(v, "gone");
	bs_json_remove(v, "never");
	bs_json_remove_at(bs_json_get(v, "list"), 1);
	bs_json_remove_at(bs_json_get(v, "list"), 9);
	assert_int_equal(bs_json_set(v, "new", bs_json_new_str("a\"b")), 0);
	assert_int_equal(bs_json_set(v, "new", bs_json_new_u64(UINT64_MAX)), 0);
	assert_int_equal(bs_json_append(bs_json_make(v, "made", BS_JSON_ARRAY),
					bs_json_new_bool(true)),
			 0);
	assert_null(bs_json_make(v, "made", BS_JSON_OBJECT));
	assert_false(bs_json_equal(v, copy));
	assert_int_equal(bs_json_write(v, &out), 0);
	assert_string_equal(bs_buf_str(&out), "{\"keep\":1.50,\"list\":[1,3],\"new\":"
					      "18446744073709551615,\"made\":[true]}");
}

static void the_writer_refuses_what_is_no_json(void **state)
{
	bs_autobuf out = BS_BUF_INIT(4096);
	struct bs_jsonw *w = bs_jsonw_new(false);

	bs_jsonw_object(w);
	assert_int_equal(bs_jsonw_finish(w, &out), -EINVAL); /* left open */
	w = bs_jsonw_new(false);
	bs_jsonw_str(w, "\xff");
	assert_int_equal(bs_jsonw_finish(w, &out), -EINVAL);
	w = bs_jsonw_new(false);
	for (int i = 0; i < 200; i++)
		bs_jsonw_array(w);
	assert_int_equal(bs_jsonw_finish(w, &out), -EINVAL);
	w = bs_jsonw_new(false);
	bs_jsonw_bytes(w, "a\xff\xc3\xa9\xe2\x82", 6);
	assert_int_equal(bs_jsonw_finish(w, &out), 0);
	assert_string_equal(bs_buf_str(&out), "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(what_is_written_is_what_was_read),
		UNIT_TEST(what_two_readers_could_read_differently_is_refused),
		UNIT_TEST(nesting_is_bounded),
		UNIT_TEST(size_is_bounded),
		UNIT_TEST(many_members_are_quick),
		UNIT_TEST(values_are_read_strictly),
		UNIT_TEST(names_that_differ_in_case_only_are_found),
		UNIT_TEST(a_document_can_be_changed),
		UNIT_TEST(the_writer_refuses_what_is_no_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
