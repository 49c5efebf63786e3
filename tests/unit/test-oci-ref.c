/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "oci/ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" HEX
#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16
#define A127 A64 A16 A16 A16 "aaaaaaaaaaaaaaa"

static const struct {
	const char *text;
	enum bs_ref_kind kind;
	const char *host, *name, *dir, *tag; /* NULL: must be absent */
	bool digest;
	const char *back; /* bs_ref_text */
} good[] = {
	{ "python:3.11", BS_REF_REGISTRY, "docker.io", "library/python", NULL, "3.11", false,
	  "docker://docker.io/library/python:3.11" },
	{ "python", BS_REF_REGISTRY, "docker.io", "library/python", NULL, NULL, false,
	  "docker://docker.io/library/python" },
	{ "docker://python", BS_REF_REGISTRY, "docker.io", "library/python", NULL, NULL, false,
	  "docker://docker.io/library/python" },
	{ "docker.io/python", BS_REF_REGISTRY, "docker.io", "library/python", NULL, NULL, false,
	  "docker://docker.io/library/python" },
	{ "index.docker.io/a/b", BS_REF_REGISTRY, "docker.io", "a/b", NULL, NULL, false,
	  "docker://docker.io/a/b" },
	{ "a/b", BS_REF_REGISTRY, "docker.io", "a/b", NULL, NULL, false, "docker://docker.io/a/b" },
	{ "localhost/b", BS_REF_REGISTRY, "localhost", "b", NULL, NULL, false,
	  "docker://localhost/b" },
	{ "localhost:5000/b:t", BS_REF_REGISTRY, "localhost:5000", "b", NULL, "t", false,
	  "docker://localhost:5000/b:t" },
	{ "localhost:5000", BS_REF_REGISTRY, "docker.io", "library/localhost", NULL, "5000", false,
	  "docker://docker.io/library/localhost:5000" },
	{ "host:1/b", BS_REF_REGISTRY, "host:1", "b", NULL, NULL, false, "docker://host:1/b" },
	{ "host:65535/b", BS_REF_REGISTRY, "host:65535", "b", NULL, NULL, false,
	  "docker://host:65535/b" },
	{ "Host/b", BS_REF_REGISTRY, "Host", "b", NULL, NULL, false, "docker://Host/b" },
	{ "r.example/a/b_c/d__e/f--g.h:T@" DIGEST, BS_REF_REGISTRY, "r.example",
	  "a/b_c/d__e/f--g.h", NULL, "T", true, "docker://r.example/a/b_c/d__e/f--g.h:T@" DIGEST },
	{ "r.example/a@" DIGEST, BS_REF_REGISTRY, "r.example", "a", NULL, NULL, true,
	  "docker://r.example/a@" DIGEST },
	{ "[::1]:5000/a", BS_REF_REGISTRY, "[::1]:5000", "a", NULL, NULL, false,
	  "docker://[::1]:5000/a" },
	{ "[2001:db8::1]/a:x", BS_REF_REGISTRY, "[2001:db8::1]", "a", NULL, "x", false,
	  "docker://[2001:db8::1]/a:x" },
	{ "10.0.0.1:80/a", BS_REF_REGISTRY, "10.0.0.1:80", "a", NULL, NULL, false,
	  "docker://10.0.0.1:80/a" },
	{ "r.example/a:" A127 "a", BS_REF_REGISTRY, "r.example", "a", NULL, A127 "a", false,
	  "docker://r.example/a:" A127 "a" },
	{ "r.example/a:_", BS_REF_REGISTRY, "r.example", "a", NULL, "_", false,
	  "docker://r.example/a:_" },
	{ "r.example/" A127 A127 "a", BS_REF_REGISTRY, "r.example", A127 A127 "a", NULL, NULL,
	  false, "docker://r.example/" A127 A127 "a" },
	{ "oci:/d", BS_REF_LAYOUT, NULL, NULL, "/d", NULL, false, "oci:/d" },
	{ "oci:d:t", BS_REF_LAYOUT, NULL, NULL, "d", "t", false, "oci:d:t" },
	{ "oci:/a:b/c", BS_REF_LAYOUT, NULL, NULL, "/a:b/c", NULL, false, "oci:/a:b/c" },
	{ "oci:/a:b/c:t", BS_REF_LAYOUT, NULL, NULL, "/a:b/c", "t", false, "oci:/a:b/c:t" },
	{ "oci:/d:t@" DIGEST, BS_REF_LAYOUT, NULL, NULL, "/d", "t", true, "oci:/d:t@" DIGEST },
	{ "oci:/a@b", BS_REF_LAYOUT, NULL, NULL, "/a@b", NULL, false, "oci:/a@b" },
	{ "oci:/a@sha256:x/c", BS_REF_LAYOUT, NULL, NULL, "/a@sha256:x/c", NULL, false,
	  "oci:/a@sha256:x/c" },
	{ "hdfs://ns/d", BS_REF_HDFS, NULL, NULL, "hdfs://ns/d", NULL, false, "hdfs://ns/d" },
	{ "hdfs://h:8020/a/b:t", BS_REF_HDFS, NULL, NULL, "hdfs://h:8020/a/b", "t", false,
	  "hdfs://h:8020/a/b:t" },
	{ "webhdfs://h:9870/a/b@" DIGEST, BS_REF_HDFS, NULL, NULL, "webhdfs://h:9870/a/b", NULL,
	  true, "webhdfs://h:9870/a/b@" DIGEST },
	{ "swebhdfs://[::1]:9871/a:t@" DIGEST, BS_REF_HDFS, NULL, NULL, "swebhdfs://[::1]:9871/a",
	  "t", true, "swebhdfs://[::1]:9871/a:t@" DIGEST },
	{ "hdfs:///d@e", BS_REF_HDFS, NULL, NULL, "hdfs:///d@e", NULL, false, "hdfs:///d@e" },
	{ "oci:/d d", BS_REF_LAYOUT, NULL, NULL, "/d d", NULL, false, "oci:/d d" },
	{ "rootfs:/d:x@y", BS_REF_ROOTFS, NULL, NULL, "/d:x@y", NULL, false, "rootfs:/d:x@y" },
};

