/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/streampriv.h"

#define SLOW_NS BS_NS_PER_S /* without a byte: a range is late */
#define NEAR_NS BS_NS_PER_S /* what comes within is waited for, whatever a reader could do */
#define QUEUED_NS (50 * BS_NS_PER_MS) /* so long a range may stand in a queue unnoticed */

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

bool bs_stream_moves(const struct stream *st)
{
	return st->doubtful == 0 || st->doubtful < st->running;
}

/* Whether it stands in a queue: where other readers go first that may be for long. */
static bool is_queued(const struct stream_range *r)
{
	return r->asked && !r->ended && !bs_fill_has_begun(&r->range);
}

/* Whether the segment, which is asked for, is in a range that is queued. */
static bool is_segment_queued(const struct stream *st, uint32_t i)
{
	bs_list_for_each(it, &st->ranges) {
		const struct stream_range *r = bs_list_entry(it, struct stream_range, in_stream);

		if (i >= r->first && i < r->first + r->n)
			return is_queued(r);
	}
	return false;
}

/* Whether what would be asked for next would begin at once. */
static bool flows(const struct stream *st)
{
	bs_list_for_each(it, &st->ranges) {
		if (is_queued(bs_list_entry(it, struct stream_range, in_stream)))
			return false;
	}
	return bs_stream_moves(st);
}

