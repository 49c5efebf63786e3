/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/origin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "net/repo.h"

struct bs_origin {
	atomic_uint refs;
	struct bs_digest data;
	pthread_mutex_t lock; /* guards repos */
	struct bs_repo *repos[BS_ORIGIN_SOURCES_MAX];
	size_t n_repos;
};

struct bs_origin *bs_origin_new(const struct bs_digest *data)
{
	struct bs_origin *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->refs = 1;
	o->data = *data;
	(void)pthread_mutex_init(&o->lock, NULL);
	return o;
}

struct bs_origin *bs_origin_ref(struct bs_origin *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

const struct bs_digest *bs_origin_data(const struct bs_origin *o)
{
	return &o->data;
}

struct bs_origin *bs_origin_unref(struct bs_origin *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
		return NULL;
	for (size_t i = 0; i < o->n_repos; i++)
		(void)bs_repo_unref(o->repos[i]);
	(void)pthread_mutex_destroy(&o->lock);
	free(o);
	return NULL;
}

void bs_origin_set(struct bs_origin *o, struct bs_repo *const *repos, size_t n)
{
	struct bs_repo *old[BS_ORIGIN_SOURCES_MAX];
	size_t n_old;

	(void)pthread_mutex_lock(&o->lock);
	n_old = o->n_repos;
	memcpy(old, o->repos, n_old * sizeof(*old));
	o->n_repos = BS_MIN(n, (size_t)BS_ORIGIN_SOURCES_MAX);
	for (size_t i = 0; i < o->n_repos; i++)
		o->repos[i] = bs_repo_ref(repos[i]);
	(void)pthread_mutex_unlock(&o->lock);
	for (size_t i = 0; i < n_old; i++)
		(void)bs_repo_unref(old[i]);
}

struct bs_repo *bs_origin_pick(struct bs_origin *o, size_t i, size_t *ret_n)
{
	struct bs_repo *r = NULL;

	(void)pthread_mutex_lock(&o->lock);
	*ret_n = o->n_repos;
	if (o->n_repos > 0)
		r = bs_repo_ref(o->repos[i % o->n_repos]);
	(void)pthread_mutex_unlock(&o->lock);
	return r;
}
