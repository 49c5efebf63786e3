/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the kernel knows of us, kept where the next server finds it when this one is killed: the
 * nodes that it has names of, and the handles of what is open. Memory shared by a descriptor
 * that somebody else holds, too; each entry is valid or not there at every moment.
 *
 * Numbers of handles tell whose they are: each server has a generation of its own, and a number
 * of an earlier one is looked up (bs_fskeep_adopt).
 *
 * Threads: entries of nodes with the nodes' lock; all others from any.
 */
#ifndef BS_HDFS_FSKEEP_H
#define BS_HDFS_FSKEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdfs/path.h"

struct bs_error;
struct bs_fskeep;

#define BS_FSKEEP_GENERATIONS 65535u /* servers of one mount */

struct bs_fskeep_node {
	uint32_t valid;
	uint32_t is_dir : 1, is_link : 1;
	uint64_t id, parent, ino, lookups, file_id;
	char name[BS_HDFS_NAME_MAX + 1]; /* "" and parent 0: it has none any more */
};

enum bs_fskeep_kind { BS_FSKEEP_FREE, BS_FSKEEP_READS, BS_FSKEEP_WRITES, BS_FSKEEP_DIR };

struct bs_fskeep_handle {
	uint32_t kind;
	uint64_t fh, node, file_id, len, mtime_ms; /* file_id 0: not on HDFS when it was opened */
};

/* Bytes of the memory: what to ftruncate(2) it to. It is used as far as there is need. */
uint64_t bs_fskeep_bytes(void);
/* fd: of that memory, borrowed. generation: from 1. */
int bs_fskeep_open(int fd, uint32_t generation, struct bs_fskeep **ret, struct bs_error *err);
/* Not the memory, which is for the next one. A server that serves needs it to its end. NULL. */
struct bs_fskeep *bs_fskeep_free(struct bs_fskeep *k);

/*
 * An entry's number, 0: there is no room; then no server takes over after this one. All of them
 * take NULL: nothing is kept.
 */
uint32_t bs_fskeep_add_node(struct bs_fskeep *k, const struct bs_fskeep_node *n);
struct bs_fskeep_node *bs_fskeep_node(struct bs_fskeep *k, uint32_t slot); /* NULL: slot 0 */
void bs_fskeep_drop_node(struct bs_fskeep *k, uint32_t slot);
/* The largest number that a node ever had. */
uint64_t *bs_fskeep_last_id(struct bs_fskeep *k);
uint32_t bs_fskeep_add_handle(struct bs_fskeep *k, const struct bs_fskeep_handle *h);
void bs_fskeep_drop_handle(struct bs_fskeep *k, uint32_t slot);

/* For a server that takes over: entry slot from 1 on, copied and checked; false behind the last. */
bool bs_fskeep_next_node(struct bs_fskeep *k, uint32_t *slot, struct bs_fskeep_node *ret);
bool bs_fskeep_next_handle(struct bs_fskeep *k, uint32_t *slot, struct bs_fskeep_handle *ret);
/* Whether all that there was is in it. */
bool bs_fskeep_is_whole(const struct bs_fskeep *k);

/* The kernel's number of a handle of ours, and back: also of those that were adopted. */
uint64_t bs_fskeep_fh(void *handle);
void *bs_fskeep_pointer(uint64_t fh);
/* Before anything is served. */
int bs_fskeep_adopt(uint64_t fh, void *handle);

#endif
