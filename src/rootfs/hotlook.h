/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Turns: how many threads may be at a thing at once, things being told apart by their names. A
 * place that does not answer must not take all connections to it, nor each start its own.
 */
#ifndef BS_ROOTFS_HOTLOOK_H
#define BS_ROOTFS_HOTLOOK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct bs_hotlook {
	pthread_mutex_t lock; /* guards turns */
	pthread_cond_t fewer;
	struct bs_list turns;
};

void bs_hotlook_init(struct bs_hotlook *l);

/* The caller's, from a begin that was true to its end. */
struct bs_hotlook_turn {
	struct bs_list all;
	const char *name; /* the caller's, too */
};

/* False: max others were at it all the time up to deadline_ns (bs_clock_ns). */
bool bs_hotlook_begin(struct bs_hotlook *l, struct bs_hotlook_turn *t, const char *name,
		      unsigned int max, uint64_t deadline_ns);
void bs_hotlook_end(struct bs_hotlook *l, struct bs_hotlook_turn *t);

/* The host of a source, or all of it: what its connections are counted by. Returns buf. */
#define BS_HOTLOOK_HOST_LEN 512
const char *bs_hotlook_host(const char *source, char buf[BS_HOTLOOK_HOST_LEN]);

#endif
