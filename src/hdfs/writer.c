/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A file that is written. What callers write goes into pages of one unit. A page that is full
 * is sent at once, as a file of its own; when it is written to again, or something else takes
 * its memory, it comes back and is sent anew: the last version counts. So sequential writing
 * keeps the DataNodes busy, and random writing costs no more than its units, in bounded memory.
 *
 *   nothing ──write──▶ page ──full, or memory is short──▶ sent ──201──▶ there
 *                       ▲───────────write or read────────────┴───────────┘
 *
 * Bytes of a unit that were not written are those of the base, as far as they count.
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
#include "hdfs/namenode.h"
#include "hdfs/stripe.h"
#include "hdfs/targets.h"
#include "hdfs/writerpriv.h"

/* --- errors ---------------------------------------------------------------------------------- */

int bs_writer_fail(struct bs_writer *w, int code, const char *text)
{
	(void)pthread_mutex_lock(&w->lock);
	if (!w->error) {
		w->error = code;
		(void)snprintf(w->text, sizeof(w->text), "%.250s", text);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return code;
}

int bs_writer_error(struct bs_writer *w, struct bs_error *err)
{
	int r;

	(void)pthread_mutex_lock(&w->lock);
	r = w->error;
	if (r < 0)
		(void)bs_fail(err, r, "HDFS '%s': %s", w->path, w->text);
	(void)pthread_mutex_unlock(&w->lock);
	return r;
}

/* --- units ----------------------------------------------------------------------------------- */

/* Where u is, or would be. */
static size_t place_of(const struct bs_writer *w, uint64_t u)
{
	size_t low = 0, high = w->n_recs;

	if (high && w->recs[high - 1]->u < u)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->recs[mid]->u < u)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct bs_wrec *bs_writer_rec(struct bs_writer *w, uint64_t u, bool make)
{
	size_t at = place_of(w, u);
	struct bs_wrec *rec;

	if (at < w->n_recs && w->recs[at]->u == u)
		return w->recs[at];
	if (!make || bs_grow(&w->recs, &w->cap_recs, w->n_recs + 1, sizeof(struct bs_wrec *)) < 0)
		return NULL;
	rec = calloc(1, sizeof(*rec));
	if (!rec)
		return NULL;
	rec->u = u;
	memmove(&w->recs[at + 1], &w->recs[at], (w->n_recs - at) * sizeof(struct bs_wrec *));
	w->recs[at] = rec;
	w->n_recs++;
	return rec;
}

void bs_writer_drop_recs(struct bs_writer *w, uint64_t from)
{
	size_t at = place_of(w, from);

	for (size_t i = at; i < w->n_recs; i++) {
		struct bs_wrec *rec = w->recs[i];

		(void)pthread_mutex_lock(&w->lock);
		if (rec->sent)
			rec->sent->rec = NULL;
		(void)pthread_mutex_unlock(&w->lock);
		bs_writer_drop_page(w, &rec->page);
		free(rec);
	}
	w->n_recs = at;
}

char *bs_writer_part_name(const struct bs_wrec *rec)
{
	return bs_strf("part-%" PRIu64 "-%u.%u", rec->u, rec->version, rec->attempt);
}

/* --- writing --------------------------------------------------------------------------------- */

static void take_bytes(struct bs_page *p, const void *buf, uint32_t n, uint32_t at)
{
	if (p->whole && at > p->hi)
		memset(p->buf + p->hi, 0, at - p->hi);
	memcpy(p->buf + at, buf, n);
	if (!p->whole && p->lo == p->hi)
		p->lo = p->hi = at;
	p->lo = BS_MIN(p->lo, at);
	p->hi = BS_MAX(p->hi, at + n);
	p->dirty = true;
}

static int write_unit(struct bs_writer *w, uint64_t u, const void *buf, uint32_t n, uint32_t at,
		      struct bs_error *err)
{
	struct bs_wrec *rec = bs_writer_rec(w, u, true);
	struct bs_page *p;
	uint32_t old = 0;
	int r;

	if (!rec)
		return bs_ckpt_no_memory(err);
	p = &rec->page;
	r = bs_writer_before(w, rec, NULL, &old, err);
	if (r < 0)
		return r;
	if (!p->buf)
		p->whole = old == 0;
	if (!p->whole && p->lo != p->hi && (at > p->hi || at + n < p->lo))
		r = bs_writer_fault_in(w, rec, false, err);
	if (r == 0)
		r = bs_writer_grow(w, rec, at + n, false, err);
	if (r < 0)
		return r;
	take_bytes(p, buf, n, at);
	if (!p->whole && p->lo == 0 && p->hi >= old)
		p->whole = true;
	(void)pthread_mutex_lock(&w->lock);
	w->size = BS_MAX(w->size, u * w->unit + at + n);
	w->dirty = true;
	w->mtime_ms = bs_clock_wall_ns() / BS_NS_PER_MS;
	(void)pthread_mutex_unlock(&w->lock);
	return p->whole && p->hi == w->unit ? bs_writer_submit(w, rec, err) : 0;
}

int bs_writer_write(struct bs_writer *w, const void *buf, size_t len, uint64_t off,
		    struct bs_error *err)
{
	size_t done = 0;
	int r;

	(void)pthread_mutex_lock(&w->io);
	r = bs_writer_error(w, err);
	if (r == 0)
		r = bs_writer_base(w, err);
	if (off == BS_CKPT_END)
		off = w->size;
	if (r == 0 && (off > BS_CKPT_SIZE_MAX || len > BS_CKPT_SIZE_MAX - off))
		r = bs_fail(err, -EFBIG, "'%s': longer than a file may be", w->path);
	while (r == 0 && done < len) {
		uint32_t at = (uint32_t)((off + done) % w->unit);
		uint32_t n = (uint32_t)BS_MIN(len - done, (size_t)(w->unit - at));

		r = write_unit(w, (off + done) / w->unit, (const char *)buf + done, n, at, err);
		done += n;
	}
	(void)pthread_mutex_unlock(&w->io);
	bs_ckpt_count(&w->c->stats.written, r == 0 ? len : 0);
	return r;
}

/* Of the unit in which the file ends now, what is behind its end is gone. */
static int cut_unit(struct bs_writer *w, uint64_t len, struct bs_error *err)
{
	uint32_t at = (uint32_t)(len % w->unit);
	struct bs_wrec *rec = at ? bs_writer_rec(w, len / w->unit, false) : NULL;
	struct bs_page *p;
	int r = 0;

	if (!rec)
		return 0;
	p = &rec->page;
	if (!p->buf || rec->version)
		r = bs_writer_fault_in(w, rec, false, err);
	if (r < 0)
		return r;
	p->hi = BS_MIN(p->hi, at);
	p->lo = BS_MIN(p->lo, p->hi);
	p->dirty = true;
	return 0;
}

int bs_writer_truncate(struct bs_writer *w, uint64_t len, struct bs_error *err)
{
	int r;

	(void)pthread_mutex_lock(&w->io);
	r = bs_writer_error(w, err);
	if (r == 0)
		r = bs_writer_base(w, err);
	if (r == 0 && len > BS_CKPT_SIZE_MAX)
		r = bs_fail(err, -EFBIG, "'%s': longer than a file may be", w->path);
	if (r == 0 && len < w->size) {
		bs_writer_drop_recs(w, bs_stripe_units(len, w->unit));
		w->base_size = BS_MIN(w->base_size, len);
		r = cut_unit(w, len, err);
	}
	if (r == 0) {
		(void)pthread_mutex_lock(&w->lock);
		w->dirty = w->dirty || w->size != len;
		w->size = len;
		w->mtime_ms = bs_clock_wall_ns() / BS_NS_PER_MS;
		(void)pthread_mutex_unlock(&w->lock);
	}
	(void)pthread_mutex_unlock(&w->io);
	return r;
}

/* --- reading --------------------------------------------------------------------------------- */

int bs_writer_copy(struct bs_writer *w, uint64_t u, char *to, uint32_t n, uint32_t at,
		   struct bs_error *err)
{
	struct bs_wrec *rec = bs_writer_rec(w, u, false);
	struct bs_page *p = rec ? &rec->page : NULL;
	uint32_t there;
	ssize_t got = 0;
	int r;

	if (!rec) {
		there = bs_stripe_unit_len(w->base_size, w->unit, u);
		there = there > at ? BS_MIN(there - at, n) : 0;
		if (there)
			got = bs_view_pread(w->base, to, there, u * w->unit + at, err);
		if (got < 0)
			return (int)got;
		memset(to + got, 0, n - (size_t)got);
		return 0;
	}
	if (!p->buf || (!p->whole && (at < p->lo || at + n > p->hi))) {
		r = bs_writer_fault_in(w, rec, false, err);
		if (r < 0)
			return r;
	}
	there = p->hi > at ? BS_MIN(p->hi - at, n) : 0;
	memcpy(to, p->buf + at, there);
	memset(to + there, 0, n - there);
	return 0;
}

ssize_t bs_writer_pread(struct bs_writer *w, void *buf, size_t len, uint64_t off,
			struct bs_error *err)
{
	size_t done = 0;
	int r;

	(void)pthread_mutex_lock(&w->io);
	r = bs_writer_base(w, err);
	len = off < w->size ? (size_t)BS_MIN((uint64_t)len, w->size - off) : 0;
	while (r == 0 && done < len) {
		uint32_t at = (uint32_t)((off + done) % w->unit);
		uint32_t n = (uint32_t)BS_MIN(len - done, (size_t)(w->unit - at));

		r = bs_writer_copy(w, (off + done) / w->unit, (char *)buf + done, n, at, err);
		done += n;
	}
	(void)pthread_mutex_unlock(&w->io);
	return r < 0 ? r : (ssize_t)len;
}

struct bs_view *bs_writer_clean_view(struct bs_writer *w, bool wait)
{
	struct bs_view *v = NULL;

	if ((wait ? pthread_mutex_lock(&w->io) : pthread_mutex_trylock(&w->io)) != 0)
		return NULL;
	if (wait)
		(void)bs_writer_base(w, NULL);
	if (!w->dirty && !w->fresh)
		v = bs_view_ref(w->base);
	(void)pthread_mutex_unlock(&w->io);
	return v;
}

/* --- making and ending ----------------------------------------------------------------------- */

static int set_up(struct bs_writer *w, struct bs_view *view, unsigned int flags, uint32_t mode)
{
	const struct bs_stripes *s = view ? bs_view_stripes(view) : NULL;
	int r = bs_ckpt_new_id(w->id);

	if (r == 0)
		r = bs_ckpt_new_id(w->writer_id);
	if (r < 0)
		return r;
	w->unit = s ? s->unit : w->c->o.unit;
	w->mode = view ? bs_view_status(view)->mode & 0777 : mode & 0777;
	w->fresh = !view || flags & BS_CKPT_TRUNC;
	w->excl = !view && flags & BS_CKPT_EXCL;
	w->base_size = w->size = w->fresh ? 0 : bs_view_size(view);
	w->base_id = w->fresh ? 0 : bs_view_status(view)->file_id;
	w->dirty = !view || (flags & BS_CKPT_TRUNC && bs_view_size(view));
	w->mtime_ms = w->dirty ? bs_clock_wall_ns() / BS_NS_PER_MS : bs_view_status(view)->mtime_ms;
	w->first = (unsigned int)(w->id[0] ^ w->id[1] << 4 ^ w->id[2] << 8) & 0xffff;
	return 0;
}

int bs_writer_new(struct bs_ckpt *c, const char *path, struct bs_view *view, unsigned int flags,
		  uint32_t mode, struct bs_writer **ret, struct bs_error *err)
{
	struct bs_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return bs_ckpt_no_memory(err);
	(void)pthread_mutex_init(&w->io, NULL);
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->changed, NULL);
	bs_list_init(&w->link);
	bs_list_init(&w->to_read);
	w->refs = 1;
	w->c = c;
	w->path = bs_strf("%s", path);
	r = w->path ? set_up(w, view, flags, mode) : -ENOMEM;
	if (r < 0) {
		(void)bs_writer_unref(w);
		return bs_fail_errno(err, r, "HDFS '%s'", path);
	}
	w->base = view;
	*ret = w;
	return 0;
}

