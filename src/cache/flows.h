/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How many requests at once make use of a link: one connection seldom carries all of it, and
 * many a host gives each only so much; but each request costs its server time.
 *
 * A sample is what all of them bring in a tenth of a second or so, once as many run as may and
 * each has brought something. Twice as many are tried as long as that makes the whole faster by
 * an eighth; then it goes back to as many as were as fast, and after a while, which grows, more
 * are tried again: one sample may be wrong, and links change.
 *
 * Pure arithmetic; the caller's lock.
 */
#ifndef BS_CACHE_FLOWS_H
#define BS_CACHE_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#define BS_FLOWS_FIRST 4u

struct bs_flows {
	unsigned int now, max; /* requests at once; what may be */
	/* its own */
	unsigned int enough;		/* requests that the rate was seen with */
	uint64_t rate;			/* bytes per second, smoothed; 0: not yet */
	uint64_t first_ns, first_bytes; /* since the first byte, for as long as there is no rate */
	uint64_t since_ns, bytes;	/* the sample; 0: waits for its beginning */
	uint64_t settle_ns;		/* when it no longer does */
	uint64_t again_ns, wait_ns;	/* when more are tried again, and how long that took */
	bool warm;			/* connections are made: what comes now counts */
};

/* max > 0 */
void bs_flows_begin(struct bs_flows *f, unsigned int max);
/*
 * bytes came; full: as many run as may, and each has brought something. True: more may run
 * than before.
 */
bool bs_flows_brought(struct bs_flows *f, uint64_t now_ns, uint64_t bytes, bool full);
/* Bytes per second of the whole, as far as it is known; 0: not yet. */
uint64_t bs_flows_rate(const struct bs_flows *f, uint64_t now_ns);

#endif