static bool is_coming(const struct stream *st, uint64_t block)
{
	const struct place *p = place_of(st, block);

	if (!p)
		return false;
	if (st->states[p->segment] == SEGMENT_ASKED)
		return !is_segment_queued(st, p->segment);
	return st->states[p->segment] == SEGMENT_WAITING && p->segment < st->next + STREAM_SOON &&
	       flows(st);
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

void bs_fill_own_fetch(struct bs_fill *f, const struct bs_blob *b, uint64_t ns)
{
	bs_list_for_each(it, &f->streams) {
		struct stream *st = bs_list_entry(it, struct stream, all);

		if (st->o.blob == b)
			st->own_ns = st->own_ns ? (3 * st->own_ns + ns) / 4 : ns;
	}
}

bool bs_fill_is_streaming(struct bs_fill *f, struct bs_blob *b)
{
	bs_list_for_each(it, &f->streams) {
		const struct stream *st = bs_list_entry(it, struct stream, all);

		if (st->o.blob == b && bs_stream_moves(st))
			return true;
	}
	return false;
}

bool bs_stream_is_local(const struct stream *st, uint32_t i)
{
	struct bs_stream_segment s = bs_stream_segment_of(st, i);

	for (uint32_t k = 0; k < s.n_extents; k++) {
		if (!bs_blob_has_range(st->o.blob, (uint64_t)s.extents[k].block * BS_BLOCK_BYTES,
				       (uint64_t)s.extents[k].n_blocks * BS_BLOCK_BYTES))
			return false;
	}
	return true;
}

static bool is_asked_elsewhere(const struct stream *st, uint64_t block)
{
	bs_list_for_each(it, &st->fill->streams) {
		const struct stream *other = bs_list_entry(it, struct stream, all);
		const struct place *p = other != st && other->o.blob == st->o.blob
						? place_of(other, block)
						: NULL;

		if (p && other->states[p->segment] == SEGMENT_ASKED)
			return true;
	}
	return false;
}

bool bs_stream_comes_elsewhere(const struct stream *st, uint32_t i)
{
	struct bs_stream_segment s = bs_stream_segment_of(st, i);
	bool some = false;

	for (uint32_t k = 0; k < s.n_extents; k++) {
		for (uint32_t n = 0; n < s.extents[k].n_blocks; n++) {
			const uint64_t block = (uint64_t)s.extents[k].block + n;

			if (bs_blob_has_range(st->o.blob, block * BS_BLOCK_BYTES, BS_BLOCK_BYTES))
				continue;
			if (!is_asked_elsewhere(st, block))
				return false;
			some = true;
		}
	}
	return some;
}

/* One that waits, with a step of its own to make. */
static struct stream *take_holding(struct stream *st)
{
	struct stream *found = NULL;

	(void)pthread_mutex_lock(&st->fill->lock);
	bs_list_for_each(it, &st->fill->streams) {
		struct stream *other = bs_list_entry(it, struct stream, all);

		if (!found && other->holding && !other->stepping && other->o.blob == st->o.blob)
			found = other;
	}
	if (found) {
		found->holding = false;
		found->stepping = true;
		found->steppers++;
	}
	(void)pthread_mutex_unlock(&st->fill->lock);
	return found;
}

void bs_stream_wake_others(struct stream *st)
{
	struct stream *other;

	while ((other = take_holding(st)))
		bs_fill_enqueue(st->fill, BS_LANE_DEMAND, &other->step);
}

int bs_stream_list_places(struct stream *st)
{
	size_t cap = 0;

	for (uint32_t i = 0; i < st->o.n_segments; i++) {
		struct bs_stream_segment s = bs_stream_segment_of(st, i);

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

/* --- ranges that hang ---------------------------------------------------------------------------- */

/* Whether nothing comes of it for now, so that who waits for it had better not. Lock held. */
static bool hangs(struct stream *st, struct stream_range *r, uint64_t now)
{
	size_t got = __atomic_load_n(&r->range.got, __ATOMIC_RELAXED);

	if (!r->asked) /* a pause: the source's fault as long as nothing else comes from it */
		return r->failed_ns && st->moved_ns > r->failed_ns;
	r->moved_ns = BS_MAX(r->moved_ns, bs_fill_begun_ns(&r->range));
	if (got > r->seen) {
		r->seen = got;
		r->moved_ns = st->moved_ns = now;
	}
	return now > r->moved_ns + BS_MAX(SLOW_NS, 3 * st->answer_ns);
}

/*
 * Of the range's segments, the first that an own fetch would bring sooner, at the rate of the
 * last second or so; r->n: there is none, or none is known. What drips is not worth waiting
 * for: other connections, or other sources, may be fast. Lock held.
 */
static uint32_t first_slow(const struct stream *st, struct stream_range *r, uint64_t now)
{
	const size_t got = __atomic_load_n(&r->range.got, __ATOMIC_RELAXED);
	const uint64_t ns = now - r->mark_ns, wait_ns = BS_MAX(NEAR_NS, 2 * st->own_ns);
	uint64_t near;

	if (!r->asked || r->ended || got == 0)
		return r->n;
	if (r->mark_ns != 0 && got >= r->mark && ns < BS_MAX(SLOW_NS, 3 * st->answer_ns))
		return r->n;
	near = r->mark_ns == 0 || got < r->mark
		       ? UINT64_MAX
		       : got + (uint64_t)((double)(got - r->mark) / (double)ns * (double)wait_ns);
	r->mark = got;
	r->mark_ns = now;
	for (uint32_t k = 0; k < r->n; k++) {
		struct bs_stream_segment s = bs_stream_segment_of(st, r->first + k);

		if (s.off + s.len - r->off > near)
			return k;
	}
	return r->n;
}

/* Nobody waits for the range's segments from k on; false: nobody did. Lock held. */
static bool give_up(struct stream *st, struct stream_range *r, uint32_t k)
{
	bool some = false;

	for (uint32_t i = r->first + k; i < r->first + r->n; i++) {
		some |= st->states[i] == SEGMENT_ASKED;
		st->states[i] = SEGMENT_LATE;
	}
	if (k > 0)
		return some;
	r->late = true;
	st->late++;
	bs_stream_doubt(r);
	return true;
}

/* It is queued, and who waits for it does not know. Lock held. */
static bool is_news(struct stream_range *r, uint64_t now)
{
	const bool is = !r->told && now >= r->moved_ns + QUEUED_NS;

	r->told |= is;
	return is;
}

bool bs_stream_find_late(struct stream *st, uint64_t now, uint32_t *ret_first, uint32_t *ret_n)
{
	bool found = false;

	(void)pthread_mutex_lock(&st->fill->lock);
	bs_list_for_each(it, &st->ranges) {
		struct stream_range *r = bs_list_entry(it, struct stream_range, in_stream);

		uint32_t k = 0;

		if (found || r->late)
			continue;
		if (is_queued(r)) {
			found = is_news(r, now);
		} else {
			k = hangs(st, r, now) ? 0 : first_slow(st, r, now);
			found = k < r->n && give_up(st, r, k);
		}
		*ret_first = r->first + k;
		*ret_n = r->n - k;
	}
	(void)pthread_mutex_unlock(&st->fill->lock);
	return found;
}
