/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/streampriv.h"

#define WAIT_NS (180 * BS_NS_PER_S) /* without a byte, then it is given up */
#define BAD_ROUNDS 3u /* every source has it wrong, or not at all, so often: give up */
#define LOOK_NS (250 * BS_NS_PER_MS)

static void range_ended(struct job *j, struct unpacker *un);
static void unpack_early(struct job *j, struct unpacker *un);
static void go_on(struct stream *st);

/* --- ranges ------------------------------------------------------------------------------------- */

static void drop_range(struct stream_range *r);
static void skip_range(struct stream_range *r);
static bool are_local(const struct stream_range *r);
static void try_again(struct stream_range *r);

static bool has_failed(struct stream *st)
{
	bool failed;

	(void)pthread_mutex_lock(&st->fill->lock);
	failed = st->result.error != 0;
	(void)pthread_mutex_unlock(&st->fill->lock);
	return failed;
}

/* Whether somebody has to go on, who is to be queued by the caller. Lock held. */
static bool may_step(struct stream *st)
{
	if (st->stepping || st->holding || st->next >= st->o.n_segments || !bs_stream_has_room(st))
		return false;
	st->stepping = true;
	st->steppers++;
	return true;
}

static void step_job(struct job *j, struct unpacker *un)
{
	struct stream *st = BS_CONTAINER_OF(j, struct stream, step);

	(void)pthread_mutex_lock(&st->fill->lock);
	st->stepping = false;
	(void)pthread_mutex_unlock(&st->fill->lock);
	go_on(st);
}

/* Its connection is free: the next range is asked for before this one is unpacked. */
static void range_done(struct bs_range *rg)
{
	struct stream_range *r = rg->cookie;
	struct stream *st = r->stream;
	struct bs_fill *f = st->fill;
	bool early, step;

	(void)pthread_mutex_lock(&f->lock);
	r->ended = true;
	early = r->early;
	if (rg->result == 0) {
		st->late -= r->late;
		r->late = false;
		r->came = true;
		st->came++;
	}
	step = may_step(st);
	(void)pthread_mutex_unlock(&f->lock);
	if (step)
		bs_fill_enqueue(f, BS_LANE_DEMAND, &st->step);
	if (!early) /* else it will see that */
		bs_fill_enqueue(f, BS_LANE_HOT, &r->job);
}

/* Whether the first segment is there and not the last one. Lock held. */
static bool has_first(const struct stream_range *r)
{
	struct bs_stream_segment s = bs_stream_segment_of(r->stream, r->first);

	return r->n > 1 && !r->in_doubt &&
	       s.off - r->off + s.len <= __atomic_load_n(&r->range.got, __ATOMIC_ACQUIRE);
}

/* More of it than the job knows has come, or less: then it was begun anew. Lock held. */
static void count(struct stream_range *r, size_t got)
{
	const size_t more = got > r->counted ? got - r->counted : 0;

	r->counted = got;
	if (more > 0)
		bs_stream_learn(r->stream, more);
}

static void range_moved(struct bs_range *rg)
{
	struct stream_range *r = rg->cookie;
	struct stream *st = r->stream;
	struct bs_fill *f = st->fill;
	bool early, step;

	(void)pthread_mutex_lock(&f->lock);
	count(r, rg->got);
	early = !r->early && has_first(r);
	if (early) {
		r->early = true;
		r->job.run = unpack_early;
	}
	step = may_step(st);
	(void)pthread_mutex_unlock(&f->lock);
	if (step)
		bs_fill_enqueue(f, BS_LANE_DEMAND, &st->step);
	if (early)
		bs_fill_enqueue(f, BS_LANE_HOT, &r->job);
}

/* What is unpacked already is not asked for again: so many bytes. Lock held. */
static uint64_t shorten(struct stream_range *r)
{
	uint64_t bytes = bs_stream_segment_of(r->stream, r->first).off - r->off;

	r->range.len -= bytes;
	r->off += bytes;
	r->range.off = r->off;
	return bytes;
}

