/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/header.h"
#include "net/session.h"
#include "net/url.h"

static void same(const char *a, const char *b)
{
	if (b)
		assert_string_equal(a, b);
	else
		assert_null(a);
}

static void challenges_are_understood(void **state)
{
	static const struct {
		const char *text;
		bool basic, bearer;
		const char *realm, *service, *scope;
	} cases[] = {
		{ "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:a/b:pull,push\"",
		  false, true, "https://a/t", "s", "repository:a/b:pull,push" },
		{ "bearer REALM=\"r\" , Service=s", false, true, "r", "s", NULL },
		{ "Basic realm=\"x\"", true, false, NULL, NULL, NULL },
		{ "Basic realm=\"x\", Bearer realm=\"y\"", true, true, "y", NULL, NULL },
		{ "Bearer realm=\"y\",service=s, Basic realm=\"x\"", true, true, "y", "s", NULL },
		{ "Bearer realm=\"y\", Bearer realm=\"z\"", false, true, "y", NULL, NULL },
		{ "Negotiate abc==, Basic realm=\"x\"", true, false, NULL, NULL, NULL },
		{ "Negotiate, Bearer realm=\"a\\\"b\"", false, true, "a\"b", NULL, NULL },
		{ "Digest realm=\"Bearer realm=z\"", false, false, NULL, NULL, NULL },
		{ "Bearer realm=\"open", false, true, NULL, NULL, NULL },
		{ "Bearer realm=\"x\\", false, true, NULL, NULL, NULL },
		{ "Bearer =x, realm=y", false, false, NULL, NULL, NULL },
		{ "(), ,,;=\"", false, false, NULL, NULL, NULL },
		{ "", false, false, NULL, NULL, NULL },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_challenge c;

		assert_int_equal(bs_header_challenge(cases[i].text, &c), 0);
		if (c.basic != cases[i].basic || c.bearer != cases[i].bearer)
			fail_msg("%s: %d %d", cases[i].text, c.basic, c.bearer);
		same(c.realm, cases[i].realm);
		same(c.service, cases[i].service);
		same(c.scope, cases[i].scope);
		bs_challenge_done(&c);
	}
}

static void content_ranges_are_exact(void **state)
{
	static const char *const bad[] = { "",
					   "bytes",
					   "bytes ",
					   "bytes 0-1",
					   "bytes 1-0/2",
					   "bytes 0-1/1",
					   "bytes */10",
					   "bytes 0-1/2 ",
					   "bytes 0-1/2x",
					   "bytes -1/2",
					   "bytes 0--1/2",
					   "bytes +0-1/2",
					   "items 0-1/2",
					   "bytes 0-18446744073709551615/*",
					   "bytes 0-18446744073709551616/*",
					   "bytes 0-1/99999999999999999999999999" };
	uint64_t first, last, total;

	assert_int_equal(bs_header_content_range("bytes 0-0/1", &first, &last, &total), 0);
	assert_true(first == 0 && last == 0 && total == 1);
	assert_int_equal(bs_header_content_range("Bytes 5-9/*", &first, &last, &total), 0);
	assert_true(first == 5 && last == 9 && total == UINT64_MAX);
	assert_int_equal(bs_header_content_range("bytes 0-18446744073709551614/*", &first, &last,
						 &total),
			 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		if (bs_header_content_range(bad[i], &first, &last, &total) != -EBADMSG)
			fail_msg("%s", bad[i]);
	}
}

static void retry_after_is_seconds_or_a_date(void **state)
{
	const uint64_t now = UINT64_C(784111777) * BS_NS_PER_S; /* 1994-11-06 08:49:37 */
	static const struct {
		const char *text;
		uint64_t s;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "7, 8", 7 },
		{ "86401", 86400 },
		{ "99999999999999999999999999", 86400 },
		{ "Sun, 06 Nov 1994 08:49:47 GMT", 10 },
		{ "Sunday, 06-Nov-94 08:49:47 GMT", 10 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 1 },
		{ "Sun, 06 Nov 1990 08:49:37 GMT", 1 },
		{ "Sun, 06 Nov 2094 08:49:37 GMT", 86400 },
		{ "soon", 0 },
		{ "-1", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		uint64_t got = bs_header_retry_after(cases[i].text, now) / BS_NS_PER_S;

		if (got != cases[i].s)
			fail_msg("%s: %lu", cases[i].text, (unsigned long)got);
	}
}

