/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What read.c (attempts), pick.c (choices) and open.c (WebHDFS OPEN at a DataNode) share. */
#ifndef BS_HDFS_READPRIV_H
#define BS_HDFS_READPRIV_H

#include "base/list.h"
#include "hdfs/blocks.h"
#include "hdfs/datanode.h"
#include "hdfs/read.h"

struct bs_open;

#define BS_BAD_KEPT 256u /* replicas with wrong bytes that are remembered */
#define BS_ATTEMPTS 2	 /* of a piece at once */

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

struct bs_bad {
	uint64_t id, generation;
	const struct bs_dn *node;
	uint64_t until_ns; /* HDFS may have mended it */
};

struct bs_reader {
	struct bs_reader_options o;
	struct bs_ev *ev;
	struct bs_reader_stats stats; /* atomic members */

	struct bs_dn *listed[BS_READER_NODES_MAX]; /* there as long as the reader */
	unsigned int n_listed;			   /* atomic; only the event thread adds */

	/* the event thread only */
	struct bs_dn_pool pool;
	struct bs_list reads;	/* under way */
	struct bs_list waiting; /* pieces without an attempt */
	struct bs_list running; /* pieces with one */
	struct bs_bad bad[BS_BAD_KEPT];
	unsigned int next_bad, next_replica;
	bool again; /* something changed that lets pieces start */
	uint64_t look_again_ns;
};

/* --- pick.c: the event thread only ----------------------------------------------------------- */

/* What troubles add to a cost that is bytes otherwise. */
#define BS_COST_TROUBLE (UINT64_C(1) << 48)
#define BS_COST_SUSPECT (UINT64_C(1) << 50)

struct bs_choice {
	struct bs_dn *node;
	unsigned int replica;
	uint64_t cost;
};

bool bs_pick_is_bad(const struct bs_reader *rd, const struct bs_block *k, const struct bs_dn *node);
void bs_pick_remember_bad(struct bs_reader *rd, const struct bs_block *k, const struct bs_dn *node);
/* Failures count for longer each time; a success forgets them. */
void bs_pick_suspect(struct bs_dn *node, uint64_t now);
bool bs_pick_has_room(const struct bs_reader *rd, const struct bs_dn *node, size_t len);
/*
 * The best replica that was not tried. 1, 0 when there is none that could be tried, -EBUSY when
 * all that could have enough to do.
 */
int bs_pick_replica(struct bs_reader *rd, const struct bs_piece *p, uint64_t now,
		    struct bs_choice *ret);
/* What is asked of each DataNode now; before bs_pick_piece. */
void bs_pick_find_demand(struct bs_reader *rd);
/*
 * Of the first read that has one, the piece to start next, or NULL. ret->node NULL: no replica
 * of it can be tried.
 */
struct bs_piece *bs_pick_piece(struct bs_reader *rd, uint64_t now, struct bs_choice *ret);
/* It was started so. */
void bs_pick_took(struct bs_reader *rd, struct bs_piece *p, const struct bs_choice *c);

/* --- open.c ---------------------------------------------------------------------------------- */

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
