/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/str.h"
#include "image/layer.h"
#include "image/layers.h"
#include "image/nodes.h"
#include "image/tarhead.h"
#include "tarbuild.h"

#define LAYERS 3

/* A stack of layers that a test fills. */
struct stack {
	struct tar tar[LAYERS];
	struct bs_layer *layer[LAYERS];
	struct bs_nodes nodes;
	struct bs_error err;
};

static int begin(void **state)
{
	struct stack *s = calloc(1, sizeof(*s));

	for (int i = 0; i < LAYERS; i++)
		s->tar[i] = TAR_INIT;
	assert_int_equal(bs_nodes_init(&s->nodes), 0);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct stack *s = *state;

	bs_nodes_done(&s->nodes);
	for (int i = 0; i < LAYERS; i++) {
		bs_layer_free(s->layer[i]);
		tar_done(&s->tar[i]);
	}
	free(s);
	return 0;
}

static int apply(struct stack *s)
{
	for (int i = 0; i < LAYERS; i++) {
		int r = tar_layer(&s->tar[i], &s->layer[i], &s->err);

		if (r == 0)
			r = bs_layers_apply(&s->nodes, s->layer[i], &s->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void expect(struct stack *s, const char *tree)
{
	bs_autofree char *text = NULL;

	if (apply(s) < 0)
		fail_msg("%s", s->err.msg);
	text = tree_text(&s->nodes);
	assert_string_equal(text, tree);
}

/* It must be refused, with these words. */
static void expect_error(struct stack *s, const char *words)
{
	assert_true(apply(s) < 0);
	if (!strstr(s->err.msg, words))
		fail_msg("'%s' is not in: %s", words, s->err.msg);
	assert_non_null(strstr(s->err.msg, "layer: entry "));
}

static struct bs_inode *at(struct stack *s, const char *path)
{
	struct bs_node *n;

	assert_int_equal(bs_nodes_walk(&s->nodes, path, BS_WALK_NOFOLLOW, NULL, NULL, &n), 0);
	return n->inode;
}

/* --- whiteouts ------------------------------------------------------------------------------- */

static void whiteout_hides_a_file_and_a_tree(void **state)
{
	struct stack *s = *state;

	tar_dir(&s->tar[0], "d/");
	tar_file(&s->tar[0], "d/f", "x");
	tar_dir(&s->tar[0], "d/sub/");
	tar_file(&s->tar[0], "d/sub/deep", "x");
	tar_file(&s->tar[0], "d/stays", "y");
	tar_file(&s->tar[1], "d/.wh.f", "");
	tar_file(&s->tar[1], "d/.wh.sub", "");
	tar_file(&s->tar[1], "d/.wh.never-was", "");
	expect(s, "d d\nf d/stays=y\n");
}

static void whiteout_and_readd_in_one_layer_in_any_order(void **state)
{
	struct stack *s = *state;

	tar_dir(&s->tar[0], "d/");
	tar_file(&s->tar[0], "d/old", "old");
	tar_file(&s->tar[0], "f", "old");
	tar_file(&s->tar[1], ".wh.f", "");
	tar_file(&s->tar[1], "f", "new");
	tar_dir(&s->tar[1], "d/");
	tar_file(&s->tar[1], "d/new", "new");
	tar_file(&s->tar[1], ".wh.d", "");
	expect(s, "d d\nf d/new=new\nf f=new\n");
}

static void opaque_hides_only_lower_layers(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "d/lower", "x");
	tar_file(&s->tar[0], "d/sub/lower", "x");
	tar_file(&s->tar[0], "beside", "x");
	tar_file(&s->tar[1], "d/first", "1");
	tar_file(&s->tar[1], "d/sub/upper", "2");
	tar_file(&s->tar[1], "d/.wh..wh..opq", "");
	tar_file(&s->tar[1], "d/last", "3");
	expect(s, "f beside=x\nd d\nf d/first=1\nf d/last=3\nd d/sub\nf d/sub/upper=2\n");
}

static void opaque_root(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "a", "x");
	tar_file(&s->tar[1], ".wh..wh..opq", "");
	tar_file(&s->tar[1], "b", "y");
	expect(s, "f b=y\n");
}

static void opaque_of_nothing_makes_the_directory(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "a/b/.wh..wh..opq", "");
	expect(s, "d a\nd a/b\n");
}

static void whiteout_through_a_symlinked_parent(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "usr/lib/x", "x");
	tar_file(&s->tar[0], "usr/lib/y", "y");
	tar_symlink(&s->tar[0], "lib", "usr/lib");
	tar_file(&s->tar[1], "lib/.wh.x", "");
	expect(s, "l lib>usr/lib\nd usr\nd usr/lib\nf usr/lib/y=y\n");
}

