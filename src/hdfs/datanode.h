/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Ranges of blocks from DataNodes by their data transfer protocol (hdfs/xfer.h): one
 * attempt at one DataNode, every chunk's sum checked before its bytes are given on.
 * Connections are used again for a while.
 *
 * How an attempt ends: 0; -EHOSTUNREACH no connection; -ETIMEDOUT silent for too long;
 * -EBADMSG a wrong sum or answer; -EACCES the block token is refused; -EPROTONOSUPPORT
 * the connection was closed without a word, as DataNodes do that want SASL or encryption;
 * -EREMOTEIO the DataNode said no or the connection broke.
 *
 * Threads: the event thread only.
 */
#ifndef BS_HDFS_DATANODE_H
#define BS_HDFS_DATANODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"

struct bs_block;
struct bs_dn_conn;
struct bs_ev;

#define BS_DN_MAX 65536u /* DataNodes of a pool */

/* A DataNode, as long as the pool lives. */
struct bs_dn {
	char *key; /* "ADDRESS:PORT" */
	char *address;
	uint16_t port;
	struct bs_list idle; /* connections */

	/* what the scheduler knows of it */
	unsigned int running;
	uint64_t load;	 /* bytes that were asked for and are not there yet */
	uint64_t demand; /* load, and its part of the pieces that wait */
	uint64_t suspect_until_ns;
	unsigned int strikes;		 /* failures in a row */
	uint64_t plain_refused_until_ns; /* no word without SASL: HTTP only */
	bool spoke;			 /* ever, without SASL */
	uint64_t bytes;
	uint64_t rate; /* bytes per second of its attempts, smoothed; 0 unknown */
	bool listed;   /* the reader's */
};

struct bs_dn_pool {
	struct bs_ev *ev;
	char client[64];       /* how we call ourselves */
	uint64_t connect_ns;   /* at most for a connection */
	uint64_t stall_ns;     /* at most without a byte */
	struct bs_list active; /* connections */
	struct bs_map nodes;
	uint64_t connections, reused; /* opened; used again */
};

struct bs_dn_read {
	/* set by the owner; unchanged until done */
	struct bs_dn *node;
	const struct bs_block *block;
	uint64_t off; /* in the block */
	size_t len;   /* > 0 */
	/* verified bytes, in order; may cancel the attempt */
	void (*data)(struct bs_dn_read *rd, const void *data, size_t len);
	void (*done)(struct bs_dn_read *rd);
	/* results */
	int result;
	char text[160];
	size_t got;
	uint64_t last_ns; /* when something came last, or it began */
	/* the pool's; NULL when it does not run */
	struct bs_dn_conn *conn;
};

void bs_dn_pool_init(struct bs_dn_pool *p, struct bs_ev *ev);
/* Nothing may run any more. */
void bs_dn_pool_done(struct bs_dn_pool *p);

/* The DataNode; the same one for the same address. NULL: out of memory, or too many. */
struct bs_dn *bs_dn_get(struct bs_dn_pool *p, const char *address, uint16_t port);

/* done comes later, never from within. 0 or -errno (then it does not come). */
int bs_dn_read_start(struct bs_dn_pool *p, struct bs_dn_read *rd);
/* No done. Nothing happens when it does not run. */
void bs_dn_read_cancel(struct bs_dn_pool *p, struct bs_dn_read *rd);

/* Ends what is over its time; gives when to look again. */
uint64_t bs_dn_tick(struct bs_dn_pool *p, uint64_t now_ns);

#endif
