/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/latch.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/layout_files.h"
#include "net/layout_reads.h"
#include "net/referrers.h"
#include "net/layout.h"
#include "net/repo.h"

struct dir {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct dir *d = calloc(1, sizeof(*d));

	(void)snprintf(d->path, sizeof(d->path), "/tmp/bs-layout-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct dir *d = *state;
	char command[128];

	(void)bs_close(d->fd);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", d->path);
	free(d);
	return system(command);
}

static struct bs_repo *open_layout(const struct dir *d)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_repo *r = NULL;

	if (bs_layout_open(d->fd, d->path, true, &r, &err) < 0)
		fail_msg("%s", err.msg);
	return r;
}

static void put_manifest(struct bs_repo *r, const char *tag, const char *bytes,
			 struct bs_digest *ret)
{
	struct bs_error err = BS_ERROR_INIT;

	bs_digest_of(bytes, strlen(bytes), ret);
	if (bs_repo_put_manifest(r, tag, BS_TYPE_OCI_MANIFEST, bytes, strlen(bytes), &err) < 0)
		fail_msg("%s", err.msg);
}

static void add_tag(void *cookie, const char *tag)
{
	(void)bs_buf_addf(cookie, "%s ", tag);
}

static void expect_tags(struct bs_repo *r, const char *want)
{
	bs_autobuf b = BS_BUF_INIT(1000);

	assert_int_equal(bs_repo_list_tags(r, add_tag, &b, NULL), 0);
	assert_string_equal(bs_buf_str(&b), want);
}

static void blobs_go_in_and_out(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	static const char data[] = "some bytes";
	struct bs_digest d, other;
	bs_autofree char *got = NULL;

	bs_digest_of(data, 10, &d);
	bs_digest_of(data, 9, &other);
	assert_int_equal(bs_repo_has_blob(r, &d, NULL), 0);
	assert_int_equal(bs_repo_put_blob_mem(r, &d, data, 10, NULL), 0);
	assert_int_equal(bs_repo_put_blob_mem(r, &d, data, 10, NULL), 0);
	assert_int_equal(bs_repo_has_blob(r, &d, NULL), 1);
	assert_int_equal(bs_repo_mount_blob(r, &d, "x", NULL), 1);
	assert_int_equal(bs_repo_get_blob_mem(r, &d, 10, 10, &got, NULL), 0);
	assert_string_equal(got, data);
	free(got);
	got = NULL;
	assert_int_equal(bs_repo_get_blob_mem(r, &d, 10, 9, &got, NULL), -EFBIG);
	assert_int_equal(bs_repo_get_blob_mem(r, &d, 9, 10, &got, NULL), -EBADMSG);
	assert_int_equal(bs_repo_get_blob_mem(r, &other, 9, 10, &got, NULL), -ENOENT);
	/* bytes that are not what they are said to be never appear */
	assert_int_equal(bs_repo_put_blob_mem(r, &other, data, 10, NULL), -EBADMSG);
	assert_int_equal(bs_repo_has_blob(r, &other, NULL), 0);
}

