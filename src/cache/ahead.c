/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reading ahead: what lies beside a read in the blob belongs to the same file or
 * directory and is often wanted next. The kernel asks for no more than a window of one
 * frame, so that each miss costs a whole round trip while the link is idle. So a read
 * also asks, in the hot lane, for the missing units behind it, as many as the way to the
 * source carries in a round trip (bs_origin_ahead), and for half as many before it:
 * programs and libraries are mapped and touched backwards too. When a few such ranges
 * are on their way, or all that is near is there, nothing happens.
 *
 * Of a blob that a stream brought blocks of, what is needed is known better than that: then
 * only who reads on, the unit before it being there as a whole, is given what follows.
 *
 * Who reads on and on in sequence, a scan, will want more than that, and knows no way
 * back: ahead of it as much is asked for as it has gone through, in large ranges side by
 * side, since one connection seldom carries what the link does.
 */
#include "config.h"

#include "base/clock.h"
#include "cache/fillpriv.h"

#define RANGES 2u /* around reads, of all blobs, on their way */

/* A unit is 128 KiB, but at the end of what belongs together. */
#define SCAN_UNITS 8u		    /* in sequence: then it is a scan */
#define SCAN_SKIP 1u		    /* units that a read of it may come too early */
#define SCAN_BACK 4u		    /* or too late */
#define SCAN_WINDOW_UNITS 128u	    /* 16 MiB ahead at most */
#define SCAN_RANGES 8u		    /* of all scans, on their way: as many as connections */
#define SCAN_RANGE_BYTES (1u << 20) /* of data */
#define SCAN_IDLE_NS (5 * BS_NS_PER_S)

/* A unit that nobody has or fetches. Lock held. */
static bool is_wanted(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t unit)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);
	struct bs_blob *other;
	uint32_t i;

	if (bs_blob_next_missing(b, unit) != unit || bs_fill_flight(f, b, unit, false) ||
	    bs_origin_is_wrong(o, unit))
		return false;
	/* another image's costs no round trip when its time comes */
	return !g->ops->alias || !g->ops->alias(g->cookie, unit, &other, &i) ||
	       !bs_blob_has(other, i);
}

/*
 * The nearest run of wanted units within so many bytes of data, going from unit from by
 * step (1 or -1): how many, and the first in the blob's order. Lock held.
 */
static uint32_t find_run(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, int64_t from,
			 int step, uint64_t bytes, uint32_t *ret_first)
{
	uint32_t n = 0;
	struct bs_unit u;

	for (int64_t i = from; i >= 0 && i < bs_blob_geometry(b)->n_units; i += step) {
		bs_fill_unit(b, (uint32_t)i, &u);
		if (u.data_len > bytes)
			break;
		bytes -= u.data_len;
		if (is_wanted(f, b, o, (uint32_t)i)) {
			if (n++ == 0 || step < 0)
				*ret_first = (uint32_t)i;
		} else if (n > 0) {
			break;
		}
	}
	return n;
}

/* Sets up the range and the flights that readers may join; NULL: it is not to be. Lock held. */
static struct fetch *fetch_of(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
			      uint32_t first, uint32_t n, _Atomic unsigned int *count)
{
	struct fetch *fe = bs_fill_fetch_new(f, b, o, first, n, BS_LANE_HOT);

	if (!fe)
		return NULL;
	fe->ahead = count;
	(*count)++;
	for (uint32_t i = 0; i < n; i++) {
		struct flight *fl = bs_fill_flight(f, b, first + i, true);

		if (fl)
			fl->by = fe;
	}
	return fe;
}

/* --- around a read ---------------------------------------------------------------------------- */

/* Whether a read at the unit, in the direction of step, continues others. */
static bool reads_on(struct bs_blob *b, uint32_t unit, int step)
{
	int64_t before = (int64_t)unit - step;

	if (!bs_blob_has_blocks(b))
		return true; /* nothing is known: it is assumed */
	return before >= 0 && before < bs_blob_geometry(b)->n_units &&
	       bs_blob_has(b, (uint32_t)before);
}

/* Both ways, as far as there is something: how many ranges. Lock held. */
static uint32_t fetch_around(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
			     uint32_t first, uint32_t last, struct fetch **ret)
{
	const uint32_t bytes = bs_origin_ahead(o);
	uint32_t n_ret = 0;

	for (int step = 1; step >= -1; step -= 2) {
		const int64_t from = step > 0 ? (int64_t)last + 1 : (int64_t)first - 1;
		uint32_t at, n;

		if (f->n_ahead >= RANGES || !reads_on(b, step > 0 ? first : last, step))
			continue;
		n = find_run(f, b, o, from, step, step > 0 ? bytes : bytes / 2, &at);
		if (n > 0 && (ret[n_ret] = fetch_of(f, b, o, at, n, &f->n_ahead)))
			n_ret++;
	}
	return n_ret;
}

