/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * OCI layouts that are directories on HDFS, as repositories (net/repo.h). There is one client
 * for each cluster, which the layouts on it share.
 *
 * Ranges are read by threads of the client's, from all replicas at once (hdfs/read.h), first
 * those that somebody waits for. Blobs are written as ordinary files by the way of hdfs/ckpt.h
 * (layout plain), under another name until they are whole. What changes index.json has made the
 * file ".lock" beside it, and looks afterwards whether its change is in; a ".lock" that stays the
 * same for long is a dead writer's, and taken away.
 *
 * Threads: any.
 */
#ifndef BS_HDFS_STORE_H
#define BS_HDFS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_error;
struct bs_jsonw;
struct bs_loop;
struct bs_repo;
struct bs_stores;

struct bs_stores_options {
	const char *options;	  /* of hdfs/mount.h, what there is for the client; may be NULL */
	uint64_t deadline_ns;	  /* of one request, unless options say it; 0: hdfs/ckpt.h's */
	uint32_t hot_replication; /* copies of what is favoured, at least */
	uint64_t background_rate; /* bytes per second of that lane, 0: no limit */
	struct bs_loop *loop;	  /* ranges are done on its thread; NULL: on one of the client's */
};

/* -EINVAL: the options. */
int bs_stores_new(const struct bs_stores_options *o, struct bs_stores **ret, struct bs_error *err);
/* All repositories are gone. */
struct bs_stores *bs_stores_free(struct bs_stores *s);
DEFINE_BS_AUTO(stores, struct bs_stores, bs_stores_free)

/*
 * url: as in hdfs/place.h, with a path. Asks nobody: whether there is a layout shows when it is
 * used. create: make what is missing of one, now. The stores outlive the repository.
 */
int bs_stores_open(struct bs_stores *s, const char *url, bool create, struct bs_repo **ret,
		   struct bs_error *err);

/* An array: of each cluster what was asked of it, and what its client counts. */
void bs_stores_status(struct bs_stores *s, struct bs_jsonw *w);

#endif
