/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Requests of the supervisor to the worker that outlive it; private to src/daemon. */
#ifndef BS_DAEMON_PENDING_H
#define BS_DAEMON_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "ctl/msg.h"

struct client;
struct hot;
struct super;

/* A client that waits for the answer to a pending request. */
struct waiter {
	struct bs_list all;
	struct client *client;
	uint32_t id;
	uint64_t deadline_ns;
	char *container; /* who wants the image; NULL: nobody in particular */
	int timeline;	 /* descriptor, -EBADF */
	struct hot *hot; /* what it waits for, too; see hots.c */
};

struct pending;

/* result 0: m is the worker's answer; else -errno, and text says why. p is idle again. */
typedef void pending_ended(struct super *s, struct pending *p, int result, const char *text,
			   struct bs_msg *m);

/* A request to the worker, and who waits for its answer; embedded in what it is about. */
struct pending {
	struct bs_list all;
	struct bs_msg request;
	bool open;	    /* asked and not answered */
	bool sent;	    /* the worker that runs has it */
	unsigned int tries; /* workers that died meanwhile, over it or for another reason */
	struct bs_list waiting;
	pending_ended *ended;
};

void pending_init(struct super *s, struct pending *p, pending_ended *ended);
void pending_done(struct pending *p); /* those who wait get no answer */
/* Appended to p's; gets -ETIMEDOUT after wait_ns. NULL: out of memory. */
struct waiter *waiter_new(struct pending *p, struct client *c, uint32_t id, uint64_t wait_ns);
void waiter_free(struct waiter *w);
/* What each request to the worker has of a client's: SOURCE…, HOT_ONLY. */
void pending_carry(struct bs_msg *to, const struct bs_msg *from);
/*
 * Opens p with a request of that type, with what pending_carry takes of m and WAIT_NS; the
 * caller adds the rest to what is returned, then calls pending_send.
 */
struct bs_msg *pending_begin(struct super *s, struct pending *p, enum bs_msg_type type,
			     const struct bs_msg *m, uint64_t wait_ns);
void pending_send(struct super *s, struct pending *p);
/* Gives all who wait that answer. */
void pending_fail(struct super *s, struct pending *p, int result, const char *text);
bool pendings_open(const struct super *s); /* whether any is */
void pendings_send(struct super *s);	   /* what the worker has not got yet */
void pendings_new_worker(struct super *s); /* it has nothing of what the last one had */
bool pendings_answered(struct super *s, struct bs_msg *m); /* false: to none of them */
void pendings_client_gone(struct super *s, const struct client *c);
void pendings_expire(struct super *s, uint64_t now_ns);

#endif
