/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What is to be called at a time, soonest first. The caller locks. */
#ifndef BS_NET_TIMERS_H
#define BS_NET_TIMERS_H

#include <stdint.h>

#include "base/list.h"

struct bs_timer { /* the caller frees it, once it was taken off */
	struct bs_list link;
	uint64_t at_ns; /* of bs_clock_ns */
	void (*fn)(void *cookie);
	void *cookie;
};

/* Behind all that are not due later. */
void bs_timers_add(struct bs_list *timers, struct bs_timer *t);
/* Takes off the first that is due at now_ns, or NULL. */
struct bs_timer *bs_timers_take(struct bs_list *timers, uint64_t now_ns);
/* How long till the first is due; UINT64_MAX: there is none. */
uint64_t bs_timers_wait(const struct bs_list *timers, uint64_t now_ns);

#endif
