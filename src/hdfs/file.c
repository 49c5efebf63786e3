/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Block lists are asked for in windows, which are kept: a list of a file of terabytes is no
 * small thing. After a failure the window is asked for again, since blocks move and their
 * tokens expire.
 */
#include "config.h"

#include "hdfs/file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/read.h"

#define DEADLINE_NS (60 * BS_NS_PER_S)
#define WINDOW_BLOCKS 64u
#define WINDOWS_MAX 8u
#define PAUSE_FIRST_NS (50 * BS_NS_PER_MS)
#define PAUSE_MAX_NS BS_NS_PER_S

struct window {
	uint64_t off, end;
	struct bs_blocks *blocks;
	uint64_t used; /* the least is replaced */
};

struct bs_file {
	struct bs_file_options o;
	char *path;
	char *by_id; /* a path, too: its name may change */
	struct bs_hdfs_status status;

	pthread_mutex_t lock; /* guards what follows; never held over the network */
	struct window windows[WINDOWS_MAX];
	uint64_t uses;
	char *http; /* what DataNodes are asked over HTTP, once that was needed */
};

static bool http_only(const struct bs_file *f)
{
	return f->status.encrypted || f->status.erasure_coded;
}

int bs_file_open(const struct bs_file_options *o, const char *path, struct bs_file **ret,
		 struct bs_error *err)
{
	bs_auto(file) struct bs_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	(void)pthread_mutex_init(&f->lock, NULL);
	f->o = *o;
	if (!f->o.deadline_ns)
		f->o.deadline_ns = DEADLINE_NS;
	f->path = bs_strf("%s", path);
	if (!f->path)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = bs_nn_status(o->nn, path, &f->status, err);
	if (r < 0)
		return r;
	if (f->status.type != BS_HDFS_FILE)
		return bs_fail(err, f->status.type == BS_HDFS_DIRECTORY ? -EISDIR : -ELOOP,
			       "HDFS '%s': not a file", path);
	f->by_id = bs_strf("/.reserved/.inodes/%llu", (unsigned long long)f->status.file_id);
	if (!f->by_id)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	*ret = bs_take(&f);
	return 0;
}

struct bs_file *bs_file_free(struct bs_file *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < WINDOWS_MAX; i++)
		(void)bs_blocks_unref(f->windows[i].blocks);
	bs_hdfs_status_done(&f->status);
	free(f->http);
	free(f->by_id);
	free(f->path);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
	return NULL;
}

const struct bs_hdfs_status *bs_file_status(const struct bs_file *f)
{
	return &f->status;
}

/* --- windows --------------------------------------------------------------------------------- */

static struct bs_blocks *kept(struct bs_file *f, uint64_t off, uint64_t *ret_end)
{
	struct bs_blocks *found = NULL;

	(void)pthread_mutex_lock(&f->lock);
	for (size_t i = 0; !found && i < WINDOWS_MAX; i++) {
		struct window *w = &f->windows[i];

		if (!w->blocks || off < w->off || off >= w->end)
			continue;
		w->used = ++f->uses;
		*ret_end = w->end;
		found = bs_blocks_ref(w->blocks);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return found;
}

static void forget(struct bs_file *f, const struct bs_blocks *blocks)
{
	struct bs_blocks *gone = NULL;

	(void)pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < WINDOWS_MAX; i++) {
		if (f->windows[i].blocks == blocks) {
			gone = f->windows[i].blocks;
			f->windows[i] = (struct window){ 0 };
		}
	}
	(void)pthread_mutex_unlock(&f->lock);
	(void)bs_blocks_unref(gone);
}

static void keep(struct bs_file *f, struct window w)
{
	struct window *to = &f->windows[0];
	struct bs_blocks *gone;

	(void)pthread_mutex_lock(&f->lock);
	for (size_t i = 1; i < WINDOWS_MAX; i++) {
		if (f->windows[i].used < to->used)
			to = &f->windows[i];
	}
	gone = to->blocks;
	*to = w;
	to->used = ++f->uses;
	(void)pthread_mutex_unlock(&f->lock);
	(void)bs_blocks_unref(gone);
}

