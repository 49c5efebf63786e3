/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/latch.h"

#include <errno.h>

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
	const uint64_t deadline_ns = bs_clock_ns() + ns;
	bool open;
	int r = 0;

	(void)pthread_mutex_lock(&l->lock);
	while (!l->open && r != ETIMEDOUT)
		r = bs_clock_cond_wait(&l->changed, &l->lock, deadline_ns);
	open = l->open;
	(void)pthread_mutex_unlock(&l->lock);
	return open;
}

void bs_latch_done(struct bs_latch *l)
{
	(void)pthread_cond_destroy(&l->changed);
	(void)pthread_mutex_destroy(&l->lock);
}
