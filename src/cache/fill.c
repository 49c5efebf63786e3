/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/fill.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cache/fillpriv.h"

#define WRONG_WAIT_NS (30 * BS_NS_PER_S)

/* --- fetches ---------------------------------------------------------------------------------- */

void bs_fill_unit(struct bs_blob *b, uint32_t i, struct bs_unit *ret)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);

	g->ops->unit(g->cookie, i, ret);
}

struct fetch *bs_fill_fetch_free(struct fetch *fe)
{
	if (!fe)
		return NULL;
	if (fe->ahead)
		atomic_fetch_sub(fe->ahead, 1);
	(void)bs_origin_unref(fe->origin);
	free(fe->range.buf);
	free(fe);
	return NULL;
}

struct fetch *bs_fill_fetch_new(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				uint32_t first, uint32_t n, enum bs_lane lane)
{
	struct fetch *fe = calloc(1, sizeof(*fe));
	struct bs_unit a, z;

	if (!fe)
		return NULL;
	bs_fill_unit(b, first, &a);
	bs_fill_unit(b, first + n - 1, &z);
	*fe = (struct fetch){ .fill = f,
			      .blob = b,
			      .origin = bs_origin_ref(o),
			      .first = first,
			      .n = n,
			      .lane = lane,
			      .source = bs_origin_start(o),
			      .only_bad = true };
	bs_list_init(&fe->job.queued);
	fe->job.run = bs_fill_fetch_ended;
	fe->range = (struct bs_range){ .blob = *bs_origin_data(o),
				       .off = a.data_off,
				       .lane = lane,
				       .whose = lane == BS_LANE_BACKGROUND ? NULL : b,
				       .len = z.data_off + z.data_len - a.data_off,
				       .cookie = fe };
	fe->range.buf = malloc(fe->range.len);
	return fe->range.buf ? fe : bs_fill_fetch_free(fe);
}

void bs_fill_enqueue(struct bs_fill *f, enum bs_lane lane, struct job *j)
{
	(void)pthread_mutex_lock(&f->lock);
	bs_list_append(&f->queue[lane], &j->queued);
	(void)pthread_cond_signal(&f->work);
	(void)pthread_mutex_unlock(&f->lock);
}

static void enqueue(struct fetch *fe)
{
	bs_fill_enqueue(fe->fill, fe->lane, &fe->job);
}

static void range_done(struct bs_range *rg)
{
	enqueue(rg->cookie);
}

/* Asks the source whose turn it is; the result comes to range_done. */
void bs_fill_submit(struct fetch *fe)
{
	size_t n_sources;
	struct bs_repo *r;

	if (fe->local) {
		enqueue(fe);
		return;
	}
	r = bs_origin_pick(fe->origin, fe->source, &n_sources);
	fe->range.done = fe->around ? bs_fill_fetch_done : range_done;
	fe->range.progress = fe->around ? bs_fill_fetch_progress : NULL;
	fe->range.result = 0;
	fe->range.retry_after_ns = 0;
	__atomic_store_n(&fe->range.got, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&fe->range.started_ns, 0, __ATOMIC_RELAXED);
	fe->range.text[0] = '\0';
	if (!r) {
		fe->range.result = -EHOSTUNREACH;
		(void)snprintf(fe->range.text, sizeof(fe->range.text), "no source is known");
		enqueue(fe);
		return;
	}
	bs_repo_read(r, &fe->range);
	(void)bs_repo_unref(r);
}

/* --- flights ------------------------------------------------------------------------------------- */

static struct flight_key key_of(struct bs_blob *b, uint32_t unit)
{
	return (struct flight_key){ b, unit };
}

/* The flight of a unit, made when there is none. Lock held. */
struct flight *bs_fill_flight(struct bs_fill *f, struct bs_blob *b, uint32_t unit, bool make)
{
	struct flight_key key = key_of(b, unit);
	struct flight *fl = bs_map_get(&f->flights, &key, sizeof(key));

	if (fl || !make)
		return fl;
	fl = calloc(1, sizeof(*fl));
	if (!fl)
		return NULL;
	fl->key = key;
	bs_list_init(&fl->waiters);
	if (bs_map_put(&f->flights, &fl->key, sizeof(fl->key), fl) < 0) {
		free(fl);
		return NULL;
	}
	return fl;
}

void bs_fill_read_part(struct bs_fill *f, struct bs_read *rd, unsigned int n, int result)
{
	if (result < 0)
		__atomic_store_n(&rd->result, result, __ATOMIC_RELAXED);
	if (__atomic_sub_fetch(&rd->pending, n, __ATOMIC_ACQ_REL) != 0)
		return;
	free(rd->waiters);
	rd->waiters = NULL;
	if (rd->result < 0)
		COUNT(f, failed_reads, 1);
	rd->done(rd);
}

