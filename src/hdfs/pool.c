/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A fixed number of threads for what blocks. None of its jobs waits for another one. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "hdfs/ckptpriv.h"

#define STACK_BYTES ((size_t)256 << 10)

struct bs_pool {
	pthread_mutex_t lock; /* guards all but threads */
	pthread_cond_t changed;
	struct bs_list jobs;
	bool stop;
	void (*every)(void *cookie);
	void *cookie;
	uint64_t every_ns, next_ns;
	pthread_t *threads;
	unsigned int n_threads;
};

/* With the lock: something may have come, or the time. */
static void wait_for_work(struct bs_pool *p)
{
	if (!p->every)
		(void)pthread_cond_wait(&p->changed, &p->lock);
	else if (p->next_ns > bs_clock_ns())
		(void)bs_clock_cond_wait(&p->changed, &p->lock, p->next_ns);
}

static void *work(void *cookie)
{
	struct bs_pool *p = cookie;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		if (!bs_list_empty(&p->jobs)) {
			struct bs_job *j = bs_list_entry(p->jobs.next, struct bs_job, link);

			bs_list_remove(&j->link);
			(void)pthread_mutex_unlock(&p->lock);
			j->fn(j);
			(void)pthread_mutex_lock(&p->lock);
		} else if (p->stop) {
			break;
		} else if (p->every && bs_clock_ns() >= p->next_ns) {
			p->next_ns = bs_clock_ns() + p->every_ns;
			(void)pthread_mutex_unlock(&p->lock);
			p->every(p->cookie);
			(void)pthread_mutex_lock(&p->lock);
		} else {
			wait_for_work(p);
		}
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int start_threads(struct bs_pool *p, unsigned int n)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && p->n_threads < n) {
		r = -pthread_create(&p->threads[p->n_threads], &attr, work, p);
		if (r == 0)
			p->n_threads++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}

int bs_pool_new(unsigned int threads, struct bs_pool **ret, struct bs_error *err)
{
	struct bs_pool *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->changed, NULL);
	bs_list_init(&p->jobs);
	p->threads = calloc(threads, sizeof(*p->threads));
	r = p->threads ? start_threads(p, threads) : -ENOMEM;
	if (r < 0) {
		(void)bs_pool_free(p);
		return bs_fail_errno(err, r, "HDFS: cannot start threads");
	}
	*ret = p;
	return 0;
}

struct bs_pool *bs_pool_free(struct bs_pool *p)
{
	if (!p)
		return NULL;
	(void)pthread_mutex_lock(&p->lock);
	p->stop = true;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->n_threads; i++)
		(void)pthread_join(p->threads[i], NULL);
	free(p->threads);
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

void bs_pool_run(struct bs_pool *p, struct bs_job *j)
{
	(void)pthread_mutex_lock(&p->lock);
	bs_list_append(&p->jobs, &j->link);
	(void)pthread_cond_signal(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
}

void bs_pool_every(struct bs_pool *p, uint64_t ns, void (*fn)(void *cookie), void *cookie)
{
	(void)pthread_mutex_lock(&p->lock);
	p->every = fn;
	p->cookie = cookie;
	p->every_ns = ns;
	p->next_ns = bs_clock_ns() + ns;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
}
