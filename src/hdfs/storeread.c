/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Blobs of an image store, to read: whole ones piece after piece, the next piece on its way
 * while one is used; ranges by the client's threads, in the order of their lanes. A lane that
 * nobody waits for never has all threads, so that a demand read begins at once.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/str.h"
#include "hdfs/storepriv.h"
#include "net/loop_impl.h"

#define CHUNK ((size_t)16 << 20)
#define TRIES 4u /* of a file that is replaced while it is read */
#define STACK_BYTES ((size_t)256 << 10)
#define HOT_MAX (BS_STORE_THREADS - 4u)
#define BACKGROUND_MAX 4u

/* --- small files ----------------------------------------------------------------------------- */

static int read_open(struct bs_store *s, struct bs_ckpt_file *f, const char *path, size_t max,
		     char **ret, size_t *ret_len, struct bs_error *err)
{
	uint64_t len = bs_ckpt_size(f);
	bs_autofree char *bytes = NULL;
	ssize_t n;

	if (len > max)
		return bs_fail(err, -EFBIG, "'%s' has %" PRIu64 " bytes: the bound is %zu", path,
			       len, max);
	bytes = malloc((size_t)len + 1);
	if (!bytes)
		return bs_store_no_memory(s, err);
	n = len ? bs_ckpt_pread(f, bytes, (size_t)len, 0, err) : 0;
	if (n < 0)
		return (int)n;
	bytes[n] = '\0';
	*ret = bs_take(&bytes);
	*ret_len = (size_t)n;
	return 0;
}

int bs_store_read_file(struct bs_store *s, const char *path, size_t max, char **ret,
		       size_t *ret_len, struct bs_error *err)
{
	int r = -ESTALE;

	for (unsigned int i = 0; r == -ESTALE && i < TRIES; i++) {
		struct bs_ckpt_file *f = NULL;

		r = bs_ckpt_open(bs_store_tree(s), path, 0, 0, &f, err);
		if (r == 0)
			r = read_open(s, f, path, max, ret, ret_len, err);
		(void)bs_ckpt_close(f, NULL);
	}
	return r < 0 ? bs_error_context(err, "%s", s->base.repo.name), bs_store_error(r) : 0;
}

/* --- files that are kept open ---------------------------------------------------------------- */

static struct bs_store_file *find(struct bs_store *s, const struct bs_digest *d)
{
	for (size_t i = 0; i < BS_STORE_FILES; i++) {
		struct bs_store_file *k = &s->files[i];

		if (k->file && !k->bad && bs_digest_eq(&k->digest, d))
			return k;
	}
	return NULL;
}

/* Where another one can be kept: the place of none, or of the one that rested longest. */
static struct bs_store_file *place(struct bs_store *s)
{
	struct bs_store_file *best = NULL;

	for (size_t i = 0; i < BS_STORE_FILES; i++) {
		struct bs_store_file *k = &s->files[i];

		if (!k->file)
			return k;
		if (k->users == 0 && (!best || k->used < best->used))
			best = k;
	}
	return best;
}

static struct bs_store_file *find_and_use(struct bs_store *s, const struct bs_digest *d)
{
	struct bs_store_file *k;

	(void)pthread_mutex_lock(&s->lock);
	k = find(s, d);
	if (k)
		k->users++;
	(void)pthread_mutex_unlock(&s->lock);
	return k;
}

static int take(struct bs_store *s, const struct bs_digest *d, struct bs_store_file **ret,
		struct bs_error *err)
{
	bs_autofree char *path = NULL;
	struct bs_ckpt_file *mine = NULL;
	struct bs_store_file *k = find_and_use(s, d);
	int r;

	*ret = k;
	if (k)
		return 0;
	path = bs_store_blob_path(s, d);
	r = path ? bs_ckpt_open(bs_store_tree(s), path, 0, 0, &mine, err)
		 : bs_store_no_memory(s, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->lock);
	k = find(s, d); /* another thread was quicker */
	if (!k && (k = place(s)) != NULL) {
		struct bs_ckpt_file *old = k->file;

		*k = (struct bs_store_file){ .digest = *d, .file = mine };
		mine = old;
	}
	if (k)
		k->users++;
	(void)pthread_mutex_unlock(&s->lock);
	(void)bs_ckpt_close(mine, NULL);
	*ret = k;
	return k ? 0 : bs_fail(err, -EAGAIN, "too many blobs are read at once");
}

/* bad: what it is may have changed; it is looked for again. */
static void put_back(struct bs_store *s, struct bs_store_file *k, bool bad)
{
	struct bs_ckpt_file *gone = NULL;

	(void)pthread_mutex_lock(&s->lock);
	k->used = ++s->uses;
	k->bad = k->bad || bad;
	if (--k->users == 0 && k->bad) {
		gone = k->file;
		*k = (struct bs_store_file){ 0 };
	}
	(void)pthread_mutex_unlock(&s->lock);
	(void)bs_ckpt_close(gone, NULL);
}

