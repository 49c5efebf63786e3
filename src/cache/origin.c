/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/origin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "net/repo.h"

#define FORGET 1024u /* the shortest wait grows by this part with each range */

struct bs_origin {
	atomic_uint refs;
	struct bs_digest data;
	pthread_mutex_t lock; /* guards repos */
	struct bs_repo *repos[BS_ORIGIN_SOURCES_MAX];
	size_t n_repos;
	_Atomic size_t start; /* turn of the source that worked last */
	_Atomic uint32_t ahead;
	_Atomic uint64_t wait_ns; /* the shortest of late */
};

struct bs_origin *bs_origin_new(const struct bs_digest *data)
{
	struct bs_origin *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->refs = 1;
	o->ahead = BS_ORIGIN_AHEAD_FIRST;
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

static bool has(const struct bs_origin *o, const struct bs_repo *r)
{
	for (size_t i = 0; i < o->n_repos; i++) {
		if (o->repos[i] == r || strcmp(o->repos[i]->name, r->name) == 0)
			return true;
	}
	return false;
}

void bs_origin_add(struct bs_origin *o, struct bs_repo *const *repos, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bs_repo *dropped = NULL;

		(void)pthread_mutex_lock(&o->lock);
		if (!has(o, repos[i])) {
			if (o->n_repos == BS_ORIGIN_SOURCES_MAX)
				dropped = o->repos[--o->n_repos];
			o->repos[o->n_repos++] = bs_repo_ref(repos[i]);
		}
		(void)pthread_mutex_unlock(&o->lock);
		(void)bs_repo_unref(dropped);
	}
}

size_t bs_origin_start(const struct bs_origin *o)
{
	return atomic_load_explicit(&o->start, memory_order_relaxed);
}

void bs_origin_failed(struct bs_origin *o, size_t i)
{
	/* only the first to notice moves it */
	(void)atomic_compare_exchange_strong(&o->start, &i, i + 1);
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

uint32_t bs_origin_ahead(const struct bs_origin *o)
{
	return atomic_load_explicit(&o->ahead, memory_order_relaxed);
}

/* Two threads at once lose one step: the next range makes it again. */
void bs_origin_learn(struct bs_origin *o, size_t bytes, uint64_t wait_ns, uint64_t transfer_ns)
{
	uint32_t ahead = bs_origin_ahead(o);
	uint64_t shortest = atomic_load_explicit(&o->wait_ns, memory_order_relaxed);

	/* longer ones waited behind other ranges, more or larger ones would not help */
	shortest += shortest / FORGET;
	if (shortest == 0 || wait_ns < shortest)
		shortest = wait_ns;
	atomic_store_explicit(&o->wait_ns, shortest, memory_order_relaxed);
	if (bytes < ahead / 2) /* it came with the first bytes: says nothing of the link */
		return;
	if (transfer_ns < shortest / 2)
		ahead = BS_MIN(ahead * 2, BS_ORIGIN_AHEAD_MAX);
	else if (transfer_ns / 2 > shortest)
		ahead = BS_MAX(ahead / 2, BS_ORIGIN_AHEAD_MIN);
	atomic_store_explicit(&o->ahead, ahead, memory_order_relaxed);
}
