/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How much the background lane may take, and when: a share of what the links bring, which
 * is measured while the lane runs, and nothing while readers wait for fetches of theirs.
 *
 * A share needs a whole: for a second at first, and for one in each BS_YIELD_AGAIN_NS, the lane
 * runs without limit and what comes, of all lanes, is the whole until the next time. A share of
 * what comes otherwise would be one of itself, and less each time. Where demand makes the lane
 * pause, that second is made of the times between.
 *
 * While somebody waits for a fetch of his, and for a moment after, what else comes of the host
 * must not fill the queues on the way, for he would stand in them: of the background, and of the
 * hot lane what is not for his own image, one transfer runs at a time, and after it there is a
 * rest as long as it took, BS_YIELD_QUIET_NS at most. So about half of the link is his. But where
 * readers of two images wait, neither image's hot lane makes room: who waits for a fetch of his
 * image waits for its stream as well, and is no less a reader than the other.
 *
 * Pure arithmetic; the caller's thread.
 */
#ifndef BS_NET_YIELD_H
#define BS_NET_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#define BS_YIELD_MEASURE_NS UINT64_C(1000000000)
#define BS_YIELD_AGAIN_NS UINT64_C(60000000000)
#define BS_YIELD_RATE_MIN (UINT64_C(64) << 10) /* bytes per second */
#define BS_YIELD_QUIET_NS UINT64_C(250000000)  /* after a demand fetch */
#define BS_YIELD_PAUSE_NS UINT64_C(5000000000) /* one pause; then one range may go */
#define BS_YIELD_IMAGES 8u /* with demand, told apart; of more nobody's in particular */

/* All: zeros, nothing was seen yet. */
struct bs_yield_share {
	uint64_t whole; /* bytes per second that were measured; 0: not yet */
	uint64_t measured_ns;
	uint64_t since_ns;	/* until then what came is counted; 0: the lane does not run */
	uint64_t ran_ns, bytes; /* so long, all together, and what came */
};
struct bs_yield_pause {
	uint64_t demand_ns; /* of the last demand fetch that ended; 0: none */
	uint64_t paused_ns; /* since then the background lane waits; 0: it does not */
};
struct bs_yield_budget { /* of bytes that may be taken at a rate */
	int64_t bytes;	 /* negative: overdrawn */
	uint64_t filled_ns;
};
struct bs_yield_image {
	const void *whose;
	unsigned int running;
	uint64_t ended_ns; /* when the last one did; 0: none */
};
struct bs_yield_demand { /* at a host */
	struct bs_yield_image all, images[BS_YIELD_IMAGES];
	uint64_t rest_ns; /* until then those that make room have one */
};

/* bytes came, of any lane. runs: the background lane has a transfer under way. */
void bs_yield_brought(struct bs_yield_share *y, uint64_t now_ns, uint64_t bytes, bool runs);
/* Bytes per second that are percent of the whole; 0: no limit now. */
uint64_t bs_yield_rate(const struct bs_yield_share *y, unsigned int percent, uint64_t now_ns);

/* Time has passed; one without use saves up nothing. rate: bytes per second, 0: no limit. */
void bs_yield_refill(struct bs_yield_budget *b, uint64_t now_ns, uint64_t rate);

/* A demand fetch has ended. */
void bs_yield_demand_ended(struct bs_yield_pause *y, uint64_t now_ns);
/*
 * How long no range of the background lane may be started; 0: one may, now. before: how many
 * fetches of those that go first are under way.
 */
uint64_t bs_yield_wait(struct bs_yield_pause *y, uint64_t now_ns, unsigned int before);
void bs_yield_started(struct bs_yield_pause *y); /* one was */

/* A demand fetch began, and ended. whose: tells images apart; compared only. NULL: nobody's. */
void bs_yield_demand_began(struct bs_yield_demand *d, uint64_t now_ns, const void *whose);
void bs_yield_demand_over(struct bs_yield_demand *d, uint64_t now_ns, const void *whose);
/* Whether a transfer makes room: there is demand, and none of its own image. */
bool bs_yield_makes_room(const struct bs_yield_demand *d, uint64_t now_ns, const void *whose);
/* One that did has ended, after so long. */
void bs_yield_room_over(struct bs_yield_demand *d, uint64_t now_ns, uint64_t ran_ns);
/* How long then no other may be started. */
uint64_t bs_yield_room_wait(const struct bs_yield_demand *d, uint64_t now_ns);

#endif