/* Ends a flight: every waiter gets its piece of bytes, or the error. */
void bs_fill_land(struct bs_fill *f, struct bs_blob *b, uint32_t unit, const void *bytes,
		  int result)
{
	struct flight_key key = key_of(b, unit);
	struct bs_list waiters;
	struct flight *fl;
	struct bs_unit u;

	bs_list_init(&waiters);
	(void)pthread_mutex_lock(&f->lock);
	fl = bs_map_remove(&f->flights, &key, sizeof(key));
	if (fl) {
		bs_list_for_each(it, &fl->waiters) {
			bs_list_remove(it);
			bs_list_append(&waiters, it);
		}
	}
	(void)pthread_mutex_unlock(&f->lock);
	free(fl);
	bs_fill_unit(b, unit, &u);
	bs_list_for_each(it, &waiters) {
		struct bs_read *rd = bs_list_entry(it, struct waiter, in_flight)->read;
		uint64_t from = BS_MAX(rd->off, u.blob_off);
		uint64_t to = BS_MIN(rd->off + rd->len, u.blob_off + u.blob_len);

		if (result == 0)
			memcpy((char *)rd->buf + (from - rd->off),
			       (const char *)bytes + (from - u.blob_off), to - from);
		bs_fill_read_part(f, rd, 1, result);
	}
}

/* Those of the flight's waiters whose pieces are there, moved to ready. Lock held. */
static void pick_ready(struct flight *fl, struct bs_list *ready)
{
	bs_list_for_each(it, &fl->waiters) {
		struct bs_read *rd = bs_list_entry(it, struct waiter, in_flight)->read;
		struct piece p = bs_fill_piece(rd, (uint32_t)fl->key.unit);

		if (!bs_blob_has_range(rd->blob, p.off, p.len))
			continue;
		bs_list_remove(it);
		bs_list_append(ready, it);
	}
}

/* A demand fetch for those who waited for a stream in vain; NULL: they need none. Lock held. */
static struct fetch *fetch_instead(struct bs_fill *f, struct flight *fl, bool *ret_no_memory)
{
	struct bs_read *first = NULL;
	struct fetch *fe;

	*ret_no_memory = false;
	bs_list_for_each(it, &fl->waiters) {
		struct bs_read *rd = bs_list_entry(it, struct waiter, in_flight)->read;
		struct piece p = bs_fill_piece(rd, (uint32_t)fl->key.unit);

		if (!first && !bs_fill_is_coming(f, rd->blob, p.off, p.len))
			first = rd;
	}
	if (!first)
		return NULL;
	fl->coming = false;
	fe = bs_fill_fetch_new(f, first->blob, first->origin, (uint32_t)fl->key.unit, 1,
			       BS_LANE_DEMAND);
	*ret_no_memory = !fe;
	return fe;
}

/* The bytes of those who were found ready; who cannot be given them after all waits again. */
static void give(struct bs_fill *f, uint32_t unit, struct bs_list *ready)
{
	bs_list_for_each(it, ready) {
		struct waiter *w = bs_list_entry(it, struct waiter, in_flight);
		struct bs_read *rd = w->read;
		struct piece p = bs_fill_piece(rd, unit);

		bs_list_remove(it);
		if (bs_blob_read_range(rd->blob, p.off, p.buf, p.len) == 0)
			bs_fill_read_part(f, rd, 1, 0);
		else
			bs_fill_wait(f, w, unit);
	}
}

void bs_fill_settle(struct bs_fill *f, struct bs_blob *b, uint32_t unit)
{
	struct fetch *fe = NULL;
	bool no_memory = false;
	struct bs_list ready;
	struct flight *fl;

	bs_list_init(&ready);
	(void)pthread_mutex_lock(&f->lock);
	fl = bs_fill_flight(f, b, unit, false);
	if (fl)
		pick_ready(fl, &ready);
	if (fl && fl->coming && bs_list_empty(&fl->waiters)) {
		(void)bs_map_remove(&f->flights, &fl->key, sizeof(fl->key));
		free(fl);
	} else if (fl && fl->coming) {
		fe = fetch_instead(f, fl, &no_memory);
	}
	(void)pthread_mutex_unlock(&f->lock);
	give(f, unit, &ready);
	if (fe)
		bs_fill_submit(fe);
	if (no_memory)
		bs_fill_land(f, b, unit, NULL, -ENOMEM);
}

/* --- the unpackers ---------------------------------------------------------------------------- */

/* How many may run what is not demand: proving and unpacking must leave somebody for readers. */
static bool may_take(const struct bs_fill *f, enum bs_lane lane)
{
	unsigned int background = f->n_taken[BS_LANE_BACKGROUND];
	unsigned int others = f->n_taken[BS_LANE_HOT] + background;

	if (lane == BS_LANE_DEMAND || others == 0)
		return true;
	return others + 1 < f->o.n_unpackers &&
	       (lane == BS_LANE_HOT || background == 0 || background + 2 < f->o.n_unpackers);
}

