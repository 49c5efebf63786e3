/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Pages of files that are written: their memory, their way to a DataNode, and back.
 *
 * Memory has two bounds, of a file and of the mount. Who needs more than there is sends pages
 * of its own file and waits for what is on its way; when it has none, pages of other files go,
 * the longest open ones' first. When nobody has any that could go, it gets the memory all the
 * same: so nobody waits for somebody who waits, and the mount has no more over its bound than a
 * unit for each thread that writes.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/stripe.h"
#include "hdfs/targets.h"
#include "hdfs/writerpriv.h"

#define PAGE_FIRST (UINT32_C(64) << 10)
#define LENT_SHARE 4u /* of the mount's memory: as much of it is on its way before one waits */

/* With the lock. */
static void account(struct bs_writer *w, int64_t bytes)
{
	struct bs_ckpt *c = w->c;

	w->buffered += (uint64_t)bytes;
	(void)__atomic_add_fetch(&c->stats.buffered, (uint64_t)bytes, __ATOMIC_RELAXED);
	if (bytes >= 0)
		return;
	(void)pthread_mutex_lock(&c->room_lock);
	(void)pthread_cond_broadcast(&c->room);
	(void)pthread_mutex_unlock(&c->room_lock);
}

/* With the lock: a page is on its way, or (n is -1) is not any more. */
static void account_sent(struct bs_writer *w, int n, uint32_t cap)
{
	uint64_t bytes = (uint64_t)n * cap;

	w->in_flight += (unsigned int)n;
	w->sending += bytes;
	(void)__atomic_add_fetch(&w->c->sending, bytes, __ATOMIC_RELAXED);
}

void bs_writer_drop_page(struct bs_writer *w, struct bs_page *p)
{
	(void)pthread_mutex_lock(&w->lock);
	account(w, -(int64_t)p->cap);
	(void)pthread_mutex_unlock(&w->lock);
	free(p->buf);
	*p = (struct bs_page){ 0 };
}

/* --- sending --------------------------------------------------------------------------------- */

static void sent_free(struct bs_sent *s)
{
	free(s->buf);
	free(s->path);
	free(s);
}

/* On the loop's thread. */
static void on_sent(struct bs_put *put)
{
	struct bs_sent *s = BS_CONTAINER_OF(put, struct bs_sent, put);
	struct bs_writer *w = s->w;
	struct bs_wrec *rec;

	if (put->result == 0)
		bs_ckpt_count(&w->c->stats.sent, put->len);
	if (put->attempts > 1)
		bs_ckpt_count(&w->c->stats.placed_again, put->attempts - 1);
	(void)pthread_mutex_lock(&w->lock);
	rec = s->rec && s->rec->sent == s ? s->rec : NULL;
	if (rec) {
		rec->sent = NULL;
		rec->there = put->result == 0;
		rec->attempt = put->attempt;
		rec->len = (uint32_t)put->len;
		rec->crc = s->crc;
	}
	if (rec && put->result < 0 && !w->error) {
		w->error = put->result;
		(void)snprintf(w->text, sizeof(w->text), "cannot be written: %.200s", put->text);
	}
	account_sent(w, -1, s->cap);
	account(w, -(int64_t)s->cap);
	(void)pthread_cond_broadcast(&w->changed);
	(void)pthread_mutex_unlock(&w->lock);
	sent_free(s);
}

/* Who takes what is on its way now. */
static void learn(struct bs_writer *w)
{
	bs_autofree char *dir = bs_ckpt_parent(w->path);

	if (dir)
		(void)bs_targets_learn(bs_putter_targets(w->c->putter), dir, NULL);
}

/* With the lock: something on its way has arrived, or who takes it was asked again. */
static void wait_for_change(struct bs_writer *w)
{
	if (bs_clock_cond_wait(&w->changed, &w->lock, bs_clock_ns() + BS_NS_PER_S) == 0)
		return;
	(void)pthread_mutex_unlock(&w->lock);
	learn(w);
	(void)pthread_mutex_lock(&w->lock);
}

int bs_writer_drain(struct bs_writer *w, struct bs_error *err)
{
	(void)pthread_mutex_lock(&w->lock);
	while (w->in_flight)
		wait_for_change(w);
	(void)pthread_mutex_unlock(&w->lock);
	return bs_writer_error(w, err);
}

