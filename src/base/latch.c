/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/latch.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

void bs_latch_open(struct bs_latch *l)
{
	(void)pthread_mutex_lock(&l->lock);
	l->open = true;
	(void)pthread_cond_signal(&l->changed);
	(void)pthread_mutex_unlock(&l->lock);
}

void bs_latch_wait(struct bs_latch *l)
{
	(void)pthread_mutex_lock(&l->lock);
	while (!l->open)
		(void)pthread_cond_wait(&l->changed, &l->lock);
	(void)pthread_mutex_unlock(&l->lock);
}

bool bs_latch_wait_for(struct bs_latch *l, uint64_t ns)
{
	struct timespec until;
	bool open;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / BS_NS_PER_S);
	until.tv_nsec = (long)(ns % BS_NS_PER_S);
	(void)pthread_mutex_lock(&l->lock);
	while (!l->open && r != ETIMEDOUT)
		r = pthread_cond_clockwait(&l->changed, &l->lock, CLOCK_MONOTONIC, &until);
	open = l->open;
	(void)pthread_mutex_unlock(&l->lock);
	return open;
}

void bs_latch_done(struct bs_latch *l)
{
	(void)pthread_cond_destroy(&l->changed);
	(void)pthread_mutex_destroy(&l->lock);
}
