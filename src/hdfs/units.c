/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "hdfs/readahead.h"

#define STREAMS_MAX 64u
#define WINDOW_PARTS 2u /* a stream's window is at most the memory divided by this */

struct bs_unitpool {
	pthread_mutex_t lock; /* guards all that follows and all units */
	uint64_t max, bytes, peak;
	struct bs_list lru; /* units that are here and not in use, longest unused first */
	uint64_t fetched, ahead, unread;
};

enum state { FETCHING, READY, FAILED };

struct waiter {
	struct bs_list link; /* of the unit's */
	struct bs_units_read *read;
};

struct bs_unit {
	struct bs_ckpt_read io;
	struct bs_units *of; /* NULL: freed meanwhile */
	struct bs_unitpool *pool;
	struct bs_units_handle *handle; /* while it is fetched */
	uint64_t index;
	enum state state;
	unsigned int refs; /* reads, and the fetch */
	uint64_t served;
	struct bs_list link; /* of lru, or of those to be started */
	struct bs_list waiters;
	char *bytes;
	size_t len;
};

struct bs_units {
	struct bs_unitpool *pool;
	uint64_t len, unit;
	unsigned int streams, running;
	struct bs_readahead ra;
	struct bs_map units;		 /* by index */
	unsigned int reads;		 /* between bs_units_read and their end */
	bool dead;			 /* freed with the last of them */
	struct bs_units_handle *handle;	 /* to fetch with; NULL: idle */
	uint64_t next, end;		 /* units to be fetched ahead */
	uint64_t whole_next, whole_left; /* the same, of all of the file, round its end */
	bool *served; /* units that were read whole once; NULL: the file is not fetched whole */
};

struct bs_unitpool *bs_unitpool_new(uint64_t memory_bytes)
{
	struct bs_unitpool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	(void)pthread_mutex_init(&p->lock, NULL);
	bs_list_init(&p->lru);
	p->max = memory_bytes;
	return p;
}