static void submit(struct stream_range *r)
{
	struct bs_fill *f = r->stream->fill;
	size_t n_sources;
	struct bs_repo *repo = bs_origin_pick(r->stream->o.origin, r->source, &n_sources);

	__atomic_store_n(&r->range.got, 0, __ATOMIC_RELAXED);
	(void)pthread_mutex_lock(&f->lock);
	r->stream->result.bytes += shorten(r);
	r->asked = true;
	r->ended = r->in_doubt = false;
	r->counted = 0;
	r->told = false;
	r->seen = 0;
	r->mark_ns = 0;
	r->moved_ns = bs_clock_ns();
	__atomic_store_n(&r->range.started_ns, 0, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&f->lock);
	r->range.result = 0;
	r->range.retry_after_ns = 0;
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
	struct stream_range *r = BS_CONTAINER_OF(j, struct stream_range, job);

	j->run = range_ended;
	if (has_failed(r->stream)) /* meanwhile, over another range */
		drop_range(r);
	else if (are_local(r)) /* others were quicker */
		skip_range(r);
	else
		submit(r);
}

/* Not on the loop's own thread, which has else to do. */
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
	struct bs_stream_segment a = bs_stream_segment_of(st, first),
				 z = bs_stream_segment_of(st, first + n - 1);
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
				      .whose = st->o.blob,
				      .done = range_done,
				      .progress = range_moved,
				      .cookie = r };
	r->held = r->range.len;
	r->range.buf = malloc(r->held);
	return r->range.buf ? r : range_free(r);
}

static bool are_local(const struct stream_range *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (!bs_stream_is_local(r->stream, r->first + i))
			return false;
	}
	return true;
}

/* The next range to ask for, up to a segment that is there, or comes elsewhere. Lock held. */
static struct stream_range *next_range(struct stream *st)
{
	const bool moves = bs_stream_moves(st); /* else nobody is to wait for this one, either */
	const uint64_t max = bs_stream_range_bytes(st);
	struct stream_range *r;
	uint64_t bytes = 0;
	uint32_t n = 0;

	st->holding = false;
	while (st->next + n < st->o.n_segments && !bs_stream_is_local(st, st->next + n)) {
		st->holding = bs_stream_comes_elsewhere(st, st->next + n);
		if (st->holding)
			break;
		bytes += bs_stream_segment_of(st, st->next + n).len;
		if (n > 0 && bytes > max)
			break;
		n++;
	}
	st->holding = st->holding && n == 0;
	r = n > 0 ? range_new(st, st->next, n) : NULL;
	if (!r)
		return NULL;
	if (!moves)
		bs_stream_doubt(r);
	memset(st->states + st->next, moves ? SEGMENT_ASKED : SEGMENT_LATE, n);
	st->next += n;
	bs_list_append(&st->ranges, &r->in_stream);
	st->running++;
	st->fill->stream_bytes += r->held;
	return r;
}

/* It is over: what may be asked for in its place is. */
static void end_range(struct stream_range *r)
{
	struct stream *st = r->stream;

	(void)pthread_mutex_lock(&st->fill->lock);
	bs_list_remove(&r->in_stream);
	st->running--;
	st->fill->stream_bytes -= r->held;
	st->late -= r->late;
	st->came -= r->came;
	st->doubtful -= r->doubtful;
	st->steppers++;
	(void)pthread_mutex_unlock(&st->fill->lock);
	(void)range_free(r);
	go_on(st);
}

/* --- what a range brought -------------------------------------------------------------------------- */

/* Who waits for blocks of the segment gets them, or goes on as demand. */
static void answer(struct stream *st, uint32_t i)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(st->o.blob);
	struct bs_stream_segment s = bs_stream_segment_of(st, i);
	uint32_t last = UINT32_MAX;

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

