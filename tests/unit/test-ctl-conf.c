/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ctl/conf.h"

static char dir[] = "/tmp/bootseer-conf-XXXXXX";
static char file[64];

static int read_text(const char *text, struct bs_conf *c, struct bs_error *err)
{
	bs_autofd int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(bs_write_full(fd, text, strlen(text)), 0);
	return bs_conf_read(file, c, err);
}

static void test_defaults(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("", &c, &err), 0);
	assert_string_equal(c.runtime, "runc");
	assert_string_equal(c.run_dir, "/run/bootseer");
	assert_int_equal(c.connections, 8);
	assert_true(c.keep_mounts_ns == 600 * BS_NS_PER_S);
	assert_true(c.autostart && c.allow_annotations && c.background);
	assert_int_equal(c.fallback, BS_FALLBACK_UNPACK);
	assert_int_equal(c.allow_registries.n, 1);
	assert_int_equal(c.allow_dirs.n, 0);
	bs_conf_done(&c);
}

/* A mistyped name must not mean the defaults. */
static void test_named_file_must_exist(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(bs_conf_read("/nonexistent/bootseer.conf", &c, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/bootseer.conf"));
	assert_string_equal(c.runtime, "runc");
	assert_true(c.named);
	bs_conf_done(&c);
	assert_int_equal(setenv("BOOTSEER_CONFIG", "/nonexistent/other.conf", 1), 0);
	assert_int_equal(bs_conf_read(NULL, &c, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/other.conf"));
	bs_conf_done(&c);
	assert_int_equal(unsetenv("BOOTSEER_CONFIG"), 0);
	(void)bs_conf_read(NULL, &c, &err); /* whatever this machine has */
	assert_false(c.named);
	bs_conf_done(&c);
}

static void test_file(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("# a comment\n[runtime]\nruntime = /usr/bin/crun\n"
				   "[fetch]\nconnections=3\nbackground_rate = 2M\n"
				   "mirrors = a=b, c=d\n  e=f/g\n"
				   "[policy]\nallow_registries = r.test/*\nfallback=fail\n"
				   "allow_annotations = no\n",
				   &c, &err),
			 0);
	assert_string_equal(c.runtime, "/usr/bin/crun");
	assert_int_equal(c.connections, 3);
	assert_true(c.background_rate.bytes == 2u << 20);
	assert_int_equal(c.mirrors.n, 3);
	assert_string_equal(c.mirrors.v[2], "e=f/g");
	assert_int_equal(c.allow_registries.n, 1);
	assert_string_equal(c.allow_registries.v[0], "r.test/*");
	assert_int_equal(c.fallback, BS_FALLBACK_FAIL);
	assert_false(c.allow_annotations);
	bs_conf_done(&c);
}

static void refused(const char *text, const char *line, const char *word)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	assert_true(read_text(text, &c, &err) < 0);
	print_message("[ error  ] %s\n", err.msg);
	assert_non_null(strstr(err.msg, file));
	assert_non_null(strstr(err.msg, line));
	assert_non_null(strstr(err.msg, word));
	assert_non_null(c.runtime); /* usable all the same */
	bs_conf_done(&c);
}

static void test_errors_name_place_and_remedy(void **state)
{
	char *text = NULL;

	(void)state;
	refused("[runtime]\nruntme = x\n", "line 2", "bootseer.conf(5)");
	refused("\n\n[node]\nruntime = x\n", "line 4", "belongs to section [runtime]");
	refused("[fetch]\nconnections = 0\n", "line 2", "from 1 to 1000");
	refused("[fetch]\nconnections = 1001\n", "line 2", "from 1 to 1000");
	refused("[fetch]\nconnections = 4 4\n", "line 2", "connections");
	refused("[hot]\nrecord_window = 0s\n", "line 2", "from 1s to 24h");
	refused("[hot]\nrecord_window = 999ms\n", "line 2", "from 1s to 24h");
	refused("[hot]\nrecord_window = 5124095h\n", "line 2", "from 1s to 24h");
	refused("[hot]\nrecord_window = 18446744073s\n", "line 2", "from 1s to 24h");
	refused("[fetch]\nstart_wait = 18446744073s\n", "line 2", "no more than 87600h");
	refused("[node]\nautostart = maybe\n", "line 2", "yes or no");
	refused("[node]\nrun_dir = run\n", "line 2", "absolute path");
	refused("[policy]\nfallback = plain\n", "line 2", "unpack or fail");
	refused("[policy]\nallow_dirs = /a b\n", "line 2", "absolute paths");
	refused("[fetch]\nmirrors = a=b mirror.test\n", "line 2", "HOST=MIRROR");
	refused("[fetch]\nmirrors = a=\n", "line 2", "HOST=MIRROR");
	refused("[fetch]\nstores = docker://r.test/a r.test/b\n", "line 2", "docker://HOST");
	refused("[fetch]\nstores = oci:dir\n", "line 2", "oci:/DIR");
	refused("[fetch]\nstores = hdfs://c\n", "line 2", "hdfs://HOST/DIR");
	refused("[policy]\nallow_hdfs = /images\n", "line 2", "hdfs://");
	refused("[hot]\nreplication = 0\n", "line 2", "1 to 1000");
	refused("runtime = runc\n[node]\n", "line 1",
		"in no section; it belongs to section [runtime]");
	refused("nothing = 1\n[node]\n", "line 1", "in no section");
	refused("[fetch]\nread_wait = 5d\n", "line 2", "or alone for seconds");
	refused("[node]\nautostart = no\nautostart = no\n", "line 3", "second value");
	refused("[node]\nnonsense\n", "line 2", "KEY = VALUE");
	assert_true(asprintf(&text, "[fetch]\n\nca_file = %0300d\n", 1) > 0);
	refused(text, "line 3", "longer than");
	free(text);
}

/* They would fit nothing, without a word. */
static void test_words_that_fit_nothing(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	refused("[fetch]\nhot_only = docker://127.0.0.1/x\n", "line 2", "without docker://");
	refused("[fetch]\nhot_only = oci:/srv/x\n", "line 2", "patterns of HOST/NAME");
	refused("[fetch]\nhot_only = python\n", "line 2", "patterns of HOST/NAME");
	refused("[policy]\nallow_registries = https://r.test/*\n", "line 2", "HOST/NAME");
	refused("[fetch]\nplain_http = http://r.test:5000\n", "line 2", "without http://");
	refused("[fetch]\nplain_http = r.test:5000/a\n", "line 2", "HOST:PORT");
	refused("[fetch]\ninsecure = https://r.test\n", "line 2", "HOST:PORT");
	refused("[fetch]\nmirrors = r.test=http://m.test\n", "line 2", "HOST=MIRROR");
	refused("[fetch]\nstores = docker://r.test\n", "line 2", "docker://HOST/NAME");
	assert_int_equal(read_text("[fetch]\nhot_only = r.test/* *.test/a [rs].test/b *\n"
				   "plain_http = r.test:5000 [::1]:80 localhost\n"
				   "stores = docker://r.test:80/a/b\n"
				   "[policy]\nallow_registries = *\n",
				   &c, &err),
			 0);
	bs_conf_done(&c);
}

static void test_yes_and_no(void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	for (size_t i = 0; i < 2 * BS_ARRAY_LEN(yes); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "[hot]\npublish = %s\n",
			       i % 2 ? yes[i / 2] : no[i / 2]);
		assert_int_equal(read_text(text, &c, &err), 0);
		assert_int_equal(c.publish, i % 2);
		bs_conf_done(&c);
	}
}

static void test_good_keys_of_a_bad_file_count(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_true(read_text("[node]\nx = y\n[runtime]\nruntime = crun\n", &c, &err) < 0);
	assert_string_equal(c.runtime, "crun");
	bs_conf_done(&c);
}

static void test_file_of_others(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("", &c, &err), 0);
	bs_conf_done(&c);
	assert_int_equal(chmod(file, 0620), 0);
	assert_int_equal(bs_conf_read(file, &c, &err), -EPERM);
	bs_conf_done(&c);
	assert_int_equal(chmod(file, 0602), 0);
	assert_int_equal(bs_conf_read(file, &c, &err), -EPERM);
	assert_non_null(strstr(err.msg, "chmod 644"));
	bs_conf_done(&c);
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(bs_conf_read(dir, &c, &err), -EINVAL);
	bs_conf_done(&c);
}

