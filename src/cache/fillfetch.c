/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What becomes of a fetch: its units are proven and stored, or it is tried again, at other
 * sources, or given up.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "cache/fillpriv.h"

#define BAD_ROUNDS 3u /* every source wrong so often: give up */
#define PAUSE_MIN_NS (50 * BS_NS_PER_MS)
#define PAUSE_MAX_NS (5 * BS_NS_PER_S)
#define PAUSE_ASKED_MAX_NS (60 * BS_NS_PER_S) /* a server may ask for so much */

static void submit_job(struct job *j, struct unpacker *un)
{
	j->run = bs_fill_fetch_ended;
	bs_fill_submit(BS_CONTAINER_OF(j, struct fetch, job));
}

/* Not on the loop's own thread: it may end on the spot. */
static void submit_later(void *cookie)
{
	struct fetch *fe = cookie;

	fe->job.run = submit_job;
	bs_fill_enqueue(fe->fill, fe->lane, &fe->job);
}

/* --- failures --------------------------------------------------------------------------------- */

static void report(struct bs_fill *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void report(struct bs_fill *f, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!f->o.event)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f->o.event(f->o.event_cookie, text);
}

uint64_t bs_fill_pause_ns(unsigned int rounds, uint64_t asked_ns)
{
	uint64_t ns = PAUSE_MIN_NS << BS_MIN(rounds, 10u), jitter = 0;

	ns = BS_MIN(ns, PAUSE_MAX_NS);
	(void)!getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK);
	ns = ns / 2 + jitter % (ns / 2 + 1);
	asked_ns = BS_MIN(asked_ns, PAUSE_ASKED_MAX_NS);
	return BS_MAX(ns, asked_ns);
}

/*
 * When the last waiter of the fetch's units gives up; 0: nobody waits, and what nobody
 * else brings has no flight any longer. One that may be wrong everywhere is worth finding
 * out.
 */
static uint64_t last_deadline(struct bs_fill *f, const struct fetch *fe)
{
	uint64_t last = 0;

	(void)pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; i < fe->n; i++) {
		struct flight *fl = bs_fill_flight(f, fe->blob, fe->first + i, false);

		if (!fl || (fl->by && bs_list_empty(&fl->waiters)))
			continue;
		bs_list_for_each(it, &fl->waiters)
			last = BS_MAX(last, bs_list_entry(it, struct waiter, in_flight)
						    ->read->deadline_ns);
		if (!bs_list_empty(&fl->waiters))
			continue;
		if (fe->only_bad) {
			last = UINT64_MAX;
		} else {
			(void)bs_map_remove(&f->flights, &fl->key, sizeof(fl->key));
			free(fl);
		}
	}
	(void)pthread_mutex_unlock(&f->lock);
	return last;
}

/* What was wrong with the last answer. */
static const char *why(const struct fetch *fe)
{
	return fe->range.result < 0 && fe->range.text[0] ? fe->range.text : "wrong bytes";
}

static void give_up(struct bs_fill *f, struct fetch *fe, const char *what)
{
	size_t n_sources;
	struct bs_repo *r = bs_origin_pick(fe->origin, fe->source, &n_sources);

	report(f, "read of units %u-%u failed: %s (last source '%s', %zu known): %s", fe->first,
	       fe->first + fe->n - 1, what, r ? r->name : "none", n_sources, why(fe));
	(void)bs_repo_unref(r);
	for (uint32_t i = 0; i < fe->n; i++)
		bs_fill_land(f, fe->blob, fe->first + i, NULL, -EIO);
	(void)bs_fill_fetch_free(fe);
}

/*
 * The next source; after the last one a pause, unless nobody waits any longer. Bytes that
 * came whole and are wrong are the source's fault; anything else, a cut body too, may be
 * the way's, and is tried until it works.
 */