/* After the blocks were told: they are those of the file that was opened. */
static int is_same(struct bs_file *f, struct bs_error *err)
{
	struct bs_hdfs_status now = { 0 };
	int r = bs_nn_status(f->o.nn, f->by_id, &now, err);
	bool same = r == 0 && now.file_id == f->status.file_id && now.len >= f->status.len;

	bs_hdfs_status_done(&now);
	if (r == -ENOENT || (r == 0 && !same))
		return bs_fail(err, -ESTALE, "HDFS '%s': the file was replaced or removed",
			       f->path);
	return r;
}

static int fetch(struct bs_file *f, uint64_t off, struct bs_blocks **ret, uint64_t *ret_end,
		 struct bs_error *err)
{
	uint64_t block = BS_MAX(f->status.block_size, UINT64_C(1)), len = block * WINDOW_BLOCKS;
	struct bs_blocks *blocks = NULL;
	struct window w = { 0 };
	int r;

	if (len / WINDOW_BLOCKS != block || len > f->status.len)
		len = f->status.len;
	w.off = off / block * block;
	w.end = BS_MIN(f->status.len, w.off + len);
	r = bs_nn_blocks(f->o.nn, f->by_id, w.off, w.end - w.off, &blocks, err);
	if (r == 0)
		r = is_same(f, err);
	if (r == -ENOENT)
		r = bs_fail(err, -ESTALE, "HDFS '%s': the file was removed", f->path);
	if (r < 0) {
		(void)bs_blocks_unref(blocks);
		return r;
	}
	w.blocks = bs_blocks_ref(blocks);
	*ret = blocks;
	*ret_end = w.end;
	keep(f, w);
	return 0;
}

static int get_http(struct bs_file *f, bool again, struct bs_error *err)
{
	char *query = NULL;
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = f->http && !again;
	(void)pthread_mutex_unlock(&f->lock);
	if (r)
		return 0;
	r = bs_nn_open_query(f->o.nn, f->by_id, &query, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&f->lock);
	free(f->http);
	f->http = query;
	(void)pthread_mutex_unlock(&f->lock);
	return 0;
}

static bool has_http(struct bs_file *f)
{
	bool has;

	(void)pthread_mutex_lock(&f->lock);
	has = f->http != NULL;
	(void)pthread_mutex_unlock(&f->lock);
	return has;
}

static char *copy_http(struct bs_file *f)
{
	char *copy;

	(void)pthread_mutex_lock(&f->lock);
	copy = f->http ? bs_strf("%s", f->http) : NULL;
	(void)pthread_mutex_unlock(&f->lock);
	return copy;
}

/* --- reading --------------------------------------------------------------------------------- */

struct waiting {
	struct bs_read read;
	struct bs_latch over;
};

static void on_done(struct bs_read *r)
{
	bs_latch_open(&BS_CONTAINER_OF(r, struct waiting, read)->over);
}

static int read_once(struct bs_file *f, struct bs_blocks *blocks, struct bs_read *r)
{
	bs_autofree char *http = copy_http(f);
	struct waiting w = { .read = *r, .over = BS_LATCH_INIT };

	w.read.blocks = blocks;
	w.read.http = http;
	w.read.http_only = http_only(f);
	w.read.done = on_done;
	bs_reader_start(f->o.reader, &w.read);
	bs_latch_wait(&w.over);
	bs_latch_done(&w.over);
	*r = w.read;
	return r->result;
}

/* What is left to do of one range that lies within a window. */
struct todo {
	uint64_t off;
	size_t len;
	char *buf;
	uint64_t deadline_ns, pause_ns;
	unsigned int corrupt;
	int why; /* what failed last, but for the deadline that ends it */
	char text[160];
};

