/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/ev.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

#define EVENTS_MAX 64

struct bs_ev {
	struct bs_ev_owner owner;
	pthread_t thread;
	bool runs;
	int epoll, wake;
	pthread_mutex_t lock;
	struct bs_list posted; /* guarded by lock */
	bool stop;	       /* guarded by lock */
	unsigned int held;     /* guarded by lock */
	pthread_cond_t released;

	/* the thread's: of this round, those not called yet; an io that ends is taken out */
	struct epoll_event events[EVENTS_MAX];
	int n_events;
};

static void wake_up(struct bs_ev *ev)
{
	uint64_t one = 1;

	/* it can only be full, and then the thread wakes up anyway */
	(void)!write(ev->wake, &one, sizeof(one));
}

void bs_ev_post(struct bs_ev *ev, struct bs_task *t)
{
	bool first;

	(void)pthread_mutex_lock(&ev->lock);
	first = bs_list_empty(&ev->posted);
	bs_list_append(&ev->posted, &t->link);
	(void)pthread_mutex_unlock(&ev->lock);
	if (first)
		wake_up(ev);
}

void bs_ev_hold(struct bs_ev *ev)
{
	(void)pthread_mutex_lock(&ev->lock);
	ev->held++;
	(void)pthread_mutex_unlock(&ev->lock);
}

void bs_ev_release(struct bs_ev *ev)
{
	(void)pthread_mutex_lock(&ev->lock);
	if (--ev->held == 0)
		(void)pthread_cond_signal(&ev->released);
	(void)pthread_mutex_unlock(&ev->lock);
}

int bs_ev_add(struct bs_ev *ev, struct bs_ev_io *io)
{
	struct epoll_event e = { .events = io->events, .data.ptr = io };

	io->ev = ev;
	return epoll_ctl(ev->epoll, EPOLL_CTL_ADD, io->fd, &e) < 0 ? -errno : 0;
}

int bs_ev_wait_for(struct bs_ev_io *io, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = io };

	if (io->events == events)
		return 0;
	io->events = events;
	return epoll_ctl(io->ev->epoll, EPOLL_CTL_MOD, io->fd, &e) < 0 ? -errno : 0;
}

void bs_ev_remove(struct bs_ev_io *io)
{
	struct bs_ev *ev = io->ev;

	(void)epoll_ctl(ev->epoll, EPOLL_CTL_DEL, io->fd, NULL);
	for (int i = 0; i < ev->n_events; i++) {
		if (ev->events[i].data.ptr == io)
			ev->events[i].data.ptr = NULL;
	}
}

static struct bs_task *pop(struct bs_ev *ev, bool *ret_stop)
{
	struct bs_task *t = NULL;

	(void)pthread_mutex_lock(&ev->lock);
	if (!bs_list_empty(&ev->posted)) {
		t = bs_list_entry(ev->posted.next, struct bs_task, link);
		bs_list_remove(&t->link);
	}
	*ret_stop = ev->stop;
	(void)pthread_mutex_unlock(&ev->lock);
	return t;
}

static void drain(const struct bs_ev *ev)
{
	uint64_t count;

	(void)!read(ev->wake, &count, sizeof(count));
}

static void wait_for_events(struct bs_ev *ev, uint64_t until_ns)
{
	uint64_t now = bs_clock_ns(), ns = until_ns > now ? until_ns - now : 0;
	int ms = (int)BS_MIN(bs_div_up(ns, BS_NS_PER_MS), (uint64_t)INT_MAX);

	ev->n_events = epoll_wait(ev->epoll, ev->events, EVENTS_MAX, ms);
	if (ev->n_events < 0)
		ev->n_events = 0;
	for (int i = 0; i < ev->n_events; i++) {
		struct bs_ev_io *io = ev->events[i].data.ptr;

		if (ev->events[i].data.ptr == ev)
			drain(ev);
		else if (io)
			io->ready(io, ev->events[i].events);
	}
	ev->n_events = 0;
}

static void *ev_main(void *cookie)
{
	struct bs_ev *ev = cookie;
	bool stop = false;

	while (!stop) {
		struct bs_task *t;
		uint64_t until;

		while ((t = pop(ev, &stop)))
			t->fn(t);
		if (stop)
			break;
		until = ev->owner.tick(ev->owner.cookie, bs_clock_ns());
		wait_for_events(ev, until);
	}
	ev->owner.stop(ev->owner.cookie);
	return NULL;
}

static int start(struct bs_ev *ev)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = ev };
	sigset_t all, old;
	int r;

	ev->epoll = epoll_create1(EPOLL_CLOEXEC);
	ev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ev->epoll < 0 || ev->wake < 0 || epoll_ctl(ev->epoll, EPOLL_CTL_ADD, ev->wake, &e) < 0)
		return -errno;
	(void)sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (r)
		return -r;
	r = pthread_create(&ev->thread, NULL, ev_main, ev);
	ev->runs = r == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

int bs_ev_new(const struct bs_ev_owner *owner, struct bs_ev **ret, struct bs_error *err)
{
	struct bs_ev *ev = calloc(1, sizeof(*ev));
	int r;

	if (!ev)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	ev->owner = *owner;
	ev->epoll = ev->wake = -EBADF;
	(void)pthread_mutex_init(&ev->lock, NULL);
	(void)pthread_cond_init(&ev->released, NULL);
	bs_list_init(&ev->posted);
	r = start(ev);
	if (r < 0) {
		(void)bs_ev_free(ev);
		return bs_fail_errno(err, r, "HDFS: cannot start a thread");
	}
	*ret = ev;
	return 0;
}

struct bs_ev *bs_ev_free(struct bs_ev *ev)
{
	struct bs_task *t;
	bool stopped;

	if (!ev)
		return NULL;
	(void)pthread_mutex_lock(&ev->lock);
	ev->stop = true;
	(void)pthread_mutex_unlock(&ev->lock);
	if (ev->runs) {
		wake_up(ev);
		(void)pthread_join(ev->thread, NULL);
	}
	(void)pthread_mutex_lock(&ev->lock);
	while (ev->held > 0)
		(void)pthread_cond_wait(&ev->released, &ev->lock);
	(void)pthread_mutex_unlock(&ev->lock);
	while ((t = pop(ev, &stopped)))
		t->fn(t);
	(void)bs_close(ev->wake);
	(void)bs_close(ev->epoll);
	(void)pthread_cond_destroy(&ev->released);
	(void)pthread_mutex_destroy(&ev->lock);
	free(ev);
	return NULL;
}
