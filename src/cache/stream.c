/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/fillpriv.h"

#define PARALLEL_FIRST 2u
#define RANGE_FIRST (256u << 10)
#define RANGE_MIN (128u << 10)
#define RANGE_MAX (1u << 20)
#define WINDOW_NS (120 * BS_NS_PER_MS) /* what all ranges together should take */
#define TRIES_MAX 4u		       /* of a range, at each source */
#define SOON 4u /* segments behind those asked for that are worth waiting for */

/* LATE: it still comes, but a source failed over it: nobody waits for that. */
enum segment_state { SEGMENT_WAITING, SEGMENT_ASKED, SEGMENT_LATE, SEGMENT_LANDED, SEGMENT_LOST };

/* Where an extent's blocks come; sorted by block. */
struct place {
	uint32_t block, n_blocks;
	uint32_t segment;
};

struct stream {
	struct bs_list all; /* of fill.streams; guarded by fill.lock, as all that follows */
	struct bs_fill *fill;
	struct bs_stream_options o;
	uint8_t *states;
	struct place *places;
	uint32_t n_places;
	uint32_t next;	       /* segment to ask for */
	unsigned int running;  /* ranges */
	unsigned int steppers; /* threads in step() */
	unsigned int parallel;
	uint64_t rate; /* bytes/s that were seen with so many; 0: not yet */
	uint64_t sample_ns, sample_bytes;
	struct bs_stream_result result;
};

/* Neighbouring segments asked for at once. Owned by whoever runs it, as a fetch is. */
struct stream_range {
	struct bs_range range;
	struct job job;
	struct stream *stream;
	uint32_t first, n; /* segments; first moves on while they are unpacked */
	uint64_t off;	   /* of the first one when it was asked for */
	size_t source;
	unsigned int tried;
};

static void range_ended(struct job *j, struct unpacker *un);
static void step(struct stream *st, unsigned int ended);

static struct bs_stream_segment segment_of(const struct stream *st, uint32_t i)
{
	struct bs_stream_segment s;

	st->o.ops->segment(st->o.cookie, i, &s);
	return s;
}

/* --- what comes, for readers ------------------------------------------------------------------ */

static int by_block(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static const struct place *place_of(const struct stream *st, uint64_t block)
{
	uint32_t low = 0, high = st->n_places;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct place *p = &st->places[mid];

		if (block < p->block)
			high = mid;
		else if (block >= (uint64_t)p->block + p->n_blocks)
			low = mid + 1;
		else
			return p;
	}
	return NULL;
}

static bool is_coming(const struct stream *st, uint64_t block)
{
	const struct place *p = place_of(st, block);

	if (!p)
		return false;
	return st->states[p->segment] == SEGMENT_ASKED ||
	       (st->states[p->segment] == SEGMENT_WAITING && p->segment < st->next + SOON);
}

/* Whether the stream brings all that is missing of the blocks first to last, and something is. */
static bool brings(const struct stream *st, uint64_t first, uint64_t last)
{
	bool some = false;

	for (uint64_t at = first; at <= last; at++) {
		if (bs_blob_has_range(st->o.blob, at * BS_BLOCK_BYTES, BS_BLOCK_BYTES))
			continue;
		if (!is_coming(st, at))
			return false;
		some = true;
	}
	return some;
}

bool bs_fill_is_coming(struct bs_fill *f, struct bs_blob *b, uint64_t off, uint64_t len)
{
	bs_list_for_each(it, &f->streams) {
		const struct stream *st = bs_list_entry(it, struct stream, all);

		if (st->o.blob == b &&
		    brings(st, off / BS_BLOCK_BYTES, (off + len - 1) / BS_BLOCK_BYTES))
			return true;
	}
	return false;
}

bool bs_fill_is_streaming(struct bs_fill *f, struct bs_blob *b)
{
	bs_list_for_each(it, &f->streams) {
		if (bs_list_entry(it, struct stream, all)->o.blob == b)
			return true;
	}
	return false;
}

/* --- ranges ------------------------------------------------------------------------------------- */

static void range_done(struct bs_range *rg)
{
	struct stream_range *r = rg->cookie;

	bs_fill_enqueue(r->stream->fill, BS_LANE_HOT, &r->job);
}

static void submit(struct stream_range *r)
{
	size_t n_sources;
	struct bs_repo *repo = bs_origin_pick(r->stream->o.origin, r->source, &n_sources);

	r->range.result = 0;
	r->range.retry_after_ns = 0;
	__atomic_store_n(&r->range.started_ns, 0, __ATOMIC_RELAXED);
	if (!repo) {
		r->range.result = -EHOSTUNREACH;
		range_done(&r->range);
		return;
	}
	bs_repo_read(repo, &r->range);
	(void)bs_repo_unref(repo);
}