/* --- ahead of who reads in sequence ----------------------------------------------------------- */

/* The place of one that is new: a free one, else the oldest that is no scan yet, else the oldest. */
static struct scan *scan_place(struct bs_fill *f, uint64_t now)
{
	struct scan *oldest = &f->scans[0];
	bool oldest_is_scan = true;

	for (uint32_t i = 0; i < SCANS; i++) {
		struct scan *s = &f->scans[i];
		bool is_scan = s->run >= SCAN_UNITS && now - s->used_ns < SCAN_IDLE_NS;

		if (i > 0 && (is_scan != oldest_is_scan ? is_scan : s->used_ns > oldest->used_ns))
			continue;
		oldest = s;
		oldest_is_scan = is_scan;
	}
	return oldest;
}

/*
 * Takes note of a read; the scan that it is part of, or NULL. The kernel has some windows
 * under way at once, so reads come a little out of order. Lock held.
 */
static struct scan *note_read(struct bs_fill *f, const struct bs_blob *b, uint32_t first,
			      uint32_t last)
{
	uint64_t now = bs_clock_ns();
	struct scan *s;

	for (uint32_t i = 0; i < SCANS; i++) {
		s = &f->scans[i];
		if (s->blob != b || first > s->next + SCAN_SKIP || last + 1 + SCAN_BACK < s->next)
			continue;
		if (last + 1 > s->next) {
			s->run += last + 1 - BS_MAX(first, s->next);
			s->next = last + 1;
		}
		s->used_ns = now;
		return s->run >= SCAN_UNITS ? s : NULL;
	}
	s = scan_place(f, now);
	*s = (struct scan){ .blob = b, .next = last + 1, .asked = last + 1, .used_ns = now };
	return NULL;
}

/*
 * The next range ahead of a scan: within a window that is as long as what it has gone
 * through, a quarter of that at once, so that several are on their way; NULL: none. Lock held.
 */
static struct fetch *next_of_scan(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				  struct scan *s)
{
	uint32_t n_units = bs_blob_geometry(b)->n_units;
	uint32_t window = BS_MIN(s->run, SCAN_WINDOW_UNITS), length = BS_MAX(window / 4, 1u);
	uint32_t end = s->next + BS_MIN(window, n_units - s->next), first, n;

	s->asked = BS_MAX(s->asked, s->next);
	while (f->n_scan < SCAN_RANGES && s->asked < end) {
		/* nothing short, but at the end */
		if (end - s->asked < length && end < n_units)
			return NULL;
		n = BS_MIN(find_run(f, b, o, s->asked, 1, SCAN_RANGE_BYTES, &first), length);
		s->asked = n ? first + n : s->asked + BS_MIN(length, n_units - s->asked);
		if (n > 0)
			return fetch_of(f, b, o, first, n, &f->n_scan);
	}
	return NULL;
}

void bs_fill_ahead(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t first,
		   uint32_t last)
{
	struct fetch *fe[SCAN_RANGES];
	struct scan *s;
	uint32_t n = 0;

	/* without the lock: what is complete is read most */
	if (bs_blob_n_present(b) == bs_blob_geometry(b)->n_units)
		return;
	(void)pthread_mutex_lock(&f->lock);
	if (!bs_fill_is_streaming(f, b)) { /* else what is wanted comes anyway */
		s = note_read(f, b, first, last);
		if (!s)
			n = fetch_around(f, b, o, first, last, fe);
		while (s && n < SCAN_RANGES && (fe[n] = next_of_scan(f, b, o, s)))
			n++;
	}
	(void)pthread_mutex_unlock(&f->lock);
	for (uint32_t i = 0; i < n; i++)
		bs_fill_submit(fe[i]);
}

void bs_fill_ahead_learn(const struct fetch *fe)
{
	const struct bs_range *rg = &fe->range;

	/* those of a scan share the link among themselves */
	if (rg->answered_ns && fe->ahead != &fe->fill->n_scan)
		bs_origin_learn(fe->origin, rg->len, rg->answered_ns - rg->started_ns,
				rg->ended_ns - rg->answered_ns);
}