/* The page has all of the unit's bytes: they are the job's from now on. */
static int send_page(struct bs_writer *w, struct bs_wrec *rec, uint32_t len, struct bs_error *err)
{
	struct bs_sent *s = calloc(1, sizeof(*s));
	bs_autofree char *name = NULL;

	if (!s)
		return bs_ckpt_no_memory(err);
	name = bs_strf("part-%" PRIu64 "-%u", rec->u, rec->version + 1);
	s->path = name ? bs_ckpt_hidden(w->segment_dir, w->id, name) : NULL;
	if (!s->path) {
		free(s);
		return bs_ckpt_no_memory(err);
	}
	s->w = w;
	s->rec = rec;
	s->buf = rec->page.buf;
	s->cap = rec->page.cap;
	s->crc = bs_crc32c(0, s->buf, len);
	s->put = (struct bs_put){ .path = s->path,
				  .body = s->buf,
				  .len = len,
				  .block_size = w->unit,
				  .replication = w->replication,
				  .mode = w->mode,
				  .first = w->first + (unsigned int)rec->u,
				  .patience_ns = w->c->o.deadline_ns,
				  .done = on_sent };
	rec->page = (struct bs_page){ 0 };
	(void)pthread_mutex_lock(&w->lock);
	s->version = ++rec->version;
	if (rec->sent)
		rec->sent->rec = NULL;
	rec->sent = s;
	rec->there = false;
	account_sent(w, 1, s->cap);
	(void)pthread_mutex_unlock(&w->lock);
	bs_put_start(w->c->putter, &s->put);
	return 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

static bool has_room(struct bs_ckpt *c, uint32_t bytes)
{
	return __atomic_load_n(&c->stats.buffered, __ATOMIC_RELAXED) + bytes <= c->o.mount_bytes;
}

/* Another page than keep that can go. */
static struct bs_wrec *victim(struct bs_writer *w, const struct bs_wrec *keep)
{
	for (size_t i = 0; i < w->n_recs; i++) {
		if (w->recs[i] != keep && w->recs[i]->page.buf)
			return w->recs[i];
	}
	return NULL;
}

/* A page goes from memory, or is on its way. */
static int give_up(struct bs_writer *w, struct bs_wrec *rec, struct bs_error *err)
{
	if (rec->page.dirty)
		return bs_writer_submit(w, rec, err);
	bs_writer_drop_page(w, &rec->page);
	return 0;
}

/* Another file that has pages and is not in use just now, with its io held; a reference. */
static struct bs_writer *lender(const struct bs_writer *w)
{
	struct bs_ckpt *c = w->c;
	struct bs_writer *found = NULL;

	(void)pthread_mutex_lock(&c->lock);
	bs_list_for_each(it, &c->writers) {
		struct bs_writer *o = bs_list_entry(it, struct bs_writer, link);
		bool has;

		if (o == w)
			continue;
		(void)pthread_mutex_lock(&o->lock);
		has = o->buffered > o->sending;
		(void)pthread_mutex_unlock(&o->lock);
		if (!has || pthread_mutex_trylock(&o->io) != 0)
			continue;
		found = bs_writer_ref(o);
		break;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

/*
 * A page of another file: what is wrong with it is told to who writes that. What failed is lost,
 * and its pages are memory only.
 */
static bool borrow(struct bs_writer *w)
{
	struct bs_writer *o = lender(w);
	struct bs_wrec *v;

	if (!o)
		return false;
	v = victim(o, NULL);
	if (v && bs_writer_error(o, NULL) < 0)
		bs_writer_drop_page(o, &v->page);
	else if (v)
		(void)give_up(o, v, NULL);
	(void)pthread_mutex_unlock(&o->io);
	(void)bs_writer_unref(o);
	return v != NULL;
}

/* The mount's memory is used up, by others: whether it is worth to look again. */
static bool wait_for_others(struct bs_writer *w, uint32_t bytes)
{
	struct bs_ckpt *c = w->c;
	bool waits = true;
	int r = 0;

	while (!has_room(c, bytes) && waits &&
	       __atomic_load_n(&c->sending, __ATOMIC_RELAXED) < c->o.mount_bytes / LENT_SHARE)
		waits = borrow(w);
	waits = __atomic_load_n(&c->sending, __ATOMIC_RELAXED) > 0;
	(void)pthread_mutex_lock(&c->room_lock);
	if (!has_room(c, bytes) && waits)
		r = bs_clock_cond_wait(&c->room, &c->room_lock, bs_clock_ns() + BS_NS_PER_S);
	waits |= has_room(c, bytes);
	(void)pthread_mutex_unlock(&c->room_lock);
	if (r != 0)
		learn(w);
	return waits;
}

/* Accounts for so many bytes if they fit, or else if there is nothing on its way to wait for. */
static bool take_room(struct bs_writer *w, uint32_t bytes, bool force, bool *ret_waited)
{
	bool fits;

	(void)pthread_mutex_lock(&w->lock);
	fits = force || (w->buffered + bytes <= w->c->o.file_bytes && has_room(w->c, bytes));
	*ret_waited = !fits && w->in_flight;
	if (*ret_waited)
		wait_for_change(w);
	if (fits)
		account(w, bytes);
	(void)pthread_mutex_unlock(&w->lock);
	return fits;
}

/* Room for so many bytes more, which are accounted for. */
static int make_room(struct bs_writer *w, const struct bs_wrec *keep, uint32_t bytes,
		     struct bs_error *err)
{
	bool waited, force = false;

	while (!take_room(w, bytes, force, &waited)) {
		struct bs_wrec *v = waited ? NULL : victim(w, keep);
		int r = v ? give_up(w, v, err) : 0;

		if (r < 0)
			return r;
		force = !waited && !v && !wait_for_others(w, bytes);
	}
	return 0;
}

/* --- growing ---------------------------------------------------------------------------------- */

int bs_writer_grow(struct bs_writer *w, struct bs_wrec *rec, uint32_t want, bool force,
		   struct bs_error *err)
{
	struct bs_page *p = &rec->page;
	uint32_t cap = p->cap > PAGE_FIRST / 2 ? 2 * p->cap : PAGE_FIRST;
	uint8_t *buf;
	int r = 0;

	if (p->buf && p->cap >= want)
		return 0;
	cap = BS_MIN(cap, w->unit);
	cap = BS_MAX(cap, want);
	if (!force)
		r = make_room(w, rec, cap - p->cap, err);
	if (r < 0)
		return r;
	buf = realloc(p->buf, cap);
	(void)pthread_mutex_lock(&w->lock);
	if (force && buf)
		account(w, cap - p->cap);
	else if (!force && !buf)
		account(w, -(int64_t)(cap - p->cap));
	(void)pthread_mutex_unlock(&w->lock);
	if (!buf)
		return bs_ckpt_no_memory(err);
	p->buf = buf;
	p->cap = cap;
	return 0;
}

/* --- what a unit was before ------------------------------------------------------------------ */

static int read_part(struct bs_writer *w, const struct bs_wrec *rec, uint8_t *to,
		     struct bs_error *err)
{
	bs_autofree char *name = bs_writer_part_name(rec);
	bs_autofree char *path = name ? bs_ckpt_hidden(w->segment_dir, w->id, name) : NULL;
	struct bs_file_options o = { .nn = w->c->o.nn,
				     .reader = w->c->o.reader,
				     .deadline_ns = w->c->o.deadline_ns };
	bs_auto(file) struct bs_file *f = NULL;
	ssize_t n;
	int r = path ? bs_file_open(&o, path, &f, err) : bs_ckpt_no_memory(err);

	if (r < 0)
		return r;
	n = bs_file_pread(f, to, rec->len, 0, err);
	if (n < 0)
		return (int)n;
	if ((uint32_t)n != rec->len || bs_crc32c(0, to, rec->len) != rec->crc)
		return bs_fail(err, -EIO, "HDFS '%s': not the bytes that were written", path);
	return 0;
}

int bs_writer_before(struct bs_writer *w, struct bs_wrec *rec, uint8_t *to, uint32_t *ret_len,
		     struct bs_error *err)
{
	bool sent, there, lost;
	ssize_t n;

	(void)pthread_mutex_lock(&w->lock);
	/* what was sent and is not there would seem to be the base's */
	lost = w->error < 0;
	sent = rec->sent != NULL;
	there = rec->there;
	if (sent) {
		*ret_len = (uint32_t)rec->sent->put.len;
		if (to)
			memcpy(to, rec->sent->buf, *ret_len);
	} else if (there) {
		*ret_len = rec->len;
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (lost)
		return bs_writer_error(w, err);
	if (sent)
		return 0;
	if (there)
		return to ? read_part(w, rec, to, err) : 0;
	*ret_len = bs_stripe_unit_len(w->base_size, w->unit, rec->u);
	if (!to || *ret_len == 0)
		return 0;
	n = bs_view_pread(w->base, to, *ret_len, rec->u * w->unit, err);
	if (n < 0)
		return (int)n;
	return (uint32_t)n == *ret_len
		       ? 0
		       : bs_fail(err, -EIO, "HDFS '%s': it became shorter", w->path);
}

int bs_writer_fault_in(struct bs_writer *w, struct bs_wrec *rec, bool force, struct bs_error *err)
{
	struct bs_page *p = &rec->page;
	bs_autofree uint8_t *old = NULL;
	uint32_t len = 0;
	int r;

	if (p->buf && p->whole)
		return 0;
	old = malloc(w->unit);
	if (!old)
		return bs_ckpt_no_memory(err);
	r = bs_writer_before(w, rec, old, &len, err);
	if (r == 0)
		r = bs_writer_grow(w, rec, BS_MAX(p->hi, len), force, err);
	if (r < 0)
		return r;
	if (p->lo == p->hi)
		p->lo = p->hi = 0;
	if (p->lo) {
		uint32_t n = BS_MIN(len, p->lo);

		memcpy(p->buf, old, n);
		memset(p->buf + n, 0, p->lo - n);
	}
	if (len > p->hi) {
		memcpy(p->buf + p->hi, old + p->hi, len - p->hi);
		p->hi = len;
	}
	p->lo = 0;
	p->whole = true;
	return 0;
}

int bs_writer_submit(struct bs_writer *w, struct bs_wrec *rec, struct bs_error *err)
{
	struct bs_page *p = &rec->page;
	uint32_t len = bs_stripe_unit_len(w->size, w->unit, rec->u);
	int r = bs_writer_fault_in(w, rec, true, err);

	if (r == 0)
		r = bs_writer_prepare(w, err);
	if (r == 0)
		r = bs_writer_grow(w, rec, len, true, err);
	if (r < 0)
		return bs_writer_fail(w, r, err ? err->msg : "cannot be sent");
	if (p->hi < len)
		memset(p->buf + p->hi, 0, len - p->hi);
	r = send_page(w, rec, len, err);
	return r < 0 ? bs_writer_fail(w, r, "out of memory") : 0;
}
