/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reading ahead: what lies beside a miss in the blob belongs to the same file or directory
 * and is often wanted next, and a request costs the source, and the reader a round trip, as
 * much as many units do. The kernel asks for no more than a window of one unit. So a demand
 * fetch brings, in the same request, the missing units behind it too, and some before it:
 * programs and libraries are mapped and touched backwards too, but what is packed of small
 * files is read forwards, and nobody who reads a file wants the end of the one before it.
 * How many is learnt from the reads of the blob (near.h), and limited by what the way to the
 * source carries in a few round trips (bs_origin_ahead). Units are taken as they come, those
 * asked for first; who wants another of them meanwhile waits for it.
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
#include "cache/near.h"

#define AROUND_RANGES 4u	    /* of all blobs, on their way: others are left connections */
#define AROUND_UNITS 64u	    /* of one range: bits of fetch.taken */
#define AROUND_TRIPS 4u		    /* what so many carry is brought along */
#define AROUND_BYTES_MAX (1u << 20) /* of data, behind; half before */

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

/* The nearest run of wanted units within so many bytes of data from one on: how many. Lock held. */
static uint32_t find_run(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t from,
			 uint64_t bytes, uint32_t *ret_first)
{
	uint32_t n = 0;
	struct bs_unit u;

	*ret_first = from;
	for (uint32_t i = from; i < bs_blob_geometry(b)->n_units; i++) {
		bs_fill_unit(b, i, &u);
		if (u.data_len > bytes)
			break;
		bytes -= u.data_len;
		if (is_wanted(f, b, o, i)) {
			if (n++ == 0)
				*ret_first = i;
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

/* --- around a miss ---------------------------------------------------------------------------- */

/* Whether a read at the unit, in the direction of step, continues others. */
static bool reads_on(struct bs_blob *b, uint32_t unit, int step)
{
	int64_t before = (int64_t)unit - step;

	if (!bs_blob_has_blocks(b))
		return true; /* nothing is known: it is assumed */
	return before >= 0 && before < bs_blob_geometry(b)->n_units &&
	       bs_blob_has(b, (uint32_t)before);
}

/* A file that is larger than a unit goes on behind its whole ones. */
static bool goes_on(struct bs_blob *b, uint32_t unit)
{
	struct bs_unit u;

	bs_fill_unit(b, unit, &u);
	return u.blob_len == BS_UNIT_BYTES_MAX;
}

/* The last of at most n wanted units that follow each other from unit on by step. Lock held. */
static uint32_t reach(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t unit,
		      int step, uint32_t n, uint64_t bytes)
{
	struct bs_unit u;

	for (int64_t i = (int64_t)unit + step; n > 0; i += step, n--) {
		if (i < 0 || i >= bs_blob_geometry(b)->n_units ||
		    (step < 0 && !goes_on(b, (uint32_t)i)))
			break;
		bs_fill_unit(b, (uint32_t)i, &u);
		if (u.data_len > bytes || !is_wanted(f, b, o, (uint32_t)i))
			break;
		bytes -= u.data_len;
		unit = (uint32_t)i;
	}
	return unit;
}

/* The units to fetch for those from *first to *last. Lock held. */
static void widen(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t *first,
		  uint32_t *last)
{
	const uint32_t bytes = BS_MIN(bs_origin_ahead(o) * AROUND_TRIPS, AROUND_BYTES_MAX);
	const uint32_t n = *last - *first + 1;
	uint32_t after, before;

	if (f->n_around >= AROUND_RANGES || n >= AROUND_UNITS || bs_fill_is_streaming(f, b))
		return;
	bs_near_window(bs_blob_near(b), *first, &after, &before);
	after = reads_on(b, *first, 1) ? BS_MIN(after, AROUND_UNITS - n) : 0;
	before = reads_on(b, *last, -1) ? BS_MIN(before, AROUND_UNITS - n - after) : 0;
	*last = reach(f, b, o, *last, 1, after, bytes);
	*first = reach(f, b, o, *first, -1, before, bytes / 2);
}

/* What is fetched along with the units of the fetch that were asked for. Lock held. */
static void set_around(struct bs_fill *f, struct fetch *fe, uint32_t wanted, uint32_t n_wanted)
{
	fe->around = true;
	fe->wanted = wanted - fe->first;
	fe->n_wanted = n_wanted;
	fe->ahead = &f->n_around;
	f->n_around++;
	for (uint32_t i = 0; i < fe->n; i++) {
		struct flight *fl = bs_fill_flight(f, fe->blob, fe->first + i, true);

		if (fl)
			fl->by = fe;
		if (i < fe->wanted || i >= fe->wanted + n_wanted)
			bs_near_brought(bs_blob_near(fe->blob), fe->first + i);
	}
}

struct fetch *bs_fill_fetch_around(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				   uint32_t first, uint32_t n, bool around)
{
	uint32_t from = first, to = first + n - 1;
	struct fetch *fe;

	if (!around)
		return bs_fill_fetch_new(f, b, o, first, n, BS_LANE_DEMAND);
	(void)pthread_mutex_lock(&f->lock);
	widen(f, b, o, &from, &to);
	fe = bs_fill_fetch_new(f, b, o, from, to - from + 1, BS_LANE_DEMAND);
	if (fe && fe->n > n)
		set_around(f, fe, first, n);
	(void)pthread_mutex_unlock(&f->lock);
	return fe;
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
 * The one that a read is part of, or NULL. The kernel has some windows under way at once, so
 * reads come a little out of order. Lock held.
 */
static struct scan *find_scan(struct bs_fill *f, const struct bs_blob *b, uint32_t first,
			      uint32_t last)
{
	for (uint32_t i = 0; i < SCANS; i++) {
		struct scan *s = &f->scans[i];

		if (s->blob == b && first <= s->next + SCAN_SKIP && last + 1 + SCAN_BACK >= s->next)
			return s;
	}
	return NULL;
}

/* Takes note of a read: whether it is part of a scan. Lock held. */
static bool note_read(struct bs_fill *f, const struct bs_blob *b, uint32_t first, uint32_t last)
{
	struct scan *s = find_scan(f, b, first, last);
	uint64_t now = bs_clock_ns();

	if (!s) {
		s = scan_place(f, now);
		*s = (struct scan){
			.blob = b, .next = last + 1, .asked = last + 1, .used_ns = now
		};
		return false;
	}
	if (last + 1 > s->next) {
		s->run += last + 1 - BS_MAX(first, s->next);
		s->next = last + 1;
	}
	s->used_ns = now;
	return s->run >= SCAN_UNITS;
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
		n = BS_MIN(find_run(f, b, o, s->asked, SCAN_RANGE_BYTES, &first), length);
		s->asked = n ? first + n : s->asked + BS_MIN(length, n_units - s->asked);
		if (n > 0)
			return fetch_of(f, b, o, first, n, &f->n_scan);
	}
	return NULL;
}

bool bs_fill_note(struct bs_fill *f, struct bs_blob *b, uint32_t first, uint32_t last)
{
	bool scans = false;

	/* without the lock: what is complete is read most */
	if (bs_blob_n_present(b) == bs_blob_geometry(b)->n_units)
		return false;
	(void)pthread_mutex_lock(&f->lock);
	bs_near_read(bs_blob_near(b), first, last);
	if (!bs_fill_is_streaming(f, b)) /* else what is wanted comes anyway */
		scans = note_read(f, b, first, last);
	(void)pthread_mutex_unlock(&f->lock);
	return scans;
}

void bs_fill_ahead(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t first,
		   uint32_t last)
{
	struct fetch *fe[SCAN_RANGES];
	struct scan *s;
	uint32_t n = 0;

	(void)pthread_mutex_lock(&f->lock);
	s = find_scan(f, b, first, last);
	while (s && n < SCAN_RANGES && (fe[n] = next_of_scan(f, b, o, s)))
		n++;
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
