/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/latch.h"
#include "cache/fillpriv.h"

#define DEMAND_DATA_MAX (1u << 20) /* bytes of one demand range */

/* What one read still needs, found out under the lock. */
struct need {
	uint32_t unit;
	bool fetch; /* nobody brings it yet, or not soon */
	bool there; /* it came in between */
};

struct piece bs_fill_piece(const struct bs_read *rd, uint32_t unit)
{
	uint64_t from, to;
	struct bs_unit u;

	bs_fill_unit(rd->blob, unit, &u);
	from = BS_MAX(rd->off, u.blob_off);
	to = BS_MIN(rd->off + rd->len, u.blob_off + u.blob_len);
	return (struct piece){ from, (uint32_t)(to - from), (char *)rd->buf + (from - rd->off) };
}

static bool read_cached(struct bs_read *rd, uint32_t unit, void *scratch, void *unit_buf)
{
	struct piece p = bs_fill_piece(rd, unit);

	if (bs_blob_read_range(rd->blob, p.off, p.buf, p.len) == 0)
		return true;
	/* it may be there, but has to be proven first */
	return bs_blob_check(rd->blob, unit, scratch, unit_buf) &&
	       bs_blob_read_range(rd->blob, p.off, p.buf, p.len) == 0;
}

/*
 * Whether a range of another lane is so far on its way that waiting for it is nearer.
 * One of the background is long, and shares the link with its like: half of it must be here.
 */
static bool is_near(const struct fetch *by)
{
	if (by && by->lane == BS_LANE_DEMAND)
		return true;
	if (by && by->lane == BS_LANE_BACKGROUND)
		return __atomic_load_n(&by->range.got, __ATOMIC_RELAXED) >= by->range.len / 2;
	return !by || bs_fill_has_begun(&by->range);
}

/*
 * Lets the waiter wait for the unit: 1 when it needs a fetch, 0 when something is on its
 * way, -ENOMEM. Lock held.
 */
static int join(struct bs_fill *f, struct waiter *w, uint32_t unit)
{
	const struct piece p = bs_fill_piece(w->read, unit);
	struct bs_blob *b = w->read->blob;
	struct flight *fl = bs_fill_flight(f, b, unit, false);
	bool fetch, coming;

	if (fl) {
		COUNT(f, joined, 1);
		coming = fl->coming && bs_fill_is_coming(f, b, p.off, p.len);
		fetch = fl->coming ? !coming : !is_near(fl->by);
		if (fetch)
			fl->by = NULL;
	} else {
		fl = bs_fill_flight(f, b, unit, true);
		if (!fl)
			return -ENOMEM;
		coming = bs_fill_is_coming(f, b, p.off, p.len);
		fetch = !coming;
	}
	fl->coming = coming;
	if (coming)
		COUNT(f, stream_waits, 1);
	bs_list_append(&fl->waiters, &w->in_flight);
	return fetch;
}

/* Joins or makes the flight of each needed unit. Returns how many waiters were set up. */
static unsigned int join_flights(struct bs_fill *f, struct bs_read *rd, struct need *needs,
				 uint32_t n)
{
	struct waiter *waiters = rd->waiters;
	unsigned int joined = 0;

	(void)pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; i < n; i++) {
		struct piece p = bs_fill_piece(rd, needs[i].unit);
		int r;

		needs[i].there = bs_blob_has_range(rd->blob, p.off, p.len);
		if (needs[i].there)
			continue;
		waiters[joined].read = rd;
		r = join(f, &waiters[joined], needs[i].unit);
		if (r < 0) {
			__atomic_store_n(&rd->result, r, __ATOMIC_RELAXED);
			continue;
		}
		needs[i].fetch = r;
		joined++;
	}
	(void)pthread_mutex_unlock(&f->lock);
	return joined;
}

void bs_fill_wait(struct bs_fill *f, struct waiter *w, uint32_t unit)
{
	struct bs_read *rd = w->read;
	struct fetch *fe = NULL;
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = join(f, w, unit);
	if (r > 0)
		fe = bs_fill_fetch_new(f, rd->blob, rd->origin, unit, 1, BS_LANE_DEMAND);
	(void)pthread_mutex_unlock(&f->lock);
	if (fe)
		bs_fill_submit(fe);
	else if (r > 0)
		bs_fill_land(f, rd->blob, unit, NULL, -ENOMEM);
	else if (r < 0)
		bs_fill_read_part(f, rd, 1, r);
}

static bool start_local(struct bs_fill *f, struct bs_read *rd, uint32_t unit, void *scratch,
			void *unit_buf)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(rd->blob);
	struct bs_blob *other;
	struct fetch *fe;
	uint32_t i;

	if (!g->ops->alias || !g->ops->alias(g->cookie, unit, &other, &i) ||
	    !bs_blob_check(other, i, scratch, unit_buf))
		return false;
	fe = bs_fill_fetch_new(f, rd->blob, rd->origin, unit, 1, BS_LANE_DEMAND);
	if (!fe)
		return false;
	fe->local = true;
	fe->other = other;
	fe->other_unit = i;
	bs_fill_submit(fe);
	return true;
}