void bs_unitpool_free(struct bs_unitpool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

static uint64_t n_units(const struct bs_units *u)
{
	return bs_div_up(u->len, u->unit);
}

struct bs_units *bs_units_new(struct bs_unitpool *p, uint64_t len, uint64_t unit,
			      unsigned int streams)
{
	struct bs_units *u = calloc(1, sizeof(*u));
	uint64_t window;

	if (!u)
		return NULL;
	u->pool = p;
	u->len = len;
	u->unit = unit ? unit : 1;
	u->streams = BS_MAX(streams, 1u);
	u->streams = BS_MIN(u->streams, STREAMS_MAX);
	window = BS_MIN(2 * u->streams * u->unit, p->max / WINDOW_PARTS);
	bs_readahead_init(&u->ra, len, u->unit, window, p->max);
	bs_map_init(&u->units);
	if (len <= p->max)
		u->served = calloc(n_units(u) + 1, sizeof(*u->served));
	if (len <= p->max && !u->served) {
		bs_map_done(&u->units);
		free(u);
		return NULL;
	}
	return u;
}

void bs_units_handle_put(struct bs_units_handle *h)
{
	if (h && __atomic_sub_fetch(&h->refs, 1, __ATOMIC_ACQ_REL) == 0)
		h->closed(h);
}

static struct bs_units_handle *handle_get(struct bs_units_handle *h)
{
	(void)__atomic_add_fetch(&h->refs, 1, __ATOMIC_RELAXED);
	return h;
}

/* --- units; the lock is held in what follows --------------------------------------------------- */

static void unit_free(struct bs_unit *n)
{
	if (n->of)
		(void)bs_map_remove(&n->of->units, &n->index, sizeof(n->index));
	bs_list_remove(&n->link);
	n->pool->bytes -= n->len;
	n->pool->unread += n->state == READY && n->served == 0;
	free(n->bytes);
	free(n);
}

static void unit_put(struct bs_unit *n)
{
	if (--n->refs > 0)
		return;
	if (n->of && n->of->served && n->served >= n->len)
		n->of->served[n->index] = true;
	if (!n->of || n->state != READY || n->served >= n->len)
		unit_free(n);
	else
		bs_list_append(&n->pool->lru, &n->link);
}

static void unit_get(struct bs_unit *n)
{
	if (n->refs++ == 0)
		bs_list_remove(&n->link);
}

static struct bs_unit *unit_find(struct bs_units *u, uint64_t index)
{
	return bs_map_get(&u->units, &index, sizeof(index));
}

/* demanded: may drive out what nobody has read yet. */
static bool make_room(struct bs_unitpool *p, size_t len, bool demanded)
{
	while (p->bytes + len > p->max) {
		struct bs_unit *victim = NULL;

		bs_list_for_each(it, &p->lru) {
			struct bs_unit *n = bs_list_entry(it, struct bs_unit, link);

			if (!demanded && n->served == 0 && n->of && n->of->handle)
				continue;
			victim = n;
			break;
		}
		if (!victim)
			return false;
		unit_free(victim);
	}
	return true;
}

static void on_fetched(struct bs_ckpt_read *io);

static struct bs_unit *unit_new(struct bs_units *u, uint64_t index, bool demanded,
				struct bs_list *start)
{
	uint64_t off = index * u->unit;
	size_t len = (size_t)BS_MIN(u->unit, u->len - off);
	struct bs_unit *n;

	if (!u->handle || !make_room(u->pool, len, demanded))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (n)
		n->bytes = malloc(len);
	if (!n || !n->bytes) {
		free(n);
		return NULL;
	}
	n->index = index;
	if (bs_map_put(&u->units, &n->index, sizeof(n->index), n) < 0) {
		free(n->bytes);
		free(n);
		return NULL;
	}
	n->of = u;
	n->pool = u->pool;
	n->len = len;
	n->refs = 1;
	n->handle = handle_get(u->handle);
	bs_list_init(&n->waiters);
	n->io = (struct bs_ckpt_read){
		.buf = n->bytes, .len = len, .off = off, .done = on_fetched, .cookie = n
	};
	u->running++;
	u->pool->fetched++;
	u->pool->ahead += !demanded;
	u->pool->bytes += len;
	u->pool->peak = BS_MAX(u->pool->peak, u->pool->bytes);
	bs_list_append(start, &n->link);
	return n;
}

static bool is_wanted(struct bs_units *u, uint64_t index)
{
	return !(u->served && u->served[index]) && !unit_find(u, index);
}

/* What is ahead, then what is left of the whole. */
static void pump(struct bs_units *u, struct bs_list *start)
{
	while (u->handle && u->running < u->streams && u->next < u->end) {
		if (is_wanted(u, u->next) && !unit_new(u, u->next, false, start))
			return;
		u->next++;
	}
	while (u->handle && u->running < u->streams && u->whole_left > 0) {
		if (is_wanted(u, u->whole_next) && !unit_new(u, u->whole_next, false, start))
			return;
		u->whole_next = u->whole_next + 1 == n_units(u) ? 0 : u->whole_next + 1;
		u->whole_left--;
	}
}

/* With the last read of one that nobody has any more. */
static void read_over(struct bs_units *u)
{
	if (--u->reads > 0 || !u->dead)
		return;
	bs_map_done(&u->units);
	free(u->served);
	free(u);
}

/* Without the lock. */
static void start_all(struct bs_list *start)
{
	while (!bs_list_empty(start)) {
		struct bs_unit *n = bs_list_entry(start->next, struct bs_unit, link);

		bs_list_remove(&n->link);
		bs_ckpt_read_start(n->handle->file, &n->io);
	}
}

struct bs_units *bs_units_hold(struct bs_units *u)
{
	(void)pthread_mutex_lock(&u->pool->lock);
	u->reads++;
	(void)pthread_mutex_unlock(&u->pool->lock);
	return u;
}

void bs_units_unhold(struct bs_units *u)
{
	struct bs_unitpool *p = u->pool;

	(void)pthread_mutex_lock(&p->lock);
	read_over(u);
	(void)pthread_mutex_unlock(&p->lock);
}

/* --- reads ------------------------------------------------------------------------------------- */

static void set_iov(struct bs_units_read *r)
{
	uint64_t off = r->off, end = r->off + r->len;

	r->n_iov = 0;
	for (unsigned int i = 0; i < r->n_units; i++) {
		struct bs_unit *n = r->units[i];
		uint64_t at = n->index * r->of->unit, n_end = BS_MIN(at + n->len, end);

		r->iov[r->n_iov++] = (struct iovec){ n->bytes + (off - at), n_end - off };
		off = n_end;
	}
}

static void drop_units(struct bs_units_read *r)
{
	for (unsigned int i = 0; i < r->n_units; i++)
		unit_put(r->units[i]);
	r->n_units = 0;
}

static void plan(struct bs_units *u, const struct bs_units_read *r, struct bs_readahead_plan *p)
{
	bool was_whole = u->ra.whole;

	bs_readahead_note(&u->ra, r->off, r->len, p);
	if (p->from < p->to) {
		uint64_t from = p->from / u->unit, to = bs_div_up(p->to, u->unit);

		/* what is between was fetched already, when it is the same stream's */
		u->next = from <= u->next && u->next <= to && from + u->streams * 4 > u->next
				  ? u->next
				  : from;
		u->end = to;
	}
	if (p->whole && !was_whole) {
		u->whole_next = r->off / u->unit;
		u->whole_left = n_units(u);
	}
}

/* One waiter is a part of the read that waits for one unit. */
static bool wait_for(struct bs_unit *n, struct bs_units_read *r)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return false;
	w->read = r;
	bs_list_append(&n->waiters, &w->link);
	r->missing++;
	return true;
}

