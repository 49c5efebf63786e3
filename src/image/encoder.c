/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A ring of slots. Three counters run over it:
 *
 *	written <= taken <= pushed <= written + N_SLOTS
 *
 * Slots [taken, pushed) wait for a worker, [written, taken) are being compressed or
 * done, the slot at pushed is the caller's buffer.
 */
#include "config.h"

#include "image/encoder.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/frames.h"

#define JOBS_MAX 256u
#define SLOTS_PER_JOB 4u

struct slot {
	uint8_t *blocks; /* BS_FRAME_BYTES_MAX */
	uint8_t *out;	 /* BS_FRAME_DATA_MAX */
	uint32_t n_blocks;
	int len; /* of out, or -errno */
	struct bs_digest root;
	bool done; /* lock */
};

struct worker {
	struct bs_encoder *e;
	struct bs_framer *framer;
	pthread_t thread;
	bool running;
};

struct bs_encoder {
	pthread_mutex_t lock;
	pthread_cond_t work;		 /* something was pushed, or stop */
	pthread_cond_t done;		 /* a slot is done */
	uint64_t written, taken, pushed; /* lock; written is only the caller's */
	bool stop;			 /* lock */
	struct slot *slots;
	size_t n_slots;
	struct worker *workers;
	size_t n_workers;
	/* the caller's only */
	int fd;
	const char *dir;
	struct bs_sha256 *hash;
	struct bs_frame *frames;
	size_t n_frames, cap_frames;
	uint64_t data_len;
};

static void encode(struct bs_framer *f, struct slot *s)
{
	bs_frame_root(f, s->blocks, s->n_blocks, &s->root);
	s->len = bs_frame_encode(f, s->blocks, s->n_blocks, s->out, BS_FRAME_DATA_MAX);
}

static void *worker_main(void *cookie)
{
	struct worker *w = cookie;
	struct bs_encoder *e = w->e;

	pthread_mutex_lock(&e->lock);
	for (;;) {
		struct slot *s;

		while (!e->stop && e->taken == e->pushed)
			pthread_cond_wait(&e->work, &e->lock);
		if (e->stop)
			break;
		s = &e->slots[e->taken++ % e->n_slots];
		pthread_mutex_unlock(&e->lock);
		encode(w->framer, s);
		pthread_mutex_lock(&e->lock);
		s->done = true;
		pthread_cond_signal(&e->done);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

static int start(struct bs_encoder *e, unsigned int jobs, int level)
{
	e->n_slots = (size_t)jobs * SLOTS_PER_JOB + 1;
	e->slots = calloc(e->n_slots, sizeof(*e->slots));
	e->workers = calloc(jobs, sizeof(*e->workers));
	e->hash = bs_sha256_new();
	if (!e->slots || !e->workers || !e->hash)
		return -ENOMEM;
	for (size_t i = 0; i < e->n_slots; i++) {
		e->slots[i].blocks = malloc(BS_FRAME_BYTES_MAX);
		e->slots[i].out = malloc(BS_FRAME_DATA_MAX);
		if (!e->slots[i].blocks || !e->slots[i].out)
			return -ENOMEM;
	}
	for (unsigned int i = 0; i < jobs; i++) {
		struct worker *w = &e->workers[e->n_workers++];
		int r;

		w->e = e;
		w->framer = bs_framer_new(level);
		if (!w->framer)
			return -ENOMEM;
		r = pthread_create(&w->thread, NULL, worker_main, w);
		if (r != 0)
			return -r;
		w->running = true;
	}
	return 0;
}

int bs_encoder_new(unsigned int jobs, int level, int fd, const char *dir, struct bs_encoder **ret,
		   struct bs_error *err)
{
	bs_auto(encoder) struct bs_encoder *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return bs_fail_errno(err, -ENOMEM, "compressors");
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->work, NULL);
	pthread_cond_init(&e->done, NULL);
	e->fd = fd;
	e->dir = dir;
	r = start(e, jobs == 0 ? 1 : BS_MIN(jobs, JOBS_MAX), level);
	if (r < 0)
		return bs_fail_errno(err, r, "compressors");
	*ret = bs_take(&e);
	return 0;
}

struct bs_encoder *bs_encoder_free(struct bs_encoder *e)
{
	if (!e)
		return NULL;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < e->n_workers; i++) {
		if (e->workers[i].running)
			(void)pthread_join(e->workers[i].thread, NULL);
		bs_framer_free(e->workers[i].framer);
	}
	for (size_t i = 0; e->slots && i < e->n_slots; i++) {
		free(e->slots[i].blocks);
		free(e->slots[i].out);
	}
	pthread_cond_destroy(&e->done);
	pthread_cond_destroy(&e->work);
	pthread_mutex_destroy(&e->lock);
	bs_sha256_free(e->hash);
	free(e->frames);
	free(e->workers);
	free(e->slots);
	free(e);
	return NULL;
}