/* Sends the fetches of a read: neighbours together, as far as DEMAND_DATA_MAX goes. */
static void start_fetches(struct bs_fill *f, struct bs_read *rd, struct need *needs, uint32_t n,
			  bool around, void *scratch, void *unit_buf)
{
	uint32_t i = 0;

	while (i < n) {
		uint32_t first = needs[i].unit, count = 1;
		struct bs_unit u;
		struct fetch *fe;
		uint64_t bytes;

		if (!needs[i].fetch || start_local(f, rd, first, scratch, unit_buf)) {
			i++;
			continue;
		}
		bs_fill_unit(rd->blob, first, &u);
		bytes = u.data_len;
		for (i++; i < n && needs[i].fetch && needs[i].unit == first + count; i++, count++) {
			bs_fill_unit(rd->blob, needs[i].unit, &u);
			bytes += u.data_len;
			if (bytes > DEMAND_DATA_MAX)
				break;
		}
		fe = bs_fill_fetch_around(f, rd->blob, rd->origin, first, count, around);
		if (fe) {
			bs_fill_submit(fe);
			continue;
		}
		for (uint32_t k = 0; k < count; k++)
			bs_fill_land(f, rd->blob, first + k, NULL, -ENOMEM);
	}
}

/* What came between the first look and the second; who cannot read it after all waits. */
static void read_there(struct bs_fill *f, struct bs_read *rd, const struct need *needs, uint32_t n,
		       unsigned int joined)
{
	struct waiter *waiters = rd->waiters;

	for (uint32_t i = 0; i < n; i++) {
		struct piece p = bs_fill_piece(rd, needs[i].unit);

		if (!needs[i].there)
			continue;
		if (bs_blob_read_range(rd->blob, p.off, p.buf, p.len) == 0) {
			bs_fill_read_part(f, rd, 1, 0);
			continue;
		}
		waiters[joined].read = rd;
		bs_fill_wait(f, &waiters[joined++], needs[i].unit);
	}
}

/* The slow part of a read: n units from first on, of which some are not there. */
static void read_missing(struct bs_fill *f, struct bs_read *rd, uint32_t first, uint32_t n,
			 bool around, void *scratch, void *unit_buf)
{
	bs_autofree struct need *needs = calloc(n, sizeof(*needs));
	uint32_t n_needs = 0, n_there = 0, n_wrong = 0;
	unsigned int joined;

	rd->waiters = calloc(n, sizeof(struct waiter));
	if (!needs || !rd->waiters) {
		bs_fill_read_part(f, rd, rd->pending, -ENOMEM);
		return;
	}
	for (uint32_t i = first; i < first + n; i++) {
		if (read_cached(rd, i, scratch, unit_buf))
			continue;
		if (bs_origin_is_wrong(rd->origin, i))
			n_wrong++;
		else
			needs[n_needs++].unit = i;
	}
	COUNT(f, misses, n_needs + n_wrong);
	COUNT(f, hits, n - n_needs - n_wrong);
	if (n_wrong)
		rd->result = -EIO;
	/* one more than there are waiters: the read cannot end before all are set up */
	rd->pending = n_needs + 1;
	joined = join_flights(f, rd, needs, n_needs);
	for (uint32_t i = 0; i < n_needs; i++)
		n_there += needs[i].there;
	start_fetches(f, rd, needs, n_needs, around, scratch, unit_buf);
	read_there(f, rd, needs, n_needs, joined);
	bs_fill_read_part(f, rd, 1 + n_needs - n_there - joined, 0);
}

void bs_fill_read(struct bs_fill *f, struct bs_read *rd, void *scratch, void *unit_buf)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(rd->blob);
	uint32_t first = g->ops->find(g->cookie, rd->off);
	uint32_t last = g->ops->find(g->cookie, rd->off + rd->len - 1);
	struct bs_blob *blob = rd->blob;
	struct bs_origin *origin = rd->origin;
	uint64_t now = bs_clock_ns(), none = 0;
	bool ahead, scans;

	if (f->stats.first_read_ns == 0)
		(void)atomic_compare_exchange_strong(&f->stats.first_read_ns, &none, now);
	COUNT(f, reads, 1);
	COUNT(f, read_bytes, rd->len);
	rd->result = 0;
	rd->waiters = NULL;
	rd->pending = 1;
	rd->deadline_ns = now + f->o.read_wait_ns;
	/* what single blocks were brought for has its neighbours, if it wants any */
	ahead = f->o.ahead &&
		(bs_blob_has(blob, first) || !bs_blob_has_range(blob, rd->off, rd->len));
	scans = ahead && bs_fill_note(f, blob, first, last);
	if (bs_blob_read_range(rd->blob, rd->off, rd->buf, rd->len) == 0) {
		COUNT(f, hits, last - first + 1);
		bs_fill_read_part(f, rd, 1, 0);
	} else {
		read_missing(f, rd, first, last - first + 1, ahead && !scans, scratch, unit_buf);
	}
	if (scans)
		bs_fill_ahead(f, blob, origin, first, last); /* rd may be gone */
}

static void read_waited(struct bs_read *rd)
{
	bs_latch_open(rd->cookie);
}

int bs_fill_read_wait(struct bs_fill *f, struct bs_read *rd, void *scratch, void *unit_buf)
{
	struct bs_latch over = BS_LATCH_INIT;

	rd->done = read_waited;
	rd->cookie = &over;
	bs_fill_read(f, rd, scratch, unit_buf);
	bs_latch_wait(&over);
	bs_latch_done(&over);
	rd->cookie = NULL;
	return rd->result;
}