static void damaged_blobs_are_noticed(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	const struct dir *dir = *state;
	char path[160], hex[BS_DIGEST_TEXT_LEN];
	bs_autofree char *got = NULL;
	struct bs_digest d;
	bs_autofd int fd = -EBADF;

	bs_digest_of("abc", 3, &d);
	assert_int_equal(bs_repo_put_blob_mem(r, &d, "abc", 3, NULL), 0);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", bs_digest_hex(&d, hex));
	fd = openat(dir->fd, path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(bs_repo_get_blob_mem(r, &d, 3, 3, &got, NULL), -EBADMSG);
	/* a cut one is replaced */
	assert_int_equal(ftruncate(fd, 1), 0);
	assert_int_equal(bs_repo_put_blob_mem(r, &d, "abc", 3, NULL), 0);
	assert_int_equal(bs_repo_get_blob_mem(r, &d, 3, 3, &got, NULL), 0);
}

static void ranges_are_read(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	char buf[10] = "";
	struct bs_range rg = { .buf = buf };
	static const struct {
		uint64_t off;
		size_t len;
		int result;
	} cases[] = { { 0, 10, 0 },
		      { 9, 1, 0 },
		      { 9, 2, -EBADMSG },
		      { 10, 1, -EBADMSG },
		      { 0, 0, -EINVAL },
		      { UINT64_MAX, 2, -EINVAL },
		      { INT64_MAX, 2, -EINVAL } };

	bs_digest_of("0123456789", 10, &rg.blob);
	assert_int_equal(bs_repo_put_blob_mem(r, &rg.blob, "0123456789", 10, NULL), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		rg.off = cases[i].off;
		rg.len = cases[i].len;
		assert_int_equal(bs_repo_read_wait(r, &rg), cases[i].result);
		if (rg.result == 0)
			assert_memory_equal(buf, "0123456789" + rg.off, rg.len);
	}
	bs_digest_of("", 0, &rg.blob);
	rg.off = 0;
	rg.len = 1;
	assert_int_equal(bs_repo_read_wait(r, &rg), -ENOENT);
	assert_true(rg.text[0] != '\0');
}

static int range_of(struct bs_repo *r, const struct bs_digest *d)
{
	char buf[1];
	struct bs_range rg = { .blob = *d, .len = 1, .buf = buf };

	return bs_repo_read_wait(r, &rg);
}

/* --- a store that hangs ------------------------------------------------------------------ */

#define STALL_NS (200 * BS_NS_PER_MS)

/* Opening the file hangs until the descriptor is closed; -EPERM and the like: not possible here. */
static int make_hang(const struct dir *dir, const struct bs_digest *d)
{
	char path[160], hex[BS_DIGEST_TEXT_LEN];
	bs_autofd int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);

	(void)snprintf(path, sizeof(path), "%s/blobs/sha256/%s", dir->path, bs_digest_hex(d, hex));
	if (fd < 0 || fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path) < 0)
		return -errno;
	return bs_take_fd(&fd);
}

static void a_store_that_hangs_holds_up_nobody(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	struct bs_digest hanging, other;
	bs_autofd int fd = -EBADF;
	uint64_t begin;

	bs_layout_set_stall(r, STALL_NS);
	bs_digest_of("hangs", 5, &hanging);
	bs_digest_of("other", 5, &other);
	assert_int_equal(bs_repo_put_blob_mem(r, &hanging, "hangs", 5, NULL), 0);
	assert_int_equal(bs_repo_put_blob_mem(r, &other, "other", 5, NULL), 0);
	fd = make_hang(*state, &hanging);
	if (fd < 0)
		skip();
	for (unsigned int i = 0; i < BS_READS_LOST_MAX; i++) {
		/* given up in time, and what does not hang is read beside those that are lost */
		begin = bs_clock_ns();
		assert_int_equal(range_of(r, &hanging), -ETIMEDOUT);
		assert_in_range(bs_clock_ns() - begin, STALL_NS, STALL_NS * 20);
		if (i + 1 < BS_READS_LOST_MAX)
			assert_int_equal(range_of(r, &other), 0);
	}
	/* no more threads for it: whatever is asked fails at once, and says why */
	for (unsigned int i = 0; i < 100; i++) {
		char buf[1];
		struct bs_range rg = { .blob = i % 2 ? other : hanging, .len = 1, .buf = buf };

		begin = bs_clock_ns();
		assert_int_equal(bs_repo_read_wait(r, &rg), -ETIMEDOUT);
		assert_true(bs_clock_ns() - begin < STALL_NS);
		assert_non_null(strstr(rg.text, "hangs"));
	}
	/* it has come back */
	fd = bs_close(fd);
	for (unsigned int i = 0; i < 1000 && range_of(r, &hanging) < 0; i++)
		(void)usleep(10000);
	assert_int_equal(range_of(r, &hanging), 0);
	assert_int_equal(range_of(r, &other), 0);
}

struct asked {
	struct bs_range rg;
	char buf[1];
	struct bs_latch over;
};

static void note_over(struct bs_range *rg)
{
	bs_latch_open(rg->cookie);
}

