/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Whole files, written over WebHDFS straight to a DataNode, whose disk gets the first replica
 * of every block.
 *
 * A file is visible from its first byte on, and one whose upload broke off may look complete:
 * whoever writes gives it a name that nobody reads yet, and renames it.
 *
 * Threads: any; the call blocks, not on the loop's.
 */
#ifndef BS_HDFS_CREATE_H
#define BS_HDFS_CREATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_nn;

struct bs_create {
	const char *path;
	const void *bytes; /* NULL: len bytes of fd from fd_off on, by pread */
	int fd;
	uint64_t fd_off, len;
	const char *datanode; /* "ADDRESS:PORT" of HTTP or HTTPS; NULL: as the NameNode says */
	bool overwrite;	      /* else -EEXIST; another writer of the same name is cut off */
	uint32_t replication, mode; /* 0: HDFS's default, 0644 */
	uint64_t block_size;	    /* 0: HDFS's default */
	uint64_t deadline_ns;	    /* of all of it; 0: 60 s, and a second for each MiB */
};

/*
 * 0 when the DataNode says that all is written and the NameNode tells the right length. After
 * an error there may be a part of the file. -EHOSTUNREACH and -ETIMEDOUT: the DataNode is no
 * good, another may be; -EEXIST, -ENOSPC, -EDQUOT and the rest as in hdfs/namenode.h.
 */
int bs_hdfs_create(struct bs_nn *nn, const struct bs_create *c, struct bs_error *err);

#endif