static void test_policy(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *text = NULL, *inside = NULL, *outside = NULL, *link = NULL;
	struct bs_conf c;

	(void)state;
	assert_true(asprintf(&text,
			     "[policy]\nallow_registries = r.test/a/* s.test/x\n"
			     "allow_dirs = %s\n",
			     dir) > 0);
	assert_true(asprintf(&inside, "oci:%s/layout", dir) > 0);
	assert_true(asprintf(&outside, "oci:%s/../etc", dir) > 0);
	assert_true(asprintf(&link, "oci:%s/link", dir) > 0);
	assert_int_equal(symlink("/etc", link + 4), 0);
	assert_int_equal(read_text(text, &c, &err), 0);
	assert_int_equal(bs_conf_allows(&c, "docker://r.test/a/b", &err), 0);
	assert_int_equal(bs_conf_allows(&c, "docker://r.test/a/b/c", &err), 0);
	assert_int_equal(bs_conf_allows(&c, "docker://s.test/x", &err), 0);
	assert_int_equal(bs_conf_allows(&c, "docker://s.test/xy", &err), -EPERM);
	assert_non_null(strstr(err.msg, "allow_registries"));
	assert_int_equal(bs_conf_allows(&c, "docker://r.testa/b", &err), -EPERM);
	assert_int_equal(bs_conf_allows(&c, inside, &err), 0);
	assert_int_equal(bs_conf_allows(&c, outside, &err), -EPERM);
	assert_int_equal(bs_conf_allows(&c, link, &err), -EPERM);
	assert_non_null(strstr(err.msg, "allow_dirs"));
	assert_int_equal(bs_conf_allows(&c, "oci:layout", &err), -EPERM);
	assert_int_equal(bs_conf_allows(&c, "file:///etc", &err), -EPERM);
	assert_int_equal(bs_conf_allows(&c, "", &err), -EPERM);
	bs_conf_done(&c);
	assert_int_equal(unlink(link + 4), 0);
}

