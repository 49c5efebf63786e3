/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reads of byte ranges of files whose blocks are known, from all DataNodes at once.
 *
 * A range is cut into pieces. A piece goes to the replica whose DataNode has least to do, in
 * the order of the file but never beyond what keeps a DataNode's link full: what a busy
 * DataNode cannot take waits while later pieces go to idle ones. So a range that spans two
 * blocks or more uses more DataNodes than one block has replicas.
 *
 * An attempt that is silent for hedge_ns gets a rival at another replica, from the byte where
 * it stopped; the first that ends wins. A replica with a wrong sum is not used again. A
 * DataNode that failed or was silent is asked last for a while.
 *
 * Threads: all functions from any; done on the event thread.
 */
#ifndef BS_HDFS_READ_H
#define BS_HDFS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "net/loop_impl.h"

struct bs_blocks;
struct bs_error;
struct bs_loop;
struct bs_piece;
struct bs_http_peer;
struct bs_reader;

struct bs_reader_options {
	uint64_t connect_ns; /* 0: 3 s; to a DataNode */
	uint64_t hedge_ns;   /* 0: 1 s; silence after which another replica is asked too */
	uint64_t stall_ns;   /* 0: 15 s; silence that ends an attempt */
	size_t piece_bytes;  /* 0: 4 MiB */
	size_t node_bytes;   /* 0: 8 MiB; asked for at one DataNode at once */
	/* for DataNodes that speak HTTP only; NULL: none is asked so */
	struct bs_loop *loop;
	const struct bs_http_peer *peer;
	bool https;
	bool http_always; /* never the DataNodes' own protocol */
};

int bs_reader_new(const struct bs_reader_options *o, struct bs_reader **ret, struct bs_error *err);
/* Ends every read with -ECANCELED. */
struct bs_reader *bs_reader_free(struct bs_reader *rd);
DEFINE_BS_AUTO(reader, struct bs_reader, bs_reader_free)

/*
 * One read. The owner keeps it, buf and http until done was called, exactly once.
 *
 * How it ends: 0; -EACCES a block token was refused, so that the blocks have to be asked for
 * again; -EPROTONOSUPPORT only HTTP would do and http is NULL; -EBADMSG no replica has right
 * bytes; -ENODATA no DataNode has a block; -ETIMEDOUT; else the last replica's failure.
 */
struct bs_read {
	struct bs_blocks *blocks; /* borrowed; they cover the range */
	uint64_t off;
	size_t len; /* > 0 */
	void *buf;
	uint64_t deadline_ns; /* bs_clock_ns */
	/*
	 * "/webhdfs/v1/PATH?op=OPEN&…" as a DataNode wants it, without offset and length, or NULL.
	 * http_only: the blocks' bytes are not the file's (encrypted, erasure coded).
	 */
	const char *http;
	bool http_only;
	void (*done)(struct bs_read *r);
	void *cookie;

	int result;
	char text[160];
	bool by_http; /* some of it: of what is at the path now */
	/* of what failed; the rest is in buf */
	uint64_t bad_off;
	size_t bad_len;

	/* the reader's */
	struct bs_reader *reader;
	struct bs_task task;
	struct bs_list link;
	struct bs_piece *pieces;
	size_t n_pieces, n_left;
};

void bs_reader_start(struct bs_reader *rd, struct bs_read *r);

/* Now; for people and for tests. */
struct bs_reader_stats {
	uint64_t bytes, pieces, hedges, retries, bad_replicas, http_bytes, connections, reused;
};
void bs_reader_stats(struct bs_reader *rd, struct bs_reader_stats *ret);

#define BS_READER_NODES_MAX 64u

struct bs_reader_node {
	const char *address;  /* "ADDRESS:PORT", as long as the reader */
	uint64_t bytes, rate; /* that came, bytes per second of late */
};
/* The first DataNodes that were asked, how many. Any thread; does not block. */
size_t bs_reader_nodes(struct bs_reader *rd, struct bs_reader_node ret[BS_READER_NODES_MAX]);

#endif
