/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/readlayers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "image/layers.h"
#include "image/nodes.h"

#define JOBS_MAX 32u

struct pool {
	const struct bs_layer_source *sources;
	size_t n;
	struct bs_layer **layers; /* [i] is the pool's until done[i], then the caller's */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	size_t next;	     /* lock */
	bool *done;	     /* lock */
	int result;	     /* lock; the first failure */
	struct bs_error err; /* lock */
};

static void *reader_main(void *cookie)
{
	struct pool *p = cookie;

	pthread_mutex_lock(&p->lock);
	while (p->next < p->n && p->result == 0) {
		size_t i = p->next++;
		struct bs_error err = BS_ERROR_INIT;
		int r;

		pthread_mutex_unlock(&p->lock);
		r = bs_layer_fetch(&p->sources[i], &p->layers[i], &err);
		pthread_mutex_lock(&p->lock);
		if (r < 0 && p->result == 0) {
			p->result = r;
			p->err = err;
		}
		p->done[i] = true;
		pthread_cond_broadcast(&p->cond);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* In order, each as soon as it is there. */
static int apply_all(struct pool *p, struct bs_nodes *t, struct bs_error *err)
{
	for (size_t i = 0; i < p->n; i++) {
		int r;

		pthread_mutex_lock(&p->lock);
		while (!p->done[i] && p->result == 0)
			pthread_cond_wait(&p->cond, &p->lock);
		r = p->result;
		pthread_mutex_unlock(&p->lock);
		if (r < 0)
			return r; /* the reader's text is taken when all have ended */
		r = bs_layers_apply(t, p->layers[i], err);
		if (r < 0) {
			pthread_mutex_lock(&p->lock);
			p->result = r;
			if (err)
				p->err = *err;
			pthread_mutex_unlock(&p->lock);
			return r;
		}
	}
	return 0;
}

int bs_layers_read(const struct bs_layer_source *sources, size_t n, unsigned int jobs,
		   struct bs_nodes *t, struct bs_layer **ret, struct bs_error *err)
{
	struct pool p = { .sources = sources,
			  .n = n,
			  .layers = ret,
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .cond = PTHREAD_COND_INITIALIZER };
	pthread_t threads[JOBS_MAX];
	unsigned int started = 0;
	int r = 0;

	p.done = calloc(n + 1, sizeof(*p.done));
	if (!p.done)
		return bs_fail_errno(err, -ENOMEM, "layers");
	while (started < JOBS_MAX && started < (jobs ? jobs : 1) && started < n && r == 0) {
		r = -pthread_create(&threads[started], NULL, reader_main, &p);
		if (r == 0)
			started++;
	}
	if (started == 0 && r < 0)
		r = bs_fail_errno(err, r, "threads");
	else
		r = apply_all(&p, t, err);
	for (unsigned int i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	free(p.done);
	if (p.result < 0 && err)
		*err = p.err;
	return p.result < 0 ? p.result : r;
}
