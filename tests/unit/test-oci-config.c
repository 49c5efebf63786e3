/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* config.json: the first look, the strict reading, edits, annotations, the state file. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "oci/annot.h"
#include "oci/bundle.h"
#include "oci/config.h"
#include "oci/edit.h"
#include "oci/look.h"
#include "oci/state.h"

/* --- the first look ------------------------------------------------------------------- */

static const struct {
	const char *text;
	const char *roots; /* with '|' between */
	bool annotation;
} looks[] = {
	{ "{\"root\":{\"path\":\"rootfs\"}}", "rootfs", false },
	{ "{\"root\":{\"path\":\"a\"},\"annotations\":{\"dev.bootseer.image\":\"x\"}}", "a", true },
	{ "{\"annotations\":{\"x\":\"dev.bootseer.image\"},\"root\":{}}", "", false },
	{ "{\"annotations\":{\"dev\\u002ebootseer.image\":\"x\"}}", "", true },
	{ "{\"annotations\":[{\"dev.bootseer.image\":\"x\"}]}", "", false },
	{ "{\"annotations\":{\"a\":{\"dev.bootseer.image\":1}}}", "", false },
	{ "{\"process\":{\"annotations\":{\"dev.bootseer.image\":1}}}", "", false },
	/* what one reader or another may take for root.path */
	{ "{\"ROOT\":{\"Path\":\"a\"},\"root\":{\"path\":\"b\",\"path\":\"c\"}}", "a|b|c", false },
	{ "{\"Annotation\xc5\xbf\":{\"dev.bootseer.image\":1}}", "", true },
	{ "{\"root\":{\"x\":{\"path\":\"a\"},\"path\":\"b\"},\"path\":\"c\"}", "b", false },
	{ "{\"root\" : { \"path\" : \"a\\/\\u0041\\\"\\n\" } }", "a/A\"\n", false },
	{ "{\"root\":{\"path\":\"a\"}} trailing /* comment */", "a", false },
	{ "{\"root\":{\"path\":\"a", "a", false },
	{ "{\"root\":{\"path\":\"a\\", "a\\", false },
	{ "{\"root\":{\"path\":\"\\u12", "u12", false },
	{ "{\"root\":{\"path\":\"\\ud83d\\ude00\\u20ac\\ud83d\"}}",
	  "\xf0\x9f\x98\x80\xe2\x82\xac\xef\xbf\xbd", false },
	{ "]]}}{\"root\":{\"path\":\"a\"}}", "a", false },
	{ "", "", false },
	{ "\"", "", false },
};

static char *join(const struct bs_strv *l)
{
	struct bs_buf b = BS_BUF_INIT(1 << 20);

	for (size_t i = 0; i < l->n; i++)
		(void)bs_buf_addf(&b, "%s%s", i ? "|" : "", l->v[i]);
	return bs_buf_take(&b);
}

static void test_look(void **state)
{
	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(looks); i++) {
		bs_autofree char *roots = NULL;
		struct bs_look l;

		print_message("[ look   ] %s\n", looks[i].text);
		assert_int_equal(bs_look(looks[i].text, strlen(looks[i].text), &l), 0);
		roots = join(&l.roots);
		assert_string_equal(roots, looks[i].roots);
		assert_int_equal(l.annotation, looks[i].annotation);
		assert_false(l.too_many);
		bs_look_done(&l);
	}
}

static void test_look_keeps_a_bounded_number(void **state)
{
	bs_autobuf b = BS_BUF_INIT(1 << 20);
	struct bs_look l;

	(void)state;
	(void)bs_buf_adds(&b, "{\"root\":{");
	for (unsigned int i = 0; i <= BS_LOOK_ROOTS_MAX; i++)
		(void)bs_buf_addf(&b, "\"path\":\"%u\",", i);
	assert_int_equal(bs_look(bs_buf_str(&b), b.len, &l), 0);
	assert_int_equal(l.roots.n, BS_LOOK_ROOTS_MAX);
	assert_true(l.too_many);
	bs_look_done(&l);
}

/* --- the strict reading -------------------------------------------------------------------- */

static void refused(const char *text, const char *word)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_config c = { 0 };

	assert_int_equal(bs_config_parse(text, strlen(text), &c, &err), -EINVAL);
	print_message("[ error  ] %s\n", err.msg);
	assert_non_null(strstr(err.msg, word));
}