static void try_again(struct bs_fill *f, struct fetch *fe, bool is_wrong)
{
	uint64_t now = bs_clock_ns(), deadline;
	size_t n_sources;

	COUNT(f, retries, 1);
	(void)bs_repo_unref(bs_origin_pick(fe->origin, fe->source, &n_sources));
	fe->source++;
	fe->tried++;
	fe->range.fresh = true;
	if (!is_wrong)
		fe->only_bad = false;
	if (fe->tried < n_sources) {
		bs_fill_submit(fe);
		return;
	}
	if (fe->only_bad && ++fe->bad_rounds == BAD_ROUNDS) {
		bs_origin_wrong(fe->origin, fe->first, f->o.wrong_wait_ns);
		give_up(f, fe, "every source gives wrong bytes");
		return;
	}
	deadline = last_deadline(f, fe);
	if (deadline == 0) { /* another fetch was quicker, or it was for nobody */
		(void)bs_fill_fetch_free(fe);
		return;
	}
	if (deadline <= now) {
		give_up(f, fe, "no source answered in time");
		return;
	}
	if (fe->rounds == 0)
		report(f, "no source answers a read rightly, trying again: %s", why(fe));
	fe->tried = 0;
	fe->only_bad = true;
	if (bs_loop_after(f->o.loop, bs_fill_pause_ns(fe->rounds++, fe->range.retry_after_ns),
			  submit_later, fe) < 0)
		give_up(f, fe, "out of memory");
}

/*
 * A range of another lane failed: units that nobody waits for are forgotten; the others
 * go on, each run of them as a demand fetch of its own.
 */
static void drop_or_promote(struct bs_fill *f, struct fetch *fe)
{
	for (uint32_t i = 0; i < fe->n; i++) {
		struct fetch *own = NULL;
		struct flight *fl;

		(void)pthread_mutex_lock(&f->lock);
		fl = bs_fill_flight(f, fe->blob, fe->first + i, false);
		if (fl && fl->by != fe) {
			fl = NULL; /* a demand fetch brings it */
		} else if (fl && !bs_list_empty(&fl->waiters)) {
			fl->by = NULL;
		} else if (fl) {
			(void)bs_map_remove(&f->flights, &fl->key, sizeof(fl->key));
			free(fl);
			fl = NULL;
		}
		(void)pthread_mutex_unlock(&f->lock);
		if (!fl)
			continue;
		own = bs_fill_fetch_new(f, fe->blob, fe->origin, fe->first + i, 1, BS_LANE_DEMAND);
		if (!own) {
			bs_fill_land(f, fe->blob, fe->first + i, NULL, -ENOMEM);
			continue;
		}
		own->source = fe->source;
		own->range.retry_after_ns = fe->range.retry_after_ns;
		own->range.result = fe->range.result;
		(void)snprintf(own->range.text, sizeof(own->range.text), "%s", fe->range.text);
		if (fe->around) {
			try_again(f, own, false);
			continue;
		}
		own->source++;
		bs_fill_submit(own);
	}
	if (fe->completion)
		bs_completion_range_ended(fe->completion, true, 0);
	(void)bs_fill_fetch_free(fe);
}

/* --- what came of it --------------------------------------------------------------------------- */

/* What the disk says of it (1: it was there); readers are answered anyway. */
static int store(struct bs_fill *f, struct bs_blob *b, uint32_t unit, const void *bytes)
{
	int r = bs_blob_store(b, unit, bytes);

	if (r < 0)
		COUNT(f, unstored_units, 1);
	return r;
}

static void count_fetched(struct bs_fill *f, struct bs_blob *b, uint32_t bytes)
{
	COUNT(f, fetched_units, 1);
	COUNT(f, fetched_bytes, bytes);
	if (f->o.fetched)
		f->o.fetched(f->o.fetched_cookie, b, bytes);
}

/* A unit of a range came wrong: unless another fetch brings it, it goes on alone. */
static void go_on_alone(struct bs_fill *f, struct fetch *fe, uint32_t unit)
{
	struct fetch *own;
	struct flight *fl;

	(void)pthread_mutex_lock(&f->lock);
	fl = bs_fill_flight(f, fe->blob, unit, false);
	if (fl && (fe->lane != BS_LANE_DEMAND || fe->around) && fl->by != fe)
		fl = NULL;
	if (fl)
		fl->by = NULL;
	(void)pthread_mutex_unlock(&f->lock);
	if (!fl)
		return;
	own = bs_fill_fetch_new(f, fe->blob, fe->origin, unit, 1, BS_LANE_DEMAND);
	if (!own) {
		bs_fill_land(f, fe->blob, unit, NULL, -ENOMEM);
		return;
	}
	own->source = fe->source;
	try_again(f, own, true);
}

int bs_fill_keep(struct bs_fill *f, struct bs_blob *b, uint32_t unit, const void *bytes,
		 uint32_t data_len)
{
	int r = store(f, b, unit, bytes);

	if (r <= 0) /* else another fetch brought it while we proved it */
		count_fetched(f, b, data_len);
	return r;
}

