/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "oci/ckptask.h"

#define S "source=hdfs://c/p"

static void all_that_can_be_said(void **state)
{
	struct bs_ckptask a;

	assert_int_equal(bs_ckptask_parse("source=hdfs://cluster/models/x,target=/mnt/ckpt,rw,"
					  "layout=plain,unit=8M,files=16,user=train,required=no",
					  &a, NULL),
			 0);
	assert_string_equal(a.source, "hdfs://cluster/models/x");
	assert_string_equal(a.target, "/mnt/ckpt");
	assert_string_equal(a.layout, "plain");
	assert_string_equal(a.user, "train");
	assert_true(a.writable);
	assert_int_equal(a.unit, 8 << 20);
	assert_int_equal(a.files, 16);
	assert_int_equal(a.need, BS_CKPTASK_OPTIONAL);
	bs_ckptask_done(&a);
	/* what is not said: read-only, and the host's choice */
	assert_int_equal(bs_ckptask_parse("target=/c,source=swebhdfs://h.x:9871/", &a, NULL), 0);
	assert_false(a.writable);
	assert_null(a.user);
	assert_null(a.layout);
	assert_int_equal(a.unit + a.files, 0);
	assert_int_equal(a.need, BS_CKPTASK_HOST);
	bs_ckptask_done(&a);
	assert_int_equal(bs_ckptask_parse(S ",target=/c,unit=64M,files=64,ro,required=yes", &a,
					  NULL),
			 0);
	assert_int_equal(a.need, BS_CKPTASK_REQUIRED);
	bs_ckptask_done(&a);
	/* names of HDFS, whatever is in them but a comma */
	assert_int_equal(bs_ckptask_parse("source=hdfs:///a b;%2e#?=\xc3\xa4/=,target=/c", &a,
					  NULL),
			 0);
	assert_string_equal(a.source, "hdfs:///a b;%2e#?=\xc3\xa4/=");
	bs_ckptask_done(&a);
	/* for engines that cut at commas */
	assert_int_equal(bs_ckptask_parse(S ";target=/c d;rw;unit=8M", &a, NULL), 0);
	assert_string_equal(a.source, "hdfs://c/p");
	assert_string_equal(a.target, "/c d");
	assert_true(a.writable);
	assert_int_equal(a.unit, 8 << 20);
	bs_ckptask_done(&a);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *value, *word;
	} cases[] = {
		{ "", "''" },
		{ "target=/c", "'source' is missing" },
		{ S, "write ';' between the words" },
		{ S ";rw", "'target' is missing" },
		{ S ";target=/c,rw", "'target' is missing" },
		{ S "," S ",target=/c", "'source' is given twice" },
		{ S ",target=/c,ro,rw", "'rw' is given twice" },
		{ S ",target=/c,ro=1", "'ro' takes no value" },
		{ S ",target=/c,colour=red", "'colour' is unknown" },
		{ S ",target=/c,runas=root", "'runas' is unknown" },
		{ S ",target=/c,conf=/tmp", "'conf' is unknown" },
		{ S ",target=/c,token=/etc/shadow", "'token' is unknown" },
		{ S ",target=/c,", "'' is unknown" },
		{ S ",target=", "'target' needs a value" },
		{ S ",target", "'target' needs a value" },
		{ S ",target=/", "target '/'" },
		{ S ",target=c", "target 'c'" },
		{ S ",target=/c/../d", "target '/c/../d'" },
		{ S ",target=/c/", "target '/c/'" },
		{ S ",target=/proc", "/proc" },
		{ S ",target=/sys/fs", "/sys" },
		{ S ",target=/dev/shm", "/dev" },
		{ "source=file:///etc,target=/c", "source" },
		{ "source=/etc,target=/c", "source" },
		{ "source=hdfs://c,target=/c", "source" },
		{ "source=hdfs://c/p/../q,target=/c", "source" },
		{ "source=hdfs://c//p,target=/c", "source" },
		{ "source=hdfs://u@c/p,target=/c", "source" },
		{ "source=webhdfs:///p,target=/c", "source" },
		{ S ",target=/c,user=a b", "user" },
		{ S ",target=/c,user=-x", "user" },
		{ S ",target=/c,user=a/b", "user" },
		{ S ",target=/c,layout=raid", "layout 'raid'" },
		{ S ",target=/c,unit=0", "unit" },
		{ S ",target=/c,unit=5000", "unit" },
		{ S ",target=/c,unit=65M", "unit" },
		{ S ",target=/c,unit=99999999999999999999", "unit" },
		{ S ",target=/c,files=0", "files" },
		{ S ",target=/c,files=65", "files" },
		{ S ",target=/c,required=maybe", "required" },
		{ S ",target=/c\n", "control characters" },
		{ S ",target=/c\x80", "UTF-8" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_error err = BS_ERROR_INIT;
		struct bs_ckptask a;

		if (bs_ckptask_parse(cases[i].value, &a, &err) != -EINVAL ||
		    !strstr(err.msg, cases[i].word))
			fail_msg("'%s': %s", cases[i].value, err.msg);
	}
}

