/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Completion of a blob in the background lane. First what other blobs of the node have
 * is copied; then a few ranges are in flight, each started when one has ended; when
 * nothing seems to be missing, an unpacker proves and syncs.
 * Whatever goes wrong, it begins again from the front after a pause.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/fillpriv.h"

#define RANGE_DATA_MAX (512u << 10) /* small, since demand reads may wait for one on the wire */
#define RANGES 10u /* of one blob in flight: more than connections, so that none of those rests */
#define COPIES_AT_ONCE 64u /* units, before an unpacker looks for demand work again */
#define PAUSE_ROUNDS 5u	   /* how long a pause is, as after so many failed rounds */

static void step(struct completion *c, unsigned int ended);

static void end(struct completion *c, int result)
{
	c->done(c->cookie, result);
	(void)bs_origin_unref(c->origin);
	free(c);
}

static void again(struct job *j, struct unpacker *un)
{
	step(BS_CONTAINER_OF(j, struct completion, again), 0);
}

/* Not on the loop's own thread: it may end on the spot. */
static void begin_again(void *cookie)
{
	struct completion *c = cookie;

	bs_fill_enqueue(c->fill, BS_LANE_BACKGROUND, &c->again);
}

static void again_later(struct completion *c)
{
	(void)pthread_mutex_lock(&c->fill->lock);
	c->next = 0;
	c->finishing = false;
	(void)pthread_mutex_unlock(&c->fill->lock);
	if (bs_loop_after(c->fill->o.loop, bs_fill_pause_ns(PAUSE_ROUNDS, 0), begin_again, c) < 0)
		end(c, -ENOMEM);
}

static void finish(struct job *j, struct unpacker *un)
{
	struct completion *c = BS_CONTAINER_OF(j, struct completion, finish);
	int r = bs_blob_finish(c->blob, un->scratch, un->bytes);

	if (r == -EAGAIN) /* demand fetches still bring some, or some were wrong on disk */
		again_later(c);
	else
		end(c, r);
}

/* Missing, and nobody brings it or knows that nobody has it. Lock held. */
static bool is_wanted(struct completion *c, uint32_t unit)
{
	return bs_blob_next_missing(c->blob, unit) == unit &&
	       !bs_fill_flight(c->fill, c->blob, unit, false) &&
	       !bs_origin_is_wrong(c->origin, unit);
}

/* The next run of missing units without a flight, at most RANGE_DATA_MAX; 0: none. Lock held. */
static uint32_t next_run(struct completion *c, uint32_t *ret_first)
{
	uint32_t n_units = bs_blob_geometry(c->blob)->n_units, n = 0;
	uint64_t bytes = 0;
	struct bs_unit u;

	for (;; c->next++) {
		c->next = bs_blob_next_missing(c->blob, c->next);
		if (c->next >= n_units)
			return 0;
		if (is_wanted(c, c->next))
			break;
	}
	*ret_first = c->next;
	while (c->next < n_units && is_wanted(c, c->next)) {
		bs_fill_unit(c->blob, c->next, &u);
		if (n > 0 && bytes + u.data_len > RANGE_DATA_MAX)
			break;
		bytes += u.data_len;
		c->next++;
		n++;
	}
	return n;
}

/* Sets up the range and the flights that readers may join. Lock held. */
static struct fetch *next_fetch(struct completion *c)
{
	uint32_t first, n;
	struct fetch *fe;

	if (bs_fill_is_streaming(c->fill, c->blob)) { /* what is hot goes first: look again later */
		c->failed = true;
		return NULL;
	}
	n = next_run(c, &first);
	if (n == 0)
		return NULL;
	fe = bs_fill_fetch_new(c->fill, c->blob, c->origin, first, n, BS_LANE_BACKGROUND);
	if (!fe)
		return NULL;
	fe->completion = c;
	for (uint32_t i = 0; i < n; i++) {
		struct flight *fl = bs_fill_flight(c->fill, c->blob, first + i, true);

		if (fl)
			fl->by = fe;
	}
	c->running++;
	return fe;
}

/* Gives up the ranges that ended and starts the next ones, as one: nobody else sees none running. */
static void step(struct completion *c, unsigned int ended)
{
	struct bs_fill *f = c->fill;
	struct fetch *start[RANGES];
	bool all_there, pause;
	size_t n = 0;
	int error;

	(void)pthread_mutex_lock(&f->lock);
	c->running -= ended;
	while (!c->failed && c->running < RANGES && n < RANGES && (start[n] = next_fetch(c)))
		n++;
	pause = c->failed && c->running == 0;
	error = c->error;
	all_there = !c->failed && c->running == 0 && !c->finishing;
	c->finishing |= all_there;
	if (pause)
		c->failed = false;
	(void)pthread_mutex_unlock(&f->lock);
	for (size_t i = 0; i < n; i++)
		bs_fill_submit(start[i]);
	if (all_there)
		bs_fill_enqueue(f, BS_LANE_BACKGROUND, &c->finish);
	else if (pause && error) /* a full disk: to fetch it all again would not help */
		end(c, error);
	else if (pause)
		again_later(c);
}

void bs_completion_range_ended(struct completion *c, bool failed, int store_error)
{
	struct bs_fill *f = c->fill;

	(void)pthread_mutex_lock(&f->lock);
	if (store_error)
		c->error = store_error;
	c->failed |= failed || store_error;
	(void)pthread_mutex_unlock(&f->lock);
	step(c, 1);
}

static bool copy_unit(struct completion *c, uint32_t i, struct unpacker *un)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(c->blob);
	struct bs_blob *other;
	struct bs_unit u;
	uint32_t k;

	if (!g->ops->alias(g->cookie, i, &other, &k) ||
	    !bs_blob_check(other, k, un->scratch, un->bytes))
		return false;
	bs_fill_unit(other, k, &u);
	return bs_blob_read_range(other, u.blob_off, un->bytes, u.blob_len) == 0 &&
	       bs_fill_store(c->fill, c->blob, i, un);
}

static void copy_some(struct job *j, struct unpacker *un)
{
	struct completion *c = BS_CONTAINER_OF(j, struct completion, copy);
	uint32_t n_units = bs_blob_geometry(c->blob)->n_units, n = 0;

	for (; n < COPIES_AT_ONCE; c->next++) {
		c->next = bs_blob_next_missing(c->blob, c->next);
		if (c->next >= n_units)
			break;
		n += copy_unit(c, c->next, un);
	}
	if (n == COPIES_AT_ONCE) {
		bs_fill_enqueue(c->fill, BS_LANE_BACKGROUND, &c->copy);
		return;
	}
	c->next = 0;
	step(c, 0);
}

int bs_fill_complete(struct bs_fill *f, struct bs_blob *blob, struct bs_origin *origin,
		     void (*done)(void *cookie, int result), void *cookie)
{
	struct completion *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct completion){ .fill = f,
				  .blob = blob,
				  .origin = bs_origin_ref(origin),
				  .done = done,
				  .cookie = cookie };
	bs_list_init(&c->finish.queued);
	c->finish.run = finish;
	bs_list_init(&c->again.queued);
	c->again.run = again;
	bs_list_init(&c->copy.queued);
	c->copy.run = copy_some;
	if (bs_blob_geometry(blob)->ops->alias)
		bs_fill_enqueue(f, BS_LANE_BACKGROUND, &c->copy);
	else
		step(c, 0);
	return 0;
}
