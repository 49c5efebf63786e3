/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What changes an image store. Every file is written under a name of its own and renamed when it
 * is whole: a blob and ".lock" to a name that nobody has, index.json in the place of the old one.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "hdfs/ckptpriv.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/storepriv.h"
#include "net/layout_index.h"

#define CHUNK ((size_t)4 << 20)
#define LOCK_STALE_NS (35 * BS_NS_PER_S) /* a dead writer's: longer than any request may take */
#define LOCK_WAIT_NS (180 * BS_NS_PER_S)
#define LOCK_POLL_NS (100 * BS_NS_PER_MS) /* at first */
#define LOCK_POLL_MAX_NS (2 * BS_NS_PER_S)
#define TEMPORARY ".tmp-"
#define TEMPORARY_MS (UINT64_C(24) * 3600 * 1000) /* a writer is dead by then */
#define CHANGE_TRIES 10u

static struct bs_nn *namenode(const struct bs_store *s)
{
	return bs_mounted_nn(s->client->mounted);
}

/* --- files ----------------------------------------------------------------------------------- */

struct bytes {
	const void *data; /* or */
	int fd;
	uint64_t len;
	void (*progress)(void *cookie, uint64_t sent);
	void *cookie;
};

static int copy_fd(struct bs_ckpt_file *f, const struct bytes *b, struct bs_error *err)
{
	bs_autofree char *chunk = malloc(CHUNK);
	int r = chunk ? 0 : bs_fail(err, -ENOMEM, "out of memory");

	for (uint64_t at = 0; r == 0 && at < b->len;) {
		ssize_t n = bs_pread_full(b->fd, chunk, BS_MIN((uint64_t)CHUNK, b->len - at), at);

		if (n <= 0)
			return bs_fail_errno(err, n < 0 ? (int)n : -EBADMSG, "read what is to go");
		r = bs_ckpt_write(f, chunk, (size_t)n, at, err);
		at += (uint64_t)n;
		if (b->progress)
			b->progress(b->cookie, at);
	}
	return r;
}

/* A file of the bytes; path is not there. Nothing is after a failure. */
static int write_new(struct bs_store *s, const char *path, const struct bytes *b,
		     struct bs_error *err)
{
	struct bs_ckpt_file *f = NULL;
	int r = bs_ckpt_open(bs_store_tree(s), path, BS_CKPT_WRITE | BS_CKPT_CREATE | BS_CKPT_EXCL,
			     0644, &f, err);

	if (r < 0)
		return r;
	if (!b->data)
		r = copy_fd(f, b, err);
	else if (b->len)
		r = bs_ckpt_write(f, b->data, (size_t)b->len, 0, err);
	if (r < 0) {
		(void)bs_ckpt_unlink(bs_store_tree(s), path, NULL);
		(void)bs_ckpt_close(f, NULL);
		return r;
	}
	r = bs_ckpt_close(f, err);
	if (r < 0)
		(void)bs_nn_delete(namenode(s), path, false, NULL);
	return r;
}

/* DIR/.tmp-ID beside path; malloc'ed, NULL: out of memory. */
static char *temporary(const char *path)
{
	char id[BS_STRIPES_ID_LEN + 1];

	return bs_ckpt_new_id(id) < 0 ? NULL
				      : bs_strf("%.*s/" TEMPORARY "%s",
						(int)(strrchr(path, '/') - path), path, id);
}

/* What was written at made takes the name path. */
static int publish(struct bs_store *s, const char *made, const char *path, bool replace,
		   struct bs_error *err)
{
	int r = bs_nn_rename(namenode(s), made, path, replace, err);

	if (r < 0)
		(void)bs_nn_delete(namenode(s), made, false, NULL);
	return r;
}

static int put_file(struct bs_store *s, const char *path, const struct bytes *b, bool replace,
		    struct bs_error *err)
{
	bs_autofree char *made = temporary(path);
	int r = made ? write_new(s, made, b, err) : bs_store_no_memory(s, err);

	return r < 0 ? r : publish(s, made, path, replace, err);
}

