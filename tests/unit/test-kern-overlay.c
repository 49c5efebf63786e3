/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* mountinfo lines and the options of overlays in them. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "kern/mountinfo.h"
#include "kern/overlay.h"

static void test_mountinfo_line(void **state)
{
	static const char line[] =
		"36 35 98:0 /mnt\\0401 /a\\011b\\134c rw,noatime shared:1 master:2 - ext3 "
		"/dev/ro\\040ot rw,errors=continue";
	bs_automountinfo m = { 0 };

	(void)state;
	assert_int_equal(bs_mountinfo_parse(line, strlen(line), &m), 0);
	assert_int_equal(m.id, 36);
	assert_int_equal(m.parent, 35);
	assert_string_equal(m.root, "/mnt 1");
	assert_string_equal(m.point, "/a\tb\\c");
	assert_string_equal(m.options, "rw,noatime");
	assert_true(m.shared);
	assert_string_equal(m.fstype, "ext3");
	assert_string_equal(m.source, "/dev/ro ot");
	assert_string_equal(m.super, "rw,errors=continue");
}

static void test_bad_mountinfo_lines(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"36",
		"36 35 98:0 / /a rw - ext3 x",
		"x 35 98:0 / /a rw - ext3 x rw",
		"36 35 98:0 / /a rw shared:1 ext3 x rw",
		"-1 35 98:0 / /a rw - ext3 x rw",
		"36 35 98:0 / /a rw -",
	};
	static const char nul[] = "36 35 98:0 / /a rw - ext3 x\0 rw";
	bs_autofree char *huge = calloc(1, BS_MOUNTINFO_LINE_MAX + 2);
	struct bs_mountinfo m;

	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(lines); i++)
		assert_int_equal(bs_mountinfo_parse(lines[i], strlen(lines[i]), &m), -EBADMSG);
	assert_int_equal(bs_mountinfo_parse(nul, sizeof(nul) - 1, &m), -EBADMSG);
	memset(huge, 'a', BS_MOUNTINFO_LINE_MAX + 1);
	assert_int_equal(bs_mountinfo_parse(huge, BS_MOUNTINFO_LINE_MAX + 1, &m), -E2BIG);
	assert_int_equal(bs_mountinfo_parse(huge, BS_MOUNTINFO_LINE_MAX, &m), -EBADMSG);
}

static void test_unescape(void **state)
{
	char text[] = "\\040\\1\\0401\\999\\777\\000\\\\134";

	(void)state;
	bs_mountinfo_unescape(text);
	assert_string_equal(text, " \\1 1\\999\\777\\000\\\\");
}

static void test_own_mount_is_found(void **state)
{
	bs_autofd int fd = open("/proc", O_PATH | O_CLOEXEC);
	bs_automountinfo m = { 0 };
	bool is_root;
	uint64_t id;

	(void)state;
	assert_int_equal(bs_mountinfo_id(fd, &id, &is_root), 0);
	assert_true(is_root);
	assert_int_equal(bs_mountinfo_find(id, &m), 0);
	assert_string_equal(m.point, "/proc");
	assert_int_equal(bs_mountinfo_find(UINT64_MAX, &m), -ENOENT);
}

static void test_attrs(void **state)
{
	(void)state;
	assert_int_equal(bs_mountinfo_attrs("rw"), MOUNT_ATTR_STRICTATIME);
	assert_int_equal(bs_mountinfo_attrs("rw,relatime"), 0);
	assert_int_equal(bs_mountinfo_attrs("ro,nosuid,nodev,noexec,noatime,nodiratime"),
			 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				 MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODIRATIME);
	assert_int_equal(bs_mountinfo_attrs("rw,relatime,idmapped,nosymfollow"),
			 MOUNT_ATTR_NOSYMFOLLOW);
}

struct row {
	const char *super;
	const char *lowers; /* with '|' between */
	const char *upper, *work;
	const char *options; /* with '|' between */
	int flags;
};

#define RO 1
#define VOLATILE 2

