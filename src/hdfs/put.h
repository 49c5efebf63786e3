/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Bytes in memory become a file of HDFS, sent straight to a DataNode of our choice. When that
 * one refuses or is silent, they are sent again to another one, under another name: what an
 * aborted attempt left looks like a whole file. What the NameNode refuses only for now (it
 * starts, is in safe mode, is the standby, wants another token) is waited for.
 *
 * Attempt N makes PATH.N; the one that counts is told, the others are garbage, which may come
 * into being even later, as long as its directory is there.
 *
 * Threads: any; done on the loop's.
 */
#ifndef BS_HDFS_PUT_H
#define BS_HDFS_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/latch.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/loop_impl.h"

struct bs_error;
struct bs_nn;
struct bs_putter;
struct bs_put_attempt;
struct bs_targets;

#define BS_PUT_FAILURES 10u /* of DataNodes, of one put */
#define BS_PUT_AT_ONCE 3u

int bs_putter_new(struct bs_nn *nn, struct bs_putter **ret, struct bs_error *err);
/* Nothing may be under way. */
struct bs_putter *bs_putter_free(struct bs_putter *p);
struct bs_targets *bs_putter_targets(struct bs_putter *p);

/*
 * How it ends: 0; -EDQUOT, -ENOSPC, -EACCES, -ENOENT, …: as the NameNode said to the DataNode;
 * -ETIMEDOUT; -EHOSTUNREACH, -EREMOTEIO: what the last one did.
 */
struct bs_put {
	/* the owner's, unchanged until done */
	const char *path;
	const void *body;
	size_t len;
	uint64_t block_size;
	uint32_t replication, mode;
	unsigned int first;   /* of the DataNodes, mod their number */
	uint64_t patience_ns; /* at most, without a byte that goes; all of it: ten times that */
	void (*done)(struct bs_put *put);
	void *cookie;

	int result;
	char text[256];
	unsigned int attempt;  /* that made the file */
	unsigned int attempts; /* how many there were */

	/* the putter's */
	struct bs_putter *putter;
	struct bs_task task;
	struct bs_list link;
	struct bs_put_attempt *running[BS_PUT_AT_ONCE];
	unsigned int n_running;
	uint32_t tried;
	unsigned int failures;
	uint64_t deadline_ns, last_ns, again_ns, pause_ns;
	bool over;
};

/* The targets have been learned. done comes exactly once, never from within. */
void bs_put_start(struct bs_putter *p, struct bs_put *put);
/* One that its owner waits for. */
struct bs_put_job {
	struct bs_put put;
	struct bs_latch over;
};

/* job->put is filled in, but for done. */
void bs_put_begin(struct bs_putter *p, struct bs_put_job *job);
/* Waits until it is over, once: the attempt's number or -errno. */
int bs_put_end(struct bs_put_job *job, struct bs_error *err);

#endif
