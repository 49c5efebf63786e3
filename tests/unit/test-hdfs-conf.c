/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "hdfs/path.h"
#include "hdfs/place.h"
#include "hdfs/site.h"

static struct bs_site *site_of(const char *xml)
{
	struct bs_site *s = bs_site_new();
	struct bs_error err = BS_ERROR_INIT;

	assert_non_null(s);
	if (bs_site_add(s, "site", xml, strlen(xml), &err) < 0)
		fail_msg("%s", bs_error_text(&err));
	return s;
}

static void value_is(const struct bs_site *s, const char *name, const char *value)
{
	bs_autofree char *got = bs_site_get(s, name);

	if (value) {
		assert_non_null(got);
		assert_string_equal(got, value);
	} else {
		assert_null(got);
	}
}

static void properties_are_read_as_hadoop_does(void **state)
{
	bs_auto(site) struct bs_site *s = site_of(
		"<?xml version='1.0'?><!-- c --><configuration>"
		"<property><name>a</name><value> 1 </value></property>"
		"<property><name>b</name><value>x${a}y${nix}</value><final>true</final></property>"
		"<property><name>a</name><value>2</value><description>d</description></property>"
		"<property><name>b</name><value>late</value></property>"
		"<property name='c' value='${b}'/>"
		"<property><name>r1</name><value>${r2}</value></property>"
		"<property><name>r2</name><value>${r1}</value></property>"
		"<property><value>nameless</value></property>"
		"<property><name>e</name></property>"
		"<property><name>amp</name><value>&lt;&amp;&#65;</value></property>"
		"<other><name>z</name><value>z</value></other>"
		"</configuration>");
	bs_autofree char *loop = bs_site_get(s, "r1");

	value_is(s, "a", "2");
	value_is(s, "b", "x2y${nix}");
	value_is(s, "c", "x2y${nix}");
	value_is(s, "e", "");
	value_is(s, "amp", "<&A");
	value_is(s, "z", NULL);
	value_is(s, "nix", NULL);
	value_is(NULL, "a", NULL);
	assert_non_null(loop);
}

static void bad_files_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"<configuration>",
		"<other/>",
		"<!DOCTYPE c [<!ENTITY a 'b'>]><configuration/>",
		"<!DOCTYPE c SYSTEM 'file:///etc/passwd'><configuration/>",
		"<configuration><property><name>a</name><value>&a;</value></property></"
		"configuration>",
		"<configuration>\xff</configuration>",
		"<configuration/><configuration/>",
		"<configuration><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		bs_auto(site) struct bs_site *s = bs_site_new();
		struct bs_error err = BS_ERROR_INIT;

		assert_int_equal(bs_site_add(s, "f.xml", bad[i], strlen(bad[i]), &err), -EINVAL);
		assert_non_null(strstr(err.msg, "f.xml"));
	}
}

static void sizes_of_files_are_bounded(void **state)
{
	bs_auto(site) struct bs_site *s = bs_site_new();
	bs_autobuf b = BS_BUF_INIT(64u << 20);

	(void)bs_buf_adds(&b, "<configuration><property><name>a</name><value>");
	for (unsigned int i = 0; i < BS_SITE_VALUE_MAX + 1; i++)
		(void)bs_buf_add(&b, "x", 1);
	(void)bs_buf_adds(&b, "</value></property></configuration>");
	assert_int_equal(bs_site_add(s, "f", bs_buf_str(&b), b.len, NULL), -EINVAL);
	bs_buf_clear(&b);
	(void)bs_buf_adds(&b, "<configuration>");
	for (unsigned int i = 0; i <= BS_SITE_PROPERTIES_MAX; i++)
		(void)bs_buf_addf(&b, "<property><name>%u</name><value/></property>", i);
	(void)bs_buf_adds(&b, "</configuration>");
	assert_int_equal(bs_site_add(s, "f", bs_buf_str(&b), b.len, NULL), -EINVAL);
	assert_int_equal(bs_site_add(s, "f", "", BS_SITE_FILE_MAX + 1, NULL), -EFBIG);
}

#define P(NAME, VALUE) "<property><name>" NAME "</name><value>" VALUE "</value></property>"

static const char ha[] = "<configuration>" P("fs.defaultFS", "hdfs://ns/")
	P("dfs.nameservices", "ns, other") P("dfs.ha.namenodes.ns", "nn1,nn2")
		P("dfs.namenode.rpc-address.ns.nn1", "a:8020")
			P("dfs.namenode.http-address.ns.nn1", "0.0.0.0:1234")
				P("dfs.namenode.rpc-address.ns.nn2", "b")
					P("dfs.namenode.https-address.ns.nn2", "c:99")
						P("dfs.namenode.rpc-address", "solo:9000")
							P("dfs.namenode.http-address",
							  "web:80") "</configuration>";

