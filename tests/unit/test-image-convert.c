/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Whole conversions between layouts and directories, found, opened and read again. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "image/artifact.h"
#include "image/convert.h"
#include "image/manifest.h"
#include "image/open.h"
#include "image/tree.h"
#include "net/referrers.h"
#include "net/layout.h"
#include "net/repo.h"
#include "tarbuild.h"

#define TAR_TYPE "application/vnd.oci.image.layer.v1.tar"
#define ZSTD_TYPE TAR_TYPE "+zstd"
#define LAYERS_MAX 3

struct bench {
	char path[32];
	int fd;
	struct bs_repo *src, *dst;
	struct bs_error err;
	struct bs_converted_list list;
	char *notes;
};

static struct bs_repo *open_layout(int parent, const char *name)
{
	struct bs_repo *r = NULL;
	int fd;

	assert_int_equal(mkdirat(parent, name, 0755), 0);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bs_layout_open(fd, name, true, &r, NULL), 0);
	(void)close(fd);
	return r;
}

static int begin(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	strcpy(b->path, "/tmp/bootseer-unit-XXXXXX");
	b->fd = mkdtemp(b->path) ? open(b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	b->src = open_layout(b->fd, "src");
	b->dst = open_layout(b->fd, "dst");
	*state = b;
	return 0;
}

static int end(void **state)
{
	struct bench *b = *state;

	bs_converted_list_done(&b->list);
	(void)bs_repo_unref(b->src);
	(void)bs_repo_unref(b->dst);
	(void)close(b->fd);
	free(b->notes);
	assert_int_equal(bs_rmtree(AT_FDCWD, b->path), 0);
	free(b);
	return 0;
}

/* --- images to convert ------------------------------------------------------------------------ */

struct original {
	struct bs_digest layer[LAYERS_MAX], diff_id[LAYERS_MAX];
	size_t size[LAYERS_MAX];
	const char *type[LAYERS_MAX];
	size_t n;
	const char *os, *arch, *variant, *more; /* more: of the config's members */
};

#define ORIGINAL ((struct original){ .os = "linux", .arch = "amd64" })

static void put_blob(struct bench *b, const void *data, size_t len, struct bs_digest *ret)
{
	bs_digest_of(data, len, ret);
	assert_int_equal(bs_repo_put_blob_mem(b->src, ret, data, len, &b->err), 0);
}

static void add_layer(struct bench *b, struct original *o, struct tar *t, const char *type)
{
	size_t room = ZSTD_compressBound(t->out.len + 4096), len;
	bs_autofree char *packed = malloc(room);

	tar_end(t);
	len = t->out.len;
	bs_digest_of(t->out.data, len, &o->diff_id[o->n]);
	if (bs_streq(type, ZSTD_TYPE)) {
		len = ZSTD_compress(packed, room, t->out.data, len, 1);
		put_blob(b, packed, len, &o->layer[o->n]);
	} else {
		put_blob(b, t->out.data, len, &o->layer[o->n]);
	}
	o->type[o->n] = type;
	o->size[o->n++] = len;
}

/* Two layers: files, links, a whiteout, one compressed. */
static struct original usual(struct bench *b)
{
	struct original o = ORIGINAL;
	autotar lower = TAR_INIT, upper = TAR_INIT;
	bs_autofree char *big = malloc(300000);

	memset(big, 'b', 300000);
	for (size_t i = 0; i < 300000; i += 7)
		big[i] = (char)i;
	tar_dir(&lower, "etc/");
	tar_file(&lower, "etc/passwd", "root:x:0:0::/root:/bin/sh\n");
	tar_file(&lower, "etc/gone", "gone");
	tar_add(&lower, "big", '0', "", big, 300000);
	tar_symlink(&lower, "etc/loop", "loop");
	tar_symlink(&lower, "pw", "/etc/../etc/passwd");
	tar_file(&upper, "etc/.wh.gone", "");
	tar_file(&upper, "etc/new", "new");
	tar_link(&upper, "etc/also", "etc/new");
	add_layer(b, &o, &lower, ZSTD_TYPE);
	add_layer(b, &o, &upper, TAR_TYPE);
	return o;
}

static void put_manifest(struct bench *b, const char *tag, const char *type, const char *text,
			 struct bs_digest *ret)
{
	bs_digest_of(text, strlen(text), ret);
	if (bs_repo_put_manifest(b->src, tag, type, text, strlen(text), &b->err) < 0)
		fail_msg("%s", b->err.msg);
}

static void put_image(struct bench *b, const struct original *o, const char *tag,
		      struct bs_digest *ret, size_t *ret_len)
{
	bs_autobuf config = BS_BUF_INIT(1u << 16), m = BS_BUF_INIT(1u << 16);
	struct bs_digest d;
	char text[BS_DIGEST_TEXT_LEN];

	(void)bs_buf_addf(&config,
			  "{\"os\":\"%s\",\"architecture\":\"%s\"%s%s%s%s,\"config\":{%s},"
			  "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[",
			  o->os, o->arch, o->variant ? ",\"variant\":\"" : "",
			  o->variant ? o->variant : "", o->variant ? "\"" : "", "",
			  o->more ? o->more : "");
	for (size_t i = 0; i < o->n; i++)
		(void)bs_buf_addf(&config, "%s\"%s\"", i ? "," : "",
				  bs_digest_text(&o->diff_id[i], text));
	(void)bs_buf_addf(&config, "]}}");
	put_blob(b, config.data, config.len, &d);
	(void)bs_buf_addf(
		&m,
		"{\"schemaVersion\":2,\"mediaType\":\"%s\",\"config\":{\"mediaType\":\"%s\","
		"\"digest\":\"%s\",\"size\":%zu},\"layers\":[",
		BS_MEDIA_OCI_MANIFEST, BS_MEDIA_OCI_CONFIG, bs_digest_text(&d, text), config.len);
	for (size_t i = 0; i < o->n; i++)
		(void)bs_buf_addf(&m, "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu}",
				  i ? "," : "", o->type[i], bs_digest_text(&o->layer[i], text),
				  o->size[i]);
	(void)bs_buf_addf(&m, "]}");
	put_manifest(b, tag, BS_MEDIA_OCI_MANIFEST, m.data, ret);
	if (ret_len)
		*ret_len = m.len;
}

/* An index of the usual image for amd64 and arm64/v8. */
static void put_index(struct bench *b, const char *tag, struct original *o)
{
	bs_autobuf ix = BS_BUF_INIT(1u << 16);
	struct bs_digest d[2], index;
	char text[BS_DIGEST_TEXT_LEN];
	size_t len[2];

	put_image(b, o, NULL, &d[0], &len[0]);
	o->arch = "arm64";
	o->variant = "v8";
	put_image(b, o, NULL, &d[1], &len[1]);
	(void)bs_buf_addf(&ix, "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"manifests\":[",
			  BS_MEDIA_OCI_INDEX);
	for (int i = 0; i < 2; i++)
		(void)bs_buf_addf(&ix,
				  "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu,"
				  "\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"%s}}",
				  i ? "," : "", BS_MEDIA_OCI_MANIFEST, bs_digest_text(&d[i], text),
				  len[i], i ? "arm64" : "amd64", i ? ",\"variant\":\"v8\"" : "");
	(void)bs_buf_addf(&ix, "]}");
	put_manifest(b, tag, BS_MEDIA_OCI_INDEX, ix.data, &index);
}

