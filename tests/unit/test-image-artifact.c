/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "image/artifact.h"
#include "image/manifest.h"
#include "image/userdb.h"
#include "net/repo.h"

#define D(C) "sha256:" C C C C C C C C C C C C C C C C
#define ONE D("1111")
#define TWO D("2222")

static struct bs_manifest manifest(char *text)
{
	static char none[] = "";
	struct bs_manifest m = { .bytes = text, .len = strlen(text), .media_type = none };

	bs_digest_of(text, m.len, &m.digest);
	return m;
}

static struct bs_artifact example(void)
{
	struct bs_artifact a = { .has_subject = true, .subject_type = BS_MEDIA_DOCKER_MANIFEST };
	struct bs_descriptor *d[] = { &a.config, &a.tree, &a.table, &a.data, &a.subject };

	for (size_t i = 0; i < BS_ARRAY_LEN(d); i++) {
		memset(d[i]->digest.b, (int)(i + 1), sizeof(d[i]->digest.b));
		d[i]->size = 1000 * i + 1;
	}
	return a;
}

static void what_is_written_is_read(void **state)
{
	struct bs_artifact a = example(), b;
	bs_autofree char *text = NULL, *again = NULL;
	struct bs_manifest m;
	size_t len, len2;

	assert_int_equal(bs_artifact_write(&a, &text, &len, NULL), 0);
	m = manifest(text);
	assert_int_equal(bs_artifact_parse(&m, &b, NULL), 0);
	assert_true(b.has_subject);
	assert_string_equal(b.subject_type, BS_MEDIA_DOCKER_MANIFEST);
	assert_true(b.data.size == a.data.size && bs_digest_eq(&b.data.digest, &a.data.digest));
	assert_int_equal(bs_artifact_write(&b, &again, &len2, NULL), 0);
	assert_string_equal(text, again);
	assert_true(bs_digest_eq(&b.digest, &m.digest));
	assert_null(strstr(text, "created"));
}

static void other_manifests_are_no_artifacts(void **state)
{
	/* what is replaced in a good one, by what, and what is said */
	static const struct {
		const char *from, *to, *words;
	} cases[] = {
		{ "vnd.bootseer.image.v1", "vnd.bootseer.image.v9", "artifactType" },
		{ "image.tree.v1+zstd", "image.tree.v2+zstd", "layers[0].mediaType" },
		{ "\"schemaVersion\":2", "\"schemaVersion\":1", "schemaVersion 1" },
		{ "sha256:0202", "sha256:XX02", "layers[0].digest" },
		{ "\"size\":1001", "\"size\":-001", "" },
		{ "\"config\":", "\"confib\":", "config" },
		{ "\"layers\":", "\"lavers\":", "" },
		{ "image.config.v1", "image.config.v2", "config.mediaType" },
		{ "{\"schema", "[\"schema", "" },
	};
	struct bs_artifact a = example(), b;

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_error err = BS_ERROR_INIT;
		bs_autofree char *text = NULL;
		struct bs_manifest m;
		size_t len;
		char *at;

		assert_int_equal(bs_artifact_write(&a, &text, &len, NULL), 0);
		at = strstr(text, cases[i].from);
		assert_non_null(at);
		memcpy(at, cases[i].to, strlen(cases[i].to));
		m = manifest(text);
		assert_true(bs_artifact_parse(&m, &b, &err) < 0);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("'%s' is not in: %s", cases[i].words, err.msg);
	}
}

static void an_ambiguous_document_is_refused(void **state)
{
	static char text[] = "{\"schemaVersion\":2,\"layers\":[],\"manifests\":[]}";
	struct bs_manifest m = manifest(text);
	struct bs_document d;

	assert_int_equal(bs_document_parse(&m, &d, NULL), -EBADMSG);
}

static void a_platform_is_picked(void **state)
{
	static char text[] =
		"{\"schemaVersion\":2,\"manifests\":["
		"{\"mediaType\":\"" BS_MEDIA_OCI_MANIFEST "\",\"digest\":\"" ONE "\",\"size\":1,"
		"\"platform\":{\"os\":\"unknown\",\"architecture\":\"unknown\"}},"
		"{\"mediaType\":\"" BS_MEDIA_OCI_MANIFEST "\",\"digest\":\"" ONE "\",\"size\":2,"
		"\"platform\":{\"os\":\"linux\",\"architecture\":\"arm\",\"variant\":\"v6\"}},"
		"{\"mediaType\":\"" BS_MEDIA_OCI_MANIFEST "\",\"digest\":\"" TWO "\",\"size\":3,"
		"\"platform\":{\"os\":\"linux\",\"architecture\":\"arm\",\"variant\":\"v7\"}}]}";
	struct bs_manifest m = manifest(text);
	struct bs_error err;
	const struct bs_link *l;
	bs_autodocument d = { 0 };

	assert_int_equal(bs_document_parse(&m, &d, NULL), 0);
	assert_true(d.is_index);
	assert_int_equal(bs_document_pick(&d, "linux/arm/v7", &l, NULL), 0);
	assert_true(l->d.size == 3);
	assert_int_equal(bs_document_pick(&d, "linux/arm", &l, NULL), 0);
	assert_true(l->d.size == 2);
	assert_int_equal(bs_document_pick(&d, "linux/s390x", &l, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "linux/arm/v6, linux/arm/v7"));
}

/* --- the marker ------------------------------------------------------------------------------ */