/* One unit of a range from its data: false when that is wrong. */
static bool unpack_unit(struct bs_fill *f, struct unpacker *un, struct fetch *fe, uint32_t unit,
			const struct bs_unit *u)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(fe->blob);
	const char *data = (const char *)fe->range.buf + (u->data_off - fe->range.off);
	int r;

	/* another fetch was quicker; a waiter may have come since */
	if (bs_blob_has(fe->blob, unit) &&
	    bs_blob_read_range(fe->blob, u->blob_off, un->bytes, u->blob_len) == 0) {
		bs_fill_land(f, fe->blob, unit, un->bytes, 0);
		return true;
	}
	if (g->ops->decode(g->cookie, un->scratch, unit, data, un->bytes) < 0)
		return false;
	r = bs_fill_keep(f, fe->blob, unit, un->bytes, u->data_len);
	if (r < 0)
		fe->store_error = r;
	bs_origin_right(fe->origin, unit, fe->source);
	bs_fill_land(f, fe->blob, unit, un->bytes, 0);
	return true;
}

static bool is_taken(const struct fetch *fe, uint32_t i)
{
	return fe->around && fe->taken >> i & 1;
}

/*
 * The units of a range that came, or of its part that did: how many. Those that are wrong
 * go on alone, but for the only one of a demand range: ret_wrong is then the fetch's own.
 */
static uint32_t unpack_range(struct bs_fill *f, struct unpacker *un, struct fetch *fe,
			     bool *ret_wrong)
{
	for (uint32_t i = 0; i < fe->n; i++) {
		uint32_t unit = fe->first + i;
		struct bs_unit u;

		if (is_taken(fe, i))
			continue;
		bs_fill_unit(fe->blob, unit, &u);
		if (u.data_off + u.data_len > fe->range.off + fe->range.got)
			return i;
		if (unpack_unit(f, un, fe, unit, &u))
			continue;
		COUNT(f, bad_units, 1);
		report(f, "unit %u came with wrong bytes, refused", unit);
		*ret_wrong = true;
		bs_origin_failed(fe->origin, fe->source);
		if (fe->lane != BS_LANE_DEMAND || fe->n > 1)
			go_on_alone(f, fe, unit);
	}
	return fe->n;
}

bool bs_fill_store(struct bs_fill *f, struct bs_blob *b, uint32_t unit, struct unpacker *un)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);

	if (g->ops->verify(g->cookie, un->scratch, unit, un->bytes) < 0)
		return false;
	COUNT(f, copied_units, 1);
	(void)store(f, b, unit, un->bytes);
	bs_fill_land(f, b, unit, un->bytes, 0);
	return true;
}

/* Bytes of an equal unit of another image; anything wrong with it: over the network. */
static void unpack_local(struct bs_fill *f, struct unpacker *un, struct fetch *fe)
{
	struct bs_unit u;

	bs_fill_unit(fe->other, fe->other_unit, &u);
	if (bs_blob_read_range(fe->other, u.blob_off, un->bytes, u.blob_len) == 0 &&
	    bs_fill_store(f, fe->blob, fe->first, un)) {
		(void)bs_fill_fetch_free(fe);
		return;
	}
	fe->local = false;
	bs_fill_submit(fe);
}

/* The first units of a range that broke off are there: only the others are asked for again. */
static void shorten(struct fetch *fe, uint32_t n)
{
	struct bs_unit u;

	bs_fill_unit(fe->blob, fe->first + n, &u);
	fe->range.len -= u.data_off - fe->range.off;
	fe->range.off = u.data_off;
	fe->first += n;
	fe->n -= n;
}

static void learn_own(struct bs_fill *f, const struct fetch *fe)
{
	(void)pthread_mutex_lock(&f->lock);
	bs_fill_own_fetch(f, fe->blob, fe->range.ended_ns - fe->range.asked_ns);
	(void)pthread_mutex_unlock(&f->lock);
}