/* Nothing of others goes before demand, nor takes all that reads; and all are given up, or read. */
static void demand_is_read_beside_what_hangs_in_other_lanes(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	static struct asked asked[64];
	struct bs_digest hanging, other;
	bs_autofd int fd = -EBADF;

	bs_layout_set_stall(r, STALL_NS * 5);
	bs_digest_of("hangs", 5, &hanging);
	bs_digest_of("other", 5, &other);
	assert_int_equal(bs_repo_put_blob_mem(r, &hanging, "hangs", 5, NULL), 0);
	assert_int_equal(bs_repo_put_blob_mem(r, &other, "other", 5, NULL), 0);
	fd = make_hang(*state, &hanging);
	if (fd < 0)
		skip();
	for (size_t i = 0; i < BS_ARRAY_LEN(asked); i++) {
		struct asked *a = &asked[i];

		a->over = (struct bs_latch)BS_LATCH_INIT;
		a->rg = (struct bs_range){ .blob = hanging,
					   .len = 1,
					   .buf = a->buf,
					   .lane = i % 2 ? BS_LANE_HOT : BS_LANE_BACKGROUND,
					   .done = note_over,
					   .cookie = &a->over };
		bs_repo_read(r, &a->rg);
	}
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(range_of(r, &other), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(asked); i++) /* nothing was given up meanwhile */
		assert_int_equal(__atomic_load_n(&asked[i].rg.ended_ns, __ATOMIC_RELAXED), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(asked); i++) {
		bs_latch_wait(&asked[i].over);
		bs_latch_done(&asked[i].over);
		assert_int_equal(asked[i].rg.result, -ETIMEDOUT);
	}
}

static void a_tag_moves_to_the_latest_manifest(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	struct bs_manifest m;
	struct bs_digest a, b;
	char text[BS_DIGEST_TEXT_LEN];

	put_manifest(r, "t", "{\"a\":1}", &a);
	put_manifest(r, "u", "{\"a\":1}", &a);
	put_manifest(r, "t", "{\"b\":1}", &b);
	expect_tags(r, "u t ");
	assert_int_equal(bs_repo_get_manifest(r, "t", &m, NULL), 0);
	assert_true(bs_digest_eq(&m.digest, &b));
	assert_string_equal(m.media_type, BS_TYPE_OCI_MANIFEST);
	bs_manifest_done(&m);
	assert_int_equal(bs_repo_get_manifest(r, "u", &m, NULL), 0);
	assert_true(bs_digest_eq(&m.digest, &a));
	bs_manifest_done(&m);
	assert_int_equal(bs_repo_get_manifest(r, bs_digest_text(&a, text), &m, NULL), 0);
	bs_manifest_done(&m);
	assert_int_equal(bs_repo_get_manifest(r, "none", &m, NULL), -ENOENT);
	assert_int_equal(bs_repo_get_manifest(r, "sha512:00", &m, NULL), -EINVAL);
}

static int put_over(struct bs_repo *r, const struct bs_digest *was, const char *bytes)
{
	return bs_repo_put_manifest_over(r, "t", was, BS_TYPE_OCI_MANIFEST, bytes, strlen(bytes),
					 NULL);
}

static void a_tag_is_taken_from_what_is_meant_only(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	struct bs_digest a, b;
	struct bs_manifest m;

	put_manifest(r, NULL, "{\"a\":1}", &a);
	put_manifest(r, NULL, "{\"b\":1}", &b);
	assert_int_equal(put_over(r, &a, "{\"b\":1}"), -EEXIST); /* it has none */
	assert_int_equal(put_over(r, NULL, "{\"a\":1}"), 0);
	assert_int_equal(put_over(r, NULL, "{\"a\":1}"), 0); /* it has that one */
	assert_int_equal(put_over(r, NULL, "{\"b\":1}"), -EEXIST);
	assert_int_equal(put_over(r, &b, "{\"c\":1}"), -EEXIST);
	assert_int_equal(put_over(r, &a, "{\"b\":1}"), 0);
	assert_int_equal(bs_repo_get_manifest(r, "t", &m, NULL), 0);
	assert_true(bs_digest_eq(&m.digest, &b));
	bs_manifest_done(&m);
}