/*
 * After a failure: 0 to try again what is left. Other replicas may have come, so that even
 * wrong bytes everywhere are looked at a second time.
 */
static int recover(struct bs_file *f, struct bs_blocks *blocks, const struct bs_read *r,
		   struct todo *t, struct bs_error *err)
{
	uint64_t now = bs_clock_ns();
	int q = 0;

	t->buf += r->bad_off - t->off;
	t->off = r->bad_off;
	t->len = r->bad_len;
	if (r->result == -ENOMEM || r->result == -ECANCELED)
		return bs_fail(err, r->result, "HDFS '%s': %s", f->path, r->text);
	if (r->result == -EBADMSG && t->corrupt++)
		return bs_fail(err, -EIO, "HDFS '%s' at %llu: %s", f->path,
			       (unsigned long long)t->off, r->text);
	if (r->result != -ETIMEDOUT || !t->why) {
		t->why = r->result;
		(void)snprintf(t->text, sizeof(t->text), "%s", r->text);
	}
	if (now >= t->deadline_ns)
		return bs_fail(err,
			       t->why == -ENODATA  ? -EIO
			       : t->why == -EACCES ? -EACCES
						   : -ETIMEDOUT,
			       "HDFS '%s' at %llu: %s", f->path, (unsigned long long)t->off,
			       t->text);
	if (r->result == -EPROTONOSUPPORT || (r->result == -EACCES && has_http(f)))
		q = get_http(f, true, err);
	if (q < 0)
		return q;
	if (r->result == -EPROTONOSUPPORT)
		return 0; /* at once: the blocks are as good as before */
	forget(f, blocks);
	bs_clock_sleep(BS_MIN(t->pause_ns, t->deadline_ns - now));
	t->pause_ns = BS_MIN(2 * t->pause_ns, PAUSE_MAX_NS);
	return 0;
}

/* Reads t, which may reach beyond a window: the part that was done, or -errno. */
static ssize_t read_window(struct bs_file *f, struct todo *t, struct bs_error *err)
{
	uint64_t end = t->off + t->len, window_end = 0, from = t->off;
	struct bs_read r = { 0 };
	bool first = true, by_http = false;
	int q;

	for (;;) {
		bs_auto(blocks) struct bs_blocks *blocks = kept(f, t->off, &window_end);

		q = blocks ? 0 : fetch(f, t->off, &blocks, &window_end, err);
		if (q < 0)
			return q;
		if (first && window_end < end) {
			t->len = (size_t)(window_end - t->off);
			end = window_end;
		}
		first = false;
		r = (struct bs_read){
			.off = t->off, .len = t->len, .buf = t->buf, .deadline_ns = t->deadline_ns
		};
		q = read_once(f, blocks, &r);
		by_http = by_http || r.by_http;
		if (q == 0) {
			/* by HTTP it is a path that is read: what is there still was there before */
			q = by_http ? is_same(f, err) : 0;
			return q < 0 ? q : (ssize_t)(end - from);
		}
		q = recover(f, blocks, &r, t, err);
		if (q < 0)
			return q;
	}
}

ssize_t bs_file_pread(struct bs_file *f, void *buf, size_t len, uint64_t off, struct bs_error *err)
{
	uint64_t deadline = bs_clock_ns() + f->o.deadline_ns;
	size_t done = 0;
	int r;

	if (off >= f->status.len || len == 0)
		return 0;
	len = (size_t)BS_MIN((uint64_t)len, f->status.len - off);
	if (http_only(f)) {
		r = get_http(f, false, err);
		if (r < 0)
			return r;
	}
	while (done < len) {
		struct todo t = { .off = off + done,
				  .len = len - done,
				  .buf = (char *)buf + done,
				  .deadline_ns = deadline,
				  .pause_ns = PAUSE_FIRST_NS };
		ssize_t n = read_window(f, &t, err);

		if (n < 0)
			return n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}