/* An image on HDFS comes from where policy says, to the letter, and from nowhere else. */
static void test_policy_of_hdfs(void **state)
{
	static const struct {
		const char *source;
		int want;
	} cases[] = {
		{ "hdfs://c/images", 0 },
		{ "hdfs://c/images/a/b", 0 },
		{ "hdfs://c/store", 0 }, /* a store of the host's own */
		{ "hdfs://c/store/a", -EPERM },
		{ "hdfs://c/imagesx", -EPERM },
		{ "hdfs://c/images/../x", -EPERM },
		{ "hdfs://c/", -EPERM },
		{ "hdfs://d/images", -EPERM },
		{ "hdfs://c:8020/images", -EPERM },
		{ "webhdfs://c/images", -EPERM },
		{ "hdfs:///images", -EPERM },
		{ "hdfs://c", -EPERM },
	};
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *options = NULL;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("[policy]\nallow_hdfs = hdfs://c/images\n"
				   "[fetch]\nstores = hdfs://c/store\n"
				   "hdfs_options = user=a,conf=/x token=/t\n",
				   &c, &err),
			 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(bs_conf_allows(&c, cases[i].source, &err), cases[i].want);
	assert_non_null(strstr(err.msg, "allow_registries"));
	assert_int_equal(bs_conf_allows(&c, "hdfs://d/x", &err), -EPERM);
	assert_non_null(strstr(err.msg, "allow_hdfs"));
	options = bs_conf_hdfs_options(&c);
	assert_string_equal(options, "user=a,conf=/x,token=/t");
	bs_conf_done(&c);
	assert_int_equal(read_text("", &c, &err), 0);
	assert_int_equal(bs_conf_allows(&c, "hdfs://c/images", &err), -EPERM);
	bs_conf_done(&c);
}

static void test_sources(void **state)
{
	static const char *const want[] = { "docker://m1.test/n/a",   "docker://m2.test/p/n/a",
					    "docker://h.test/n/a",    "docker://m1.test/n/b",
					    "docker://m2.test/p/n/b", "docker://h.test/n/b",
					    "oci:/srv/store" };
	struct bs_error err = BS_ERROR_INIT;
	bs_autostrv l = { 0 };
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("[fetch]\nmirrors = h.test=m1.test h.test=m2.test/p "
				   "h.tes=no.test\nstores = oci:/srv/store\n",
				   &c, &err),
			 0);
	assert_int_equal(bs_conf_sources(&c, "docker://h.test/n/a", &l, &err), 0);
	assert_int_equal(bs_conf_sources(&c, "docker://h.test/n/b", &l, &err), 0);
	assert_int_equal(bs_conf_sources(&c, "docker://h.test/n/a", &l, &err), 0);
	assert_int_equal(l.n, BS_ARRAY_LEN(want));
	for (size_t i = 0; i < l.n; i++)
		assert_string_equal(l.v[i], want[i]);
	bs_conf_done(&c);
}

