/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/origin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "net/repo.h"

#define FORGET 1024u /* the shortest wait grows by this part with each range */

struct bs_origin {
	atomic_uint refs;
	struct bs_digest data;
	pthread_mutex_t lock; /* guards repos, worked and wrong */
	struct bs_repo *repos[BS_ORIGIN_SOURCES_MAX];
	size_t n_repos;
	uint32_t worked; /* a bit for each of repos */
	struct bs_map wrong;
	atomic_uint n_wrong;  /* most reads need no more than to see 0 */
	_Atomic size_t start; /* turn of the source that worked last */
	_Atomic uint32_t ahead;
	_Atomic uint64_t wait_ns; /* the shortest of late */
};

struct wrong_unit {
	uint32_t unit; /* the key */
	uint64_t until_ns, wait_ns;
};

struct bs_origin *bs_origin_new(const struct bs_digest *data)
{
	struct bs_origin *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->refs = 1;
	o->ahead = BS_ORIGIN_AHEAD_FIRST;
	o->data = *data;
	bs_map_init(&o->wrong);
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

static void forget_wrong(struct bs_origin *o)
{
	struct wrong_unit *w;
	size_t pos = 0;

	while ((w = bs_map_next(&o->wrong, &pos)))
		free(w);
	bs_map_done(&o->wrong);
	bs_map_init(&o->wrong);
	o->n_wrong = 0;
}

struct bs_origin *bs_origin_unref(struct bs_origin *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
		return NULL;
	for (size_t i = 0; i < o->n_repos; i++)
		(void)bs_repo_unref(o->repos[i]);
	forget_wrong(o);
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

_Static_assert(BS_ORIGIN_SOURCES_MAX <= 32, "a bit for each source");

/* Lock held: where a new one goes. */
static size_t room(const struct bs_origin *o)
{
	size_t i = o->n_repos;

	if (i < BS_ORIGIN_SOURCES_MAX)
		return i;
	while (i > 0) {
		if (!(o->worked & 1u << --i))
			return i;
	}
	return o->n_repos - 1;
}

void bs_origin_add(struct bs_origin *o, struct bs_repo *const *repos, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bs_repo *dropped = NULL;

		(void)pthread_mutex_lock(&o->lock);
		if (!has(o, repos[i])) {
			size_t at = room(o);

			dropped = o->repos[at];
			o->repos[at] = bs_repo_ref(repos[i]);
			o->worked &= ~(1u << at);
			o->n_repos = BS_MAX(o->n_repos, at + 1);
			forget_wrong(o);
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

void bs_origin_wrong(struct bs_origin *o, uint32_t unit, uint64_t wait_ns)
{
	struct wrong_unit *w;

	(void)pthread_mutex_lock(&o->lock);
	w = bs_map_get(&o->wrong, &unit, sizeof(unit));
	if (w) {
		w->wait_ns = BS_MIN(w->wait_ns * 2, wait_ns * BS_ORIGIN_WRONG_GROWTH);
	} else if (o->n_wrong < BS_ORIGIN_WRONG_MAX && (w = malloc(sizeof(*w)))) {
		*w = (struct wrong_unit){ .unit = unit, .wait_ns = wait_ns };
		if (bs_map_put(&o->wrong, &w->unit, sizeof(w->unit), w) < 0)
			free(bs_take(&w));
		else
			o->n_wrong++;
	}
	if (w)
		w->until_ns = bs_clock_ns() + w->wait_ns;
	(void)pthread_mutex_unlock(&o->lock);
}

void bs_origin_right(struct bs_origin *o, uint32_t unit, size_t source)
{
	struct wrong_unit *w = NULL;

	(void)pthread_mutex_lock(&o->lock);
	/* one that was added since it was asked shifts the turns: the bit is then another's, once */
	if (o->n_repos > 0)
		o->worked |= 1u << source % o->n_repos;
	if (o->n_wrong > 0)
		w = bs_map_remove(&o->wrong, &unit, sizeof(unit));
	if (w)
		o->n_wrong--;
	(void)pthread_mutex_unlock(&o->lock);
	free(w);
}

bool bs_origin_is_wrong(struct bs_origin *o, uint32_t unit)
{
	const struct wrong_unit *w;
	bool is;

	if (atomic_load_explicit(&o->n_wrong, memory_order_relaxed) == 0)
		return false;
	(void)pthread_mutex_lock(&o->lock);
	w = bs_map_get(&o->wrong, &unit, sizeof(unit));
	is = w && bs_clock_ns() < w->until_ns;
	(void)pthread_mutex_unlock(&o->lock);
	return is;
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
