/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Where the bytes of a file lie: blocks in order, each with the DataNodes that hold it. A
 * list is shared and does not change, but for what readers learn of a replica.
 */
#ifndef BS_HDFS_BLOCKS_H
#define BS_HDFS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "hdfs/token.h"

#define BS_REPLICAS_MAX 32u /* of a block; more are not looked at */

struct bs_replica {
	char *address; /* IP address, as DataNodes tell it to clients */
	char *host;
	uint16_t xfer_port, http_port, https_port; /* https_port 0: none */
	bool last_resort;			   /* stale, on its way out, or in maintenance */
};

struct bs_block {
	uint64_t off, len; /* in the file */
	char *pool;
	uint64_t id, generation;
	struct bs_token token;
	bool corrupt; /* every replica is, says the NameNode */
	struct bs_replica *replicas;
	unsigned int n_replicas;
};

struct bs_blocks {
	unsigned int refs; /* atomic */
	uint64_t file_len;
	bool under_construction;
	struct bs_block *v;
	size_t n, cap;
};

struct bs_blocks *bs_blocks_ref(struct bs_blocks *b);
struct bs_blocks *bs_blocks_unref(struct bs_blocks *b);
DEFINE_BS_AUTO(blocks, struct bs_blocks, bs_blocks_unref)

/* The block that holds offset off of the file, or NULL: it is not in the list. */
const struct bs_block *bs_blocks_find(const struct bs_blocks *b, uint64_t off);

#endif
