/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What was read ahead: units of open files (whole ones, as their sums are), within a bound of
 * memory for all files of a mount. A read that lies in units which are here or on their way is
 * answered from them, any other by a read of its own. A unit is given up when all of it was
 * read once (the kernel keeps the pages), when its file is closed, or, when others need the
 * room, the longest unused one first; only what a reader waits for drives out what nobody has
 * read yet.
 *
 * A unit that cannot be read fails nobody: who waits for it reads for himself and learns what
 * is wrong with his own range.
 *
 * Threads: any. A pool's lock guards all of its files; it is not held over any call out.
 */
#ifndef BS_HDFS_UNITS_H
#define BS_HDFS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "hdfs/ckpt.h"

struct bs_unit;
struct bs_unitpool;
struct bs_units;
struct bs_units_handle;

#define BS_UNITS_PER_READ 3u /* a read of BS_FS_IO_MAX touches at most so many */

struct bs_unitpool *bs_unitpool_new(uint64_t memory_bytes); /* NULL: out of memory */
/* All files are freed. */
void bs_unitpool_free(struct bs_unitpool *p);

/* A file's generation. unit, streams as the ckpt file says. NULL: out of memory. */
struct bs_units *bs_units_new(struct bs_unitpool *p, uint64_t len, uint64_t unit,
			      unsigned int streams);
/* For a read that is to begin: it stays, even if it is freed meanwhile. */
struct bs_units *bs_units_hold(struct bs_units *u);
void bs_units_unhold(struct bs_units *u);
/* Nobody reads it any more; what is on its way is thrown away. Takes NULL, returns NULL. */
struct bs_units *bs_units_free(struct bs_units *u);
/* It is not open any more: nothing is fetched for nobody. */
void bs_units_idle(struct bs_units *u);

/*
 * An open file that units may be fetched with; the last one to put it calls closed, which may
 * be within any call here, without a lock.
 */
struct bs_units_handle {
	struct bs_ckpt_file *file;
	unsigned int refs; /* atomic */
	void (*closed)(struct bs_units_handle *h);
};
void bs_units_handle_put(struct bs_units_handle *h);

/* One read. ready is called once, maybe from within bs_units_read, else on a thread of the tree's. */
struct bs_units_read {
	uint64_t off;
	size_t len;
	void (*ready)(struct bs_units_read *r);
	/* the units are not to be had: the caller reads for himself, unless there is no time left */
	bool failed;
	bool timed_out;
	struct iovec iov[BS_UNITS_PER_READ]; /* the bytes, until bs_units_done */
	unsigned int n_iov;

	/* the pool's */
	struct bs_units *of;
	struct bs_unit *units[BS_UNITS_PER_READ];
	unsigned int n_units, missing;
};

enum bs_units_answer {
	BS_UNITS_HIT,	 /* ready was called */
	BS_UNITS_WAIT,	 /* ready will be */
	BS_UNITS_DIRECT, /* it will not: the caller reads for himself */
};

/* Notes the read for readahead, starts what is to be fetched. u is held. */
enum bs_units_answer bs_units_read(struct bs_units *u, struct bs_units_handle *h,
				   struct bs_units_read *r);
/* The bytes were used. */
void bs_units_done(struct bs_units_read *r);

struct bs_unitpool_stats {
	uint64_t fetched, ahead, unread;
	uint64_t bytes, peak;
};
void bs_unitpool_stats(struct bs_unitpool *p, struct bs_unitpool_stats *ret);

#endif