static const char *const bad[] = {
	"",
	":",
	"@",
	"/",
	"a/",
	"/a",
	"a//b",
	"A",
	"docker://",
	"docker://r.example/",
	"https://r.example/a",
	"http://r.example/a",
	"r.example/A",
	"r.example/a:",
	"r.example/a:.t",
	"r.example/a:-t",
	"r.example/a:t t",
	"r.example/a:" A127 "aa",
	"r.example/" A127 A127 "aa",
	A127 A64 A16 A16 A16 "aaaaaaaaa", /* 248 and "library/" */
	"r.example/a@",
	"r.example/a@sha256:",
	"r.example/a@sha256:" HEX "0",
	"r.example/a@sha512:" HEX HEX,
	"r.example/a@SHA256:" HEX,
	"r.example/a@" DIGEST "@" DIGEST,
	"r.example/-a",
	"r.example/a-",
	"r.example/a..b",
	"r.example/a___b",
	"r.example/a._b",
	"r.example/../b",
	"r.example/a b",
	"r.example/a%2fb",
	"r.example/a?x",
	"r.example/a#x",
	"host:0/b",
	"host:65536/b",
	"host:/b",
	"host:x/b",
	"host:080000/b",
	"-host.x/b",
	"host-.x/b",
	"host..x/b",
	".x/b",
	"us_er.x/b",
	"user@host.x/b",
	"[::1/a",
	"[]/a",
	"[::1]x/a",
	"[::g]/a",
	"[1.2.3.4]/a",
	"hdfs://",
	"hdfs://ns",
	"hdfs://ns:8020",
	"hdfs://ns/",
	"hdfs://ns/d/",
	"hdfs://ns//d",
	"hdfs://ns/a/../b",
	"hdfs://ns/./b",
	"hdfs://ns/a:b/c",
	"hdfs://ns/d:",
	"hdfs://ns/d:a b",
	"hdfs://ns/d:t:u",
	"hdfs://ns/d@sha256:12",
	"hdfs:/d",
	"HDFS://ns/d",
	"oci:",
	"oci::t",
	"oci:d:",
	"oci:d:a b",
	"oci:d@sha256:12",
	"rootfs:",
	"r.example/a\n",
	"r.example/a\x7f",
};

static void same(const char *a, const char *b)
{
	if (b)
		assert_string_equal(a, b);
	else
		assert_null(a);
}

static void good_names_are_taken_apart_and_put_together(void **state)
{
	for (size_t i = 0; i < BS_ARRAY_LEN(good); i++) {
		struct bs_error err = BS_ERROR_INIT;
		struct bs_ref r, again;
		bs_autofree char *text = NULL;

		if (bs_ref_parse(good[i].text, &r, &err) < 0)
			fail_msg("%s: %s", good[i].text, err.msg);
		assert_int_equal(r.kind, good[i].kind);
		same(r.host, good[i].host);
		same(r.name, good[i].name);
		same(r.dir, good[i].dir);
		same(r.tag, good[i].tag);
		assert_int_equal(r.has_digest, good[i].digest);
		text = bs_ref_text(&r, false);
		assert_string_equal(text, good[i].back);
		assert_int_equal(bs_ref_parse(text, &again, NULL), 0);
		assert_int_equal(again.kind, r.kind);
		same(again.host, r.host);
		same(again.name, r.name);
		same(again.dir, r.dir);
		same(again.tag, r.tag);
		assert_int_equal(again.has_digest, r.has_digest);
		bs_ref_done(&again);
		bs_ref_done(&r);
	}
}

static void bad_names_are_refused_with_a_reason(void **state)
{
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		struct bs_error err = BS_ERROR_INIT;
		struct bs_ref r = { .tag = NULL };

		if (bs_ref_parse(bad[i], &r, &err) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(err.msg[0] != '\0');
		assert_null(r.host);
	}
}

static void too_long_is_refused(void **state)
{
	char text[10000];
	struct bs_ref r;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "oci:", 4);
	assert_int_equal(bs_ref_parse(text, &r, NULL), -EINVAL);
	text[8192] = '\0';
	assert_int_equal(bs_ref_parse(text, &r, NULL), 0);
	bs_ref_done(&r);
}

static void reference_is_digest_then_tag_then_latest(void **state)
{
	static const struct {
		const char *text, *reference, *repository;
	} cases[] = {
		{ "r.example/a:t@" DIGEST, DIGEST, "docker://r.example/a" },
		{ "r.example/a:t", "t", "docker://r.example/a" },
		{ "r.example/a", "latest", "docker://r.example/a" },
		{ "oci:/d:t", "t", "oci:/d" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_ref r;
		bs_autofree char *reference = NULL, *repository = NULL;

		assert_int_equal(bs_ref_parse(cases[i].text, &r, NULL), 0);
		reference = bs_ref_reference(&r);
		repository = bs_ref_text(&r, true);
		assert_string_equal(reference, cases[i].reference);
		assert_string_equal(repository, cases[i].repository);
		bs_ref_done(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(good_names_are_taken_apart_and_put_together),
		UNIT_TEST(bad_names_are_refused_with_a_reason),
		UNIT_TEST(too_long_is_refused),
		UNIT_TEST(reference_is_digest_then_tag_then_latest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