static void marker_round_trip(void **state)
{
	char where[] = "registry.test:5000/a/b";
	struct bs_marker m = { .repository = where }, back;
	bs_autofree char *text = NULL;
	size_t len;

	memset(m.artifact.b, 0x11, sizeof(m.artifact.b));
	memset(m.stub_of.b, 0x22, sizeof(m.stub_of.b));
	assert_int_equal(bs_marker_write(&m, &text, &len, NULL), 0);
	assert_string_equal(text, "{\"version\":1,\"artifact\":\"" ONE "\",\"repository\":"
				  "\"registry.test:5000/a/b\",\"source\":\"" TWO "\"}");
	assert_int_equal(bs_marker_parse(text, len, &back, NULL), 0);
	assert_string_equal(back.repository, where);
	assert_true(bs_digest_eq(&back.artifact, &m.artifact));
	assert_true(bs_digest_eq(&back.stub_of, &m.stub_of));
	bs_marker_done(&back);
}

static void bad_markers_are_refused(void **state)
{
#define MARKER(V, A, R, S)                                                                         \
	"{\"version\":" V ",\"artifact\":" A ",\"repository\":" R ",\"source\":" S "}"
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ MARKER("2", "\"" ONE "\"", "\"x\"", "\"" TWO "\""), -EPROTONOSUPPORT },
		{ MARKER("\"1\"", "\"" ONE "\"", "\"x\"", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "\"sha256:1\"", "\"x\"", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "1", "\"x\"", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "\"" ONE "\"", "\"\"", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "\"" ONE "\"", "\"a\\nb\"", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "\"" ONE "\"", "[]", "\"" TWO "\""), -EBADMSG },
		{ MARKER("1", "\"" ONE "\"", "\"x\"", "\"" TWO "\",\"more\":1"), -EBADMSG },
		{ MARKER("1", "\"" ONE "\"", "\"x\"", "\"" TWO "\"") "x", -EBADMSG },
		{ "{\"version\":1}", -EBADMSG },
		{ "[[[[[[[[", -EBADMSG },
		{ "", -EBADMSG },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_marker m;

		assert_int_equal(bs_marker_parse(cases[i].text, strlen(cases[i].text), &m, NULL),
				 cases[i].result);
	}
}

static void a_huge_marker_is_refused(void **state)
{
	bs_autofree char *text = malloc(BS_MARKER_MAX + 2);
	struct bs_marker m;

	memset(text, ' ', BS_MARKER_MAX + 1);
	text[BS_MARKER_MAX + 1] = 0;
	assert_int_equal(bs_marker_parse(text, BS_MARKER_MAX + 1, &m, NULL), -EBADMSG);
}

/* --- users ----------------------------------------------------------------------------------- */

static const char passwd[] =
	"root:x:0:0:root:/root:/bin/sh\nbroken line\n"
	"app:x:1000:1001:App,,,:/home/app:/bin/sh\n2000:x:7:8::/seven:\nlast:x:9:9";
static const char group[] =
	"root:x:0:\nstaff:x:50:app,other\naudio:x:29:other,app\nappgrp:x:1001:\n"
	"nine:x:9:last";

static void users_are_found(void **state)
{
	static const struct {
		const char *spec;
		int result;
		unsigned int uid, gid, n_groups;
		const char *home;
	} cases[] = {
		{ "", 0, 0, 0, 0, "/root" },
		{ "0", 0, 0, 0, 0, "/root" },
		{ "app", 0, 1000, 1001, 2, "/home/app" },
		{ "1000", 0, 1000, 1001, 2, "/home/app" },
		{ "app:staff", 0, 1000, 50, 0, "/home/app" },
		{ "app:77", 0, 1000, 77, 0, "/home/app" },
		{ "4242", 0, 4242, 0, 0, "/" },
		{ "4242:4343", 0, 4242, 4343, 0, "/" },
		{ "2000", 0, 7, 8, 0, "/seven" }, /* a name that is a number is a name */
		{ "last", 0, 9, 9, 1, "/" },
		{ "nobody", -ENOENT, 0, 0, 0, NULL },
		{ "app:nogroup", -ENOENT, 0, 0, 0, NULL },
		{ "-1", -ENOENT, 0, 0, 0, NULL },
		{ "4294967295", -ENOENT, 0, 0, 0, NULL },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_user u;
		int r = bs_userdb_find(passwd, group, cases[i].spec, &u, NULL);

		if (r != cases[i].result)
			fail_msg("'%s': %d", cases[i].spec, r);
		if (r < 0)
			continue;
		assert_int_equal(u.uid, cases[i].uid);
		assert_int_equal(u.gid, cases[i].gid);
		assert_int_equal(u.n_groups, cases[i].n_groups);
		assert_string_equal(u.home, cases[i].home);
		if (u.n_groups == 2) {
			assert_int_equal(u.groups[0], 29);
			assert_int_equal(u.groups[1], 50);
		}
		bs_user_done(&u);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(what_is_written_is_read),
		UNIT_TEST(other_manifests_are_no_artifacts),
		UNIT_TEST(an_ambiguous_document_is_refused),
		UNIT_TEST(a_platform_is_picked),
		UNIT_TEST(marker_round_trip),
		UNIT_TEST(bad_markers_are_refused),
		UNIT_TEST(a_huge_marker_is_refused),
		UNIT_TEST(users_are_found),
	};

	return cmocka_run_group_tests_name("image/artifact", tests, NULL, NULL);
}
