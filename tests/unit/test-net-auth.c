/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/auth.h"
#include "net/auth_config.h"

static char top[64];

static int setup(void **state)
{
	bs_autofree char *path = NULL;

	(void)snprintf(top, sizeof(top), "/tmp/bs-auth-XXXXXX");
	assert_non_null(mkdtemp(top));
	path = bs_strf("%s:/usr/bin:/bin", top);
	(void)setenv("PATH", path, 1);
	(void)setenv("HOME", top, 1);
	(void)unsetenv("DOCKER_CONFIG");
	(void)unsetenv("REGISTRY_AUTH_FILE");
	(void)setenv("XDG_RUNTIME_DIR", top, 1);
	return 0;
}

static int teardown(void **state)
{
	bs_autofree char *command = bs_strf("rm -rf '%s'", top);

	return system(command);
}

static void write_file(const char *name, mode_t mode, const char *text)
{
	bs_autofree char *path = bs_strf("%s/%s", top, name), *dir = strdup(path);
	bs_autofd int fd = -EBADF;

	*strrchr(dir, '/') = '\0';
	(void)mkdir(dir, 0700);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(bs_write_full(fd, text, strlen(text)), 0);
}

static void expect(const struct bs_auth_options *o, const char *host, const char *repository,
		   const char *user, const char *secret)
{
	bs_autofree char *u = NULL, *s = NULL;
	struct bs_error err = BS_ERROR_INIT;
	int r = bs_auth_find(o, host, repository, &u, &s, &err);

	if (!user) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	if (r < 0)
		fail_msg("%s/%s: %s", host, repository, err.msg);
	assert_string_equal(u, user);
	assert_string_equal(s, secret);
}

static void keys_cover_hosts_and_paths(void **state)
{
	static const struct {
		const char *key, *host, *repository;
		bool globs;
		size_t score;
	} cases[] = {
		{ "r.x", "r.x", "a", false, 1 },
		{ "https://r.x", "r.x", "a", false, 1 },
		{ "http://r.x/", "r.x", "a", false, 1 },
		{ "https://r.x/v1/", "r.x", "a", false, 1 },
		{ "https://r.x/v2/", "r.x", "a", false, 1 },
		{ "https://index.docker.io/v1/", "docker.io", "library/a", false, 1 },
		{ "docker.io", "docker.io", "a/b", false, 1 },
		{ "registry-1.docker.io", "docker.io", "a/b", false, 1 },
		{ "r.x:5000", "r.x", "a", false, 0 },
		{ "r.x", "r.x:5000", "a", false, 0 },
		{ "r.x:5000", "r.x:5000", "a", false, 1 },
		{ "r.x/a", "r.x", "a", false, 2 },
		{ "r.x/a", "r.x", "a/b", false, 2 },
		{ "r.x/a/b", "r.x", "a/b", false, 4 },
		{ "r.x/a", "r.x", "ab", false, 0 },
		{ "r.x/a/b", "r.x", "a", false, 0 },
		{ "*.x", "r.x", "a", false, 0 },
		{ "*.x", "r.x", "a", true, 1 },
		{ "*.x", "s.r.x", "a", true, 0 },
		{ "*.r*.x:5000/a", "s.r1.x:5000", "a/b", true, 2 },
		{ "*.x", "r.x:5000", "a", true, 0 },
		{ "", "r.x", "a", true, 0 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		size_t s = bs_auth_covers(cases[i].key, cases[i].host, cases[i].repository,
					  cases[i].globs);

		if (s != cases[i].score)
			fail_msg("%s for %s/%s: %zu", cases[i].key, cases[i].host,
				 cases[i].repository, s);
	}
}

static void entries_are_read_in_all_forms(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *user, *secret;
	} cases[] = {
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTpwOncK\"}}}", 0, "u", "p:w\n" },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTpwAA==\"}}}", 0, "u", "p" },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTo=\"}}}", 0, "u", "" },
		{ "{\"auths\":{\"r.x\":{\"username\":\"u\",\"password\":\"p\"}}}", 0, "u", "p" },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTpw\",\"identitytoken\":\"t\"}}}", 0, "", "t" },
		{ "{\"r.x\":{\"auth\":\"dTpw\"}}", 0, "u", "p" },
		{ "{\"auths\":{\"r.x\":{}}}", -ENOENT, NULL, NULL },
		{ "{\"auths\":{\"r.x\":7}}", -ENOENT, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"\"}}}", -ENOENT, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"!!!!\"}}}", -EINVAL, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTp\"}}}", -EINVAL, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dXA=\"}}}", -EINVAL, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"OnA=\"}}}", -EINVAL, NULL, NULL },
		{ "{\"auths\":{\"r.x\":{\"auth\":\"dTpwAHA=\"}}}", -EINVAL, NULL, NULL },
		{ "{\"credsStore\":\"../x\"}", -EINVAL, NULL, NULL },
		{ "{\"auths\":{}}", -ENOENT, NULL, NULL },
		{ "[]", -EINVAL, NULL, NULL },
		{ "{", -EINVAL, NULL, NULL },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_auth_found f = { 0 };
		int r = bs_auth_from_config("x", cases[i].text, strlen(cases[i].text), "r.x", "a",
					    false, &f, NULL);

		if (r != cases[i].r)
			fail_msg("%s: %d", cases[i].text, r);
		if (r == 0) {
			assert_string_equal(f.user, cases[i].user);
			assert_string_equal(f.secret, cases[i].secret);
		}
		bs_auth_found_done(&f);
	}
}

