/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the rest of net/ may ask of the loop. Any thread, unless it says otherwise. */
#ifndef BS_NET_LOOP_IMPL_H
#define BS_NET_LOOP_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

struct bs_loop;

/* Work that is handed over; embedded in its owner, which keeps it until fn was called. */
struct bs_task {
	struct bs_list link;
	void (*fn)(struct bs_task *t);
};

/* Runs fn on the loop's thread, soon and in order. */
void bs_loop_post(struct bs_loop *l, struct bs_task *t);

/*
 * Runs fn on the loop's second thread, where it may block (credential helpers), one
 * after the other. fn posts the rest back.
 */
void bs_loop_block(struct bs_loop *l, struct bs_task *t);

bool bs_loop_is_self(const struct bs_loop *l);
/* True once bs_loop_free began: no new request is worth starting. */
bool bs_loop_stopping(const struct bs_loop *l);

void bs_loop_count_token(struct bs_loop *l);

/* The sessions that use this loop (net/session.c): a list and its lock. */
struct bs_list *bs_loop_sessions(struct bs_loop *l);
pthread_mutex_t *bs_loop_sessions_lock(struct bs_loop *l);

#endif