static int write_slot(struct bs_encoder *e, const struct slot *s, struct bs_error *err)
{
	struct bs_frame *f;
	int r;

	if (s->len < 0)
		return bs_fail_errno(err, s->len, "compress");
	if (e->n_frames >= BS_TABLE_FRAMES_MAX)
		return bs_fail(err, -EFBIG, "the image has more than %u frames",
			       BS_TABLE_FRAMES_MAX);
	if (bs_grow(&e->frames, &e->cap_frames, e->n_frames + 1, sizeof(*e->frames)) < 0)
		return bs_fail_errno(err, -ENOMEM, "frame table");
	r = bs_write_full(e->fd, s->out, (size_t)s->len);
	if (r == -ENOSPC || r == -EDQUOT)
		return bs_fail(err, r,
			       "temporary directory '%s' is full; make room or give another one "
			       "with --tmp",
			       e->dir);
	if (r < 0)
		return bs_fail_errno(err, r, "write compressed data in '%s'", e->dir);
	bs_sha256_update(e->hash, s->out, (size_t)s->len);
	f = &e->frames[e->n_frames++];
	*f = (struct bs_frame){ .n_blocks = s->n_blocks, .len = (uint32_t)s->len, .root = s->root };
	e->data_len += (uint64_t)s->len;
	return 0;
}

/* Writes what is done in order, until at most `left` slots are in use; waits where it must. */
static int drain(struct bs_encoder *e, uint64_t left, struct bs_error *err)
{
	for (;;) {
		struct slot *s = &e->slots[e->written % e->n_slots];
		bool ready;
		int r;

		pthread_mutex_lock(&e->lock);
		while (e->pushed - e->written > left && !s->done)
			pthread_cond_wait(&e->done, &e->lock);
		ready = e->written < e->pushed && s->done;
		pthread_mutex_unlock(&e->lock);
		if (!ready)
			return 0;
		r = write_slot(e, s, err);
		if (r < 0)
			return r;
		s->done = false;
		e->written++;
	}
}

int bs_encoder_buffer(struct bs_encoder *e, uint8_t **ret, struct bs_error *err)
{
	int r = drain(e, e->n_slots - 1, err);

	if (r < 0)
		return r;
	*ret = e->slots[e->pushed % e->n_slots].blocks;
	return 0;
}

int bs_encoder_push(struct bs_encoder *e, uint32_t n_blocks, struct bs_error *err)
{
	pthread_mutex_lock(&e->lock);
	e->slots[e->pushed % e->n_slots].n_blocks = n_blocks;
	e->pushed++;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

int bs_encoder_finish(struct bs_encoder *e, struct bs_encoded *ret, struct bs_error *err)
{
	int r = drain(e, 0, err);

	if (r < 0)
		return r;
	ret->frames = bs_take(&e->frames);
	ret->n_frames = (uint32_t)e->n_frames;
	ret->data_len = e->data_len;
	bs_sha256_final(e->hash, &ret->data);
	return 0;
}