static void submit_job(struct job *j, struct unpacker *un)
{
	j->run = range_ended;
	submit(BS_CONTAINER_OF(j, struct stream_range, job));
}

/* Not on the loop's own thread: a source that is a directory is read on the spot. */
static void submit_later(void *cookie)
{
	struct stream_range *r = cookie;

	r->job.run = submit_job;
	bs_fill_enqueue(r->stream->fill, BS_LANE_HOT, &r->job);
}

static struct stream_range *range_free(struct stream_range *r)
{
	if (r)
		free(r->range.buf);
	free(r);
	return NULL;
}

static struct stream_range *range_new(struct stream *st, uint32_t first, uint32_t n)
{
	struct bs_stream_segment a = segment_of(st, first), z = segment_of(st, first + n - 1);
	struct stream_range *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct stream_range){ .stream = st,
				    .first = first,
				    .n = n,
				    .off = a.off,
				    .source = bs_origin_start(st->o.origin) };
	bs_list_init(&r->job.queued);
	r->job.run = range_ended;
	r->range = (struct bs_range){ .blob = *bs_origin_data(st->o.origin),
				      .off = a.off,
				      .len = z.off + z.len - a.off,
				      .lane = BS_LANE_HOT,
				      .done = range_done,
				      .cookie = r };
	r->range.buf = malloc(r->range.len);
	return r->range.buf ? r : range_free(r);
}

static bool is_local(const struct stream *st, uint32_t i)
{
	struct bs_stream_segment s = segment_of(st, i);

	for (uint32_t k = 0; k < s.n_extents; k++) {
		if (!bs_blob_has_range(st->o.blob, (uint64_t)s.extents[k].block * BS_BLOCK_BYTES,
				       (uint64_t)s.extents[k].n_blocks * BS_BLOCK_BYTES))
			return false;
	}
	return true;
}

static uint64_t range_bytes(const struct stream *st)
{
	uint64_t bytes = st->rate ? st->rate / (BS_NS_PER_S / WINDOW_NS) / st->parallel
				  : RANGE_FIRST;

	bytes = BS_MAX(bytes, (uint64_t)RANGE_MIN);
	return BS_MIN(bytes, (uint64_t)RANGE_MAX);
}

/* The next range to ask for, up to a segment that is there. Lock held. */
static struct stream_range *next_range(struct stream *st)
{
	const uint64_t max = range_bytes(st);
	struct stream_range *r;
	uint64_t bytes = 0;
	uint32_t n = 0;

	while (st->next + n < st->o.n_segments && !is_local(st, st->next + n)) {
		bytes += segment_of(st, st->next + n).len;
		if (n > 0 && bytes > max)
			break;
		n++;
	}
	r = n > 0 ? range_new(st, st->next, n) : NULL;
	if (!r)
		return NULL;
	memset(st->states + st->next, SEGMENT_ASKED, n);
	st->next += n;
	st->running++;
	return r;
}

/* --- what a range brought -------------------------------------------------------------------------- */

static void settle(struct stream *st, uint32_t i, enum segment_state state)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(st->o.blob);
	struct bs_stream_segment s = segment_of(st, i);
	uint32_t last = UINT32_MAX;

	(void)pthread_mutex_lock(&st->fill->lock);
	st->states[i] = (uint8_t)state;
	(void)pthread_mutex_unlock(&st->fill->lock);
	for (uint32_t k = 0; k < s.n_extents; k++) {
		uint64_t at = (uint64_t)s.extents[k].block * BS_BLOCK_BYTES;
		uint64_t end = at + (uint64_t)s.extents[k].n_blocks * BS_BLOCK_BYTES;
		struct bs_unit u;

		for (uint32_t unit = g->ops->find(g->cookie, at); at < end; unit++) {
			bs_fill_unit(st->o.blob, unit, &u);
			at = u.blob_off + u.blob_len;
			if (unit != last)
				bs_fill_settle(st->fill, st->o.blob, unit);
			last = unit;
		}
	}
}

/* Nothing more is asked for; who waits for what would have come soon goes on as demand. */
static void stop_asking(struct stream *st, int error)
{
	uint32_t first, last;

	(void)pthread_mutex_lock(&st->fill->lock);
	if (!st->result.error)
		st->result.error = error;
	first = st->next;
	last = BS_MIN(first + SOON, st->o.n_segments);
	memset(st->states + first, SEGMENT_LOST, st->o.n_segments - first);
	st->next = st->o.n_segments;
	(void)pthread_mutex_unlock(&st->fill->lock);
	for (; first < last; first++)
		settle(st, first, SEGMENT_LOST);
}