void bs_store_close_files(struct bs_store *s)
{
	for (size_t i = 0; i < BS_STORE_FILES; i++)
		(void)bs_ckpt_close(s->files[i].file, NULL);
}

/* --- whole blobs ----------------------------------------------------------------------------- */

struct part {
	struct bs_ckpt_read read;
	struct bs_latch over;
	char *bytes;
	size_t len;
};

static void on_part(struct bs_ckpt_read *r)
{
	bs_latch_open(&BS_CONTAINER_OF(r, struct part, read)->over);
}

static void start_part(struct bs_ckpt_file *f, struct part *p, uint64_t off, size_t len)
{
	p->over = BS_LATCH_INIT;
	p->len = len;
	p->read = (struct bs_ckpt_read){ .buf = p->bytes, .len = len, .off = off, .done = on_part };
	bs_ckpt_read_start(f, &p->read);
}

/* The bytes of the blob from 0 to size, each part started before the one before is used. */
static int get_parts(struct bs_ckpt_file *f, struct part parts[2], size_t chunk, uint64_t size,
		     bs_repo_sink *sink, void *cookie, struct bs_error *err)
{
	uint64_t started = BS_MIN((uint64_t)chunk, size), used = 0;
	int r = 0;

	start_part(f, &parts[0], 0, (size_t)started);
	for (unsigned int i = 0; used < started; i++) {
		struct part *p = &parts[i % 2];
		size_t next = (size_t)BS_MIN((uint64_t)chunk, size - started);
		ssize_t n;

		bs_latch_wait(&p->over);
		bs_latch_done(&p->over);
		n = p->read.result;
		if (r == 0 && n < 0)
			r = bs_fail(err, (int)n, "%s", p->read.text);
		else if (r == 0 && (size_t)n != p->len)
			r = bs_fail(err, -EBADMSG, "it became shorter");
		if (r == 0 && next) {
			start_part(f, &parts[(i + 1) % 2], started, next);
			started += next;
		}
		if (r == 0) {
			int s = sink(cookie, p->bytes, (size_t)n);

			if (s < 0)
				r = bs_fail_errno(err, s, "take it");
		}
		used += p->len;
	}
	return r;
}

static int get_file(struct bs_store *s, const char *path, uint64_t size, bs_repo_sink *sink,
		    void *cookie, struct bs_error *err)
{
	const size_t chunk = (size_t)BS_MIN((uint64_t)CHUNK, size);
	bs_autofree char *a = malloc(chunk + 1), *b = malloc(chunk + 1);
	struct part parts[2] = { { .bytes = a }, { .bytes = b } };
	struct bs_ckpt_file *f = NULL;
	int r = a && b ? bs_ckpt_open(bs_store_tree(s), path, 0, 0, &f, err)
		       : bs_store_no_memory(s, err);

	if (r == 0 && bs_ckpt_size(f) != size)
		r = bs_fail(err, -EBADMSG, "it has %" PRIu64 " bytes and not %" PRIu64,
			    bs_ckpt_size(f), size);
	if (r == 0 && size)
		r = get_parts(f, parts, chunk, size, sink, cookie, err);
	(void)bs_ckpt_close(f, NULL);
	return r;
}

int bs_store_get_blob(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
		      bs_repo_sink *sink, void *cookie, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_store_blob_path(s, d);
	char text[BS_DIGEST_TEXT_LEN];
	int rc = path ? get_file(s, path, size, sink, cookie, err) : bs_store_no_memory(s, err);

	if (rc == 0)
		return 0;
	(void)bs_error_context(err, "%s: blob %s", r->name, bs_digest_text(d, text));
	return bs_store_error(rc);
}

/* --- ranges ---------------------------------------------------------------------------------- */

struct ranging {
	struct bs_list queued;
	struct bs_task task;
	struct bs_store *store;
	struct bs_range *rg;
};

static void tell(struct bs_task *t)
{
	struct ranging *g = BS_CONTAINER_OF(t, struct ranging, task);
	struct bs_store *s = g->store;
	struct bs_range *rg = g->rg;

	free(g);
	rg->ended_ns = bs_clock_ns();
	rg->done(rg);
	(void)bs_repo_unref(&s->base.repo);
}

static void end(struct bs_store_client *c, struct ranging *g)
{
	g->task.fn = tell;
	if (c->loop)
		bs_loop_post(c->loop, &g->task);
	else
		tell(&g->task);
}

static void read_range(struct bs_store *s, struct bs_range *rg)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_store_file *k = NULL;
	ssize_t n;

	__atomic_store_n(&rg->started_ns, bs_clock_ns(), __ATOMIC_RELAXED);
	if (rg->fresh) { /* what was wrong with it may be gone with its blocks */
		k = find_and_use(s, &rg->blob);
		if (k)
			put_back(s, k, true);
	}
	n = take(s, &rg->blob, &k, &err);
	if (n == 0) {
		n = bs_ckpt_pread(k->file, rg->buf, rg->len, rg->off, &err);
		put_back(s, k, n < 0);
	}
	rg->answered_ns = bs_clock_ns();
	if (n >= 0 && (size_t)n != rg->len)
		n = bs_fail(&err, -EBADMSG, "it ends before the range does");
	rg->result = n < 0 ? bs_store_error((int)n) : 0;
	if (n < 0)
		(void)snprintf(rg->text, sizeof(rg->text), "%.159s", bs_error_text(&err));
	else
		__atomic_store_n(&rg->got, rg->len, __ATOMIC_RELAXED);
}