static void urls_lead_to_namenodes(void **state)
{
	static const struct {
		const char *url, *name, *path, *endpoints;
	} cases[] = {
		{ "hdfs://ns/a//b/./c/", "hdfs://ns", "/a/b/c", "a:1234 b:9870 " },
		{ "hdfs:///", "hdfs://ns", "/", "a:1234 b:9870 " },
		{ "hdfs:///a;b%41+c#d?e f", "hdfs://ns", "/a;b%41+c#d?e f", "a:1234 b:9870 " },
		{ "swebhdfs://ns/x", "swebhdfs://ns", "/x", "a:9871 c:99 " },
		{ "hdfs://h:8020/x", "hdfs://h:8020", "/x", "h:9870 " },
		{ "hdfs://h", "hdfs://h", "/", "h:9870 " },
		{ "hdfs://solo:9000/x", "hdfs://solo:9000", "/x", "web:80 " },
		{ "hdfs://solo:8020/x", "hdfs://solo:8020", "/x", "solo:9870 " },
		{ "hdfs://solo/x", "hdfs://solo", "/x", "solo:9870 " },
		{ "webhdfs://h:50070/x", "webhdfs://h:50070", "/x", "h:50070 " },
		{ "webhdfs://h/x", "webhdfs://h", "/x", "h:9870 " },
		{ "swebhdfs://[::1]:5/x", "swebhdfs://[::1]:5", "/x", "[::1]:5 " },
		{ "swebhdfs://[::1]/x", "swebhdfs://[::1]", "/x", "[::1]:9871 " },
		{ "webhdfs://h/../../x", "webhdfs://h", "/x", "h:9870 " },
	};
	bs_auto(site) struct bs_site *s = site_of(ha);

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_error err = BS_ERROR_INIT;
		bs_autobuf all = BS_BUF_INIT(4096);
		bs_autoplace p = { 0 };

		if (bs_hdfs_place(cases[i].url, s, &p, &err) < 0)
			fail_msg("%s: %s", cases[i].url, bs_error_text(&err));
		for (size_t j = 0; j < p.endpoints.n; j++)
			(void)bs_buf_addf(&all, "%s ", p.endpoints.v[j]);
		assert_string_equal(p.name, cases[i].name);
		assert_string_equal(p.path, cases[i].path);
		assert_string_equal(bs_buf_str(&all), cases[i].endpoints);
	}
}

static void the_default_filesystem_is_a_namenodes_address(void **state)
{
	bs_auto(site) struct bs_site *s = site_of(
		"<configuration>" P("fs.defaultFS", "hdfs://nn/")
			P("dfs.namenode.http-address", "nn:50070") "</configuration>");
	bs_autoplace p = { 0 }, q = { 0 }, other = { 0 };

	assert_int_equal(bs_hdfs_place("hdfs:///x", s, &p, NULL), 0);
	assert_string_equal(p.endpoints.v[0], "nn:50070");
	assert_int_equal(bs_hdfs_place("hdfs://nn:8020/x", s, &q, NULL), 0);
	assert_string_equal(q.endpoints.v[0], "nn:50070");
	assert_int_equal(bs_hdfs_place("hdfs://nn:9000/x", s, &other, NULL), 0);
	assert_string_equal(other.endpoints.v[0], "nn:9870");
}

static void services_are_what_tokens_are_made_out_to(void **state)
{
	bs_auto(site) struct bs_site *s = site_of(ha);
	bs_autoplace p = { 0 }, q = { 0 };

	assert_int_equal(bs_hdfs_place("hdfs://ns/", s, &p, NULL), 0);
	assert_true(bs_strv_has(&p.services, "ha-hdfs:ns"));
	assert_true(bs_strv_has(&p.services, "a:8020"));
	assert_true(bs_strv_has(&p.services, "b:8020"));
	assert_false(bs_strv_has(&p.services, "solo:9000"));
	assert_int_equal(bs_hdfs_place("hdfs://h:8020/", NULL, &q, NULL), 0);
	assert_true(bs_strv_has(&q.services, "h:8020"));
	assert_false(bs_strv_has(&q.services, "ha-hdfs:h"));
}

static void bad_urls_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"hdfs",
		"hdfs:/x",
		"file:///x",
		"hdfs://ns/a:b",
		"hdfs://ns/\xff",
		"hdfs://u@h/x",
		"hdfs://h:/x",
		"hdfs://h:0/x",
		"hdfs://h:65536/x",
		"hdfs://h:1:2/x",
		"hdfs://h x/x",
		"hdfs://h?x/x",
		"hdfs://[::1/x",
		"hdfs://[]/x",
		"hdfs://other/x", /* a name service without NameNodes */
	};
	bs_auto(site) struct bs_site *s = site_of(ha);

	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		struct bs_error err = BS_ERROR_INIT;
		bs_autoplace p = { 0 };

		if (bs_hdfs_place(bad[i], s, &p, &err) >= 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_true(err.msg[0]);
	}
	assert_int_equal(bs_hdfs_place("hdfs:///x", NULL, &(struct bs_hdfs_place){ 0 }, NULL),
			 -EINVAL);
}