/* Stores a segment's blocks: what the disk says. */
static int store(struct stream *st, uint32_t i, const uint8_t *blocks)
{
	struct bs_stream_segment s = segment_of(st, i);
	int r = 0;

	for (uint32_t k = 0; k < s.n_extents && r >= 0; k++) {
		r = bs_blob_store_blocks(st->o.blob, s.extents[k].block, s.extents[k].n_blocks,
					 blocks);
		blocks += (size_t)s.extents[k].n_blocks * BS_BLOCK_BYTES;
		if (r == 0)
			COUNT(st->fill, streamed_blocks, s.extents[k].n_blocks);
	}
	return BS_MIN(r, 0);
}

/* As long as more ranges at once make the whole faster, there may be twice as many. Lock held. */
static void learn(struct stream *st, uint64_t bytes)
{
	uint64_t now = bs_clock_ns(), rate;

	st->sample_bytes += bytes;
	if (st->sample_bytes < st->parallel * range_bytes(st))
		return;
	rate = st->sample_bytes * BS_NS_PER_S / BS_MAX(now - st->sample_ns, UINT64_C(1));
	if (rate > st->rate + st->rate / 10) {
		st->rate = rate;
		st->parallel = BS_MIN(st->parallel * 2, st->o.parallel_max);
	}
	st->sample_ns = now;
	st->sample_bytes = 0;
}

static void tell_landed(struct stream *st, uint32_t i)
{
	if (st->o.ops->landed)
		st->o.ops->landed(st->o.cookie, i);
}

/* The first segment of the range; false: the stream is not to be believed, or cannot be kept. */
static bool unpack_segment(struct stream_range *r, struct unpacker *un)
{
	struct stream *st = r->stream;
	struct bs_stream_segment s = segment_of(st, r->first);
	int error = 0;

	if (!un->segment)
		un->segment = malloc(BS_STREAM_SEGMENT_BYTES_MAX);
	if (!un->segment)
		error = -ENOMEM;
	else if (st->o.ops->decode(st->o.cookie, un->scratch, r->first,
				   (const char *)r->range.buf + (s.off - r->off), un->segment) < 0)
		error = -EBADMSG;
	else
		error = store(st, r->first, un->segment);
	if (error == -EBADMSG)
		COUNT(st->fill, bad_segments, 1);
	if (error)
		stop_asking(st, error);
	settle(st, r->first, error ? SEGMENT_LOST : SEGMENT_LANDED);
	if (!error)
		tell_landed(st, r->first);
	r->first++;
	r->n--;
	return !error;
}

static void drop_range(struct stream_range *r)
{
	struct stream *st = r->stream;

	for (; r->n > 0; r->first++, r->n--)
		settle(st, r->first, SEGMENT_LOST);
	(void)range_free(r);
	step(st, 1);
}

static void try_again(struct stream_range *r)
{
	struct stream *st = r->stream;
	size_t n_sources;

	COUNT(st->fill, retries, 1);
	bs_origin_failed(st->o.origin, r->source);
	(void)bs_repo_unref(bs_origin_pick(st->o.origin, r->source, &n_sources));
	r->source++;
	r->tried++;
	if (n_sources > 0 && r->tried < TRIES_MAX * n_sources) {
		uint64_t pause = 0;

		/* an own fetch is nearer than the next try, which may be seconds away */
		for (uint32_t i = 0; r->tried == 1 && i < r->n; i++)
			settle(st, r->first + i, SEGMENT_LATE);

		if (r->tried % n_sources == 0) /* all were asked */
			pause = bs_fill_pause_ns(r->tried / (unsigned int)n_sources,
						 r->range.retry_after_ns);
		if (bs_loop_after(st->fill->o.loop, pause, submit_later, r) == 0)
			return;
	}
	stop_asking(st, -EIO);
	drop_range(r);
}

static void range_ended(struct job *j, struct unpacker *un)
{
	struct stream_range *r = BS_CONTAINER_OF(j, struct stream_range, job);
	struct stream *st = r->stream;

	if (r->range.result < 0) {
		try_again(r);
		return;
	}
	if (segment_of(st, r->first).off == r->off) { /* it has just come */
		(void)pthread_mutex_lock(&st->fill->lock);
		st->result.bytes += r->range.len;
		st->result.segments += r->n;
		learn(st, r->range.len);
		(void)pthread_mutex_unlock(&st->fill->lock);
		COUNT(st->fill, streamed_bytes, r->range.len);
	}
	if (!unpack_segment(r, un)) {
		drop_range(r);
	} else if (r->n > 0) { /* demand goes first between two */
		bs_fill_enqueue(st->fill, BS_LANE_HOT, &r->job);
	} else {
		(void)range_free(r);
		step(st, 1);
	}
}

