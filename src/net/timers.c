/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/timers.h"

#include <stddef.h>

void bs_timers_add(struct bs_list *timers, struct bs_timer *t)
{
	struct bs_list *before;

	/* from the end: later ones are mostly due later */
	for (before = timers->prev; before != timers; before = before->prev) {
		if (bs_list_entry(before, struct bs_timer, link)->at_ns <= t->at_ns)
			break;
	}
	bs_list_append(before->next, &t->link);
}

uint64_t bs_timers_wait(const struct bs_list *timers, uint64_t now_ns)
{
	uint64_t at_ns;

	if (bs_list_empty(timers))
		return UINT64_MAX;
	at_ns = bs_list_entry(timers->next, struct bs_timer, link)->at_ns;
	return at_ns > now_ns ? at_ns - now_ns : 0;
}

struct bs_timer *bs_timers_take(struct bs_list *timers, uint64_t now_ns)
{
	struct bs_timer *t;

	if (bs_timers_wait(timers, now_ns) > 0)
		return NULL;
	t = bs_list_entry(timers->next, struct bs_timer, link);
	bs_list_remove(&t->link);
	return t;
}