static void the_next_link_is_found(void **state)
{
	static const struct {
		const char *text, *url;
	} cases[] = {
		{ "</v2/a/tags/list?last=x&n=2>; rel=\"next\"", "/v2/a/tags/list?last=x&n=2" },
		{ "<a>; rel=prev, <b>; rel=next", "b" },
		{ "<a,b;c>; title=\"x, y\"; rel=\"last next\"", "a,b;c" },
		{ "<a>; rel=\"nextest\"", NULL },
		{ "<a>", NULL },
		{ "<a; rel=next", NULL },
		{ "rel=next", NULL },
		{ "<a>; rel=\"next", NULL },
		{ "<a>;;; ; rel=next", "a" },
		{ "", NULL },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *url = NULL;
		int r = bs_header_link_next(cases[i].text, &url);

		assert_int_equal(r, cases[i].url ? 0 : -ENOENT);
		same(url, cases[i].url);
	}
}

static void media_types_lose_their_parameters(void **state)
{
	bs_autofree char *a = bs_header_media_type("Application/JSON; charset=utf-8");
	bs_autofree char *b = bs_header_media_type("");

	assert_string_equal(a, "application/json");
	assert_string_equal(b, "");
}

static void urls_are_resolved_and_the_dangerous_refused(void **state)
{
	static const struct {
		const char *base, *location;
		int r;
		const char *url;
	} cases[] = {
		{ "https://a/v2/x?k=1", "/y?z=2", 0, "https://a/y?z=2" },
		{ "https://a/v2/x", "y", 0, "https://a/v2/y" },
		{ "https://a/x", "https://b:1/y#f", 0, "https://b:1/y" },
		{ "https://a/x", "//b/y", 0, "https://b/y" },
		{ "http://a/x", "https://b/y", 0, "https://b/y" },
		{ "https://a/x", "http://b/y", -EPERM, NULL },
		{ "https://a/x", "https://u:p@b/y", -EINVAL, NULL },
		{ "https://a/x", "ftp://b/y", -EINVAL, NULL },
		{ "https://a/x", "file:///etc/passwd", -EINVAL, NULL },
		{ "https://a/x", "https://b/\ny", -EINVAL, NULL },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *url = NULL;
		int r = bs_url_resolve(cases[i].base, cases[i].location, &url);

		if (r != cases[i].r)
			fail_msg("%s: %d", cases[i].location, r);
		same(url, cases[i].url);
	}
	assert_true(bs_url_same_origin("https://a/x", "https://A:443/y"));
	assert_false(bs_url_same_origin("https://a/x", "http://a/x"));
	assert_false(bs_url_same_origin("https://a/x", "https://a:444/x"));
	assert_false(bs_url_same_origin("https://a/x", "https://a.b/x"));
	assert_false(bs_url_same_origin("https://a/x", "nonsense"));
}

static void queries_are_escaped(void **state)
{
	bs_autobuf b = BS_BUF_INIT(1000);

	assert_int_equal(bs_buf_adds(&b, "http://a/b"), 0);
	assert_int_equal(bs_url_add_query(&b, "k", "a b:/&\xff"), 0);
	assert_int_equal(bs_url_add_query(&b, "l", "~-._"), 0);
	assert_string_equal(bs_buf_str(&b), "http://a/b?k=a%20b%3A%2F%26%FF&l=~-._");
}

static void token_replies_are_checked(void **state)
{
	static const struct {
		const char *text, *token;
		uint64_t life;
	} cases[] = {
		{ "{\"token\":\"t\"}", "t", 60 },
		{ "{\"access_token\":\"a\",\"expires_in\":5}", "a", 5 },
		{ "{\"token\":\"t\",\"access_token\":\"a\",\"expires_in\":300}", "t", 300 },
		{ "{\"token\":\"t\",\"expires_in\":0}", "t", 60 },
		{ "{\"token\":\"t\",\"expires_in\":-1}", "t", 60 },
		{ "{\"token\":\"t\",\"expires_in\":1e9}", "t", 60 },
		{ "{\"token\":\"t\",\"expires_in\":18446744073709551615}", "t", 86400 },
		{ "{\"token\":\"\"}", NULL, 0 },
		{ "{\"token\":\"a\\r\\nX: y\"}", NULL, 0 },
		{ "{\"token\":\"a b\"}", NULL, 0 },
		{ "{\"token\":\"\\u00e4\"}", NULL, 0 },
		{ "{\"token\":7}", NULL, 0 },
		{ "[]", NULL, 0 },
		{ "", NULL, 0 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *token = NULL;
		uint64_t life = 0;
		int r = bs_token_parse(cases[i].text, strlen(cases[i].text), &token, &life, NULL);

		assert_int_equal(r == 0, cases[i].token != NULL);
		same(token, cases[i].token);
		assert_int_equal(life, cases[i].life);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(challenges_are_understood),
		UNIT_TEST(content_ranges_are_exact),
		UNIT_TEST(retry_after_is_seconds_or_a_date),
		UNIT_TEST(the_next_link_is_found),
		UNIT_TEST(media_types_lose_their_parameters),
		UNIT_TEST(urls_are_resolved_and_the_dangerous_refused),
		UNIT_TEST(queries_are_escaped),
		UNIT_TEST(token_replies_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