enum bs_units_answer bs_units_read(struct bs_units *u, struct bs_units_handle *h,
				   struct bs_units_read *r)
{
	uint64_t first = r->off / u->unit, last = (r->off + r->len - 1) / u->unit;
	struct bs_readahead_plan p;
	struct bs_units_handle *old = NULL;
	struct bs_list start;
	bool direct = last - first >= BS_UNITS_PER_READ;
	enum bs_units_answer answer;

	bs_list_init(&start);
	r->of = u;
	r->n_units = r->missing = 0;
	r->failed = r->timed_out = false;
	(void)pthread_mutex_lock(&u->pool->lock);
	if (u->dead || r->off + r->len > u->len) { /* of another generation than the reader's */
		(void)pthread_mutex_unlock(&u->pool->lock);
		return BS_UNITS_DIRECT;
	}
	if (u->handle != h) {
		old = u->handle;
		u->handle = handle_get(h);
	}
	plan(u, r, &p);
	for (uint64_t i = first; !direct && i <= last; i++) {
		struct bs_unit *n = unit_find(u, i);

		/* the kernel has given up its pages: all are to be had again */
		if (!n && u->served && u->served[i])
			memset(u->served, 0, n_units(u) * sizeof(*u->served));
		if (!n && p.units)
			n = unit_new(u, i, true, &start);
		direct = !n || n->state == FAILED || (n->state == FETCHING && !wait_for(n, r));
		if (!direct) {
			unit_get(n);
			r->units[r->n_units++] = n;
		}
	}
	if (direct && r->missing == 0)
		drop_units(r);
	else if (direct)
		r->failed = true; /* a part waits already: ready will say so */
	pump(u, &start);
	answer = direct && r->missing == 0 ? BS_UNITS_DIRECT
		 : r->missing		   ? BS_UNITS_WAIT
					   : BS_UNITS_HIT;
	if (answer == BS_UNITS_HIT)
		set_iov(r);
	u->reads += answer != BS_UNITS_DIRECT;
	(void)pthread_mutex_unlock(&u->pool->lock);
	bs_units_handle_put(old);
	start_all(&start);
	if (answer == BS_UNITS_HIT)
		r->ready(r);
	return answer;
}

