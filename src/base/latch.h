/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One thread waits until another one says that something is over. On the waiter's stack: it
 * may end as soon as bs_latch_wait has returned.
 */
#ifndef BS_BASE_LATCH_H
#define BS_BASE_LATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bs_latch {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
};
#define BS_LATCH_INIT                                                                              \
	((struct bs_latch){ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false })

/* Once. */
void bs_latch_open(struct bs_latch *l);
void bs_latch_wait(struct bs_latch *l);
/* No longer than ns: whether it is open. */
bool bs_latch_wait_for(struct bs_latch *l, uint64_t ns);
/* After the last wait. */
void bs_latch_done(struct bs_latch *l);

#endif