static void test_refused_configs(void **state)
{
	(void)state;
	refused("[]", "object");
	refused("{}", "'root' is missing");
	refused("{\"root\":[]}", "'root' is of type array");
	refused("{\"root\":{}}", "'root.path' is missing");
	refused("{\"root\":{\"path\":1}}", "'root.path' is of type number");
	refused("{\"root\":{\"path\":\"\"}}", "'root.path' is empty");
	refused("{\"root\":{\"path\":\"a\",\"readonly\":1}}", "'root.readonly'");
	refused("{\"root\":{\"path\":\"a\"},\"annotations\":[]}", "'annotations'");
	refused("{\"root\":{\"path\":\"a\"},\"ROOT\":{\"path\":\"b\"}}", "'ROOT' differs");
	refused("{\"root\":{\"path\":\"a\",\"Path\":\"b\"}}", "'root.Path' differs");
	refused("{\"root\":{\"path\":\"a\"},\"Process\":{}}", "'Process' differs");
	refused("{\"root\":{\"path\":\"a\"},\"moun\xc5\xbfs\":[],\"mount\xc5\xbf\":[]}", "differs");
	refused("{\"root\":{\"path\":\"a\",\"path\":\"b\"}}", "twice");
	refused("{\"root\":{\"path\":\"a\"}}x", "");
}

static const char config[] =
	"{\"ociVersion\":\"1.0.2\",\"x\":{\"y\":[1,2.50,1e400,12345678901234567890,-0],"
	"\"z\":null},\"root\":{\"path\":\"rootfs\",\"readonly\":true,\"new\":\"\\u00e9\\/\"},"
	"\"annotations\":{\"a\":\"b\",\"Root\":\"c\"}}";

static const char edited[] =
	"{\"ociVersion\":\"1.0.2\",\"x\":{\"y\":[1,2.50,1e400,12345678901234567890,-0],"
	"\"z\":null},\"root\":{\"path\":\"rootfs\",\"readonly\":true,\"new\":\"\xc3\xa9/\"},"
	"\"annotations\":{\"a\":\"b\",\"Root\":\"c\",\"k\":\"v\"}}";

static void test_edit_keeps_the_rest(void **state)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autobuf out = BS_BUF_INIT(1 << 20);
	bs_autoconfig c = { 0 };

	(void)state;
	assert_int_equal(bs_config_parse(config, strlen(config), &c, &err), 0);
	assert_string_equal(c.root_path, "rootfs");
	assert_true(c.root_readonly);
	assert_int_equal(bs_edit_annotation(&c, "k", "v", &err), 0);
	assert_int_equal(bs_edit_annotation(&c, "k", "v", &err), 0);
	assert_int_equal(bs_config_write(&c, &out, &err), 0);
	assert_string_equal(bs_buf_str(&out), edited);
}

static void test_edit_makes_annotations(void **state)
{
	static const char *const texts[] = { "{\"root\":{\"path\":\"r\"}}",
					     "{\"root\":{\"path\":\"r\"},\"annotations\":null}" };

	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		bs_autobuf out = BS_BUF_INIT(1 << 20);
		bs_autoconfig c = { 0 };

		assert_int_equal(bs_config_parse(texts[i], strlen(texts[i]), &c, NULL), 0);
		assert_int_equal(bs_edit_annotation(&c, "k", "v", NULL), 0);
		assert_int_equal(bs_config_write(&c, &out, NULL), 0);
		assert_string_equal(bs_buf_str(&out),
				    "{\"root\":{\"path\":\"r\"},\"annotations\":{\"k\":\"v\"}}");
	}
}