/* --- converting -------------------------------------------------------------------------------- */

static void on_note(void *cookie, const char *text)
{
	struct bench *b = cookie;
	bs_autofree char *before = b->notes;

	b->notes = bs_strf("%s%s\n", before ? before : "", text);
}

struct told {
	enum bs_convert_phase phase[16];
	uint64_t total[16], done[16];
	size_t n;
};

static void on_begin(void *cookie, enum bs_convert_phase phase, const char *platform,
		     uint64_t total)
{
	struct told *t = cookie;

	assert_true(t->n < BS_ARRAY_LEN(t->phase));
	assert_non_null(platform);
	t->phase[t->n] = phase;
	t->total[t->n] = total;
	t->done[t->n++] = 0;
}

static void on_progress(void *cookie, uint64_t done)
{
	struct told *t = cookie;

	assert_true(done >= t->done[t->n - 1]);
	t->done[t->n - 1] = done;
}

static struct bs_convert conversion(struct bench *b)
{
	return (struct bs_convert){ .src = b->src,
				    .ref = "t",
				    .dst = b->dst,
				    .dst_repository = "",
				    .stub_tag = "t-bootseer",
				    .jobs = 2,
				    .level = 1,
				    .tmp = b->path };
}

static void convert(struct bench *b, const struct bs_convert *c)
{
	bs_converted_list_done(&b->list);
	b->list = (struct bs_converted_list){ 0 };
	if (bs_convert_run(c, &b->list, &b->err) < 0)
		fail_msg("%s", b->err.msg);
}