static void whiteout_of_one_of_several_names(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "a", "x");
	tar_link(&s->tar[0], "b", "a");
	tar_link(&s->tar[0], "c", "a");
	tar_file(&s->tar[1], ".wh.a", "");
	expect(s, "f b=x\nf+ c=x\n");
	assert_int_equal(at(s, "b")->refs, 2);
}

static void device_0_0_is_a_whiteout(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "a", "x");
	tar_add(&s->tar[1], "a", '3', "", NULL, 0);
	s->tar[1].major = 1;
	tar_add(&s->tar[1], "null", '3', "", NULL, 0);
	expect(s, "c null\n");
}

static void whiteout_of_nothing_is_refused(void **state)
{
	static const char *const names[] = { "d/.wh.", "d/.wh..", "d/.wh...", ".wh." };

	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++) {
		void *one;

		begin(&one);
		tar_file(&((struct stack *)one)->tar[1], names[i], "");
		expect_error(one, "whiteout of nothing");
		end(&one);
	}
}

/* --- replacing ------------------------------------------------------------------------------- */

static void last_entry_wins(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "f", "first");
	tar_file(&s->tar[0], "./f", "second");
	tar_file(&s->tar[0], "dir-file/x", "x");
	tar_file(&s->tar[0], "file-dir", "x");
	tar_file(&s->tar[1], "dir-file", "file");
	tar_dir(&s->tar[1], "file-dir");
	tar_file(&s->tar[1], "file-dir/in", "in");
	expect(s, "f dir-file=file\nf f=second\nd file-dir\nf file-dir/in=in\n");
}

static void directory_over_directory_keeps_content_and_takes_attributes(void **state)
{
	struct stack *s = *state;

	tar_record(&s->tar[0], "SCHILY.xattr.user.a", "1", 1);
	tar_dir(&s->tar[0], "d");
	tar_file(&s->tar[0], "d/f", "x");
	s->tar[1].mode = 0700;
	s->tar[1].uid = 5;
	s->tar[1].mtime = 77;
	tar_record(&s->tar[1], "SCHILY.xattr.user.b", "2", 1);
	tar_dir(&s->tar[1], "d");
	expect(s, "d d\nf d/f=x\n");
	assert_int_equal(at(s, "d")->mode, S_IFDIR | 0700);
	assert_int_equal(at(s, "d")->uid, 5);
	assert_int_equal(at(s, "d")->mtime_s, 77);
	assert_null(bs_xset_get(&at(s, "d")->xattrs, "user.a"));
	assert_non_null(bs_xset_get(&at(s, "d")->xattrs, "user.b"));
}

static void the_root_takes_its_attributes(void **state)
{
	struct stack *s = *state;

	s->tar[0].mode = 01777;
	s->tar[0].gid = 9;
	tar_add(&s->tar[0], "./", '5', "", NULL, 0);
	expect(s, "");
	assert_int_equal(s->nodes.root->inode->mode, S_IFDIR | 01777);
	assert_int_equal(s->nodes.root->inode->gid, 9);
}

static void file_over_symlink_does_not_follow(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "target", "x");
	tar_symlink(&s->tar[0], "s", "target");
	tar_file(&s->tar[1], "s", "file");
	expect(s, "f s=file\nf target=x\n");
}

/* --- parents --------------------------------------------------------------------------------- */

static void missing_parents_are_made(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "a/b/c", "x");
	expect(s, "d a\nd a/b\nf a/b/c=x\n");
	assert_int_equal(at(s, "a/b")->mode, S_IFDIR | 0755);
	assert_int_equal(at(s, "a/b")->mtime_s, 0);
}

static void symlinked_parents_stay_inside(void **state)
{
	struct stack *s = *state;

	tar_symlink(&s->tar[0], "abs", "/etc");
	tar_symlink(&s->tar[0], "up", "../../../../out");
	tar_symlink(&s->tar[0], "chain", "abs/sub");
	tar_file(&s->tar[1], "abs/passwd", "1");
	tar_file(&s->tar[1], "up/x", "2");
	tar_file(&s->tar[1], "chain/y", "3");
	expect(s, "l abs>/etc\nl chain>abs/sub\nd etc\nf etc/passwd=1\nd etc/sub\nf etc/sub/y=3\n"
		  "d out\nf out/x=2\nl up>../../../../out\n");
}

