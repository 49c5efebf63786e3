/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* How many ranges of a stream are on their way, and how large they are. */
#include "config.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cache/streampriv.h"

#define RANGE_FIRST (128u << 10)
#define RANGE_MIN (128u << 10)
#define RANGE_MAX (4u << 20)
#define RANGES_MAX (16u << 20)	       /* all together */
#define STREAMS_MAX (64u << 20)	       /* those of all streams, but for one small one of each */
#define LATE_MAX 8u		       /* that are late, beside those that may run */
#define WINDOW_NS (240 * BS_NS_PER_MS) /* what they should take */

/* What all streams together may still ask for. */
static uint64_t bytes_left(const struct stream *st)
{
	const uint64_t max = st->fill->o.stream_bytes ? st->fill->o.stream_bytes : STREAMS_MAX;

	return max - BS_MIN(max, st->fill->stream_bytes);
}

/*
 * As long as the link is kept busy and what all bring is not too far from the order in which
 * it is needed; towards the end ever smaller, so that they do not all end at once.
 */
uint64_t bs_stream_range_bytes(const struct stream *st)
{
	const struct bs_stream_segment z = bs_stream_segment_of(st, st->o.n_segments - 1);
	const uint64_t left = z.off + z.len - bs_stream_segment_of(st, st->next).off;
	const uint64_t rate = bs_flows_rate(&st->flows, bs_clock_ns());
	uint64_t bytes = rate ? rate / (BS_NS_PER_S / WINDOW_NS) / st->flows.now : RANGE_FIRST;

	bytes = BS_MIN(bytes, (uint64_t)RANGE_MAX);
	bytes = BS_MIN(bytes, (uint64_t)RANGES_MAX / st->flows.now);
	bytes = BS_MIN(bytes, left / 2 / st->flows.now);
	bytes = BS_MIN(bytes, bytes_left(st));
	return BS_MAX(bytes, (uint64_t)RANGE_MIN);
}

/* How many ranges at once: all streams share what one may have, so that none waits in a queue. */
static unsigned int share(const struct stream *st)
{
	unsigned int n = 0, each;

	bs_list_for_each(it, &st->fill->streams) {
		const struct stream *other = bs_list_entry(it, struct stream, all);

		n += bs_stream_moves(other) && !other->holding;
	}
	each = st->o.parallel_max / BS_MAX(n, 1u);
	each = BS_MAX(each, 1u);
	return BS_MIN(st->flows.now, each);
}

/*
 * One that has come, and is unpacked, is followed by the next one right away, so that no
 * connection rests; and one that hangs must not hold up the others. Many that hang must not
 * take all memory: then each stream has one.
 */
bool bs_stream_has_room(const struct stream *st)
{
	const unsigned int n = share(st);

	return st->running - st->late - st->came < n && st->came <= BS_MAX(n / 2, 1u) &&
	       st->running < st->o.parallel_max * 2 + LATE_MAX &&
	       (st->running == 0 || bytes_left(st) >= RANGE_MIN);
}

/* As many as may be are on their way, and each has brought something. */
static bool is_full(const struct stream *st)
{
	if (st->running - st->late - st->came < share(st))
		return false;
	bs_list_for_each(it, &st->ranges) {
		const struct stream_range *r = bs_list_entry(it, struct stream_range, in_stream);

		if (!r->came && !r->late && r->counted == 0)
			return false;
	}
	return true;
}

void bs_stream_learn(struct stream *st, uint64_t bytes)
{
	(void)bs_flows_brought(&st->flows, bs_clock_ns(), bytes, is_full(st));
}