/* The error's text has each of words, which "|" separates; nothing shows at the destination. */
static void refused(struct bench *b, const struct bs_convert *c, int want, const char *words)
{
	bs_autofree char *copy = strdup(words);
	char *rest = copy, *word;
	struct bs_manifest m = { 0 };
	int r;

	bs_converted_list_done(&b->list);
	b->list = (struct bs_converted_list){ 0 };
	b->err = BS_ERROR_INIT;
	r = bs_convert_run(c, &b->list, &b->err);
	while ((word = strsep(&rest, "|"))) {
		if (!strstr(b->err.msg, word))
			fail_msg("no '%s' in: %s", word, b->err.msg);
	}
	assert_int_equal(r, want);
	assert_int_equal(bs_repo_get_manifest(c->dst, c->stub_tag, &m, NULL), -ENOENT);
}

static struct bs_image *find(struct bench *b, const char *ref, const char *platform)
{
	struct bs_image *i = NULL;
	struct bs_artifact a;

	if (bs_artifact_find(b->dst, ref, platform, &a, &b->err) < 0 ||
	    bs_image_open(b->dst, &a, &i, &b->err) < 0)
		fail_msg("%s: %s", ref, b->err.msg);
	return i;
}

static void expect_text(struct bs_image *i, const char *path, const char *want)
{
	bs_autofree char *text = NULL;

	assert_int_equal(bs_image_read_text(i, path, 4096, &text, NULL), 0);
	assert_string_equal(text, want);
}

static void add_bytes(void *cookie, uint64_t bytes)
{
	*(uint64_t *)cookie += bytes;
}

/* --- tests ------------------------------------------------------------------------------------- */

static void an_image_is_found_by_each_of_its_names_and_reads_as_it_was(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct told told = { .n = 0 };
	struct bs_convert_watch watch = { on_begin, on_progress, NULL, &told };
	struct bs_convert c = conversion(b);
	struct bs_digest image;
	char artifact[BS_DIGEST_TEXT_LEN], stub[BS_DIGEST_TEXT_LEN];
	const char *names[3] = { "t-bootseer", artifact, stub };
	uint64_t proven = 0;

	put_image(b, &o, "t", &image, NULL);
	c.watch = &watch;
	convert(b, &c);
	assert_int_equal(b->list.n, 1);
	assert_string_equal(b->list.v[0].platform, "linux/amd64");
	assert_true(b->list.v[0].has_source && bs_digest_eq(&b->list.v[0].source, &image));
	assert_int_equal(b->list.v[0].layers_bytes, o.size[0] + o.size[1]);
	assert_true(bs_digest_eq(&b->list.stub, &b->list.v[0].stub));
	assert_int_equal(told.n, BS_CONVERT_PHASE_MAX);
	for (size_t i = 0; i < told.n; i++) {
		assert_int_equal(told.phase[i], i);
		assert_int_equal(told.done[i], told.total[i]);
	}
	(void)bs_digest_text(&b->list.v[0].artifact, artifact);
	(void)bs_digest_text(&b->list.v[0].stub, stub);
	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++) {
		bs_auto(image) struct bs_image *im = find(b, names[i], NULL);

		expect_text(im, "/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
		expect_text(im, "pw", "root:x:0:0::/root:/bin/sh\n");
		expect_text(im, "/etc/also", "new");
		expect_text(im, "/etc/gone", "");
		expect_text(im, "/etc", "");
		assert_int_equal(bs_image_lookup(im, "/etc/loop"), -ELOOP);
		assert_int_equal(bs_image_lookup(im, "/etc/new/x"), -ENOTDIR);
		assert_int_equal(bs_image_lookup(im, "/etc/gone"), -ENOENT);
		assert_int_equal(bs_image_lookup(im, "/etc/also"),
				 bs_image_lookup(im, "/etc/../etc/./also"));
		proven = 0;
		assert_int_equal(bs_image_verify(im, add_bytes, &proven, NULL), 0);
		assert_int_equal(proven, b->list.v[0].data_bytes);
	}
}