static void on_fetched(struct bs_ckpt_read *io)
{
	struct bs_unit *n = io->cookie;
	struct bs_unitpool *p = n->pool;
	struct bs_units_handle *h = n->handle;
	struct bs_list start, over;
	bool ok = io->result == (ssize_t)n->len;

	bs_list_init(&start);
	bs_list_init(&over);
	(void)pthread_mutex_lock(&p->lock);
	n->state = ok ? READY : FAILED;
	n->handle = NULL;
	while (!bs_list_empty(&n->waiters)) {
		struct waiter *w = bs_list_entry(n->waiters.next, struct waiter, link);

		bs_list_remove(&w->link);
		w->read->failed |= !ok;
		w->read->timed_out |= io->result == -ETIMEDOUT;
		if (--w->read->missing > 0) {
			free(w);
			continue;
		}
		if (w->read->failed) {
			drop_units(w->read);
			read_over(w->read->of);
		} else {
			set_iov(w->read);
		}
		bs_list_append(&over, &w->link);
	}
	if (n->of) {
		n->of->running--;
		if (!ok) { /* a later read tries again; what is ahead of it does not */
			n->of->end = n->of->next;
			n->of->whole_left = 0;
			(void)bs_map_remove(&n->of->units, &n->index, sizeof(n->index));
		}
		pump(n->of, &start);
	}
	if (!ok)
		n->of = NULL;
	unit_put(n);
	(void)pthread_mutex_unlock(&p->lock);
	start_all(&start);
	bs_units_handle_put(h);
	while (!bs_list_empty(&over)) {
		struct waiter *w = bs_list_entry(over.next, struct waiter, link);

		bs_list_remove(&w->link);
		w->read->ready(w->read);
		free(w);
	}
}

void bs_units_done(struct bs_units_read *r)
{
	struct bs_unitpool *p = r->of->pool;
	struct bs_list start;

	bs_list_init(&start);
	(void)pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; i < r->n_units; i++)
		r->units[i]->served += r->iov[i].iov_len;
	drop_units(r);
	pump(r->of, &start);
	read_over(r->of);
	(void)pthread_mutex_unlock(&p->lock);
	start_all(&start);
}

/* --- ends -------------------------------------------------------------------------------------- */

void bs_units_idle(struct bs_units *u)
{
	struct bs_units_handle *h;

	if (!u)
		return;
	(void)pthread_mutex_lock(&u->pool->lock);
	h = bs_take(&u->handle);
	u->end = u->next;
	u->whole_left = 0;
	u->ra.whole = false;
	(void)pthread_mutex_unlock(&u->pool->lock);
	bs_units_handle_put(h);
}

struct bs_units *bs_units_free(struct bs_units *u)
{
	struct bs_unitpool *p;
	struct bs_unit *n;
	size_t pos = 0;

	if (!u)
		return NULL;
	bs_units_idle(u);
	(void)pthread_mutex_lock(&u->pool->lock);
	while ((n = bs_map_next(&u->units, &pos))) {
		n->of = NULL;
		if (n->refs == 0)
			unit_free(n);
	}
	u->dead = true;
	u->reads++;
	p = u->pool;
	read_over(u);
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

void bs_unitpool_stats(struct bs_unitpool *p, struct bs_unitpool_stats *ret)
{
	(void)pthread_mutex_lock(&p->lock);
	*ret = (struct bs_unitpool_stats){ .fetched = p->fetched,
					   .ahead = p->ahead,
					   .unread = p->unread,
					   .bytes = p->bytes,
					   .peak = p->peak };
	(void)pthread_mutex_unlock(&p->lock);
}
