/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/readahead.h"

#include "base/mem.h"

#define BACK (1u << 20)	   /* a read so far behind a stream's end still is its */
#define FORWARD (2u << 20) /* the same before it */
#define RUN_MIN (256u << 10)
#define GROWTH 8u /* a window is so many times what was read in a row */
#define WHOLE_JUMPS 4u
#define WHOLE_BYTES (8u << 20)
#define WHOLE_PART 16u /* or this part of the file, if it is less */

void bs_readahead_init(struct bs_readahead *ra, uint64_t len, uint64_t unit, uint64_t window_max,
		       uint64_t whole_max)
{
	*ra = (struct bs_readahead){ .len = len,
				     .unit = unit ? unit : 1,
				     .window_max = window_max,
				     .whole_max = whole_max };
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return bs_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

/* The stream that a read goes on with, or the one whose place a new one takes. */
static unsigned int find(const struct bs_readahead *ra, uint64_t off, bool *ret_new)
{
	unsigned int oldest = 0;

	for (unsigned int i = 0; i < BS_READAHEAD_STREAMS; i++) {
		uint64_t next = ra->streams[i].next;

		if (ra->streams[i].used && off <= plus(next, FORWARD) && plus(off, BACK) >= next) {
			*ret_new = false;
			return i;
		}
		if (ra->streams[i].used < ra->streams[oldest].used)
			oldest = i;
	}
	*ret_new = true;
	return oldest;
}

static void window(const struct bs_readahead *ra, uint64_t next, uint64_t run,
		   struct bs_readahead_plan *ret)
{
	uint64_t size = run > UINT64_MAX / GROWTH ? UINT64_MAX : run * GROWTH;
	uint64_t from = plus(next, ra->unit - 1) / ra->unit * ra->unit, to;

	size = BS_MAX(size, ra->unit);
	size = BS_MIN(size, ra->window_max);
	to = plus(next, size) / ra->unit * ra->unit;
	ret->from = BS_MIN(from, ra->len);
	ret->to = BS_MIN(to, ra->len);
	if (ret->to == ra->len / ra->unit * ra->unit && size >= ra->unit)
		ret->to = ra->len; /* the last, short one, too */
	if (ret->to < ret->from)
		ret->to = ret->from;
}

void bs_readahead_note(struct bs_readahead *ra, uint64_t off, uint64_t len,
		       struct bs_readahead_plan *ret)
{
	unsigned int i;
	bool new;

	*ret = (struct bs_readahead_plan){ 0 };
	if (ra->window_max == 0 || off >= ra->len || len == 0)
		return;
	len = BS_MIN(len, ra->len - off);
	i = find(ra, off, &new);
	if (new) {
		ra->streams[i].run = 0;
		ra->streams[i].next = off;
		ra->jumps += off != 0;
	}
	ra->streams[i].used = ++ra->clock;
	ra->streams[i].run = plus(ra->streams[i].run, len);
	ra->streams[i].next = BS_MAX(ra->streams[i].next, off + len);
	ra->bytes = plus(ra->bytes, len);
	if (ra->jumps >= WHOLE_JUMPS && ra->len <= ra->whole_max &&
	    ra->bytes >= BS_MIN((uint64_t)WHOLE_BYTES, ra->len / WHOLE_PART))
		ra->whole = true;
	ret->whole = ra->whole;
	ret->units = ra->whole || off == 0 || ra->streams[i].run >= RUN_MIN || ra->len <= ra->unit;
	if (ra->streams[i].run >= RUN_MIN)
		window(ra, ra->streams[i].next, ra->streams[i].run, ret);
}
