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
 */
#include "config.h"

#include "cache/fillpriv.h"

#define RANGES 2u /* of all blobs, on their way */

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

/* Sets up the range and the flights that readers may join; NULL: it is not to be. */
static struct fetch *next_fetch(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				int64_t from, int step, uint64_t bytes)
{
	struct fetch *fe = NULL;
	uint32_t first, n = 0;

	(void)pthread_mutex_lock(&f->lock);
	if (f->n_ahead < RANGES && !bs_fill_is_streaming(f, b)) /* what is wanted comes anyway */
		n = find_run(f, b, o, from, step, bytes, &first);
	if (n > 0)
		fe = bs_fill_fetch_new(f, b, o, first, n, BS_LANE_HOT);
	if (fe) {
		fe->ahead = true;
		f->n_ahead++;
	}
	for (uint32_t i = 0; fe && i < n; i++) {
		struct flight *fl = bs_fill_flight(f, b, first + i, true);

		if (fl)
			fl->by = fe;
	}
	(void)pthread_mutex_unlock(&f->lock);
	return fe;
}

static void fetch_run(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, int64_t from,
		      int step, uint64_t bytes)
{
	struct fetch *fe = next_fetch(f, b, o, from, step, bytes);

	if (fe)
		bs_fill_submit(fe);
}

/* Whether a read at the unit, in the direction of step, continues others. */
static bool reads_on(struct bs_blob *b, uint32_t unit, int step)
{
	int64_t before = (int64_t)unit - step;

	if (!bs_blob_has_blocks(b))
		return true; /* nothing is known: it is assumed */
	return before >= 0 && before < bs_blob_geometry(b)->n_units &&
	       bs_blob_has(b, (uint32_t)before);
}

void bs_fill_ahead(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t first,
		   uint32_t last)
{
	uint32_t bytes = bs_origin_ahead(o);

	/* without the lock: most reads end here */
	if (bs_blob_n_present(b) == bs_blob_geometry(b)->n_units ||
	    atomic_load_explicit(&f->n_ahead, memory_order_relaxed) >= RANGES)
		return;
	if (reads_on(b, first, 1))
		fetch_run(f, b, o, (int64_t)last + 1, 1, bytes);
	if (reads_on(b, last, -1))
		fetch_run(f, b, o, (int64_t)first - 1, -1, bytes / 2);
}

void bs_fill_ahead_learn(const struct fetch *fe)
{
	const struct bs_range *rg = &fe->range;

	if (rg->answered_ns)
		bs_origin_learn(fe->origin, rg->len, rg->answered_ns - rg->started_ns,
				rg->ended_ns - rg->answered_ns);
}