/* The next job, demand first; NULL: none. Lock held. */
static struct job *take_job(struct bs_fill *f, enum bs_lane *ret_lane)
{
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		struct bs_list *first = f->queue[lane].next;

		if (bs_list_empty(&f->queue[lane]))
			continue;
		if (!may_take(f, (enum bs_lane)lane))
			continue;
		f->n_taken[lane]++;
		*ret_lane = (enum bs_lane)lane;
		bs_list_remove(first);
		return bs_list_entry(first, struct job, queued);
	}
	return NULL;
}

static void *unpacker_main(void *arg)
{
	struct unpacker *un = arg;
	struct bs_fill *f = un->fill;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		struct job *j = NULL;
		enum bs_lane lane = BS_LANE_DEMAND;

		while (!f->stop && !(j = take_job(f, &lane)))
			(void)pthread_cond_wait(&f->work, &f->lock);
		if (f->stop)
			break;
		(void)pthread_mutex_unlock(&f->lock);
		j->run(j, un); /* j may be gone now */
		(void)pthread_mutex_lock(&f->lock);
		f->n_taken[lane]--;
		if (lane != BS_LANE_DEMAND)
			(void)pthread_cond_signal(&f->work);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* With its memory: one that had none would be missed by all who count on it. */
static int start_unpacker(struct bs_fill *f)
{
	struct unpacker *un = &f->unpackers[f->n_started];
	int r;

	*un = (struct unpacker){ .fill = f,
				 .scratch = f->o.scratch_new(),
				 .bytes = malloc(BS_UNIT_BYTES_MAX) };
	r = un->scratch && un->bytes ? pthread_create(&un->thread, NULL, unpacker_main, un)
				     : ENOMEM;
	if (r == 0) {
		f->n_started++;
		return 0;
	}
	if (un->scratch)
		f->o.scratch_free(un->scratch);
	free(un->bytes);
	return -r;
}

/* --- life -------------------------------------------------------------------------------------- */

int bs_fill_new(const struct bs_fill_options *o, struct bs_fill **ret, struct bs_error *err)
{
	struct bs_fill *f = calloc(1, sizeof(*f));

	if (!f)
		return bs_fail(err, -ENOMEM, "out of memory");
	f->o = *o;
	if (!f->o.wrong_wait_ns)
		f->o.wrong_wait_ns = WRONG_WAIT_NS;
	(void)pthread_mutex_init(&f->lock, NULL);
	(void)pthread_cond_init(&f->work, NULL);
	bs_map_init(&f->flights);
	bs_list_init(&f->streams);
	for (int lane = 0; lane < BS_LANE_MAX; lane++)
		bs_list_init(&f->queue[lane]);
	f->unpackers = calloc(o->n_unpackers, sizeof(*f->unpackers));
	if (!f->unpackers) {
		(void)bs_fill_free(f);
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	while (f->n_started < o->n_unpackers) {
		int r = start_unpacker(f);

		if (r < 0) {
			(void)bs_fill_free(f);
			return bs_fail_errno(err, r, "start an unpacker thread");
		}
	}
	*ret = f;
	return 0;
}

struct bs_fill *bs_fill_free(struct bs_fill *f)
{
	if (!f)
		return NULL;
	(void)pthread_mutex_lock(&f->lock);
	f->stop = true;
	(void)pthread_cond_broadcast(&f->work);
	(void)pthread_mutex_unlock(&f->lock);
	for (unsigned int i = 0; i < f->n_started; i++) {
		(void)pthread_join(f->unpackers[i].thread, NULL);
		f->o.scratch_free(f->unpackers[i].scratch);
		free(f->unpackers[i].bytes);
		free(f->unpackers[i].segment);
	}
	bs_map_done(&f->flights);
	(void)pthread_cond_destroy(&f->work);
	(void)pthread_mutex_destroy(&f->lock);
	free(f->unpackers);
	free(f);
	return NULL;
}

void bs_fill_stats(struct bs_fill *f, struct bs_fill_stats *ret)
{
	*ret = (struct bs_fill_stats){
		.reads = f->stats.reads,
		.read_bytes = f->stats.read_bytes,
		.hits = f->stats.hits,
		.misses = f->stats.misses,
		.joined = f->stats.joined,
		.fetched_units = f->stats.fetched_units,
		.fetched_bytes = f->stats.fetched_bytes,
		.copied_units = f->stats.copied_units,
		.bad_units = f->stats.bad_units,
		.unstored_units = f->stats.unstored_units,
		.retries = f->stats.retries,
		.failed_reads = f->stats.failed_reads,
		.first_read_ns = f->stats.first_read_ns,
		.first_frame_ns = f->stats.first_frame_ns,
		.last_frame_ns = f->stats.last_frame_ns,
		.streamed_bytes = f->stats.streamed_bytes,
		.streamed_blocks = f->stats.streamed_blocks,
		.stream_waits = f->stats.stream_waits,
		.bad_segments = f->stats.bad_segments,
	};
}
