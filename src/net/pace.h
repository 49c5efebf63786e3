/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Whether a transfer that is not silent has stalled all the same: a byte now and then
 * must not keep a reader waiting.
 *
 * A transfer is looked at in windows. In each it has to bring its part of a little of
 * what its host has brought lately: 1/BS_PACE_PART of that, shared by all transfers that
 * were under way, on whatever lane and host, since they may be what slows it down. More
 * than BS_PACE_MAX in all is never asked, so that on a link of 1 Mbit/s a transfer may
 * have an eighth of its fair share; less than BS_PACE_MIN never counts as life. What a
 * host brings is forgotten within a minute or so: a link that became slower for good is
 * soon as good as ever.
 *
 * Pure arithmetic; the caller's thread.
 */
#ifndef BS_NET_PACE_H
#define BS_NET_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define BS_PACE_PART 16u
#define BS_PACE_MAX (16u << 10) /* bytes per second, of all transfers */
#define BS_PACE_MIN 256u	/* bytes per second, of each */

/* What a host brought; zeros: nothing is known. */
struct bs_pace_host {
	uint64_t rate; /* bytes per second, of all its transfers */
	uint64_t since_ns, bytes;
};

/* Its first transfer after a rest begins. */
void bs_pace_host_begin(struct bs_pace_host *p, uint64_t now_ns);
/* So many bytes came since the last call. rests: no transfer is left. */
void bs_pace_host_brought(struct bs_pace_host *p, uint64_t now_ns, uint64_t bytes, bool rests);

struct bs_pace {
	uint64_t since_ns, bytes; /* when the window began, with how many bytes there by then */
	unsigned int peers;	  /* the most that were under way in it */
};

void bs_pace_begin(struct bs_pace *p, uint64_t now_ns, uint64_t bytes);
/*
 * bytes came so far and running transfers (> 0) are under way, this one too. True when a window
 * of window_ns is over and too little came in it; else the next one begins. host NULL:
 * BS_PACE_MIN is all that is asked.
 */
bool bs_pace_stalled(struct bs_pace *p, const struct bs_pace_host *host, uint64_t now_ns,
		     uint64_t window_ns, uint64_t bytes, unsigned int running);

#endif