/* 1: there is such a file; *ret_id may be NULL. */
static int look(struct bs_store *s, const char *path, uint64_t *ret_id, struct bs_error *err)
{
	struct bs_hdfs_status st = { 0 };
	int r = bs_nn_status(namenode(s), path, &st, err);

	if (r == 0 && ret_id)
		*ret_id = st.file_id;
	bs_hdfs_status_done(&st);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

static int told(const struct bs_store *s, int r, const char *what, struct bs_error *err)
{
	if (r >= 0)
		return r;
	return bs_error_context(err, "%s: %s", s->base.repo.name, what), bs_store_error(r);
}

/* --- blobs ----------------------------------------------------------------------------------- */

static int is_blob(int fd, uint64_t size, const struct bs_digest *d)
{
	struct bs_digest got;
	uint64_t len;
	int r = bs_digest_of_file(fd, size, &got, &len);

	if (r < 0)
		return r;
	return len == size && bs_digest_eq(&got, d) ? 0 : -EBADMSG;
}

/* By the NameNode's clock: it is no earlier than the youngest entry. */
static void sweep_temporaries(struct bs_store *s, const char *dir)
{
	struct bs_hdfs_list list = { 0 };
	uint64_t now_ms = 0;

	if (bs_nn_list(namenode(s), dir, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		now_ms = BS_MAX(now_ms, list.v[i].mtime_ms);
	for (size_t i = 0; i < list.n; i++) {
		const struct bs_hdfs_status *st = &list.v[i];
		bs_autofree char *path = NULL;

		if (st->type != BS_HDFS_FILE || !bs_str_after(st->name, TEMPORARY) ||
		    now_ms - st->mtime_ms < TEMPORARY_MS)
			continue;
		path = bs_hdfs_path_child(dir, st->name);
		if (path)
			(void)bs_nn_delete(namenode(s), path, false, NULL);
	}
	bs_hdfs_list_done(&list);
}

/* What writers that died left, once. */
static void sweep(struct bs_store *s)
{
	struct bs_ckpt_gc gc = { 0 };
	bs_autofree char *dir = bs_hdfs_path_child(s->dir, "blobs/sha256");

	if (!dir || __atomic_exchange_n(&s->swept, true, __ATOMIC_RELAXED))
		return;
	(void)bs_ckpt_gc(bs_store_tree(s), dir, &gc, NULL);
	(void)bs_ckpt_gc(bs_store_tree(s), s->dir, &gc, NULL);
	sweep_temporaries(s, dir);
	sweep_temporaries(s, s->dir);
}

static int make_dirs(struct bs_store *s, struct bs_error *err)
{
	bs_autofree char *dir = bs_hdfs_path_child(s->dir, "blobs/sha256");

	return dir ? bs_nn_mkdirs(namenode(s), dir, 0755, err) : bs_store_no_memory(s, err);
}

static int put_blob(struct bs_store *s, const char *path, const struct bytes *b,
		    struct bs_error *err)
{
	struct bs_hdfs_status st = { 0 };
	int r = bs_ckpt_stat(bs_store_tree(s), path, &st, err);
	bool replace = r == 0; /* one of another length is good for nothing */
	uint64_t len = st.len;

	bs_hdfs_status_done(&st);
	if ((r < 0 && r != -ENOENT) || (r == 0 && len == b->len))
		return r;
	r = put_file(s, path, b, replace, err);
	if (r == -ENOENT) { /* a layout without any blob */
		r = make_dirs(s, err);
		if (r == 0)
			r = put_file(s, path, b, replace, err);
	}
	if (r == -EEXIST) /* another writer's, which is as good */
		r = 0;
	return r;
}

int bs_store_put_blob(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
		      void (*progress)(void *cookie, uint64_t sent), void *cookie,
		      struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_store_blob_path(s, d);
	const struct bytes b = { .fd = fd, .len = size, .progress = progress, .cookie = cookie };
	char text[BS_DIGEST_TEXT_LEN];
	int rc;

	(void)bs_digest_text(d, text);
	if (!path)
		return bs_store_no_memory(s, err);
	rc = is_blob(fd, size, d);
	if (rc == -EBADMSG)
		return bs_fail(err, rc,
			       "%s: blob %s: the bytes given have another digest or length",
			       r->name, text);
	if (rc < 0)
		return bs_fail_errno(err, rc, "%s: write blob %s", r->name, text);
	sweep(s);
	rc = put_blob(s, path, &b, err);
	if (rc < 0)
		(void)bs_error_context(err, "write blob %s", text);
	return told(s, rc, "write", err);
}

int bs_store_try_push(struct bs_repo *r, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *version = bs_hdfs_path_child(s->dir, "oci-layout");
	bs_autofree char *blob = bs_hdfs_path_child(s->dir, "blobs/sha256/blob");
	bs_autofree char *path = blob ? temporary(blob) : NULL;
	int rc;

	if (!version || !path)
		return bs_store_no_memory(s, err);
	rc = look(s, version, NULL, err);
	if (rc == 0)
		return bs_fail(err, -ENOENT, "%s is no OCI layout: it has no file 'oci-layout'",
			       r->name);
	if (rc > 0)
		rc = make_dirs(s, err);
	if (rc == 0)
		rc = write_new(s, path, &(struct bytes){ .data = "", .len = 0 }, err);
	if (rc == 0)
		(void)bs_nn_delete(namenode(s), path, false, NULL);
	return told(s, rc, "write there", err);
}

void bs_store_favour(struct bs_repo *r, const struct bs_digest *d)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_store_blob_path(s, d);
	struct bs_hdfs_status st = { 0 };

	if (path && bs_nn_status(namenode(s), path, &st, NULL) == 0 && st.type == BS_HDFS_FILE &&
	    st.replication < s->client->hot_replication)
		(void)bs_nn_set_replication(namenode(s), path, s->client->hot_replication, NULL);
	bs_hdfs_status_done(&st);
}

/* --- index.json ------------------------------------------------------------------------------ */

int bs_store_read_index(struct bs_repo *r, struct bs_json **ret, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_hdfs_path_child(s->dir, "index.json"), *bytes = NULL;
	size_t len;
	int rc = path ? bs_store_read_file(s, path, BS_LAYOUT_INDEX_MAX, &bytes, &len, err)
		      : bs_store_no_memory(s, err);

	return rc < 0 ? rc : bs_layout_index_parse(r->name, bytes, len, ret, err);
}

/* Somebody's lock is seen; whether it is the same for too long. */
struct seen {
	uint64_t id, since_ns, pause_ns;
};

/* A dead writer's lock goes; another one that was made meanwhile stays. */
static int break_lock(struct bs_store *s, const char *path, uint64_t stale, struct bs_error *err)
{
	bs_autofree char *aside = temporary(path);
	uint64_t id = 0;
	int r = aside ? bs_nn_rename(namenode(s), path, aside, false, err)
		      : bs_store_no_memory(s, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = look(s, aside, &id, err);
	if (r == 1 && id != stale && bs_nn_rename(namenode(s), aside, path, false, NULL) == 0)
		return 0;
	(void)bs_nn_delete(namenode(s), aside, false, NULL);
	return r < 0 ? r : 0;
}

static int wait_for_lock(struct bs_store *s, const char *path, uint64_t id, struct seen *seen,
			 struct bs_error *err)
{
	const uint64_t now = bs_clock_ns();

	if (id != seen->id)
		*seen = (struct seen){ id, now, LOCK_POLL_NS };
	if (now - seen->since_ns >= LOCK_STALE_NS)
		return break_lock(s, path, id, err);
	/* not all at once who wait together */
	bs_clock_sleep(seen->pause_ns / 2 + now % seen->pause_ns);
	seen->pause_ns = BS_MIN(2 * seen->pause_ns, LOCK_POLL_MAX_NS);
	return 0;
}

/* *ret_id: the lock that is ours. -EEXIST: somebody else has it. */
static int make_lock(struct bs_store *s, const char *path, uint64_t *ret_id, struct bs_error *err)
{
	bs_autofree char *made = temporary(path);
	int r = made ? write_new(s, made, &(struct bytes){ .data = "", .len = 0 }, err)
		     : bs_store_no_memory(s, err);

	if (r < 0)
		return r;
	r = look(s, made, ret_id, err); /* which it keeps when it is renamed */
	if (r == 0)
		r = bs_fail(err, -EIO, "'%s' is gone", made);
	if (r < 0) {
		(void)bs_nn_delete(namenode(s), made, false, NULL);
		return r;
	}
	return publish(s, made, path, false, err);
}

static int lock(struct bs_store *s, const char *path, uint64_t *ret_id, struct bs_error *err)
{
	const uint64_t deadline = bs_clock_ns() + LOCK_WAIT_NS;
	struct seen seen = { 0 };
	uint64_t id = 0;
	int r;

	do {
		r = look(s, path, &id, err);
		if (r == 1) {
			r = wait_for_lock(s, path, id, &seen, err);
		} else if (r == 0) {
			r = make_lock(s, path, ret_id, err);
			if (r == 0)
				return 0;
			if (r == -EEXIST)
				r = 0;
		}
		if (r < 0)
			return r;
	} while (bs_clock_ns() < deadline);
	return bs_fail(err, -ETIMEDOUT, "'%s' is held by others all the time", path);
}

static void unlock(struct bs_store *s, const char *path, uint64_t mine)
{
	uint64_t id = 0;

	if (look(s, path, &id, NULL) == 1 && id == mine)
		(void)bs_nn_delete(namenode(s), path, false, NULL);
}

/* What a change of the index begins with: the lock, and the index that it was read from. */
struct held {
	const char *lock;
	uint64_t lock_id, index_id;
};

static int is_held(struct bs_store *s, const struct held *h, const char *index,
		   struct bs_error *err)
{
	uint64_t id = 0;
	int r = look(s, h->lock, &id, err);

	if (r >= 0 && (r == 0 || id != h->lock_id))
		return -ESTALE;
	if (r >= 0)
		r = look(s, index, &id, err);
	if (r >= 0 && (r == 0 || id != h->index_id))
		return -ESTALE;
	return r < 0 ? r : 0;
}

/* The new index takes the old one's place, unless it is not ours to change any more: -ESTALE. */
static int write_index(struct bs_store *s, const struct bs_json *index, const struct held *h,
		       struct bs_error *err)
{
	bs_autofree char *path = bs_hdfs_path_child(s->dir, "index.json");
	bs_autofree char *made = path ? temporary(path) : NULL;
	bs_autobuf out = BS_BUF_INIT(BS_LAYOUT_INDEX_MAX);
	int r = made ? bs_json_write(index, &out) : -ENOMEM;

	if (r < 0)
		return bs_fail_errno(err, r, "index.json");
	r = write_new(s, made, &(struct bytes){ .data = out.data, .len = out.len }, err);
	if (r < 0)
		return r;
	r = is_held(s, h, path, err);
	if (r < 0) {
		(void)bs_nn_delete(namenode(s), made, false, NULL);
		return r;
	}
	return publish(s, made, path, true, err);
}

/* With the lock. 1: changed; 0: there is nothing to change; -ESTALE: the lock was lost. */
static int change(struct bs_store *s, struct held *h,
		  int (*fn)(struct bs_json *index, void *cookie), void *cookie,
		  struct bs_error *err)
{
	bs_autofree char *path = bs_hdfs_path_child(s->dir, "index.json");
	bs_auto(json) struct bs_json *index = NULL;
	int r = path ? look(s, path, &h->index_id, err) : bs_store_no_memory(s, err);

	if (r >= 0)
		r = bs_store_read_index(&s->base.repo, &index, err);
	if (r < 0)
		return r;
	r = fn(index, cookie);
	if (r < 0)
		return bs_fail_errno(err, r, "index.json");
	if (r == 0)
		return 0;
	r = write_index(s, index, h, err);
	return r < 0 ? r : 1;
}

int bs_store_change_index(struct bs_repo *r, int (*fn)(struct bs_json *index, void *cookie),
			  void *cookie, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_hdfs_path_child(s->dir, ".lock");
	struct held h = { .lock = path };
	bool changed = false;
	int rc;

	if (!path)
		return bs_store_no_memory(s, err);
	(void)pthread_mutex_lock(&s->client->writing);
	rc = lock(s, path, &h.lock_id, err);
	/* until it is seen to be in: a lock that was taken away lets two write at once */
	for (unsigned int i = 0; rc == 0 && i < CHANGE_TRIES; i++) {
		rc = change(s, &h, fn, cookie, err);
		if (rc == 0)
			break;
		changed = changed || rc == 1;
		if (rc == -ESTALE)
			rc = lock(s, path, &h.lock_id, err);
		else if (rc == 1)
			rc = 0;
		if (rc == 0 && i + 1 == CHANGE_TRIES)
			rc = bs_fail(err, -EAGAIN, "others change it all the time");
	}
	unlock(s, path, h.lock_id);
	(void)pthread_mutex_unlock(&s->client->writing);
	return told(s, rc < 0 ? rc : changed, "change index.json", err);
}

/* --- making one ------------------------------------------------------------------------------ */

static int make_file(struct bs_store *s, const char *name, const char *text, struct bs_error *err)
{
	bs_autofree char *path = bs_hdfs_path_child(s->dir, name);
	const struct bytes b = { .data = text, .len = strlen(text) };
	int r = path ? look(s, path, NULL, err) : bs_store_no_memory(s, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = put_file(s, path, &b, false, err);
	return r == -EEXIST ? 0 : r;
}

int bs_store_create(struct bs_store *s, struct bs_error *err)
{
	int r = make_dirs(s, err);

	if (r == 0)
		r = make_file(s, "index.json", BS_LAYOUT_NEW_INDEX, err);
	if (r == 0)
		r = make_file(s, "oci-layout", BS_LAYOUT_VERSION, err);
	return told(s, r, "make an OCI layout", err);
}
