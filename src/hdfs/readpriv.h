/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What read.c (scheduling) and open.c (WebHDFS OPEN at a DataNode) share. */
#ifndef BS_HDFS_READPRIV_H
#define BS_HDFS_READPRIV_H

#include "base/list.h"
#include "hdfs/blocks.h"
#include "hdfs/datanode.h"
#include "hdfs/read.h"

struct bs_open;

#define BS_ATTEMPTS 2 /* of a piece at once */

struct bs_attempt {
	struct bs_dn_read dn; /* its results are those of open, too */
	struct bs_open *open; /* or NULL */
	struct bs_piece *piece;
	unsigned int replica;
	size_t from;  /* in the piece */
	size_t asked; /* of the node's load, still */
	uint64_t began_ns;
	bool runs;
};

struct bs_piece {
	struct bs_list link; /* of the reader's waiting or running ones */
	struct bs_read *read;
	const struct bs_block *block;
	uint64_t off; /* in the block */
	size_t len;
	uint8_t *to;
	struct bs_dn *nodes[BS_REPLICAS_MAX]; /* of block's replicas */
	size_t got;			      /* verified bytes from the start */
	uint32_t tried;			      /* replicas that failed, a bit each */
	unsigned int rounds;		      /* how often all were tried */
	bool over;
	int result;
	struct bs_attempt attempts[BS_ATTEMPTS];
};

/*
 * Starts a WebHDFS OPEN of a's range at its DataNode. a->dn.data is never called from it: at
 * its good end the bytes are given to bs_read_took. 0 or -errno.
 */
int bs_open_start(const struct bs_reader_options *o, struct bs_ev *ev, struct bs_attempt *a,
		  const struct bs_replica *replica);
uint64_t bs_open_last_ns(const struct bs_open *op);
/* Nothing comes of it any more. */
void bs_open_cancel(struct bs_open *op);
/* Called on the event thread at the end of an OPEN; a->dn.result says how. */
void bs_read_opened(struct bs_attempt *a, const void *bytes, size_t len);

#endif