/* --- life ------------------------------------------------------------------------------------------- */

static struct stream *stream_free(struct stream *st)
{
	if (!st)
		return NULL;
	(void)bs_origin_unref(st->o.origin);
	free(st->states);
	free(st->places);
	free(st);
	return NULL;
}

static void end(struct stream *st)
{
	const struct bs_stream_options o = st->o;
	struct bs_stream_result result = st->result;

	result.end_ns = bs_clock_ns();
	result.parallel = st->parallel;
	(void)stream_free(st);
	o.ops->done(o.cookie, &result);
}

/* Passes over the next segment if it is there. */
static bool pass_local(struct stream *st)
{
	uint32_t i;
	bool local;

	(void)pthread_mutex_lock(&st->fill->lock);
	i = st->next;
	local = i < st->o.n_segments && st->running < st->parallel && is_local(st, i);
	if (local) {
		st->states[i] = SEGMENT_LANDED;
		st->result.local_segments++;
		st->next++;
	}
	(void)pthread_mutex_unlock(&st->fill->lock);
	if (local)
		tell_landed(st, i);
	return local;
}

/* ret_again: there is none yet, the next segment has just come from elsewhere. */
static struct stream_range *take_range(struct stream *st, bool *ret_again)
{
	struct stream_range *r = NULL;
	bool some;

	(void)pthread_mutex_lock(&st->fill->lock);
	some = st->next < st->o.n_segments && st->running < st->parallel;
	if (some)
		r = next_range(st);
	*ret_again = some && !r && is_local(st, st->next);
	(void)pthread_mutex_unlock(&st->fill->lock);
	return r;
}

/*
 * Gives up the ranges that ended and starts what may be started. The last one in here,
 * with no range on its way, ends the stream.
 */
static void step(struct stream *st, unsigned int ended)
{
	struct bs_fill *f = st->fill;
	struct stream_range *r;
	bool again, last;

	(void)pthread_mutex_lock(&f->lock);
	st->running -= ended;
	st->steppers++;
	(void)pthread_mutex_unlock(&f->lock);
	do {
		while (pass_local(st))
			;
		r = take_range(st, &again);
		if (r)
			submit(r);
	} while (r || again);
	(void)pthread_mutex_lock(&f->lock);
	last = --st->steppers == 0 && st->running == 0;
	(void)pthread_mutex_unlock(&f->lock);
	if (!last)
		return;
	if (st->next < st->o.n_segments) /* there was no memory, not even for one */
		stop_asking(st, -ENOMEM);
	(void)pthread_mutex_lock(&f->lock);
	bs_list_remove(&st->all);
	(void)pthread_mutex_unlock(&f->lock);
	end(st);
}

static int list_places(struct stream *st)
{
	size_t cap = 0;

	for (uint32_t i = 0; i < st->o.n_segments; i++) {
		struct bs_stream_segment s = segment_of(st, i);

		if (bs_grow(&st->places, &cap, (size_t)st->n_places + s.n_extents,
			    sizeof(*st->places)) < 0)
			return -ENOMEM;
		for (uint32_t k = 0; k < s.n_extents; k++)
			st->places[st->n_places++] = (struct place){ s.extents[k].block,
								     s.extents[k].n_blocks, i };
	}
	qsort(st->places, st->n_places, sizeof(*st->places), by_block);
	return 0;
}

int bs_fill_stream(struct bs_fill *f, const struct bs_stream_options *o)
{
	struct stream *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->fill = f;
	st->o = *o;
	st->o.origin = bs_origin_ref(o->origin);
	st->parallel = BS_MIN(PARALLEL_FIRST, o->parallel_max);
	st->states = calloc(o->n_segments, 1);
	if (!st->states || list_places(st) < 0) {
		(void)stream_free(st);
		return -ENOMEM;
	}
	st->sample_ns = st->result.start_ns = bs_clock_ns();
	bs_list_init(&st->all);
	(void)pthread_mutex_lock(&f->lock);
	bs_list_append(&f->streams, &st->all);
	(void)pthread_mutex_unlock(&f->lock);
	step(st, 0);
	return 0;
}
