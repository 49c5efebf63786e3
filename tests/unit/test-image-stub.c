/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "image/artifact.h"
#include "image/layer.h"
#include "image/layers.h"
#include "image/nodes.h"
#include "image/stub.h"
#include "tarbuild.h"

static const char config[] =
	"{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"2024-01-01T00:00:00Z\","
	"\"config\":{\"User\":\"app\",\"WorkingDir\":\"/var/run/work\",\"Env\":[\"A=b\"],"
	"\"Volumes\":{\"/data\":{},\"/huge\":{},\"/none\":{}}},"
	"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"x\"]},\"history\":[{\"created_by\":\"me\"}"
	"]}";

struct world {
	struct tar tar;
	struct bs_layer *layer, *back;
	struct bs_nodes nodes, stub_nodes;
	struct bs_stub stub;
};

static void world_done(struct world *w)
{
	bs_nodes_done(&w->nodes);
	bs_nodes_done(&w->stub_nodes);
	bs_layer_free(w->layer);
	bs_layer_free(w->back);
	bs_stub_done(&w->stub);
	tar_done(&w->tar);
}

#define autoworld __attribute__((cleanup(world_done))) struct world

static void fill(struct world *w)
{
	bs_autofree char *huge = calloc(1, BS_STUB_VOLUMES_MAX);

	tar_symlink(&w->tar, "etc/passwd", "../conf/passwd");
	tar_file(&w->tar, "etc/group", "app:x:5:\n");
	tar_file(&w->tar, "etc/shadow", "secret");
	tar_file(&w->tar, "conf/passwd", "app:x:5:5::/home/app:\n");
	tar_symlink(&w->tar, "var/run", "/run");
	w->tar.mode = 01770;
	w->tar.uid = 70000;
	w->tar.mtime = 1234567890;
	tar_record(&w->tar, "SCHILY.xattr.user.x", "a\0b", 3);
	tar_dir(&w->tar, "run/work");
	w->tar.mode = 0644;
	w->tar.uid = 0;
	tar_file(&w->tar, "run/other", "x");
	tar_dir(&w->tar, "home/app");
	tar_file(&w->tar, "home/app/file", "not in the stub");
	tar_file(&w->tar, "data/\xff/a", "content");
	tar_link(&w->tar, "data/b", "data/\xff/a");
	tar_file(&w->tar, ".bootseer/image.json", "the image's own");
	tar_add(&w->tar, "huge/big", '0', "", huge, BS_STUB_VOLUMES_MAX);
}

static void make(struct world *w)
{
	bs_auto(json) struct bs_json *c = NULL;
	char where[] = "oci:/somewhere";
	struct bs_marker marker = { .repository = where };
	struct bs_artifact a = { .has_subject = true, .subject_type = BS_MEDIA_OCI_MANIFEST };
	struct bs_error err = BS_ERROR_INIT;

	w->tar = TAR_INIT;
	fill(w);
	assert_int_equal(bs_nodes_init(&w->nodes), 0);
	assert_int_equal(bs_json_parse("config", config, strlen(config), 1 << 20, &c, NULL), 0);
	if (tar_layer(&w->tar, &w->layer, &err) < 0 ||
	    bs_layers_apply(&w->nodes, w->layer, &err) < 0 ||
	    bs_stub_make(&w->nodes, c, &a, &marker, &w->stub, &err) < 0)
		fail_msg("%s", err.msg);
}

struct bytes {
	const char *p;
	size_t left;
};

static ssize_t input(void *cookie, const void **ret)
{
	struct bytes *b = cookie;
	size_t n = b->left;

	*ret = b->p;
	b->left = 0;
	return (ssize_t)n;
}

static void it_holds_what_engines_look_at(void **state)
{
	autoworld w = { 0 };
	struct bytes b;
	bs_autofree char *text = NULL;
	struct bs_node *n;

	make(&w);
	b = (struct bytes){ w.stub.layer, w.stub.layer_len };
	assert_int_equal(bs_nodes_init(&w.stub_nodes), 0);
	assert_int_equal(bs_layer_parse("stub", input, &b, true, NULL, &w.back, NULL), 0);
	assert_int_equal(bs_layers_apply(&w.stub_nodes, w.back, NULL), 0);
	text = tree_text(&w.stub_nodes);
	assert_string_equal(
		text, "d .bootseer\nf .bootseer/image.json\nd conf\n"
		      "f conf/passwd=app:x:5:5::/home/app:\n\n"
		      "d data\nf data/b=content\nd data/\xff\nf+ data/\xff/a=content\nd etc\n"
		      "f etc/group=app:x:5:\n\nl etc/passwd>../conf/passwd\nd home\nd home/app\n"
		      "d huge\nd run\nd run/work\nd var\nl var/run>/run\n");
	assert_int_equal(bs_nodes_walk(&w.stub_nodes, "run/work", 0, NULL, NULL, &n), 0);
	assert_int_equal(n->inode->mode, S_IFDIR | 01770);
	assert_int_equal(n->inode->uid, 70000);
	assert_int_equal(n->inode->mtime_s, 1234567890);
	assert_int_equal(n->inode->xattrs.n, 1);
	assert_memory_equal(n->inode->xattrs.v[0].value, "a\0b", 3);
	assert_int_equal(w.stub.left_out.n, 1);
	assert_string_equal(w.stub.left_out.v[0], "/huge");
}

static void its_config_is_the_images_with_one_layer(void **state)
{
	bs_auto(json) struct bs_json *c = NULL;
	autoworld w = { 0 };

	make(&w);
	assert_int_equal(bs_json_parse("stub", w.stub.config, w.stub.config_len, 1 << 20, &c, NULL),
			 0);
	assert_string_equal(bs_json_str(bs_json_find(c, "config.User")), "app");
	assert_string_equal(bs_json_str(bs_json_find(c, "created")), "2024-01-01T00:00:00Z");
	assert_int_equal(bs_json_n(bs_json_find(c, "rootfs.diff_ids")), 1);
	assert_int_equal(bs_json_n(bs_json_find(c, "history")), 1);
	assert_non_null(strstr(w.stub.manifest, BS_ANNOTATION_ARTIFACT));
}

static void the_same_input_gives_the_same_bytes(void **state)
{
	autoworld a = { 0 }, b = { 0 };

	make(&a);
	make(&b);
	assert_true(bs_digest_eq(&a.stub.layer_digest, &b.stub.layer_digest));
	assert_true(bs_digest_eq(&a.stub.manifest_digest, &b.stub.manifest_digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(it_holds_what_engines_look_at),
		UNIT_TEST(its_config_is_the_images_with_one_layer),
		UNIT_TEST(the_same_input_gives_the_same_bytes),
	};

	return cmocka_run_group_tests_name("image/stub", tests, NULL, NULL);
}