static void test_hot_only(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autostrv l = { 0 };
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("[fetch]\nhot_only = h.test/big/* other.test/*\n", &c, &err), 0);
	assert_int_equal(bs_strv_add(&l, "oci:/h.test/big/a"), 0);
	assert_int_equal(bs_strv_add(&l, "docker://h.test/small/a"), 0);
	assert_false(bs_conf_is_hot_only(&c, &l));
	assert_int_equal(bs_strv_add(&l, "docker://h.test/big/a"), 0);
	assert_true(bs_conf_is_hot_only(&c, &l));
	bs_conf_done(&c);
}

static void test_percent(void **state)
{
	static const char *const wrong[] = {
		"10", "%", "101%", "-1%", "1 %", "10%%", "1000000000%"
	};
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("[hot]\nrerecord = 100%\n", &c, &err), 0);
	assert_int_equal(c.rerecord, 100);
	bs_conf_done(&c);
	assert_int_equal(read_text("[fetch]\nbackground_rate = 25%\n", &c, &err), 0);
	assert_int_equal(c.background_rate.percent, 25);
	assert_int_equal(c.background_rate.bytes, 0);
	bs_conf_done(&c);
	assert_int_equal(read_text("[fetch]\nbackground_rate = 2M\n", &c, &err), 0);
	assert_int_equal(c.background_rate.percent, 0);
	assert_int_equal(c.background_rate.bytes, 2 << 20);
	bs_conf_done(&c);
	assert_true(read_text("[fetch]\nbackground_rate = 0%\n", &c, &err) < 0);
	bs_conf_done(&c);
	for (size_t i = 0; i < BS_ARRAY_LEN(wrong); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "[hot]\nrerecord = %s\n", wrong[i]);
		assert_true(read_text(text, &c, &err) < 0);
		assert_non_null(strstr(err.msg, "a number from 0 to 100 with % behind"));
		assert_int_equal(c.rerecord, 10);
		bs_conf_done(&c);
	}
}

static bool lets(const struct bs_conf *c, const char *source, const char *target, const char *user,
		 bool writable)
{
	const struct bs_conf_ckpt q = { source, target, user, writable };
	struct bs_error err = BS_ERROR_INIT;
	int r = bs_conf_allows_ckpt(c, &q, &err);

	assert_true(r == 0 || (r == -EPERM && strstr(err.msg, "[checkpoint]")));
	return r == 0;
}