static void files_are_asked_in_order_and_anew(void **state)
{
	bs_autofree char *dir = bs_strf("%s/dir", top);
	const struct bs_auth_options o = { .dockerconfig_dir = dir };

	expect(&o, "r.x", "a", NULL, NULL);
	write_file("dir/b.json", 0600, "{\"auths\":{\"*.x\":{\"auth\":\"YjpwCg==\"}}}");
	expect(&o, "r.x", "a", "b", "p\n");
	write_file("dir/a.json", 0600, "{\"auths\":{\"r.x/a\":{\"auth\":\"YTpw\"}}}");
	write_file("dir/.hidden.json", 0600, "{");
	expect(&o, "r.x", "a", "a", "p");
	expect(&o, "r.x", "b", "b", "p\n");
	write_file("containers/auth.json", 0600,
		   "{\"auths\":{\"r.x\":{\"auth\":\"Yzpw\"},\"r.x/n/s\":{\"auth\":\"ZDpw\"}}}");
	expect(&o, "r.x", "a", "c", "p");
	expect(&o, "r.x", "n/s/t", "d", "p");
	write_file(".docker/config.json", 0600,
		   "{\"auths\":{\"https://r.x/v1/\":{\"auth\":\"ZTpw\"}}}");
	expect(&o, "r.x", "a", "e", "p");
	expect(&o, "s.y", "a", NULL, NULL);
}

static void a_broken_file_hides_no_other_but_is_reported(void **state)
{
	bs_autofree char *u = NULL, *s = NULL;
	struct bs_error err = BS_ERROR_INIT;
	const struct bs_auth_options o = { 0 };

	write_file(".docker/config.json", 0600, "{\"auths\":");
	write_file("containers/auth.json", 0600, "{\"auths\":{\"r.x\":{\"auth\":\"Yzpw\"}}}");
	expect(&o, "r.x", "a", "c", "p");
	assert_int_equal(bs_auth_find(&o, "s.y", "a", &u, &s, &err), -EINVAL);
	assert_non_null(strstr(err.msg, ".docker/config.json"));
}

static void docker_config_is_a_file_or_its_directory(void **state)
{
	bs_autofree char *dir = bs_strf("%s/d", top), *file = bs_strf("%s/d/config.json", top);
	const struct bs_auth_options by_dir = { .docker_config = dir };
	const struct bs_auth_options by_file = { .docker_config = file };

	assert_int_equal(mkdir(dir, 0700), 0);
	write_file("d/config.json", 0600, "{\"auths\":{\"r.x\":{\"auth\":\"Yzpw\"}}}");
	expect(&by_dir, "r.x", "a", "c", "p");
	expect(&by_file, "r.x", "a", "c", "p");
}