static void symlink_loops_end(void **state)
{
	struct stack *s = *state;

	tar_symlink(&s->tar[0], "a", "b");
	tar_symlink(&s->tar[0], "b", "a");
	tar_file(&s->tar[1], "a/f", "x");
	expect_error(s, "symlinks");
}

static void a_file_is_no_parent(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "f", "x");
	tar_file(&s->tar[1], "f/below", "x");
	expect_error(s, "no directory");
}

/* --- hard links ------------------------------------------------------------------------------ */

static void hard_links_to_any_earlier_name(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "lower", "x");
	tar_symlink(&s->tar[0], "sym", "lower");
	tar_link(&s->tar[1], "a", "lower");
	tar_link(&s->tar[1], "b", "/a");
	tar_link(&s->tar[1], "sym2", "./sym");
	expect(s, "f a=x\nf+ b=x\nf+ lower=x\nl sym>lower\nl+ sym2>lower\n");
}

static void hard_link_gives_its_attributes_to_the_inode(void **state)
{
	struct stack *s = *state;

	tar_record(&s->tar[0], "SCHILY.xattr.security.capability", "cap", 3);
	tar_record(&s->tar[0], "SCHILY.xattr.user.kept", "1", 1);
	tar_file(&s->tar[0], "a", "x");
	s->tar[1].mode = 04711;
	s->tar[1].uid = 3;
	tar_link(&s->tar[1], "b", "a");
	expect(s, "f a=x\nf+ b=x\n");
	assert_int_equal(at(s, "a")->mode, S_IFREG | 04711);
	assert_int_equal(at(s, "a")->uid, 3);
	assert_non_null(bs_xset_get(&at(s, "a")->xattrs, "user.kept"));
	/* the kernel drops it at chown */
	assert_null(bs_xset_get(&at(s, "a")->xattrs, "security.capability"));
}

static void bad_hard_links_are_refused(void **state)
{
	static const struct {
		const char *name, *to, *words;
	} cases[] = {
		{ "l", "missing", "not there" }, { "l", "d", "directory" },
		{ "d/f", "d/f", "itself" },	 { "l", "../../d/missing", "not there" },
		{ "d", "d/f", "in the place" },	 { "l", "", "to nothing" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		void *one;

		begin(&one);
		tar_file(&((struct stack *)one)->tar[0], "d/f", "x");
		tar_link(&((struct stack *)one)->tar[1], cases[i].name, cases[i].to);
		expect_error(one, cases[i].words);
		end(&one);
	}
}

/* --- names ----------------------------------------------------------------------------------- */

static void names_are_cleaned(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "/abs", "1");
	tar_file(&s->tar[0], "./a//b/../c", "2");
	tar_file(&s->tar[0], "\xff\xfe", "3");
	tar_dir(&s->tar[0], "d/./");
	expect(s, "d a\nf a/c=2\nf abs=1\nd d\nf \xff\xfe=3\n");
}

static void hostile_names_are_refused(void **state)
{
	char longest[300], path[5];

	memset(longest, 'n', sizeof(longest));
	longest[256] = 0;
	memcpy(path, "a/..", 5);
	const struct {
		const char *name, *words;
	} cases[] = {
		{ "../x", "leads out" },  { "a/../../x", "leads out" }, { "/../x", "leads out" },
		{ longest, "256 bytes" }, { path, "root directory" },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		void *one;

		begin(&one);
		tar_file(&((struct stack *)one)->tar[0], cases[i].name, "x");
		expect_error(one, cases[i].words);
		end(&one);
	}
}

static void a_nul_in_a_pax_name_is_refused(void **state)
{
	struct stack *s = *state;

	tar_record(&s->tar[0], "path", "a\0b", 3);
	tar_file(&s->tar[0], "x", "x");
	expect_error(s, "NUL");
}

static void name_of_255_bytes(void **state)
{
	struct stack *s = *state;
	char name[256], want[300];

	memset(name, 'n', 255);
	name[255] = 0;
	(void)snprintf(want, sizeof(want), "f %s=x\n", name);
	tar_file(&s->tar[0], name, "x");
	expect(s, want);
}

/* --- attributes ------------------------------------------------------------------------------ */

static void times_and_owners(void **state)
{
	struct stack *s = *state;

	tar_record(&s->tar[0], "mtime", "-1.5", 4);
	tar_record(&s->tar[0], "uid", "4294967294", 10);
	tar_file(&s->tar[0], "old", "");
	tar_record(&s->tar[0], "mtime", "6000000000.000000001", 20);
	tar_file(&s->tar[0], "new", "");
	expect(s, "f new\nf old\n");
	assert_int_equal(at(s, "old")->mtime_s, -2);
	assert_int_equal(at(s, "old")->mtime_ns, 500000000);
	assert_true(at(s, "old")->uid == 4294967294u);
	assert_true(at(s, "new")->mtime_s == 6000000000);
	assert_int_equal(at(s, "new")->mtime_ns, 1);
}

