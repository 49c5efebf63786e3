/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Repositories that fail in every way they can, a blob that is read from them, and readers
 * that check what they get, for the tests of the miss path.
 */
#ifndef BS_TESTS_CACHE_FAKE_H
#define BS_TESTS_CACHE_FAKE_H

#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cache-model.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "net/loop.h"
#include "net/repo.h"

/* --- a repository with faults, that answers on a thread of its own ------------------------- */

struct fake {
	struct bs_repo repo;
	struct model *model;
	int fail;		 /* result of the next n_fail ranges; -EBADMSG gives wrong bytes */
	bool cut;		 /* -EBADMSG is the result, as of a body that ends early */
	uint64_t spoilt;	 /* atomic: the byte of the blob that is always wrong */
	size_t keep;		 /* bytes that come all the same when it fails, at most half */
	int n_fail;		 /* atomic; INT_MAX: always */
	int n_reads, n_open;	 /* atomic */
	uint64_t n_bytes;	 /* atomic: asked for */
	int n_lane[BS_LANE_MAX]; /* atomic: ranges of each lane */
	int hold;		 /* atomic: background ranges stay unanswered while set */
	size_t stop; /* atomic: ranges that are told of come to a stop with so many bytes */
};

struct answer {
	struct fake *f;
	struct bs_range *rg;
	bool bad;
};

/* The bytes are there: now they are told of, piece by piece. */
static inline void come_slowly(struct fake *f, struct bs_range *rg)
{
	for (size_t got = 0; got < rg->len;) {
		size_t stop = __atomic_load_n(&f->stop, __ATOMIC_ACQUIRE);

		if (stop && got >= stop) {
			usleep(1000);
			continue;
		}
		got = BS_MIN(got + 50000, rg->len);
		__atomic_store_n(&rg->got, got, __ATOMIC_RELEASE);
		rg->progress(rg);
	}
}

static inline void *answer_main(void *arg)
{
	struct answer *a = arg;
	struct bs_range *rg = a->rg;
	uint64_t spoilt;
	size_t got;

	usleep((useconds_t)(rg->off % 977));
	while (rg->lane == BS_LANE_BACKGROUND && __atomic_load_n(&a->f->hold, __ATOMIC_ACQUIRE))
		usleep(1000);
	got = rg->result == 0 ? rg->len : BS_MIN(a->f->keep, rg->len / 2);
	__atomic_store_n(&rg->got, rg->progress && got == rg->len ? 0 : got, __ATOMIC_RELAXED);
	if (got) {
		model_content(rg->off, rg->buf, got);
		for (size_t i = 0; i < got; i++)
			((uint8_t *)rg->buf)[i] ^= 0xff;
		spoilt = __atomic_load_n(&a->f->spoilt, __ATOMIC_ACQUIRE);
		if (spoilt >= rg->off && spoilt < rg->off + got)
			((uint8_t *)rg->buf)[spoilt - rg->off] ^= 1;
		if (a->bad)
			((uint8_t *)rg->buf)[rg->len / 2] ^= 1;
	}
	if (rg->progress && got == rg->len)
		come_slowly(a->f, rg);
	rg->ended_ns = bs_clock_ns();
	__atomic_sub_fetch(&a->f->n_open, 1, __ATOMIC_RELEASE);
	rg->done(rg);
	free(a);
	return NULL;
}

static inline void fake_read(struct bs_repo *r, struct bs_range *rg)
{
	struct fake *f = (struct fake *)r;
	struct answer *a = malloc(sizeof(*a));
	pthread_attr_t attr;
	pthread_t t;

	*a = (struct answer){ .f = f, .rg = rg };
	__atomic_add_fetch(&f->n_reads, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->n_lane[rg->lane], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->n_open, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->n_bytes, rg->len, __ATOMIC_RELAXED);
	__atomic_store_n(&rg->started_ns, bs_clock_ns(), __ATOMIC_RELAXED);
	if (__atomic_load_n(&f->n_fail, __ATOMIC_RELAXED) > 0) {
		__atomic_sub_fetch(&f->n_fail, 1, __ATOMIC_RELAXED);
		a->bad = f->fail == -EBADMSG && !f->cut;
		rg->result = a->bad ? 0 : f->fail;
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_create(&t, &attr, answer_main, a), 0);
	pthread_attr_destroy(&attr);
}

static inline void fake_free(struct bs_repo *r)
{
}

static const struct bs_repo_ops fake_ops = { .scheme = "fake",
					     .read = fake_read,
					     .free = fake_free };

/* --- the set-up of each test ------------------------------------------------------------------ */

