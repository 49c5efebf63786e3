/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The one thread that talks to DataNodes: it waits for sockets, runs what other threads
 * hand over, and calls its owner once a round so that he looks at his deadlines.
 */
#ifndef BS_HDFS_EV_H
#define BS_HDFS_EV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "net/loop_impl.h"

struct bs_error;
struct bs_ev;

struct bs_ev_io {
	int fd;
	uint32_t events; /* that are waited for; EPOLLIN, EPOLLOUT */
	/* may end the io itself and others; those of this round are not called then */
	void (*ready)(struct bs_ev_io *io, uint32_t events);
	struct bs_ev *ev;
	unsigned int slot;
};

/*
 * tick: after each round; gives when the next one has to be at the latest (bs_clock_ns).
 * stop: on the thread, as its last act: nothing may be under way afterwards.
 */
struct bs_ev_owner {
	uint64_t (*tick)(void *cookie, uint64_t now_ns);
	void (*stop)(void *cookie);
	void *cookie;
};

int bs_ev_new(const struct bs_ev_owner *owner, struct bs_ev **ret, struct bs_error *err);
/* Runs what was posted, then stop, ends the thread. Not from the thread itself. */
struct bs_ev *bs_ev_free(struct bs_ev *ev);

/*
 * For who will post from elsewhere later: bs_ev_free waits until all that is held is
 * released, and runs what was posted last on its own thread.
 */
void bs_ev_hold(struct bs_ev *ev);
void bs_ev_release(struct bs_ev *ev);

/* Any thread: runs t->fn on this one, in order. */
void bs_ev_post(struct bs_ev *ev, struct bs_task *t);

/* The thread only. */
int bs_ev_add(struct bs_ev *ev, struct bs_ev_io *io);
int bs_ev_wait_for(struct bs_ev_io *io, uint32_t events);
void bs_ev_remove(struct bs_ev_io *io);

#endif