static void referrers_are_found_in_both_ways(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	bs_auto(json) struct bs_json *v = NULL;
	bs_autofree char *text = NULL, *index = NULL;
	char digest[BS_DIGEST_TEXT_LEN], tag[BS_REFERRERS_TAG_LEN];
	struct bs_digest subject, a, b;
	struct bs_manifest m;

	put_manifest(r, "t", "{\"a\":1}", &subject);
	assert_int_equal(bs_repo_get_referrers(r, &subject, &m, NULL), -ENOENT);
	text = bs_strf("{\"artifactType\":\"x/y\",\"annotations\":{\"k\":\"v\"},\"subject\":"
		       "{\"digest\":\"%s\"}}",
		       bs_digest_text(&subject, digest));
	put_manifest(r, NULL, text, &a);
	put_manifest(r, NULL, text, &a);
	expect_tags(r, "t ");
	bs_digest_of("b", 1, &b);
	index = bs_strf("{\"manifests\":[{\"mediaType\":\"m\",\"digest\":\"%s\",\"size\":1}]}",
			bs_digest_text(&b, digest));
	put_manifest(r, bs_referrers_tag(&subject, tag), index, &b);
	assert_int_equal(bs_repo_get_referrers(r, &subject, &m, NULL), 0);
	assert_int_equal(bs_json_parse("x", m.bytes, m.len, m.len, &v, NULL), 0);
	bs_manifest_done(&m);
	assert_int_equal(bs_json_n(bs_json_get(v, "manifests")), 2);
	v = bs_json_free(v);
	assert_int_equal(bs_repo_get_referrers(r, &a, &m, NULL), -ENOENT);
}

static size_t n_referrers(struct bs_repo *r, const struct bs_digest *subject)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_manifest m;
	size_t n;
	int rc = bs_repo_get_referrers(r, subject, &m, NULL);

	if (rc == -ENOENT)
		return 0;
	assert_int_equal(rc, 0);
	assert_int_equal(bs_json_parse("x", m.bytes, m.len, m.len, &v, NULL), 0);
	n = bs_json_n(bs_json_get(v, "manifests"));
	bs_manifest_done(&m);
	return n;
}

static void a_deleted_manifest_is_listed_nowhere(void **state)
{
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	bs_autofree char *one = NULL, *two = NULL, *index = NULL;
	char text[BS_DIGEST_TEXT_LEN], text2[BS_DIGEST_TEXT_LEN], tag[BS_REFERRERS_TAG_LEN];
	struct bs_digest subject, a, b, list;
	struct bs_manifest m;

	put_manifest(r, "t", "{\"a\":1}", &subject);
	(void)bs_digest_text(&subject, text);
	one = bs_strf("{\"artifactType\":\"x/1\",\"subject\":{\"digest\":\"%s\"}}", text);
	two = bs_strf("{\"artifactType\":\"x/2\",\"subject\":{\"digest\":\"%s\"}}", text);
	put_manifest(r, "one", one, &a);
	put_manifest(r, "also", one, &a);
	put_manifest(r, NULL, two, &b);
	/* and as a tool does it that knows only the tag schema */
	index = bs_strf("{\"manifests\":[{\"mediaType\":\"m\",\"digest\":\"%s\"},"
			"{\"mediaType\":\"m\",\"digest\":\"%s\"}]}",
			bs_digest_text(&a, text), bs_digest_text(&b, text2));
	put_manifest(r, bs_referrers_tag(&subject, tag), index, &list);
	assert_int_equal(n_referrers(r, &subject), 2);
	assert_int_equal(bs_repo_delete_manifest(r, &a, &subject, NULL), 0);
	assert_int_equal(bs_repo_get_manifest(r, "one", &m, NULL), -ENOENT);
	assert_int_equal(bs_repo_get_manifest(r, "also", &m, NULL), -ENOENT);
	assert_int_equal(n_referrers(r, &subject), 1);
	assert_int_equal(bs_repo_delete_manifest(r, &a, &subject, NULL), -ENOENT);
	assert_int_equal(bs_repo_delete_manifest(r, &b, &subject, NULL), 0);
	assert_int_equal(n_referrers(r, &subject), 0);
	expect_tags(r, "t ");
	assert_int_equal(bs_repo_delete_manifest(r, &subject, NULL, NULL), 0);
	expect_tags(r, "");
}