/* Those that wait for what would have come soon go on as demand when nothing comes at all. */
static void answer_soon(struct stream *st)
{
	uint32_t first, last;
	bool any;

	(void)pthread_mutex_lock(&st->fill->lock);
	any = !bs_stream_moves(st);
	first = st->next;
	last = BS_MIN(first + STREAM_SOON, st->o.n_segments);
	(void)pthread_mutex_unlock(&st->fill->lock);
	for (; any && first < last; first++)
		answer(st, first);
}

static void settle(struct stream *st, uint32_t i, enum segment_state state)
{
	(void)pthread_mutex_lock(&st->fill->lock);
	st->states[i] = (uint8_t)state;
	(void)pthread_mutex_unlock(&st->fill->lock);
	answer(st, i);
	bs_stream_wake_others(st);
}

/* Nothing more is asked for; who waits for what would have come soon goes on as demand. */
static void stop_asking(struct stream *st, int error)
{
	uint32_t first, last;

	(void)pthread_mutex_lock(&st->fill->lock);
	if (!st->result.error)
		st->result.error = error;
	first = st->next;
	last = BS_MIN(first + STREAM_SOON, st->o.n_segments);
	memset(st->states + first, SEGMENT_LOST, st->o.n_segments - first);
	st->next = st->o.n_segments;
	(void)pthread_mutex_unlock(&st->fill->lock);
	for (; first < last; first++)
		settle(st, first, SEGMENT_LOST);
}

