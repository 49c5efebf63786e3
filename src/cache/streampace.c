/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* How many ranges of a stream are on their way, and how large they are. */
#include "config.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cache/streampriv.h"

#define RANGE_FIRST (256u << 10)
#define RANGE_MIN (128u << 10)
#define RANGE_MAX (4u << 20)
#define RANGES_MAX (16u << 20)	       /* all together */
#define WINDOW_NS (240 * BS_NS_PER_MS) /* what they should take */
#define SAMPLE_NS (120 * BS_NS_PER_MS)

/*
 * As long as the link is kept busy and what all bring is not too far from the order in which
 * it is needed; towards the end ever smaller, so that they do not all end at once.
 */
uint64_t bs_stream_range_bytes(const struct stream *st)
{
	const struct bs_stream_segment z = bs_stream_segment_of(st, st->o.n_segments - 1);
	const uint64_t left = z.off + z.len - bs_stream_segment_of(st, st->next).off;
	uint64_t bytes = st->rate ? st->rate / (BS_NS_PER_S / WINDOW_NS) / st->parallel
				  : RANGE_FIRST;

	bytes = BS_MIN(bytes, (uint64_t)RANGE_MAX);
	bytes = BS_MIN(bytes, (uint64_t)RANGES_MAX / st->parallel);
	bytes = BS_MIN(bytes, left / 2 / st->parallel);
	return BS_MAX(bytes, (uint64_t)RANGE_MIN);
}

/*
 * As long as more ranges at once make the whole faster, there may be twice as many; when
 * they do not, it goes back to as many as were as fast. Each is a request that costs its
 * server time. Lock held.
 */
void bs_stream_learn(struct stream *st, uint64_t bytes)
{
	uint64_t now = bs_clock_ns(), rate;
	bool faster;

	st->sample_bytes += bytes;
	if (st->sample_bytes <
	    BS_MAX(st->rate / (BS_NS_PER_S / SAMPLE_NS), (uint64_t)RANGE_FIRST * st->parallel))
		return;
	rate = st->sample_bytes * BS_NS_PER_S / BS_MAX(now - st->sample_ns, UINT64_C(1));
	faster = rate > st->rate + st->rate / 10;
	if (st->warm && faster) {
		st->rate = rate;
		st->enough = st->parallel;
		st->parallel = BS_MIN(st->parallel * 2, st->o.parallel_max);
	} else if (st->warm) {
		st->parallel = st->enough;
	}
	st->warm = true;
	st->sample_ns = now;
	st->sample_bytes = 0;
}