static void foreign_layouts_are_understood(void **state)
{
	static const struct {
		const char *entries, *ask;
		bool found;
	} cases[] = {
		{ "{D}", "latest", true },
		{ "{D}", "other", false },
		{ "{D,\"annotations\":{\"org.opencontainers.image.ref.name\":\"r.x/a/b:v1\"}}",
		  "v1", true },
		{ "{D,\"annotations\":{\"org.opencontainers.image.ref.name\":\"b:v1\"}}", "v1",
		  false },
		{ "{D},{D}", "latest", false },
		{ "{\"digest\":7}", "latest", false },
		{ "7,null,{D}", "latest", false },
	};
	const struct dir *dir = *state;
	bs_auto(repo) struct bs_repo *r = open_layout(dir);
	char digest[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;

	put_manifest(r, "x", "{\"layers\":[]}", &d);
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autobuf b = BS_BUF_INIT(10000);
		struct bs_manifest m;
		bs_autofd int fd = openat(dir->fd, "index.json", O_WRONLY | O_TRUNC | O_CLOEXEC);

		(void)bs_buf_adds(&b, "{\"manifests\":[");
		for (const char *c = cases[i].entries; *c; c++) {
			if (*c == 'D')
				(void)bs_buf_addf(&b, "\"digest\":\"%s\"",
						  bs_digest_text(&d, digest));
			else
				(void)bs_buf_add(&b, c, 1);
		}
		(void)bs_buf_adds(&b, "]}");
		assert_int_equal(bs_write_full(fd, b.data, b.len), 0);
		if ((bs_repo_get_manifest(r, cases[i].ask, &m, NULL) == 0) != cases[i].found)
			fail_msg("%s", b.data);
		if (cases[i].found) {
			assert_string_equal(m.media_type, BS_TYPE_OCI_MANIFEST);
			bs_manifest_done(&m);
		}
	}
}

static void nothing_outside_the_layout_is_read(void **state)
{
	const struct dir *dir = *state;
	bs_auto(repo) struct bs_repo *r = open_layout(dir);
	struct bs_repo *again = NULL;
	char hex[BS_DIGEST_TEXT_LEN], path[160];
	bs_autofree char *got = NULL;
	struct bs_digest d;

	bs_digest_of("x", 1, &d);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", bs_digest_hex(&d, hex));
	assert_int_equal(symlinkat("/etc/hostname", dir->fd, path), 0);
	assert_true(bs_repo_get_blob_mem(r, &d, 1, 1, &got, NULL) < 0);
	assert_int_equal(bs_repo_has_blob(r, &d, NULL), -ELOOP);
	assert_int_equal(unlinkat(dir->fd, path, 0), 0);
	assert_int_equal(mkfifoat(dir->fd, path, 0600), 0);
	assert_int_equal(bs_repo_has_blob(r, &d, NULL), -EINVAL); /* and it does not hang */
	assert_int_equal(unlinkat(dir->fd, "index.json", 0), 0);
	assert_int_equal(symlinkat("/etc/hostname", dir->fd, "index.json"), 0);
	assert_int_equal(bs_repo_list_tags(r, add_tag, NULL, NULL), -ELOOP);
	assert_int_equal(bs_layout_open(dir->fd, "x", true, &again, NULL), -ELOOP);
}