static void into_its_own_repository_the_original_names_it_too(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct bs_convert c = conversion(b);
	struct bs_artifact a;
	struct bs_digest d;

	put_image(b, &o, "t", &d, NULL);
	assert_int_equal(bs_artifact_find(b->src, "t", NULL, &a, &b->err), -ENOENT);
	assert_non_null(strstr(b->err.msg, "has no converted form"));
	c.dst = b->src;
	convert(b, &c);
	assert_int_equal(bs_artifact_find(b->src, "t", NULL, &a, &b->err), 0);
	assert_true(bs_digest_eq(&a.digest, &b->list.v[0].artifact));
	c.ref = "t-bootseer";
	c.stub_tag = "t-twice";
	refused(b, &c, -EEXIST, "stub of an image that was converted");
	{
		char text[BS_DIGEST_TEXT_LEN];

		c.ref = bs_digest_text(&a.digest, text);
		refused(b, &c, -EOPNOTSUPP, "it is no image but an artifact");
	}
}

static void the_same_input_gives_the_same_bytes(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct bs_convert c = conversion(b);
	struct bs_digest d, first;

	put_image(b, &o, "t", &d, NULL);
	convert(b, &c);
	first = b->list.stub;
	c.jobs = 1;
	c.dst = open_layout(b->fd, "other");
	convert(b, &c);
	assert_true(bs_digest_eq(&b->list.stub, &first));
	(void)bs_repo_unref(c.dst);
}

static void an_index_gives_each_platform_or_those_that_are_wanted(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct bs_convert c = conversion(b);
	bs_autostrv only = { 0 };
	struct bs_artifact a;

	put_index(b, "t", &o);
	convert(b, &c);
	assert_int_equal(b->list.n, 2);
	assert_string_equal(b->list.v[1].platform, "linux/arm64/v8");
	assert_int_equal(bs_artifact_find(b->dst, "t-bootseer", "linux/arm64", &a, &b->err), 0);
	assert_true(bs_digest_eq(&a.digest, &b->list.v[1].artifact));
	assert_int_equal(bs_artifact_find(b->dst, "t-bootseer", "linux/riscv64", &a, &b->err),
			 -ENOENT);

	c.platforms = &only;
	c.stub_tag = "one";
	assert_int_equal(bs_strv_add(&only, "linux/arm64"), 0);
	convert(b, &c);
	assert_int_equal(b->list.n, 1);
	assert_string_equal(b->list.v[0].platform, "linux/arm64/v8");

	free(only.v[0]);
	only.v[0] = strdup("linux/s390x");
	c.stub_tag = "none";
	refused(b, &c, -ENOENT, "no platform of the index is wanted|linux/amd64, linux/arm64/v8");
}

static void a_single_image_of_another_platform_is_refused_when_one_was_asked_for(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct bs_convert c = conversion(b);
	bs_autostrv only = { 0 };
	struct bs_digest d;

	assert_int_equal(bs_strv_add(&only, "linux/arm64"), 0);
	put_image(b, &o, "t", &d, NULL);
	c.platforms = &only;
	refused(b, &c, -ENOENT, "image for linux/amd64 only|--platform");
}