static void test_checkpoints(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_conf c;

	(void)state;
	assert_int_equal(read_text("", &c, &err), 0);
	assert_true(c.ckpt_required);
	assert_int_equal(c.ckpt_mount_wait_ns, 60 * BS_NS_PER_S);
	assert_false(lets(&c, "hdfs://a/x", "/ckpt", NULL, false));
	bs_conf_done(&c);
	assert_int_equal(read_text("[checkpoint]\n"
				   "allow_sources = hdfs://a/x, webhdfs://b:9870/ hdfs:///d\n"
				   "allow_users = train\nuser = def\nallow_targets = /c /d\n"
				   "required = no\nmount_wait = 5s\noptions = conf=/x, memory=1G\n",
				   &c, &err),
			 0);
	assert_false(c.ckpt_required);
	assert_int_equal(c.ckpt_options.n, 2);
	assert_true(lets(&c, "hdfs://a/x", "/c", NULL, true));
	assert_true(lets(&c, "hdfs://a/x/y", "/c/d", "train", true));
	/* to the letter, as name services are looked up */
	assert_false(lets(&c, "hdfs://A/x/y", "/c/d", "train", true));
	assert_true(lets(&c, "hdfs://a/x", "/d", "def", true));
	assert_true(lets(&c, "webhdfs://b:9870/any", "/c", NULL, true));
	assert_true(lets(&c, "hdfs:///d/e", "/c", NULL, true));
	/* a name is not a prefix of another, and no way leads out */
	assert_false(lets(&c, "hdfs://a/xy", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a/x/../y", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a/X", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a.evil/x", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a:8020/x", "/c", NULL, true));
	assert_false(lets(&c, "webhdfs://a/x", "/c", NULL, true));
	assert_false(lets(&c, "webhdfs://b/x", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://b:9870/x", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a/d", "/c", NULL, true));
	assert_false(lets(&c, "hdfs://a/x", "/cc", NULL, true));
	assert_false(lets(&c, "hdfs://a/x", "/", NULL, true));
	assert_false(lets(&c, "hdfs://a/x", "/c", "hdfs", true));
	bs_conf_done(&c);
	assert_int_equal(read_text("[checkpoint]\nallow_sources = hdfs://a/\nallow_users = *\n"
				   "allow_writes = no\n",
				   &c, &err),
			 0);
	assert_true(lets(&c, "hdfs://a/x", "/any/where", "anybody", false));
	assert_false(lets(&c, "hdfs://a/x", "/any/where", "anybody", true));
	bs_conf_done(&c);
	refused("[checkpoint]\nallow_sources = a/x\n", "line 2", "hdfs://NAMESERVICE/PATH");
	refused("[checkpoint]\nallow_sources = hdfs://a/x/\n", "line 2", "hdfs://NAMESERVICE");
	refused("[checkpoint]\nallow_sources = hdfs://a\n", "line 2", "hdfs://NAMESERVICE");
	refused("[checkpoint]\nallow_targets = ckpt\n", "line 2", "absolute");
	refused("[checkpoint]\nrequired = perhaps\n", "line 2", "yes or no");
}

/* Each key with its default stands in the man page, as ".It Cm NAME No = Ar TYPE". */
static void test_man_page(void **state)
{
	bs_autofree char *page = NULL;
	const char *top = getenv("top_srcdir");
	char path[PATH_MAX];
	struct bs_conf_key k;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/src/man/bootseer.conf.5", top ? top : ".");
	assert_int_equal(bs_read_file_at(AT_FDCWD, path, 0, 1 << 20, &page, NULL), 0);
	for (unsigned int i = 0; bs_conf_key(i, &k); i++) {
		bs_autofree char *item = NULL, *section = NULL;
		char *at, *next;

		assert_true(asprintf(&section, ".Ss Section %s\n", k.section) > 0);
		assert_true(asprintf(&item, ".It Cm %s Ns = Ns Ar %s\n", k.name, k.type) > 0);
		at = strstr(page, section);
		if (!at)
			fail_msg("no '%s'", section);
		next = strstr(at + 1, ".Ss ");
		at = strstr(at, item);
		if (!at || (next && at > next))
			fail_msg("section '%s' lacks '%s'", k.section, item);
		if (k.def[0]) {
			bs_autofree char *def = NULL;

			assert_true(asprintf(&def, "Default: %s.\n", k.def) > 0);
			next = strstr(at + 1, ".It ");
			at = strstr(at, def);
			if (!at || (next && at > next))
				fail_msg("'%s' lacks '%s'", k.name, def);
		}
	}
}

/* Every key stands there, commented out, below its section, with its default. */
static void test_example(void **state)
{
	bs_autofree char *example = NULL;
	const char *top = getenv("top_srcdir");
	char path[PATH_MAX];
	struct bs_conf_key k;
	unsigned int n = 0;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/contrib/bootseer.conf", top ? top : ".");
	assert_int_equal(bs_read_file_at(AT_FDCWD, path, 0, 1 << 20, &example, NULL), 0);
	for (; bs_conf_key(n, &k); n++) {
		bs_autofree char *item = NULL, *section = NULL;
		char *at, *next;

		assert_true(asprintf(&section, "\n[%s]\n", k.section) > 0);
		assert_true(asprintf(&item, "\n# %s\n#%s =%s%s\n", k.text, k.name,
				     k.def[0] ? " " : "", k.def) > 0);
		at = strstr(example, section);
		if (!at)
			fail_msg("no section [%s]", k.section);
		next = strstr(at + 2, "\n[");
		at = strstr(at, item);
		if (!at || (next && at > next))
			fail_msg("section [%s] lacks '%s'", k.section, item);
	}
	/* and nothing else does */
	for (const char *at = example; (at = strstr(at, "\n#")); at++)
		n -= at[2] != ' ';
	assert_int_equal(n, 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	return snprintf(file, sizeof(file), "%s/test.conf", dir) > 0 ? 0 : -1;
}

static int drop_dir(void **state)
{
	(void)state;
	(void)unlink(file);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_defaults),
		UNIT_TEST(test_named_file_must_exist),
		UNIT_TEST(test_file),
		UNIT_TEST(test_errors_name_place_and_remedy),
		UNIT_TEST(test_words_that_fit_nothing),
		UNIT_TEST(test_yes_and_no),
		UNIT_TEST(test_good_keys_of_a_bad_file_count),
		UNIT_TEST(test_file_of_others),
		UNIT_TEST(test_policy),
		UNIT_TEST(test_policy_of_hdfs),
		UNIT_TEST(test_sources),
		UNIT_TEST(test_hot_only),
		UNIT_TEST(test_percent),
		UNIT_TEST(test_checkpoints),
		UNIT_TEST(test_man_page),
		UNIT_TEST(test_example),
	};

	return cmocka_run_group_tests_name("ctl/conf", tests, make_dir, drop_dir);
}