static void test_edit_binds(void **state)
{
	static const char *const texts[] = { "{\"root\":{\"path\":\"r\"},\"mounts\":[{"
					     "\"destination\":\"/a\",\"source\":\"/run/x2\"}]}",
					     "{\"root\":{\"path\":\"r\"},\"mounts\":null}",
					     "{\"root\":{\"path\":\"r\"}}",
					     "{\"root\":{\"path\":\"r\"},\"mounts\":[7,{\"source\":"
					     "3},{\"source\":\"/run/x/old/1\"}]}" };

	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		bs_autoconfig c = { 0 };
		const struct bs_json *mounts, *last;
		size_t n;

		assert_int_equal(bs_config_parse(texts[i], strlen(texts[i]), &c, NULL), 0);
		n = bs_json_n(bs_json_get(c.doc, "mounts"));
		for (int again = 0; again < 2; again++) {
			bs_edit_unbind(&c, "/run/x");
			assert_int_equal(bs_edit_bind(&c, "/run/x/k/0", "/b",
						      again ? BS_BIND_WRITABLE | BS_BIND_NOEXEC : 0,
						      NULL),
					 0);
		}
		mounts = bs_json_get(c.doc, "mounts");
		assert_int_equal(bs_json_n(mounts), i == 3 ? n : n + 1);
		last = bs_json_at(mounts, bs_json_n(mounts) - 1);
		assert_string_equal(bs_json_str(bs_json_get(last, "source")), "/run/x/k/0");
		assert_string_equal(bs_json_str(bs_json_get(last, "destination")), "/b");
		assert_string_equal(bs_json_str(bs_json_at(bs_json_get(last, "options"), 4)), "rw");
		assert_string_equal(bs_json_str(bs_json_at(bs_json_get(last, "options"), 5)),
				    "noexec");
		assert_int_equal(bs_json_n(bs_json_get(last, "options")), 6);
	}
}

static void test_edit_binds_nothing(void **state)
{
	static const char text[] = "{\"root\":{\"path\":\"r\"},\"mounts\":{}}";
	bs_autoconfig c = { 0 };

	(void)state;
	assert_int_equal(bs_config_parse(text, strlen(text), &c, NULL), 0);
	assert_int_equal(bs_edit_bind(&c, "/s", "/t", BS_BIND_WRITABLE, NULL), -EINVAL);
}

static void test_bundle_keeps_mode_and_owner(void **state)
{
	char dir[] = "/tmp/bootseer-bundle-XXXXXX", path[64];
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *text = NULL;
	bs_autobundle b = { .fd = -EBADF };
	struct stat st;
	size_t len;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/config.json", dir);
	assert_int_equal(bs_bundle_open("/nonexistent", NULL, &b, &err), -ENOENT);
	assert_int_equal(bs_bundle_open(dir, NULL, &b, &err), 0);
	assert_int_equal(bs_bundle_read(&b, &text, &len, &err), -ENOENT);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	(void)bs_close(fd);
	assert_int_equal(chmod(path, 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12, 34), 0);
	assert_int_equal(bs_bundle_write(&b, "text", 4, &err), 0);
	assert_int_equal(bs_bundle_read(&b, &text, &len, &err), 0);
	assert_string_equal(text, "text");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	if (geteuid() == 0)
		assert_true(st.st_uid == 12 && st.st_gid == 34);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* --- annotations ----------------------------------------------------------------------------- */

static int read_annotations(const char *text, struct bs_annot *a, struct bs_strv *unknown,
			    struct bs_json **ret, struct bs_error *err)
{
	assert_int_equal(bs_json_parse("x", text, strlen(text), 1 << 20, ret, err), 0);
	return bs_annot_read(*ret, a, unknown, err);
}

static void test_annotations(void **state)
{
	static const char text[] =
		"{\"dev.bootseer.image\":\"oci:i\",\"dev.bootseer.fallback\":\"fail\","
		"\"dev.bootseer.background\":\"hot-only\","
		"\"dev.bootseer.served\":\"s\",\"dev.bootseer.imag\":\"x\","
		"\"other\":1,\"io.kubernetes.cri.image-name\":\"r/n:t\"}";
	bs_auto(json) struct bs_json *v = NULL;
	bs_autostrv unknown = { 0 }, names = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_annot a;

	(void)state;
	assert_int_equal(read_annotations(text, &a, &unknown, &v, &err), 0);
	assert_string_equal(a.image, "oci:i");
	assert_string_equal(a.fallback, "fail");
	assert_string_equal(a.background, "hot-only");
	assert_int_equal(unknown.n, 1);
	assert_string_equal(unknown.v[0], "dev.bootseer.imag");
	assert_int_equal(bs_annot_image_names(v, &names), 0);
	assert_int_equal(names.n, 1);
	assert_string_equal(names.v[0], "r/n:t");
	assert_int_equal(bs_annot_read(NULL, &a, &unknown, &err), 0);
	assert_null(a.image);
}

static void test_bad_annotations(void **state)
{
	static const char *const texts[] = { "{\"dev.bootseer.image\":1}",
					     "{\"dev.bootseer.image\":\"\"}",
					     "{\"dev.bootseer.image\":\"wrong\"}",
					     "{\"dev.bootseer.image\":\"python:3.11\"}",
					     "{\"dev.bootseer.image\":\"team/app:1\"}",
					     "{\"dev.bootseer.image\":\"docker://team/app\"}",
					     "{\"dev.bootseer.image\":\"oci:\"}",
					     "{\"dev.bootseer.workload\":\"-x\"}",
					     "{\"dev.bootseer.fallback\":\"plain\"}",
					     "{\"dev.bootseer.workload\":\"a b\"}",
					     "{\"dev.bootseer.workload\":\"\"}",
					     "{\"dev.bootseer.background\":\"no\"}",
					     "{\"dev.bootseer.record\":\"maybe\"}" };

	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		bs_auto(json) struct bs_json *v = NULL;
		bs_autostrv unknown = { 0 };
		struct bs_error err = BS_ERROR_INIT;
		struct bs_annot a;

		assert_int_equal(read_annotations(texts[i], &a, &unknown, &v, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "dev.bootseer."));
	}
}

