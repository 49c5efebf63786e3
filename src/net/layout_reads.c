/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/layout_reads.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "net/repo.h"

#define STALL_NS (15 * BS_NS_PER_S) /* as loop.h has it */
#define IDLE_NS (5 * BS_NS_PER_S)   /* a thread without work ends */
#define CHUNK (256u << 10)
#define STACK_BYTES (256u << 10)

/* One read. Whoever takes rg out of it under the lock ends that; the rest is the thread's. */
struct job {
	struct bs_list link; /* of queue[lane] or running */
	struct bs_repo *repo;
	struct bs_range *rg; /* NULL: given up, the caller has it back */
	/* the caller's may be gone while a thread hangs with it */
	struct bs_range asked;
	uint64_t moved_ns;
	bool lost; /* given up while its thread was at it */
};

struct bs_reads {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work;  /* for readers */
	pthread_cond_t watch; /* for the watcher */
	bs_reads_open *open;
	uint64_t stall_ns;
	uint64_t moved_ns; /* the last time that any read came on */
	struct bs_list queue[BS_LANE_MAX];
	struct bs_list running;
	unsigned int n_threads, n_idle, n_lost; /* n_threads: those that are not lost */
	unsigned int n_others;			/* that run what is not demand, and are not lost */
	unsigned int refs;			/* threads, and the repository */
	bool watched;				/* the watcher's thread is there */
	bool over;
};

struct bs_reads *bs_reads_new(bs_reads_open *open)
{
	struct bs_reads *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->work, NULL);
	(void)pthread_cond_init(&p->watch, NULL);
	p->open = open;
	p->stall_ns = STALL_NS;
	p->refs = 1;
	bs_list_init(&p->running);
	for (int lane = 0; lane < BS_LANE_MAX; lane++)
		bs_list_init(&p->queue[lane]);
	return p;
}

void bs_reads_set_stall(struct bs_reads *p, uint64_t ns)
{
	p->stall_ns = ns ? ns : STALL_NS;
}

/* Lock held, and given up. */
static void unref(struct bs_reads *p)
{
	const bool last = --p->refs == 0;

	(void)pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	(void)pthread_cond_destroy(&p->watch);
	(void)pthread_cond_destroy(&p->work);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

void bs_reads_end(struct bs_reads *p)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->over = true;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_cond_broadcast(&p->watch);
	unref(p);
}

__attribute__((format(printf, 3, 4))) static void end(struct bs_range *rg, int result,
						      const char *fmt, ...)
{
	char text[BS_DIGEST_TEXT_LEN];
	va_list ap;
	int n = 0;

	rg->result = result;
	if (result < 0) {
		n = snprintf(rg->text, sizeof(rg->text),
			     "blob %.19s…: ", bs_digest_text(&rg->blob, text));
		va_start(ap, fmt);
		(void)vsnprintf(rg->text + n, sizeof(rg->text) - (size_t)n, fmt, ap);
		va_end(ap);
	}
	rg->ended_ns = bs_clock_ns();
	rg->done(rg);
}

/* --- readers ----------------------------------------------------------------------------------- */

/* The next read; NULL: none. Lock held. */
static struct job *take(struct bs_reads *p)
{
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		struct job *j;

		if (bs_list_empty(&p->queue[lane]))
			continue;
		if (lane != BS_LANE_DEMAND && p->n_others + 1 >= BS_READS_THREADS)
			continue;
		j = bs_list_entry(p->queue[lane].next, struct job, link);
		bs_list_remove(&j->link);
		bs_list_append(&p->running, &j->link);
		p->n_others += lane != BS_LANE_DEMAND;
		j->moved_ns = bs_clock_ns();
		j->rg->answered_ns = j->moved_ns;
		__atomic_store_n(&j->rg->started_ns, j->moved_ns, __ATOMIC_RELAXED);
		return j;
	}
	return NULL;
}

/* Bytes for the caller, if there still is one. */
static bool give(struct bs_reads *p, struct job *j, size_t at, const void *bytes, size_t n)
{
	struct bs_range *rg;

	(void)pthread_mutex_lock(&p->lock);
	rg = j->rg;
	if (rg) {
		memcpy((char *)rg->buf + at, bytes, n);
		__atomic_store_n(&rg->got, at + n, __ATOMIC_RELEASE);
		p->moved_ns = j->moved_ns = bs_clock_ns();
	}
	(void)pthread_mutex_unlock(&p->lock);
	return rg;
}