static void what_is_wrong_with_an_image_is_said(void **state)
{
	struct bench *b = *state;
	struct original good = usual(b), bad = good;
	struct bs_convert c = conversion(b);
	struct bs_digest d;

	refused(b, &c, -ENOENT, "t");
	bad.os = "windows";
	put_image(b, &bad, "t", &d, NULL);
	refused(b, &c, -EOPNOTSUPP, "'windows'|not for linux");

	bad = good;
	bad.diff_id[1] = bad.diff_id[0];
	put_image(b, &bad, "t", &d, NULL);
	refused(b, &c, -EBADMSG, "layer 2 of 2|uncompressed digest");

	bad = good;
	bad.type[0] = "application/vnd.oci.image.layer.v1.tar+lzip";
	put_image(b, &bad, "t", &d, NULL);
	refused(b, &c, -EOPNOTSUPP, "layer 1 of 2|lzip");

	bad = good;
	bad.layer[1] = (struct bs_digest){ { 9 } };
	put_image(b, &bad, "t", &d, NULL);
	refused(b, &c, -ENOENT, "layer 2 of 2");

	bad = good;
	bad.type[1] = ZSTD_TYPE; /* plain bytes under the name of compressed ones */
	put_image(b, &bad, "t", &d, NULL);
	convert(b, &c);
	assert_int_equal(b->list.n, 1);
}

static void a_cut_layer_or_one_of_other_bytes_is_refused(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b), cut = o;
	struct bs_convert c = conversion(b);
	char name[BS_DIGEST_TEXT_LEN];
	bs_autofree char *path = NULL;
	struct bs_digest d;
	int fd;

	(void)bs_digest_text(&o.layer[0], name);
	path = bs_strf("src/blobs/sha256/%s", name + strlen("sha256:"));
	put_image(b, &cut, "t", &d, NULL);
	assert_int_equal(fchmodat(b->fd, path, 0644, 0), 0);
	fd = openat(b->fd, path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)(o.size[0] / 2)), 1);
	refused(b, &c, -EBADMSG, "layer 1 of 2");
	assert_int_equal(ftruncate(fd, (off_t)o.size[0] / 2), 0);
	refused(b, &c, -EBADMSG, "layer 1 of 2");
	(void)close(fd);
}

/* A directory with what a root filesystem can hold. */
static void fill_rootfs(struct bench *b)
{
	static const char deep[] = "fs/a/b/c";
	int fd;

	for (size_t i = 2; i <= strlen(deep); i++) {
		if (deep[i] == '/' || !deep[i]) {
			bs_autofree char *part = bs_strf("%.*s", (int)i, deep);

			assert_int_equal(mkdirat(b->fd, part, 0755), 0);
		}
	}
	fd = openat(b->fd, "fs/a/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	assert_int_equal(write(fd, "content\n", 8), 8);
	assert_int_equal(fsetxattr(fd, "user.colour", "blue", 4, 0), 0);
	(void)close(fd);
	fd = openat(b->fd, "fs/sparse", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, "end", 3, 5 << 20), 3);
	(void)close(fd);
	assert_int_equal(linkat(b->fd, "fs/a/file", b->fd, "fs/a/b/c/link", 0), 0);
	assert_int_equal(symlinkat("a/file", b->fd, "fs/s"), 0);
	assert_int_equal(mkfifoat(b->fd, "fs/fifo", 0600), 0);
}

static void a_directory_is_an_image_too(void **state)
{
	struct bench *b = *state;
	struct bs_convert c = conversion(b);
	bs_auto(image) struct bs_image *im = NULL;
	bs_autofree char *dir = bs_strf("%s/fs", b->path);

	fill_rootfs(b);
	c.src = NULL;
	c.rootfs = dir;
	convert(b, &c);
	assert_int_equal(b->list.n, 1);
	assert_false(b->list.v[0].has_source);
	assert_string_equal(b->list.v[0].platform, bs_platform_here());
	im = find(b, "t-bootseer", NULL);
	expect_text(im, "/s", "content\n");
	expect_text(im, "/a/b/c/link", "content\n");
	assert_true(bs_image_lookup(im, "/fifo") > 0);
	assert_true(b->list.v[0].data_bytes < 1 << 20); /* a hole is none */
	assert_int_equal(bs_image_verify(im, NULL, NULL, NULL), 0);
}