static void paths_are_those_that_hdfs_can_have(void **state)
{
	char name[300], longest[BS_HDFS_PATH_MAX + 2];

	assert_int_equal(bs_hdfs_path_check("/"), 0);
	assert_int_equal(bs_hdfs_path_check("/a/b c;%+#?\n\xc3\xa4"), 0);
	assert_int_equal(bs_hdfs_path_check(""), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("a"), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("/a/"), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("//a"), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("/a/./b"), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("/.."), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("/a:b"), -EINVAL);
	assert_int_equal(bs_hdfs_path_check("/\xc3"), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[256] = '\0';
	assert_int_equal(bs_hdfs_path_check(name), 0);
	name[256] = 'x';
	name[257] = '\0';
	assert_int_equal(bs_hdfs_path_check(name), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? 'a' : '/';
	longest[BS_HDFS_PATH_MAX + 1] = '\0';
	assert_int_equal(bs_hdfs_path_check(longest), -ENAMETOOLONG);
	longest[BS_HDFS_PATH_MAX - 1] = '\0';
	assert_int_equal(bs_hdfs_path_check(longest), 0);
}

static void escapes_go_both_ways(void **state)
{
	bs_autobuf b = BS_BUF_INIT(4096);
	bs_autofree char *back = NULL, *none = NULL;
	char all[256];

	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = '\0';
	bs_hdfs_path_escape(&b, "/a;b%c+d#e?f g\n&=~\xc3\xa4");
	assert_string_equal(bs_buf_str(&b), "/a%3Bb%25c%2Bd%23e%3Ff%20g%0A%26%3D~%C3%A4");
	bs_buf_clear(&b);
	bs_hdfs_path_escape(&b, all);
	assert_int_equal(bs_hdfs_path_unescape(bs_buf_str(&b), &back), 0);
	assert_string_equal(back, all);
	assert_int_equal(bs_hdfs_path_unescape("a%0", &none), -EINVAL);
	assert_int_equal(bs_hdfs_path_unescape("a%", &none), -EINVAL);
	assert_int_equal(bs_hdfs_path_unescape("a%00", &none), -EINVAL);
	assert_int_equal(bs_hdfs_path_unescape("a%g0", &none), -EINVAL);
}

static void of_a_location_what_is_the_namenodes_is_kept(void **state)
{
	static const struct {
		const char *location, *want;
	} cases[] = {
		{ "http://h:1/webhdfs/v1/a", "" },
		{ "http://h:1/webhdfs/v1/a?", "" },
		{ "", "" },
		{ "http://h:1/a?op=CREATE&user.name=me&namenoderpcaddress=n:8020&overwrite=true",
		  "&user.name=me&namenoderpcaddress=n:8020" },
		{ "h?OP=x&Offset=1&&LENGTH=2&noredirect=&blocksize=1&opx=2&t=%26#f?a=b&c=d",
		  "&opx=2&t=%26" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autobuf b = BS_BUF_INIT(4096);

		(void)bs_buf_adds(&b, "");
		bs_hdfs_location_params(&b, cases[i].location);
		assert_string_equal(bs_buf_str(&b), cases[i].want);
	}
}

static void hexadecimal_digits_are_two(void **state)
{
	assert_int_equal(bs_hdfs_hex("00"), 0);
	assert_int_equal(bs_hdfs_hex("aFx"), 0xaf);
	assert_int_equal(bs_hdfs_hex(""), -EINVAL);
	assert_int_equal(bs_hdfs_hex("1"), -EINVAL);
	assert_int_equal(bs_hdfs_hex("g0"), -EINVAL);
	assert_int_equal(bs_hdfs_hex("0 "), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(properties_are_read_as_hadoop_does),
		UNIT_TEST(bad_files_are_refused),
		UNIT_TEST(sizes_of_files_are_bounded),
		UNIT_TEST(urls_lead_to_namenodes),
		UNIT_TEST(the_default_filesystem_is_a_namenodes_address),
		UNIT_TEST(services_are_what_tokens_are_made_out_to),
		UNIT_TEST(bad_urls_are_refused),
		UNIT_TEST(paths_are_those_that_hdfs_can_have),
		UNIT_TEST(escapes_go_both_ways),
		UNIT_TEST(of_a_location_what_is_the_namenodes_is_kept),
		UNIT_TEST(hexadecimal_digits_are_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