struct bs_writer *bs_writer_ref(struct bs_writer *w)
{
	(void)__atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED);
	return w;
}

struct bs_writer *bs_writer_unref(struct bs_writer *w)
{
	bs_autofree char *segment = NULL;

	if (!w || __atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	(void)bs_writer_drain(w, NULL);
	bs_writer_drop_recs(w, 0);
	if (w->segment_dir) { /* of what was never committed; else garbage collection does it */
		segment = bs_ckpt_hidden(w->segment_dir, w->id, NULL);
		if (segment)
			(void)bs_nn_delete(w->c->o.nn, segment, true, NULL);
	}
	(void)bs_view_unref(w->base);
	free(w->recs);
	free(w->segment_dir);
	free(w->path);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	(void)pthread_mutex_destroy(&w->io);
	free(w);
	return NULL;
}

uint64_t bs_writer_size(struct bs_writer *w)
{
	uint64_t size;

	(void)pthread_mutex_lock(&w->lock);
	size = w->size;
	(void)pthread_mutex_unlock(&w->lock);
	return size;
}

uint32_t bs_writer_unit(const struct bs_writer *w)
{
	return w->unit;
}

int bs_writer_sync_locked(struct bs_writer *w, struct bs_error *err)
{
	int r = bs_writer_error(w, err);

	return r == 0 && w->dirty && !w->unlinked ? bs_writer_commit(w, err) : r;
}

int bs_writer_sync(struct bs_writer *w, struct bs_error *err)
{
	int r;

	(void)pthread_mutex_lock(&w->io);
	r = bs_writer_sync_locked(w, err);
	(void)pthread_mutex_unlock(&w->io);
	return r;
}

void bs_writer_set_base(struct bs_writer *w, struct bs_view *v)
{
	struct bs_view *old;

	(void)pthread_mutex_lock(&w->lock);
	old = w->base;
	w->base = v;
	(void)pthread_mutex_unlock(&w->lock);
	(void)bs_view_unref(old);
}

int bs_writer_tell(struct bs_writer *w, struct bs_hdfs_status *ret)
{
	static const struct bs_hdfs_status none = { .type = BS_HDFS_FILE };
	bs_auto(view) struct bs_view *base = NULL;
	uint64_t size, mtime_ms, id;
	uint32_t mode;
	bool newer;
	int r;

	(void)pthread_mutex_lock(&w->lock); /* not io, which who commits has for long */
	base = bs_view_ref(w->base);
	size = w->size;
	mtime_ms = w->mtime_ms;
	mode = w->mode;
	id = w->base_id;
	newer = w->dirty || w->fresh;
	(void)pthread_mutex_unlock(&w->lock);
	r = base ? bs_view_tell(base, ret) : bs_ckpt_copy_status(&none, ret);
	if (r < 0)
		return r;
	if (!base) {
		ret->file_id = id;
		ret->mtime_ms = ret->atime_ms = mtime_ms;
	}
	ret->mode = mode;
	ret->len = size;
	ret->block_size = w->unit;
	if (newer)
		ret->mtime_ms = ret->atime_ms = mtime_ms;
	return 0;
}

void bs_writer_beat(struct bs_writer *w)
{
	bs_autofree char *segment = NULL;

	(void)pthread_mutex_lock(&w->io);
	segment = w->segment_dir ? bs_ckpt_hidden(w->segment_dir, w->id, NULL) : NULL;
	if (segment)
		bs_ckpt_beat(w->c, segment);
	(void)pthread_mutex_unlock(&w->io);
}