/* Into memory of the thread: the caller's may be gone by the time that the kernel writes there. */
static int read_all(struct bs_reads *p, struct job *j, void *bytes)
{
	bs_autofd int fd = p->open(j->repo, &j->asked);
	size_t at = 0;

	if (fd < 0)
		return fd;
	while (at < j->asked.len) {
		size_t want = BS_MIN((size_t)CHUNK, j->asked.len - at);
		ssize_t n = bs_pread_full(fd, bytes, want, j->asked.off + at);

		if (n < 0)
			return (int)n;
		if (n > 0 && !give(p, j, at, bytes, (size_t)n))
			return 0;
		if ((size_t)n != want)
			return -EBADMSG;
		at += want;
	}
	return 0;
}

/* Lock not held. */
static void run(struct bs_reads *p, struct job *j, void *bytes)
{
	const int r = read_all(p, j, bytes);
	struct bs_range *rg;

	(void)pthread_mutex_lock(&p->lock);
	rg = bs_take(&j->rg);
	if (j->lost) {
		p->n_lost--;
		p->n_threads++;
	} else {
		bs_list_remove(&j->link);
		p->n_others -= j->asked.lane != BS_LANE_DEMAND;
	}
	p->moved_ns = bs_clock_ns();
	(void)pthread_mutex_unlock(&p->lock);
	(void)bs_repo_unref(j->repo); /* who waits for it may want to see the last of it then */
	free(j);
	if (rg)
		end(rg, r, "%s", r == -EBADMSG ? "it ends before the range does" : strerror(-r));
}

static void *reader_main(void *arg)
{
	void *bytes = malloc(CHUNK);
	struct bs_reads *p = arg;
	int r = 0;

	(void)pthread_mutex_lock(&p->lock);
	/* one that comes back from a read that hung may be one too many */
	while (bytes && p->n_threads <= BS_READS_THREADS) {
		struct job *j = take(p);

		if (j) {
			(void)pthread_mutex_unlock(&p->lock);
			run(p, j, bytes);
			(void)pthread_mutex_lock(&p->lock);
			r = 0;
			continue;
		}
		if (p->over || r != 0)
			break;
		p->n_idle++;
		r = bs_clock_cond_wait(&p->work, &p->lock, bs_clock_ns() + IDLE_NS);
		p->n_idle--;
	}
	p->n_threads--;
	free(bytes);
	unref(p);
	return NULL;
}

/* --- what does not come on -------------------------------------------------------------------- */

/* When a read is given up. One that waits has time as long as others come on. Lock held. */
static uint64_t deadline(const struct bs_reads *p, const struct job *j, bool waits)
{
	return (waits ? BS_MAX(j->moved_ns, p->moved_ns) : j->moved_ns) + p->stall_ns;
}

static bool is_late(const struct bs_reads *p, const struct job *j, bool waits)
{
	return deadline(p, j, waits) <= bs_clock_ns();
}

static uint64_t next_deadline(const struct bs_reads *p)
{
	uint64_t next = UINT64_MAX;

	bs_list_for_each(it, &p->running)
		next = BS_MIN(next, deadline(p, bs_list_entry(it, struct job, link), false));
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		bs_list_for_each(it, &p->queue[lane])
			next = BS_MIN(next, deadline(p, bs_list_entry(it, struct job, link), true));
	}
	return next;
}

static int start(struct bs_reads *p, void *(*fn)(void *arg));

/* As many as there is work for. Lock held. */
static int start_readers(struct bs_reads *p)
{
	unsigned int n = 0;
	int r = 0;

	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		bs_list_for_each(it, &p->queue[lane])
			n++;
	}
	for (; r == 0 && n > p->n_idle && p->n_threads < BS_READS_THREADS; n--) {
		r = start(p, reader_main);
		p->n_threads += r == 0;
	}
	return p->n_threads > 0 ? 0 : r;
}