static struct model model;
static struct bs_blob_geometry geometry;
static char dir[sizeof(MODEL_DIR)];
static int dirfd_;
static struct fake fakes[2];
static char source_names[2][8] = { "one", "two" };
static struct bs_loop *loop;
static struct bs_fill *fill;
static struct bs_blob *blob;
static struct bs_origin *origin;
static int n_events;

static inline void *scratch_new(void)
{
	return malloc(1);
}

static inline void note_event(void *cookie, const char *text)
{
	__atomic_add_fetch(&n_events, 1, __ATOMIC_RELAXED);
}

#define WRONG_WAIT_NS (300 * BS_NS_PER_MS)

static inline int set_up_with(uint64_t read_wait_ns, bool ahead)
{
	const struct bs_loop_options lo = { 0 };
	struct bs_fill_options fo = { .n_unpackers = 2,
				      .read_wait_ns = read_wait_ns,
				      .wrong_wait_ns = WRONG_WAIT_NS,
				      .ahead = ahead,
				      .scratch_new = scratch_new,
				      .scratch_free = free,
				      .event = note_event };
	struct bs_repo *repos[2] = { &fakes[0].repo, &fakes[1].repo };
	const struct bs_digest d = { { 1 } };

	model_init(&model, &geometry);
	dirfd_ = model_dir_make(dir);
	for (int i = 0; i < 2; i++)
		fakes[i] = (struct fake){ .repo = { &fake_ops, 1000, source_names[i] },
					  .model = &model,
					  .spoilt = UINT64_MAX };
	n_events = 0;
	assert_int_equal(bs_loop_new(&lo, &loop, NULL), 0);
	fo.loop = loop;
	assert_int_equal(bs_fill_new(&fo, &fill, NULL), 0);
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 1, &blob, NULL), 0);
	origin = bs_origin_new(&d);
	bs_origin_add(origin, repos, 2);
	return 0;
}

/* Nothing is on its way, nor in the pause after a round. */
static inline void wait_quiet(void)
{
	for (int quiet = 0; quiet < 20; quiet++) {
		if (__atomic_load_n(&fakes[0].n_open, __ATOMIC_ACQUIRE) +
		    __atomic_load_n(&fakes[1].n_open, __ATOMIC_ACQUIRE))
			quiet = 0;
		usleep(10000);
	}
}

static inline int tear_down(void **state)
{
	wait_quiet();
	bs_loop_free(loop);
	bs_fill_free(fill);
	bs_blob_free(blob);
	bs_origin_unref(origin);
	return model_dir_remove(dir, dirfd_);
}

/* --- a reader that waits ------------------------------------------------------------------------ */

struct waiting {
	struct bs_read rd;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static inline void read_done(struct bs_read *rd)
{
	struct waiting *w = BS_CONTAINER_OF(rd, struct waiting, rd);

	pthread_mutex_lock(&w->lock);
	w->done = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Reads and checks the bytes; the read's result. */
static inline int read_and_check(uint64_t off, uint32_t len)
{
	struct waiting w = { .rd = { .blob = blob,
				     .origin = origin,
				     .off = off,
				     .len = len,
				     .buf = malloc(len),
				     .done = read_done },
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };
	uint8_t *unit = malloc(BS_UNIT_BYTES_MAX);
	int result;

	memset(w.rd.buf, 0, len);
	bs_fill_read(fill, &w.rd, NULL, unit);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.changed, &w.lock);
	pthread_mutex_unlock(&w.lock);
	result = w.rd.result;
	for (uint32_t i = 0; result == 0 && i < len; i++) {
		if (((uint8_t *)w.rd.buf)[i] != model_byte(off + i))
			result = 1; /* a wrong byte */
	}
	free(w.rd.buf);
	free(unit);
	return result;
}

static inline struct bs_fill_stats stats(void)
{
	struct bs_fill_stats s;

	bs_fill_stats(fill, &s);
	return s;
}

static inline void *reader_main(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	int bad = 0;

	for (int i = 0; i < 150; i++) {
		uint32_t len = (uint32_t)rand_r(&seed) % (256 << 10) + 1;
		uint64_t off = (uint64_t)rand_r(&seed) % (model.bytes - len);

		bad += read_and_check(off, len) != 0;
	}
	return (void *)(uintptr_t)bad;
}

static inline void run_readers(void)
{
	pthread_t t[8];
	void *bad;

	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, reader_main, (void *)(i + 1)), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &bad);
		assert_int_equal((uintptr_t)bad, 0);
	}
}

#endif