static void owner_of_no_id_is_refused(void **state)
{
	struct stack *s = *state;

	tar_record(&s->tar[0], "gid", "4294967295", 10);
	tar_file(&s->tar[0], "f", "");
	expect_error(s, "owner");
}

static void unknown_types_are_refused(void **state)
{
	struct stack *s = *state;

	tar_add(&s->tar[0], "f", 'Q', "", NULL, 0);
	expect_error(s, "unknown type 0x51");
}

static void xattrs_keep_their_bytes(void **state)
{
	static const uint8_t acl[] = {
		2, 0, 0,   0,	1,   0,	  6,  0, 255, 255, 255, 255, 4,	  0,
		4, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255
	};
	struct stack *s = *state;
	const struct bs_tree_xattr *x;

	tar_record(&s->tar[0], "SCHILY.xattr.system.posix_acl_access", acl, sizeof(acl));
	tar_record(&s->tar[0], "SCHILY.acl.access", "user::rw-", 9);
	tar_record(&s->tar[0], "SCHILY.xattr.user.bin", "a\0\n=", 4);
	tar_record(&s->tar[0], "SCHILY.xattr.user.bin", "b\0\n=", 4);
	tar_record(&s->tar[0], "SCHILY.xattr.user.empty", "", 0);
	tar_record(&s->tar[0], "SCHILY.xattr.trusted.overlay.opaque", "y", 1);
	tar_record(&s->tar[0], "SCHILY.xattr.foreign.name", "y", 1);
	tar_record(&s->tar[0], "LIBARCHIVE.xattr.user.more", "AAEC", 4);
	tar_file(&s->tar[0], "f", "");
	tar_record(&s->tar[0], "SCHILY.xattr.user.x", "1", 1);
	tar_symlink(&s->tar[0], "s", "t");
	expect(s, "f f\nl s>t\n");
	x = bs_xset_get(&at(s, "f")->xattrs, "system.posix_acl_access");
	assert_non_null(x);
	assert_int_equal(x->value_len, sizeof(acl));
	assert_memory_equal(x->value, acl, sizeof(acl));
	x = bs_xset_get(&at(s, "f")->xattrs, "user.bin");
	assert_int_equal(x->value_len, 4);
	assert_memory_equal(x->value, "b\0\n=", 4);
	x = bs_xset_get(&at(s, "f")->xattrs, "user.more");
	assert_int_equal(x->value_len, 3);
	assert_memory_equal(x->value, "\0\1\2", 3);
	assert_int_equal(at(s, "f")->xattrs.n, 4);
	assert_int_equal(at(s, "s")->xattrs.n, 0);
}

static void devices_and_fifos(void **state)
{
	struct stack *s = *state;

	s->tar[0].major = 259;
	s->tar[0].minor = 0xfffff;
	tar_add(&s->tar[0], "b", '4', "", NULL, 0);
	tar_add(&s->tar[0], "p", '6', "", NULL, 0);
	expect(s, "b b\np p\n");
	assert_int_equal(at(s, "b")->rdev_major, 259);
	assert_int_equal(at(s, "b")->rdev_minor, 0xfffff);
}

static void a_cut_archive_is_refused(void **state)
{
	struct stack *s = *state;

	tar_file(&s->tar[0], "f", "some content");
	s->tar[0].out.len -= 256;
	assert_int_equal(tar_parse(&s->tar[0], &s->layer[0], &s->err), -EBADMSG);
	assert_non_null(strstr(s->err.msg, "layer: entry 1 'f'"));
}

static void no_archive_at_all_is_refused(void **state)
{
	struct stack *s = *state;

	(void)bs_buf_adds(&s->tar[0].out, "this is some text and no archive");
	assert_int_equal(tar_parse(&s->tar[0], &s->layer[0], &s->err), -EBADMSG);
}

static void an_empty_layer_is_fine(void **state)
{
	struct stack *s = *state;

	assert_int_equal(tar_parse(&s->tar[0], &s->layer[0], &s->err), 0);
	assert_int_equal(s->layer[0]->n, 0);
}

/* --- size ------------------------------------------------------------------------------------ */