static const struct row rows[] = {
	{ "rw,lowerdir=/a,upperdir=/u,workdir=/w", "/a", "/u", "/w", "", 0 },
	{ "rw,lowerdir=/b:/a,upperdir=/u,workdir=/w,index=off,xino=off", "/b|/a", "/u", "/w",
	  "index=off|xino=off", 0 },
	{ "ro,lowerdir=91/fs:90/fs", "91/fs|90/fs", NULL, NULL, "", RO },
	{ "rw,lowerdir=l/ABC:l/DEF,upperdir=x/diff,workdir=x/work,fsync=volatile", "l/ABC|l/DEF",
	  "x/diff", "x/work", "", VOLATILE },
	{ "rw,lowerdir=/a,upperdir=/u,workdir=/w,volatile", "/a", "/u", "/w", "", VOLATILE },
	/* "\134" is the backslash of overlay's own escapes, "\054" a comma */
	{ "rw,lowerdir=/a\\134:b:/c\\134\\134d:/e\\054f\\040g,upperdir=/u\\134:1,workdir=/w",
	  "/a:b|/c\\d|/e,f g", "/u:1", "/w", "", 0 },
	{ "rw,lowerdir+=/a:b,lowerdir+=/c\\134d,upperdir=/u,workdir=/w,uuid=on", "/a:b|/c\\d", "/u",
	  "/w", "uuid=on", 0 },
	{ "rw,seclabel,context=\"system_u:object_r:x:s0:c1,c2\",lowerdir=/a:/b,upperdir=/u,"
	  "workdir=/w,userxattr,metacopy=on,redirect_dir=on",
	  "/a|/b", "/u", "/w",
	  "seclabel|context=system_u:object_r:x:s0:c1,c2|userxattr|metacopy=on|redirect_dir=on",
	  0 },
	{ "rw,context=\"open,lowerdir=/a", "/a", NULL, NULL, "context=\"open", 0 },
	{ "lowerdir=/a\\134", "/a\\", NULL, NULL, "", 0 },
	{ ",,lowerdir=/a,,", "/a", NULL, NULL, "", 0 },
};

static char *join(const struct bs_strv *l)
{
	struct bs_buf b = BS_BUF_INIT(1 << 20);

	for (size_t i = 0; i < l->n; i++)
		(void)bs_buf_addf(&b, "%s%s", i ? "|" : "", l->v[i]);
	return bs_buf_take(&b);
}

static void test_overlay_options(void **state)
{
	(void)state;
	for (size_t i = 0; i < BS_ARRAY_LEN(rows); i++) {
		bs_autofree char *lowers = NULL, *options = NULL;
		struct bs_error err = BS_ERROR_INIT;
		bs_autooverlay o = { 0 };

		print_message("[ super  ] %s\n", rows[i].super);
		assert_int_equal(bs_overlay_parse(rows[i].super, &o, &err), 0);
		lowers = join(&o.lowers);
		options = join(&o.options);
		assert_string_equal(lowers, rows[i].lowers);
		assert_string_equal(options, rows[i].options);
		assert_string_equal(o.upper ?: "-", rows[i].upper ?: "-");
		assert_string_equal(o.work ?: "-", rows[i].work ?: "-");
		assert_int_equal(o.ro, (rows[i].flags & RO) != 0);
		assert_int_equal(o.is_volatile, (rows[i].flags & VOLATILE) != 0);
	}
}

static void refused(const char *super, int code)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_overlay o;

	assert_int_equal(bs_overlay_parse(super, &o, &err), code);
	assert_true(err.msg[0] != '\0');
}

static void test_what_is_no_overlay(void **state)
{
	(void)state;
	refused("", -EBADMSG);
	refused("rw,errors=continue", -EBADMSG);
	refused("rw,lowerdir=/a,upperdir=/u", -EBADMSG);
	refused("rw,lowerdir=", -EOPNOTSUPP);
	refused("rw,lowerdir=/a::/b", -EOPNOTSUPP);
	refused("rw,lowerdir+=/a,datadir+=/b", -EOPNOTSUPP);
}

static void test_number_of_layers(void **state)
{
	bs_autobuf b = BS_BUF_INIT(1 << 20);
	struct bs_overlay o;

	(void)state;
	(void)bs_buf_adds(&b, "rw,lowerdir=/0");
	for (unsigned int i = 1; i < BS_OVERLAY_LAYERS_MAX; i++)
		(void)bs_buf_addf(&b, ":/%u", i);
	assert_int_equal(bs_overlay_parse(bs_buf_str(&b), &o, NULL), 0);
	assert_int_equal(o.lowers.n, BS_OVERLAY_LAYERS_MAX);
	bs_overlay_done(&o);
	(void)bs_buf_adds(&b, ":/x");
	refused(bs_buf_str(&b), -E2BIG);
}

static void test_escape(void **state)
{
	bs_autofree char *text = bs_overlay_escape("/a:b,c\\d");

	(void)state;
	assert_string_equal(text, "/a\\:b\\,c\\\\d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_mountinfo_line),
		UNIT_TEST(test_bad_mountinfo_lines),
		UNIT_TEST(test_unescape),
		UNIT_TEST(test_own_mount_is_found),
		UNIT_TEST(test_attrs),
		UNIT_TEST(test_overlay_options),
		UNIT_TEST(test_what_is_no_overlay),
		UNIT_TEST(test_number_of_layers),
		UNIT_TEST(test_escape),
	};

	return cmocka_run_group_tests_name("kern/overlay", tests, NULL, NULL);
}
