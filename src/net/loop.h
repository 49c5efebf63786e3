/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The one thread that owns the curl multi handle: connections are shared by all
 * requests of the process and kept alive. Other threads queue requests and are
 * called back on this thread.
 *
 * Lanes: a demand request waits only for other demand requests, connections_per_host of
 * which run at once; the others start while fewer than that run at all, so for a moment
 * there may be more. Background waits while hot runs at the host. An optional rate, or share
 * of what comes, limits the background lane, and demand makes it pause. While demand of
 * one image runs, there are few others than its own, and of images with demand (yield.h).
 */
#ifndef BS_NET_LOOP_H
#define BS_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "net/repo.h"

struct bs_loop;

struct bs_loop_options {
	unsigned int connections_per_host; /* 0: 8 */
	unsigned int
		background_parallel; /* requests of the background lane at once, 0: as connections_per_host */
	uint64_t connect_timeout_ns; /* 0: 10 s */
	uint64_t
		stall_timeout_ns; /* no byte for so long, or too few (pace.h), ends an attempt; 0: 15 s */
	bool background_yields; /* none of that lane starts while demand runs (yield.h) */
	const char *user_agent; /* NULL: "bootseer/VERSION" */
};

/* Starts the thread. Signals stay blocked in it. */
int bs_loop_new(const struct bs_loop_options *o, struct bs_loop **ret, struct bs_error *err);
/* Ends every request with -ECANCELED, then the thread. Not to be called from a callback. */
struct bs_loop *bs_loop_free(struct bs_loop *l);
DEFINE_BS_AUTO(loop, struct bs_loop, bs_loop_free)

/* Bytes per second that the background lane may take; 0: no limit. Any thread, any time. */
void bs_loop_background_rate(struct bs_loop *l, uint64_t bytes_per_s);

/* The same as a share of what the links bring (yield.h), in percent; 0: no limit. The lesser counts. */
void bs_loop_background_share(struct bs_loop *l, unsigned int percent);

/* Calls fn once on the loop's thread, after at least delay_ns. It cannot be taken back. */
int bs_loop_after(struct bs_loop *l, uint64_t delay_ns, void (*fn)(void *cookie), void *cookie);

struct bs_loop_stats {
	uint64_t requests[BS_LANE_MAX], bytes[BS_LANE_MAX], failures[BS_LANE_MAX];
	uint64_t queued[BS_LANE_MAX], running[BS_LANE_MAX]; /* now */
	uint64_t demand_waited; /* demand requests that could not start at once */
	uint64_t connections;	/* opened so far */
	uint64_t token_refreshes;
};
void bs_loop_stats(struct bs_loop *l, struct bs_loop_stats *ret);

#endif