static void a_directory_that_is_none_and_a_config_that_is_none_are_refused(void **state)
{
	struct bench *b = *state;
	struct bs_convert c = conversion(b);
	bs_autofree char *dir = bs_strf("%s/fs", b->path);

	c.src = NULL;
	c.rootfs = dir;
	refused(b, &c, -ENOENT, "fs");
	fill_rootfs(b);
	c.config = "{\"os\":\"linux\"}";
	refused(b, &c, -EINVAL, "'architecture'");
	c.config = "[]";
	refused(b, &c, -EBADMSG, "no object");
	c.config = "{\"os\":\"plan9\",\"architecture\":\"amd64\"}";
	refused(b, &c, -EOPNOTSUPP, "'plan9'");
	c.config = "{\"os\":\"linux\",\"architecture\":\"arm64\",\"variant\":\"v8\"}";
	convert(b, &c);
	assert_string_equal(b->list.v[0].platform, "linux/arm64/v8");
}

static void a_large_volume_is_noted(void **state)
{
	struct bench *b = *state;
	struct original o = ORIGINAL;
	struct bs_convert_watch watch = { .note = on_note, .cookie = b };
	struct bs_convert c = conversion(b);
	autotar t = TAR_INIT;
	bs_autofree char *big = calloc(1, 17 << 20);
	struct bs_digest d;

	for (size_t i = 0; i < 17 << 20; i++)
		big[i] = (char)(i * i >> 7);
	tar_dir(&t, "data/");
	tar_add(&t, "data/big", '0', "", big, 17 << 20);
	add_layer(b, &o, &t, TAR_TYPE);
	o.more = "\"Volumes\":{\"/data\":{}}";
	put_image(b, &o, "t", &d, NULL);
	c.watch = &watch;
	convert(b, &c);
	assert_non_null(b->notes);
	assert_non_null(strstr(b->notes, "/data"));
}

static void a_wrong_byte_at_the_destination_is_found(void **state)
{
	struct bench *b = *state;
	struct original o = usual(b);
	struct bs_convert c = conversion(b);
	bs_auto(image) struct bs_image *im = NULL;
	bs_autofree char *path = NULL, *text = NULL;
	char name[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;
	struct stat st;
	uint8_t byte;
	int fd;

	put_image(b, &o, "t", &d, NULL);
	convert(b, &c);
	im = find(b, "t-bootseer", NULL);
	path = bs_strf("dst/blobs/sha256/%s",
		       bs_digest_text(&im->a.data.digest, name) + strlen("sha256:"));
	assert_int_equal(fchmodat(b->fd, path, 0644, 0), 0);
	fd = openat(b->fd, path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &byte, 1, st.st_size / 2), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	assert_int_equal(bs_image_verify(im, NULL, NULL, &b->err), -EBADMSG);
	assert_non_null(strstr(b->err.msg, "frame "));
	assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
	assert_int_equal(bs_image_verify(im, NULL, NULL, &b->err), -EBADMSG);
	(void)close(fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_image_is_found_by_each_of_its_names_and_reads_as_it_was),
		CASE(into_its_own_repository_the_original_names_it_too),
		CASE(the_same_input_gives_the_same_bytes),
		CASE(an_index_gives_each_platform_or_those_that_are_wanted),
		CASE(a_single_image_of_another_platform_is_refused_when_one_was_asked_for),
		CASE(what_is_wrong_with_an_image_is_said),
		CASE(a_cut_layer_or_one_of_other_bytes_is_refused),
		CASE(a_directory_is_an_image_too),
		CASE(a_directory_that_is_none_and_a_config_that_is_none_are_refused),
		CASE(a_large_volume_is_noted),
		CASE(a_wrong_byte_at_the_destination_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