static void lengths(void **state)
{
	char text[BS_CKPTASK_VALUE_MAX + 2];
	struct bs_ckptask a;
	int n = snprintf(text, sizeof(text), S ",target=/c,user=");

	memset(text + n, 'u', BS_CKPTASK_USER_MAX);
	text[n + (int)BS_CKPTASK_USER_MAX] = '\0';
	assert_int_equal(bs_ckptask_parse(text, &a, NULL), 0);
	bs_ckptask_done(&a);
	text[n + (int)BS_CKPTASK_USER_MAX] = 'u';
	text[n + (int)BS_CKPTASK_USER_MAX + 1] = '\0';
	assert_int_equal(bs_ckptask_parse(text, &a, NULL), -EINVAL);
	/* the longest value, of many short names */
	n = snprintf(text, sizeof(text), "target=/c,source=hdfs://c");
	for (int i = n; i < (int)BS_CKPTASK_VALUE_MAX; i++)
		text[i] = (i - n) % 2 ? 'd' : '/';
	text[BS_CKPTASK_VALUE_MAX - (BS_CKPTASK_VALUE_MAX - (unsigned int)n) % 2] = '\0';
	assert_int_equal(bs_ckptask_parse(text, &a, NULL), 0);
	bs_ckptask_done(&a);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(bs_ckptask_parse(text, &a, NULL), -EINVAL);
}

static int read_all(const char *text, struct bs_ckptasks *l, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	int r;

	assert_int_equal(bs_json_parse("t", text, strlen(text), 1 << 20, &v, NULL), 0);
	r = bs_ckptasks_read(v, l, err);
	return r;
}

static void refused(const char *text, const char *word)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_ckptasks l = { .n = 0 };

	assert_int_equal(read_all(text, &l, &err), -EINVAL);
	if (!strstr(err.msg, word))
		fail_msg("%s: %s", text, err.msg);
	bs_ckptasks_done(&l);
}

static void of_a_container(void **state)
{
	struct bs_ckptasks l = { .n = 0 };

	assert_int_equal(read_all("{\"dev.bootseer.checkpoint\":\"" S ",target=/a\","
				  "\"dev.bootseer.checkpointed\":1,\"dev.bootseer.image\":\"x\","
				  "\"dev.bootseer.checkpoint.in-2\":\"" S ",target=/b\"}",
				  &l, NULL),
			 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].name, "");
	assert_string_equal(l.v[1].name, "in-2");
	bs_ckptasks_done(&l);
	assert_int_equal(bs_ckptasks_read(NULL, &l, NULL), 0);
	assert_int_equal(l.n, 0);
	refused("{\"dev.bootseer.checkpoint\":1}", "no string");
	refused("{\"dev.bootseer.checkpoint.\":\"" S ",target=/a\"}", "name behind");
	refused("{\"dev.bootseer.checkpoint.a/b\":\"" S ",target=/a\"}", "name behind");
	refused("{\"dev.bootseer.checkpoint.123456789012345678901234567890123\":\"" S
		",target=/a\"}",
		"name behind");
	refused("{\"dev.bootseer.checkpoint\":\"" S ",target=/a\","
		"\"dev.bootseer.checkpoint.b\":\"" S ",target=/a\"}",
		"another's");
	refused("{\"dev.bootseer.checkpoint.a\":\"" S ",target=/a/b\","
		"\"dev.bootseer.checkpoint.b\":\"" S ",target=/a\"}",
		"one in the other");
	refused("{\"dev.bootseer.checkpoint.a\":\"" S ",target=/a\","
		"\"dev.bootseer.checkpoint.b\":\"" S ",target=/a/b\"}",
		"one in the other");
	assert_true(bs_ckptask_is_key("dev.bootseer.checkpoint.x"));
	assert_false(bs_ckptask_is_key("dev.bootseer.checkpoints"));
}

static void too_many(void **state)
{
	char text[4096] = "{";
	size_t n = 1;

	for (unsigned int i = 0; i <= BS_CKPTASKS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s\"dev.bootseer.checkpoint.n%u\":\"" S ",target=/t%u\"",
				      i ? "," : "", i, i);
	(void)snprintf(text + n, sizeof(text) - n, "}");
	refused(text, "16 at most");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(all_that_can_be_said),
		UNIT_TEST(what_is_wrong_is_said),
		UNIT_TEST(lengths),
		UNIT_TEST(of_a_container),
		UNIT_TEST(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