static void helpers_are_run(void **state)
{
	const struct bs_auth_options o = { 0 };
	bs_autofree char *u = NULL, *s = NULL;
	struct bs_error err = BS_ERROR_INIT;

	write_file(".docker/config.json", 0600,
		   "{\"auths\":{\"r.x\":{}},\"credsStore\":\"store\",\"credHelpers\":"
		   "{\"h.x\":\"one\",\"bad.x\":\"bad\",\"absent.x\":\"absent\"}}");
	write_file(
		"docker-credential-one", 0700,
		"#!/bin/sh\nread -r server\n[ \"$1\" = get ] || exit 3\n"
		"printf '{\"ServerURL\":\"%s\",\"Username\":\"%s\",\"Secret\":\"s\"}' x $server\n");
	write_file("docker-credential-store", 0700,
		   "#!/bin/sh\nread -r server\ncase $server in https://index.docker.io/v1/) "
		   "echo '{\"Username\":\"<token>\",\"Secret\":\"t\"}';; *) "
		   "echo 'credentials not found in native keychain'; exit 1;; esac\n");
	write_file("docker-credential-bad", 0700, "#!/bin/sh\necho the store is locked\nexit 1\n");
	expect(&o, "h.x", "a", "h.x", "s");
	expect(&o, "docker.io", "library/a", "", "t");
	expect(&o, "r.x", "a", NULL, NULL);
	assert_int_equal(bs_auth_find(&o, "bad.x", "a", &u, &s, &err), -EIO);
	assert_non_null(strstr(err.msg, "the store is locked"));
	assert_true(bs_auth_find(&o, "absent.x", "a", &u, &s, &err) < 0);
	assert_non_null(strstr(err.msg, "docker-credential-absent"));
}

static void kubelet_providers_are_run(void **state)
{
	bs_autofree char *config = bs_strf("%s/providers.json", top);
	const struct bs_auth_options o = { .provider_config = config, .provider_bin_dir = top };

	write_file(
		"providers.json", 0600,
		"{\"apiVersion\":\"kubelet.config.k8s.io/v1\",\"kind\":"
		"\"CredentialProviderConfig\",\"providers\":[{\"name\":\"other\",\"matchImages\":"
		"[\"*.y\"]},{\"name\":\"prov\",\"matchImages\":[\"*.x/team\"],\"args\":[\"get\"],"
		"\"env\":[{\"name\":\"REGION\",\"value\":\"eu\"}]},{\"name\":\"../x\","
		"\"matchImages\":[\"*.z\"]}]}");
	write_file(
		"prov", 0700,
		"#!/bin/sh\nread -r request\ncase $request in "
		"*'\"kind\":\"CredentialProviderRequest\"'*'\"image\":\"r.x/team/a\"'*) ;; *) exit "
		"4;; "
		"esac\nprintf '{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":"
		"\"credentialprovider.kubelet.k8s.io/v1\",\"cacheKeyType\":\"Registry\",\"auth\":"
		"{\"*.x\":{\"username\":\"wide\",\"password\":\"p\"},\"r.x/team\":"
		"{\"username\":\"%s\",\"password\":\"%s\"}}}' $REGION $1\n");
	expect(&o, "r.x", "team/a", "eu", "get");
	expect(&o, "r.x", "other/a", NULL, NULL);
	{
		bs_autofree char *u = NULL, *s = NULL;

		assert_int_equal(bs_auth_find(&o, "r.x", "team/b", &u, &s, NULL), -EIO);
		assert_int_equal(bs_auth_find(&o, "r.z", "a", &u, &s, NULL), -EINVAL);
		assert_true(bs_auth_find(&o, "r.y", "a", &u, &s, NULL) < 0);
	}
}

#define AUTH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AUTH_TEST(keys_cover_hosts_and_paths),
		AUTH_TEST(entries_are_read_in_all_forms),
		AUTH_TEST(files_are_asked_in_order_and_anew),
		AUTH_TEST(a_broken_file_hides_no_other_but_is_reported),
		AUTH_TEST(docker_config_is_a_file_or_its_directory),
		AUTH_TEST(helpers_are_run),
		AUTH_TEST(kubelet_providers_are_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