static struct ranging *first(struct bs_store_client *c, enum bs_lane lane)
{
	return bs_list_empty(&c->queue[lane])
		       ? NULL
		       : bs_list_entry(c->queue[lane].next, struct ranging, queued);
}

/* Lock held. NULL: nothing may run; *ret_ns: before then, 0: until something changes. */
static struct ranging *next(struct bs_store_client *c, uint64_t *ret_ns)
{
	const unsigned int behind = c->running[BS_LANE_HOT] + c->running[BS_LANE_BACKGROUND];
	struct ranging *g = first(c, BS_LANE_DEMAND);

	*ret_ns = 0;
	if (!g && behind < HOT_MAX)
		g = first(c, BS_LANE_HOT);
	if (g || behind >= HOT_MAX || !first(c, BS_LANE_BACKGROUND) ||
	    c->running[BS_LANE_BACKGROUND] >= (c->running[BS_LANE_DEMAND] ? 1u : BACKGROUND_MAX))
		return g;
	*ret_ns = c->background_ns;
	return c->background_ns <= bs_clock_ns() ? first(c, BS_LANE_BACKGROUND) : NULL;
}

/* Lock held. The next of the background comes when this one's time is over. */
static void pace(struct bs_store_client *c, size_t len)
{
	const uint64_t now = bs_clock_ns();

	if (!c->background_rate)
		return;
	c->background_ns = BS_MAX(c->background_ns, now) +
			   (uint64_t)((double)len / (double)c->background_rate * 1e9);
}

/* Lock held. */
static void count(struct bs_store_client *c, const struct bs_range *rg)
{
	c->requests[rg->lane]++;
	c->failures[rg->lane] += rg->result < 0;
	c->bytes[rg->lane] += rg->result < 0 ? 0 : rg->len;
}

static void *read_main(void *cookie)
{
	struct bs_store_client *c = cookie;

	(void)pthread_mutex_lock(&c->lock);
	for (;;) {
		uint64_t until;
		struct ranging *g = next(c, &until);
		enum bs_lane lane;

		if (!g && c->stop)
			break;
		if (!g && until) {
			(void)bs_clock_cond_wait(&c->work, &c->lock, until);
			continue;
		}
		if (!g) {
			(void)pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		lane = g->rg->lane;
		bs_list_remove(&g->queued);
		c->running[lane]++;
		if (lane == BS_LANE_BACKGROUND)
			pace(c, g->rg->len);
		(void)pthread_mutex_unlock(&c->lock);
		read_range(g->store, g->rg);
		(void)pthread_mutex_lock(&c->lock);
		c->running[lane]--;
		count(c, g->rg);
		/* more of them may run now than this thread takes */
		if (first(c, BS_LANE_HOT) || first(c, BS_LANE_BACKGROUND))
			(void)pthread_cond_broadcast(&c->work);
		(void)pthread_mutex_unlock(&c->lock);
		end(c, g); /* the layout may be gone with it, the client is not */
		(void)pthread_mutex_lock(&c->lock);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Lock held. At the first range; where a limit allows no more threads, fewer must do. */
static void start_threads(struct bs_store_client *c)
{
	pthread_attr_t attr;

	if (c->n_threads)
		return;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (c->n_threads < BS_STORE_THREADS &&
	       pthread_create(&c->threads[c->n_threads], &attr, read_main, c) == 0)
		c->n_threads++;
	(void)pthread_attr_destroy(&attr);
}

void bs_store_stop(struct bs_store_client *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->stop = true;
	(void)pthread_cond_broadcast(&c->work);
	(void)pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < c->n_threads; i++)
		(void)pthread_join(c->threads[i], NULL);
}

void bs_store_read(struct bs_repo *r, struct bs_range *rg)
{
	struct bs_store *s = bs_store_of(r);
	struct bs_store_client *c = s->client;
	struct ranging *g = calloc(1, sizeof(*g));
	bool started = false;

	if (g) {
		g->store = s;
		g->rg = rg;
		(void)bs_repo_ref(r);
		(void)pthread_mutex_lock(&c->lock);
		start_threads(c);
		started = c->n_threads > 0;
		if (started)
			bs_list_append(&c->queue[rg->lane], &g->queued);
		(void)pthread_cond_signal(&c->work);
		(void)pthread_mutex_unlock(&c->lock);
	}
	if (started)
		return;
	if (g)
		(void)bs_repo_unref(r);
	free(g);
	rg->result = -ENOMEM;
	rg->ended_ns = bs_clock_ns();
	(void)snprintf(rg->text, sizeof(rg->text), "out of memory, or of threads");
	rg->done(rg);
}