void bs_fill_fetch_ended(struct job *j, struct unpacker *un)
{
	struct fetch *fe = BS_CONTAINER_OF(j, struct fetch, job);
	struct bs_fill *f = fe->fill;
	bool is_wrong = false;
	uint64_t none = 0;
	uint32_t n;

	if (fe->local) {
		unpack_local(f, un, fe);
		return;
	}
	if (fe->range.result == 0) {
		(void)atomic_compare_exchange_strong(&f->stats.first_frame_ns, &none,
						     fe->range.ended_ns);
		atomic_store(&f->stats.last_frame_ns, fe->range.ended_ns);
		bs_fill_ahead_learn(fe);
		if (fe->lane == BS_LANE_DEMAND && fe->range.ended_ns > fe->range.asked_ns)
			learn_own(f, fe);
		__atomic_store_n(&fe->range.got, fe->range.len, __ATOMIC_RELAXED);
	}
	n = unpack_range(f, un, fe, &is_wrong);
	if (is_wrong && fe->lane == BS_LANE_DEMAND && fe->n == 1) {
		try_again(f, fe, true);
		return;
	}
	if (n == fe->n) {
		if (fe->completion)
			bs_completion_range_ended(fe->completion, false, fe->store_error);
		(void)bs_fill_fetch_free(fe);
		return;
	}
	bs_origin_failed(fe->origin, fe->source);
	if (fe->lane != BS_LANE_DEMAND || fe->around) {
		drop_or_promote(f, fe);
	} else {
		shorten(fe, n);
		try_again(f, fe, false);
	}
}

/* --- while it comes --------------------------------------------------------------------------- */

/* The first of some units of the fetch that is here and not taken, else end. Lock held. */
static uint32_t next_of(const struct fetch *fe, uint32_t from, uint32_t end)
{
	const uint64_t got = __atomic_load_n(&fe->range.got, __ATOMIC_ACQUIRE);
	struct bs_unit u;

	for (uint32_t i = from; i < end; i++) {
		if (is_taken(fe, i))
			continue;
		bs_fill_unit(fe->blob, fe->first + i, &u);
		return u.data_off + u.data_len <= fe->range.off + got ? i : end;
	}
	return end;
}

/* The unit to take next, counted from the first; fe->n: there is none now. Lock held. */
static uint32_t next_unit(const struct fetch *fe)
{
	const uint32_t end = fe->wanted + fe->n_wanted;
	uint32_t i = next_of(fe, fe->wanted, end);

	return i < end ? i : next_of(fe, 0, fe->n);
}

/*
 * One unit of a range that still comes. When it is wrong, it is looked at again at the end:
 * it may have been written anew just now.
 */
static void take_early(struct job *j, struct unpacker *un)
{
	struct fetch *fe = BS_CONTAINER_OF(j, struct fetch, job);
	struct bs_fill *f = fe->fill;
	struct bs_unit u;
	bool right = true;
	uint32_t i;

	(void)pthread_mutex_lock(&f->lock);
	i = next_unit(fe);
	(void)pthread_mutex_unlock(&f->lock);
	if (i < fe->n) {
		bs_fill_unit(fe->blob, fe->first + i, &u);
		right = unpack_unit(f, un, fe, fe->first + i, &u);
	}
	(void)pthread_mutex_lock(&f->lock);
	if (i < fe->n && right)
		fe->taken |= UINT64_C(1) << i;
	fe->in_doubt |= !right;
	fe->early = !fe->in_doubt && next_unit(fe) < fe->n;
	if (!fe->early)
		j->run = bs_fill_fetch_ended;
	if (fe->early || fe->ended) { /* others' first, between two */
		bs_list_append(&f->queue[fe->lane], &j->queued);
		(void)pthread_cond_signal(&f->work);
	}
	(void)pthread_mutex_unlock(&f->lock); /* it may not be ours any more */
}

void bs_fill_fetch_progress(struct bs_range *rg)
{
	struct fetch *fe = rg->cookie;
	struct bs_fill *f = fe->fill;

	(void)pthread_mutex_lock(&f->lock);
	if (!fe->early && !fe->in_doubt && next_unit(fe) < fe->n) {
		fe->early = true;
		fe->job.run = take_early;
		bs_list_append(&f->queue[fe->lane], &fe->job.queued);
		(void)pthread_cond_signal(&f->work);
	}
	(void)pthread_mutex_unlock(&f->lock);
}

void bs_fill_fetch_done(struct bs_range *rg)
{
	struct fetch *fe = rg->cookie;
	struct bs_fill *f = fe->fill;

	(void)pthread_mutex_lock(&f->lock);
	fe->ended = true;
	if (!fe->early) {
		bs_list_append(&f->queue[fe->lane], &fe->job.queued);
		(void)pthread_cond_signal(&f->work);
	}
	(void)pthread_mutex_unlock(&f->lock);
}