/* Gives up what is late. Lock held, but not while callers are told. */
static void give_up(struct bs_reads *p)
{
	struct bs_range *hanging[BS_READS_THREADS];
	struct bs_list waiting;
	unsigned int n = 0;
	char text[32];
	bool hangs;

	bs_list_init(&waiting);
	bs_list_for_each(it, &p->running) {
		struct job *j = bs_list_entry(it, struct job, link);

		if (n == BS_READS_THREADS || !is_late(p, j, false))
			continue;
		bs_list_remove(it); /* the thread's alone from now on */
		hanging[n++] = bs_take(&j->rg);
		j->lost = true;
		p->n_lost++;
		p->n_threads--;
		p->n_others -= j->asked.lane != BS_LANE_DEMAND;
	}
	hangs = p->n_lost >= BS_READS_LOST_MAX;
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		bs_list_for_each(it, &p->queue[lane]) {
			if (!hangs && !is_late(p, bs_list_entry(it, struct job, link), true))
				continue;
			bs_list_remove(it);
			bs_list_append(&waiting, it);
		}
	}
	if (!hangs && n > 0)
		(void)start_readers(p); /* if there is none at all, what waits will be late */
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
	while (n > 0)
		end(hanging[--n], -ETIMEDOUT, "nothing came for %s: the store hangs",
		    bs_clock_human(p->stall_ns, text, sizeof(text)));
	while (!bs_list_empty(&waiting)) {
		struct job *j = bs_list_entry(waiting.next, struct job, link);

		struct bs_range *rg = j->rg;

		bs_list_remove(&j->link);
		(void)bs_repo_unref(j->repo);
		free(j);
		end(rg, -ETIMEDOUT, "no read came on: the store hangs");
	}
	(void)pthread_mutex_lock(&p->lock);
}

static void *watcher_main(void *arg)
{
	struct bs_reads *p = arg;
	uint64_t idle_ns = 0;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		const uint64_t now = bs_clock_ns(), next = next_deadline(p);

		if (next == UINT64_MAX && (p->over || (idle_ns && now >= idle_ns)))
			break;
		if (next != UINT64_MAX)
			idle_ns = 0;
		else if (!idle_ns)
			idle_ns = now + IDLE_NS;
		if (next <= now)
			give_up(p);
		else
			(void)bs_clock_cond_wait(/* what is asked for meanwhile is late later */
						 &p->watch, &p->lock,
						 BS_MIN(idle_ns ? idle_ns : next,
							now + p->stall_ns));
	}
	p->watched = false;
	unref(p);
	return NULL;
}

/* --- asking ------------------------------------------------------------------------------------ */

/* A thread with a reference, that nobody waits for. Lock held. */
static int start(struct bs_reads *p, void *(*fn)(void *arg))
{
	pthread_attr_t attr;
	pthread_t t;
	int r;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &attr, fn, p);
	(void)pthread_attr_destroy(&attr);
	p->refs += r == 0;
	return -r;
}

/* Lock held. */
static int start_threads(struct bs_reads *p)
{
	int r = 0;

	if (!p->watched) {
		r = start(p, watcher_main);
		p->watched = r == 0;
	}
	return r == 0 ? start_readers(p) : r;
}

void bs_reads_read(struct bs_reads *p, struct bs_repo *r, struct bs_range *rg)
{
	struct job *j = calloc(1, sizeof(*j));
	bool hangs;
	int rc;

	if (!j) {
		end(rg, -ENOMEM, "out of memory");
		return;
	}
	*j = (struct job){ .repo = bs_repo_ref(r), .rg = rg, .asked = *rg };
	j->moved_ns = bs_clock_ns();
	(void)pthread_mutex_lock(&p->lock);
	hangs = p->n_lost >= BS_READS_LOST_MAX;
	bs_list_append(&p->queue[rg->lane], &j->link);
	rc = hangs ? -ETIMEDOUT : start_threads(p);
	if (rc < 0)
		bs_list_remove(&j->link);
	else
		(void)pthread_cond_signal(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
	if (rc == 0)
		return;
	(void)bs_repo_unref(j->repo);
	free(j);
	if (hangs)
		end(rg, rc, "the store hangs: %u reads of it have not returned", BS_READS_LOST_MAX);
	else
		end(rg, -ENOMEM, "no thread to read it: %s", strerror(-rc));
}