/* Each key stands in the man page as ".It Cm KEY Ns = Ns Ar TYPE". */
static void test_annotations_man_page(void **state)
{
	bs_autofree char *page = NULL;
	const char *top = getenv("top_srcdir");
	char path[PATH_MAX], item[256];
	struct bs_annot_row row;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/src/man/bootseer-annotations.7", top ? top : ".");
	assert_int_equal(bs_read_file_at(AT_FDCWD, path, 0, 1 << 20, &page, NULL), 0);
	for (unsigned int i = 0; bs_annot_row(i, &row); i++) {
		(void)snprintf(item, sizeof(item), ".It Cm %s Ns = Ns Ar %s\n", row.key, row.type);
		if (!strstr(page, item))
			fail_msg("the page lacks '%s'", item);
	}
}

/* --- the state file -------------------------------------------------------------------------- */

static void test_state_round_trip(void **state)
{
	char dir[] = "/tmp/bootseer-state-XXXXXX";
	struct bs_error err = BS_ERROR_INIT;
	bs_autostate s = { .kind = BS_STATE_OVER }, again = { 0 };
	bs_autofd int fd = -EBADF;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.id = strdup("c");
	s.root = strdup("/r");
	s.bundle = strdup("/b");
	s.rootfs = strdup("/b/\"rootfs");
	s.digest = strdup("");
	s.lease = strdup("c@1");
	s.upper = strdup("/u");
	assert_int_equal(bs_strv_add(&s.layers, "l1"), 0);
	assert_int_equal(bs_strv_add(&s.layers, "l2"), 0);
	assert_int_equal(bs_state_read(fd, "c@1", &again, &err), -ENOENT);
	assert_int_equal(bs_state_write(fd, "c@1", &s, &err), 0);
	assert_int_equal(bs_state_write(fd, "c@1", &s, &err), 0);
	assert_int_equal(bs_state_read(fd, "c@1", &again, &err), 0);
	assert_int_equal(again.kind, BS_STATE_OVER);
	assert_string_equal(again.rootfs, s.rootfs);
	assert_string_equal(again.upper, "/u");
	assert_null(again.work);
	assert_int_equal(again.layers.n, 2);
	assert_string_equal(again.layers.v[1], "l2");
	assert_int_equal(bs_state_remove(fd, "c@1"), 0);
	assert_int_equal(bs_state_remove(fd, "c@1"), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_state_keys(void **state)
{
	bs_autofree char *a = bs_state_key("c", "/tmp"), *b = bs_state_key("c", "/tmp/.."),
			 *c = bs_state_key("c", "/tmp/../tmp/.");

	(void)state;
	assert_int_equal(strlen(a), 10);
	assert_int_equal(strncmp(a, "c@", 2), 0);
	assert_string_not_equal(a, b);
	assert_string_equal(a, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_look),
		UNIT_TEST(test_look_keeps_a_bounded_number),
		UNIT_TEST(test_refused_configs),
		UNIT_TEST(test_edit_keeps_the_rest),
		UNIT_TEST(test_edit_makes_annotations),
		UNIT_TEST(test_edit_binds),
		UNIT_TEST(test_edit_binds_nothing),
		UNIT_TEST(test_bundle_keeps_mode_and_owner),
		UNIT_TEST(test_annotations),
		UNIT_TEST(test_bad_annotations),
		UNIT_TEST(test_annotations_man_page),
		UNIT_TEST(test_state_round_trip),
		UNIT_TEST(test_state_keys),
	};

	return cmocka_run_group_tests_name("oci/config", tests, NULL, NULL);
}