static void what_dead_writers_left_is_removed_what_live_ones_hold_is_not(void **state)
{
	const struct dir *dir = *state;
	struct bs_layout_temp live;
	bs_autofd int blobs = -EBADF, dead = -EBADF;
	bs_auto(repo) struct bs_repo *r = open_layout(dir);
	struct bs_digest d;

	blobs = openat(dir->fd, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bs_layout_temp_open(blobs, &live), 0);
	dead = openat(blobs, ".tmp-0000000000000000", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dead = bs_close(dead);
	bs_digest_of("x", 1, &d);
	assert_int_equal(bs_repo_put_blob_mem(r, &d, "x", 1, NULL), 0);
	assert_int_equal(faccessat(blobs, ".tmp-0000000000000000", F_OK, 0), -1);
	assert_int_equal(faccessat(blobs, live.name, F_OK, 0), 0);
	bs_layout_temp_done(&live);
}

/* --- a path that names another directory ------------------------------------------------------- */

struct followed {
	char path[128];
	int n_asked;
	bool ended;
};

static int open_path(void *cookie)
{
	struct followed *f = cookie;
	int fd = open(f->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	f->n_asked++;
	return fd < 0 ? -errno : fd;
}

static void note_end(void *cookie)
{
	((struct followed *)cookie)->ended = true;
}

/* Adds a manifest of these bytes, tagged so. */
static void add_to_layout(const char *path, const char *bytes, struct bs_digest *ret)
{
	bs_auto(repo) struct bs_repo *r = NULL;
	struct dir d;

	(void)snprintf(d.path, sizeof(d.path), "%s", path);
	d.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = open_layout(&d);
	put_manifest(r, bytes, bytes, ret);
	d.fd = bs_close(d.fd);
}

static void make_layout(const char *path, const char *bytes, struct bs_digest *ret)
{
	assert_int_equal(mkdir(path, 0700), 0);
	add_to_layout(path, bytes, ret);
}

static void a_directory_in_the_place_of_another_is_found(void **state)
{
	const struct dir *dir = *state;
	struct followed f = { .ended = false };
	bs_auto(repo) struct bs_repo *r = NULL;
	struct bs_digest one, two;
	char aside[160], blobs[160], aside_blobs[160];
	int fd;

	(void)snprintf(f.path, sizeof(f.path), "%s/l", dir->path);
	(void)snprintf(aside, sizeof(aside), "%s/old", dir->path);
	(void)snprintf(aside_blobs, sizeof(aside_blobs), "%s/blobs.old", dir->path);
	make_layout(f.path, "{}", &one);
	fd = open(f.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bs_layout_open(fd, f.path, false, &r, NULL), 0);
	fd = bs_close(fd);
	bs_layout_follow(r, open_path, &f, note_end);
	assert_int_equal(range_of(r, &one), 0);
	assert_int_equal(f.n_asked, 0);
	assert_int_equal(rename(f.path, aside), 0);
	assert_int_equal(range_of(r, &one), 0); /* what is open stays so */
	/* nothing is there now, and it is not looked for each time */
	bs_digest_of("[]", 2, &two);
	for (int i = 0; i < 10; i++)
		assert_int_equal(range_of(r, &two), -ENOENT);
	assert_int_equal(f.n_asked, 1);
	make_layout(f.path, "[]", &two);
	(void)usleep(1100000);
	assert_int_equal(range_of(r, &two), 0);
	assert_int_equal(range_of(r, &one), -ENOENT);
	expect_tags(r, "[] ");
	/* its blobs alone are replaced */
	(void)snprintf(blobs, sizeof(blobs), "%s/blobs", f.path);
	assert_int_equal(rename(blobs, aside_blobs), 0);
	add_to_layout(f.path, "{}", &one);
	(void)usleep(1100000);
	assert_int_equal(range_of(r, &one), 0);
	assert_int_equal(range_of(r, &two), -ENOENT);
	r = bs_repo_unref(r);
	assert_true(f.ended);
}

/* Neither a directory that is no layout nor a symlink within one leads anywhere. */
static void what_is_no_layout_is_not_followed(void **state)
{
	const struct dir *dir = *state;
	struct followed f = { .ended = false };
	bs_auto(repo) struct bs_repo *r = NULL;
	struct bs_digest one, two;
	char other[96], blobs[160];
	int fd;

	(void)snprintf(f.path, sizeof(f.path), "%s/l", dir->path);
	make_layout(f.path, "{}", &one);
	fd = open(f.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bs_layout_open(fd, f.path, false, &r, NULL), 0);
	fd = bs_close(fd);
	bs_layout_follow(r, open_path, &f, note_end);
	(void)snprintf(other, sizeof(other), "%s/other", dir->path);
	make_layout(other, "[]", &two);
	(void)snprintf(blobs, sizeof(blobs), "%s/other/oci-layout", dir->path);
	assert_int_equal(unlink(blobs), 0);
	(void)snprintf(f.path, sizeof(f.path), "%s", other);
	assert_int_equal(range_of(r, &two), -ENOENT);
	(void)snprintf(f.path, sizeof(f.path), "%s/third", dir->path);
	make_layout(f.path, "[[]]", &two);
	(void)snprintf(blobs, sizeof(blobs), "%s/third/blobs", dir->path);
	(void)snprintf(other, sizeof(other), "%s/third/real", dir->path);
	assert_int_equal(rename(blobs, other), 0);
	assert_int_equal(symlink("real", blobs), 0);
	(void)usleep(1100000);
	assert_int_equal(range_of(r, &two), -ENOENT);
	assert_int_equal(f.n_asked, 2);
	assert_int_equal(range_of(r, &one), 0);
}

static void something_else_is_no_layout(void **state)
{
	const struct dir *dir = *state;
	struct bs_repo *r = NULL;
	bs_autofd int fd = -EBADF;

	assert_int_equal(bs_layout_open(dir->fd, "x", false, &r, NULL), -ENOENT);
	fd = openat(dir->fd, "oci-layout", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(bs_write_full(fd, "{\"imageLayoutVersion\":\"2.0.0\"}", 30), 0);
	assert_int_equal(bs_layout_open(dir->fd, "x", false, &r, NULL), -EPROTONOSUPPORT);
}

#define WRITERS 8
#define TAGS_EACH 10

static void many_writers_lose_no_tag(void **state)
{
	pid_t pid[WRITERS];
	bs_autobuf b = BS_BUF_INIT(10000);
	bs_auto(repo) struct bs_repo *r = open_layout(*state);
	size_t n = 0;

	for (int w = 0; w < WRITERS; w++) {
		pid[w] = fork();
		if (pid[w] == 0) {
			for (int i = 0; i < TAGS_EACH; i++) {
				bs_autofree char *tag = bs_strf("t%d-%d", w, i);

				if (bs_repo_put_manifest(r, tag, "m", "{}", 2, NULL) < 0)
					_exit(1);
			}
			_exit(0);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(bs_repo_list_tags(r, add_tag, &b, NULL), 0);
	for (const char *c = bs_buf_str(&b); *c; c++)
		n += *c == ' ';
	assert_int_equal(n, WRITERS * TAGS_EACH);
}

#define LAYOUT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAYOUT_TEST(blobs_go_in_and_out),
		LAYOUT_TEST(damaged_blobs_are_noticed),
		LAYOUT_TEST(a_tag_is_taken_from_what_is_meant_only),
		LAYOUT_TEST(ranges_are_read),
		LAYOUT_TEST(a_store_that_hangs_holds_up_nobody),
		LAYOUT_TEST(demand_is_read_beside_what_hangs_in_other_lanes),
		LAYOUT_TEST(a_tag_moves_to_the_latest_manifest),
		LAYOUT_TEST(referrers_are_found_in_both_ways),
		LAYOUT_TEST(a_deleted_manifest_is_listed_nowhere),
		LAYOUT_TEST(foreign_layouts_are_understood),
		LAYOUT_TEST(nothing_outside_the_layout_is_read),
		LAYOUT_TEST(what_dead_writers_left_is_removed_what_live_ones_hold_is_not),
		LAYOUT_TEST(a_directory_in_the_place_of_another_is_found),
		LAYOUT_TEST(what_is_no_layout_is_not_followed),
		LAYOUT_TEST(something_else_is_no_layout),
		LAYOUT_TEST(many_writers_lose_no_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