/* Stores a segment's blocks: what the disk says. */
static int store(struct stream *st, uint32_t i, const uint8_t *blocks)
{
	struct bs_stream_segment s = bs_stream_segment_of(st, i);
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

static void tell_landed(struct stream *st, uint32_t i)
{
	if (st->o.ops->landed)
		st->o.ops->landed(st->o.cookie, i);
}

/* The first segment of the range: proven and stored, or what is wrong. */
static int take_segment(struct stream_range *r, struct unpacker *un)
{
	struct stream *st = r->stream;
	struct bs_stream_segment s = bs_stream_segment_of(st, r->first);

	if (!un->segment)
		un->segment = malloc(BS_STREAM_SEGMENT_BYTES_MAX);
	if (!un->segment)
		return -ENOMEM;
	if (st->o.ops->decode(st->o.cookie, un->scratch, r->first,
			      (const char *)r->range.buf + (s.off - r->range.off), un->segment) < 0)
		return -EBADMSG;
	return store(st, r->first, un->segment);
}

/* The first segment is there now, or lost. */
static void pass_segment(struct stream_range *r, enum segment_state state)
{
	struct stream *st = r->stream;
	const uint32_t i = r->first;

	(void)pthread_mutex_lock(&st->fill->lock);
	r->first++;
	r->n--;
	st->result.segments += state == SEGMENT_LANDED;
	(void)pthread_mutex_unlock(&st->fill->lock);
	settle(st, i, state);
	if (state == SEGMENT_LANDED)
		tell_landed(st, i);
}

/* The whole range came and its first segment is wrong. False: so it is at every source. */
static bool doubt_source(struct stream_range *r)
{
	struct stream *st = r->stream;
	struct bs_stream_result *to = &st->result;
	size_t n;
	bs_auto(repo) struct bs_repo *repo = bs_origin_pick(st->o.origin, r->source, &n);
	const uint32_t all = n < 32 ? (1u << n) - 1 : UINT32_MAX;

	COUNT(st->fill, bad_segments, 1);
	r->wrong_at |= n ? 1u << r->source % n : 0;
	(void)pthread_mutex_lock(&st->fill->lock);
	to->wrong++;
	(void)snprintf(to->wrong_source, sizeof(to->wrong_source), "%s", repo ? repo->name : "");
	st->came -= r->came;
	r->came = false;
	r->failed_ns = bs_clock_ns();
	bs_stream_doubt(r);
	(void)shorten(r);
	(void)pthread_mutex_unlock(&st->fill->lock);
	r->range.result = -EBADMSG;
	return (r->wrong_at & all) != all;
}

/* The first segment. False: the range is in other hands now, or gone. */
static bool unpack_segment(struct stream_range *r, struct unpacker *un)
{
	int error = take_segment(r, un);

	if (!error) {
		pass_segment(r, SEGMENT_LANDED);
		r->wrong_at = 0;
		return true;
	}
	if (error == -EBADMSG && doubt_source(r)) {
		try_again(r);
		return false;
	}
	stop_asking(r->stream, error);
	drop_range(r);
	return false;
}

/*
 * The first segment, of a range that still comes. When something is wrong with it, it is
 * looked at again at the end: it may have been written anew just now.
 */
static void unpack_early(struct job *j, struct unpacker *un)
{
	struct stream_range *r = BS_CONTAINER_OF(j, struct stream_range, job);
	struct bs_fill *f = r->stream->fill;
	int error = take_segment(r, un);
	bool again;

	if (!error)
		pass_segment(r, SEGMENT_LANDED);
	(void)pthread_mutex_lock(&f->lock);
	r->in_doubt |= error != 0;
	again = r->ended || has_first(r);
	r->early = again && !r->ended;
	if (!r->early)
		j->run = range_ended;
	(void)pthread_mutex_unlock(&f->lock);
	if (again) /* else it is not ours any more */
		bs_fill_enqueue(f, BS_LANE_HOT, j);
}

static void drop_range(struct stream_range *r)
{
	while (r->n > 0)
		pass_segment(r, SEGMENT_LOST);
	end_range(r);
}

/* All of it has come from elsewhere. */
static void skip_range(struct stream_range *r)
{
	struct stream *st = r->stream;

	(void)pthread_mutex_lock(&st->fill->lock);
	st->result.local_segments += r->n;
	(void)pthread_mutex_unlock(&st->fill->lock);
	for (; r->n > 0; r->first++, r->n--) {
		settle(st, r->first, SEGMENT_LANDED);
		tell_landed(st, r->first);
	}
	end_range(r);
}

/* Whether asking again is of no use. */
static bool is_final(int result)
{
	return result == -EBADMSG || result == -ENOENT || result == -EOPNOTSUPP;
}

static unsigned int n_wrong(const struct stream_range *r)
{
	return (unsigned int)__builtin_popcount(r->wrong_at);
}

/* To the next source; true: all were asked. Who gave it wrong is not asked for it again. */
static bool next_source(struct stream_range *r, size_t n_sources)
{
	bool round = false;

	for (size_t i = 0; i < n_sources; i++) {
		round |= ++r->tried % n_sources == 0;
		if (!(r->wrong_at & 1u << ++r->source % n_sources))
			break;
	}
	return round;
}

/* What it comes to that no source is of use. An answer that is none says nothing of the bytes. */
static int conclude(const struct stream_range *r, unsigned int gone, size_t n_sources)
{
	if (gone == n_sources)
		return -ENOENT;
	if (gone + n_wrong(r) >= n_sources)
		return -EBADMSG;
	return r->range.result == -EOPNOTSUPP ? -EOPNOTSUPP : -EIO;
}

/*
 * Every source was asked: 0, or why the stream is not worth going on with. One that is
 * out of reach may come back, as long as nobody has to have it.
 */
static int end_round(struct stream_range *r, size_t n_sources)
{
	struct stream *st = r->stream;
	const unsigned int gone = r->gone;
	uint64_t moved_ns;

	r->bad_rounds = r->bad + n_wrong(r) >= n_sources ? r->bad_rounds + 1 : 0;
	r->bad = r->gone = 0;
	if (r->bad_rounds == BAD_ROUNDS)
		return conclude(r, gone, n_sources);
	(void)pthread_mutex_lock(&st->fill->lock);
	moved_ns = st->moved_ns;
	(void)pthread_mutex_unlock(&st->fill->lock);
	return bs_clock_ns() >= moved_ns + st->o.wait_ns ? -EIO : 0;
}

static void try_again(struct stream_range *r)
{
	struct stream *st = r->stream;
	uint64_t pause = 0;
	const bool first = r->tried == 0;
	bool round;
	size_t n_sources;
	int error = 0;

	COUNT(st->fill, retries, 1);
	bs_origin_failed(st->o.origin, r->source);
	(void)bs_repo_unref(bs_origin_pick(st->o.origin, r->source, &n_sources));
	if (n_sources > 0 && !(r->wrong_at & 1u << r->source % n_sources))
		r->bad += is_final(r->range.result);
	r->gone += r->range.result == -ENOENT;
	round = next_source(r, n_sources);
	r->range.fresh = true;
	if (r->range.result == -ECANCELED || n_sources == 0)
		error = -EIO;
	/* an own fetch is nearer than the next try, which may be minutes away */
	for (uint32_t i = 0; !error && first && i < r->n; i++)
		settle(st, r->first + i, SEGMENT_LATE);
	if (first)
		answer_soon(st);
	if (!error && round) {
		error = end_round(r, n_sources);
		pause = bs_fill_pause_ns(r->tried / (unsigned int)n_sources,
					 r->range.retry_after_ns);
	}
	if (!error && !has_failed(st) &&
	    bs_loop_after(st->fill->o.loop, pause, submit_later, r) == 0)
		return;
	stop_asking(st, error ? error : -EIO);
	drop_range(r);
}

static void range_ended(struct job *j, struct unpacker *un)
{
	struct stream_range *r = BS_CONTAINER_OF(j, struct stream_range, job);
	struct stream *st = r->stream;
	const uint64_t now = bs_clock_ns();

	if (r->range.result < 0) {
		(void)pthread_mutex_lock(&st->fill->lock);
		bs_stream_failed(r, now);
		(void)pthread_mutex_unlock(&st->fill->lock);
		try_again(r);
		return;
	}
	if (r->asked) { /* it has just come */
		(void)pthread_mutex_lock(&st->fill->lock);
		r->asked = false;
		r->failed_ns = 0;
		st->moved_ns = now;
		st->doubtful -= r->doubtful;
		r->doubtful = false;
		if (r->range.answered_ns > r->range.started_ns)
			st->answer_ns = BS_MAX(st->answer_ns,
					       r->range.answered_ns - r->range.started_ns);
		st->result.bytes += r->range.len;
		count(r, r->range.len);
		(void)pthread_mutex_unlock(&st->fill->lock);
		COUNT(st->fill, streamed_bytes, r->range.len);
	}
	if (!unpack_segment(r, un))
		return;
	if (r->n > 0) { /* demand goes first between two */
		bs_fill_enqueue(st->fill, BS_LANE_HOT, &r->job);
	} else {
		end_range(r);
	}
}

/* --- ranges that hang ---------------------------------------------------------------------------- */

static void look(void *cookie);

/* By one that keeps it from its end. */
static void look_later(struct stream *st)
{
	(void)pthread_mutex_lock(&st->fill->lock);
	st->looking = true;
	(void)pthread_mutex_unlock(&st->fill->lock);
	if (bs_loop_after(st->fill->o.loop, LOOK_NS, look, st) == 0)
		return;
	(void)pthread_mutex_lock(&st->fill->lock);
	st->looking = false;
	(void)pthread_mutex_unlock(&st->fill->lock);
}

static void look_job(struct job *j, struct unpacker *un)
{
	struct stream *st = BS_CONTAINER_OF(j, struct stream, look);
	const uint64_t now = bs_clock_ns();
	uint32_t first, n;

	while (bs_stream_find_late(st, now, &first, &n)) {
		for (; n > 0; first++, n--)
			answer(st, first);
		answer_soon(st);
	}
	look_later(st);
	go_on(st);
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

/* The loop's thread. */
static void look(void *cookie)
{
	struct stream *st = cookie;
	bool over, go;

	(void)pthread_mutex_lock(&st->fill->lock);
	over = st->over;
	go = !over && !st->ending;
	st->looking = false;
	st->steppers += go; /* until look_job has gone on */
	(void)pthread_mutex_unlock(&st->fill->lock);
	if (over)
		(void)stream_free(st);
	else if (go)
		bs_fill_enqueue(st->fill, BS_LANE_DEMAND, &st->look);
}

static void end(struct stream *st)
{
	struct bs_fill *f = st->fill;
	const struct bs_stream_options o = st->o;
	struct bs_stream_result result = st->result;
	bool looking;

	result.end_ns = bs_clock_ns();
	result.parallel = st->flows.now;
	(void)pthread_mutex_lock(&f->lock);
	bs_list_remove(&st->all);
	st->over = true;
	looking = st->looking;
	(void)pthread_mutex_unlock(&f->lock);
	if (!looking) /* else it is look's */
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
	local = i < st->o.n_segments && bs_stream_has_room(st) && bs_stream_is_local(st, i);
	if (local) {
		st->states[i] = SEGMENT_LANDED;
		st->result.local_segments++;
		st->next++;
	}
	(void)pthread_mutex_unlock(&st->fill->lock);
	if (local) {
		answer(st, i); /* who waited for it may not have been told by who brought it */
		tell_landed(st, i);
	}
	return local;
}

/* ret_again: there is none yet, the next segment has just come from elsewhere. */
static struct stream_range *take_range(struct stream *st, bool *ret_again)
{
	struct stream_range *r = NULL;
	bool some;

	(void)pthread_mutex_lock(&st->fill->lock);
	some = st->next < st->o.n_segments && bs_stream_has_room(st);
	if (some)
		r = next_range(st);
	*ret_again = some && !r && bs_stream_is_local(st, st->next);
	(void)pthread_mutex_unlock(&st->fill->lock);
	return r;
}

/*
 * Starts what may be started, by one of st->steppers. The last one in here, with no range
 * on its way, ends the stream.
 */
static void go_on(struct stream *st)
{
	struct bs_fill *f = st->fill;
	struct stream_range *r;
	bool again, last;

	do {
		while (pass_local(st))
			;
		r = take_range(st, &again);
		if (r)
			submit(r);
	} while (r || again);
	(void)pthread_mutex_lock(&f->lock);
	last = --st->steppers == 0 && st->running == 0 &&
	       !(st->holding && st->next < st->o.n_segments);
	st->ending = last;
	(void)pthread_mutex_unlock(&f->lock);
	if (!last)
		return;
	if (st->next < st->o.n_segments) /* there was no memory, not even for one */
		stop_asking(st, -ENOMEM);
	end(st);
}

int bs_fill_stream(struct bs_fill *f, const struct bs_stream_options *o)
{
	struct stream *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->fill = f;
	st->o = *o;
	st->o.origin = bs_origin_ref(o->origin);
	if (!st->o.wait_ns)
		st->o.wait_ns = WAIT_NS;
	bs_flows_begin(&st->flows, o->parallel_max);
	bs_list_init(&st->ranges);
	bs_list_init(&st->look.queued);
	st->look.run = look_job;
	bs_list_init(&st->step.queued);
	st->step.run = step_job;
	st->steppers = 1; /* ours */
	st->states = calloc(o->n_segments, 1);
	if (!st->states || bs_stream_list_places(st) < 0) {
		(void)stream_free(st);
		return -ENOMEM;
	}
	st->moved_ns = st->result.start_ns = bs_clock_ns();
	bs_list_init(&st->all);
	(void)pthread_mutex_lock(&f->lock);
	bs_list_append(&f->streams, &st->all);
	(void)pthread_mutex_unlock(&f->lock);
	look_later(st);
	go_on(st);
	return 0;
}