static void many_names_are_quick(void **state)
{
	struct stack *s = *state;
	char name[64];

	for (unsigned int i = 0; i < 70000; i++) {
		/* not in order */
		(void)snprintf(name, sizeof(name), "big/%05u", i * 7919 % 70000);
		tar_file(&s->tar[0], name, "");
	}
	tar_file(&s->tar[1], ".wh.big", "");
	for (unsigned int i = 0; i < 70000; i++) {
		(void)snprintf(name, sizeof(name), "d%05u/f", i);
		tar_file(&s->tar[1], name, "");
	}
	tar_file(&s->tar[2], ".wh..wh..opq", "");
	expect(s, "");
	assert_int_equal(s->nodes.n, 1);
}

static void a_deep_path_needs_no_deep_stack(void **state)
{
	struct stack *s = *state;
	size_t n = 200000;
	char *name = malloc(2 * n + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(name + 2 * i, "a/", 2);
	name[2 * n - 1] = 0;
	tar_file(&s->tar[0], name, "");
	free(name);
	if (apply(s) < 0)
		fail_msg("%s", s->err.msg);
	assert_int_equal(s->nodes.n, n + 1);
}

static void times_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		int result;
		long long s;
		unsigned int ns;
	} cases[] = {
		{ "0", 0, 0, 0 },
		{ "1.5", 0, 1, 500000000 },
		{ "1.0000000019", 0, 1, 1 },
		{ "-1", 0, -1, 0 },
		{ "-0.5", 0, -1, 500000000 },
		{ "-1.999999999", 0, -2, 1 },
		{ "-1.0000000001", 0, -2, 999999999 },
		{ "9223372036854775807", 0, INT64_MAX, 0 },
		{ "9223372036854775808", -ERANGE, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "-", -EINVAL, 0, 0 },
		{ "1x", -EINVAL, 0, 0 },
		{ ".5", -EINVAL, 0, 0 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		int64_t sec = 0;
		uint32_t ns = 0;

		assert_int_equal(bs_tarhead_time(cases[i].text, strlen(cases[i].text), &sec, &ns),
				 cases[i].result);
		if (cases[i].result == 0) {
			assert_true(sec == cases[i].s);
			assert_int_equal(ns, cases[i].ns);
		}
	}
}

static void media_types(void **state)
{
	struct bs_error err;

	assert_int_equal(bs_layer_media_type("application/vnd.oci.image.layer.v1.tar", NULL), 0);
	assert_int_equal(bs_layer_media_type("application/vnd.oci.image.layer.v1.tar+zstd", NULL),
			 1);
	assert_int_equal(bs_layer_media_type("application/vnd.docker.image.rootfs.diff.tar.gzip",
					     NULL),
			 1);
	assert_true(bs_layer_media_type("application/vnd.oci.image.layer.nondistributable.v1.tar",
					&err) < 0);
	assert_non_null(strstr(err.msg, "distributed"));
	assert_true(bs_layer_media_type("application/vnd.oci.image.layer.v1.tar+br", &err) < 0);
	assert_non_null(strstr(err.msg, "unknown"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(whiteout_hides_a_file_and_a_tree),
		T(whiteout_and_readd_in_one_layer_in_any_order),
		T(opaque_hides_only_lower_layers),
		T(opaque_root),
		T(opaque_of_nothing_makes_the_directory),
		T(whiteout_through_a_symlinked_parent),
		T(whiteout_of_one_of_several_names),
		T(device_0_0_is_a_whiteout),
		UNIT_TEST(whiteout_of_nothing_is_refused),
		T(last_entry_wins),
		T(directory_over_directory_keeps_content_and_takes_attributes),
		T(the_root_takes_its_attributes),
		T(file_over_symlink_does_not_follow),
		T(missing_parents_are_made),
		T(symlinked_parents_stay_inside),
		T(symlink_loops_end),
		T(a_file_is_no_parent),
		T(hard_links_to_any_earlier_name),
		T(hard_link_gives_its_attributes_to_the_inode),
		UNIT_TEST(bad_hard_links_are_refused),
		T(names_are_cleaned),
		UNIT_TEST(hostile_names_are_refused),
		T(a_nul_in_a_pax_name_is_refused),
		T(name_of_255_bytes),
		T(times_and_owners),
		T(owner_of_no_id_is_refused),
		T(unknown_types_are_refused),
		T(xattrs_keep_their_bytes),
		T(devices_and_fifos),
		T(a_cut_archive_is_refused),
		T(no_archive_at_all_is_refused),
		T(an_empty_layer_is_fine),
		T(many_names_are_quick),
		T(a_deep_path_needs_no_deep_stack),
		UNIT_TEST(times_are_read_exactly),
		UNIT_TEST(media_types),
	};

	return cmocka_run_group_tests_name("image/layers", tests, NULL, NULL);
}
