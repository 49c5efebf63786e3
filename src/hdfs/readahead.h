/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What to read before anybody asks, from what was asked. Pure.
 *
 * A file's reads are taken for a few streams, each going forward, with gaps and out of order
 * by a little, as the kernel's own readahead and several threads make it. A stream that goes
 * on gets a window ahead of it that grows with what it has read. Who jumps about and has read
 * a good part of the file by that (page faults of a mapping in which tensors lie: every tensor
 * a jump) will read all of it: then the file is fetched whole, from where he is on. Who jumps
 * and reads little (an index, a database) gets what he asks.
 *
 * Threads: the caller's lock.
 */
#ifndef BS_HDFS_READAHEAD_H
#define BS_HDFS_READAHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BS_READAHEAD_STREAMS 8u

struct bs_readahead {
	uint64_t len;	     /* of the file */
	uint64_t unit;	     /* > 0 */
	uint64_t window_max; /* bytes of a stream's window; 0: nothing is read ahead */
	uint64_t whole_max;  /* bytes of a file that is fetched whole at most */
	struct {
		uint64_t next; /* behind what was read */
		uint64_t run;  /* bytes that were read in a row */
		uint64_t used;
	} streams[BS_READAHEAD_STREAMS];
	uint64_t clock;
	uint64_t jumps; /* reads that began a stream */
	uint64_t bytes; /* of all reads */
	bool whole;
};

struct bs_readahead_plan {
	bool units; /* the read's units are worth being fetched, not only what it asks */
	uint64_t from,
		to; /* to be fetched ahead; whole units, but for the file's end; from == to: nothing */
	bool whole; /* all of the file, from the read on, then its beginning */
};

void bs_readahead_init(struct bs_readahead *ra, uint64_t len, uint64_t unit, uint64_t window_max,
		       uint64_t whole_max);

/* A read of len bytes at off; both may be anything. */
void bs_readahead_note(struct bs_readahead *ra, uint64_t off, uint64_t len,
		       struct bs_readahead_plan *ret);

#endif
