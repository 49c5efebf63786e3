/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The miss path: reads of blobs, answered from the cache where they can be, else
 * fetched, proven, stored and answered.
 *
 *   reader ──▶ all units there? ──yes──▶ bytes from the blob file, done at once
 *                │no
 *                ▼                 (one flight a unit: later readers only join)
 *            flight ──▶ fetch: a range of neighbouring units from one source, with what
 *                          │         lies around them (ahead.c)
 *                          │                         ▲ next source; after the last one
 *                          ▼ net thread              │ a pause that grows, with jitter
 *                       queue ──▶ unpacker: prove ───┘ wrong or failed
 *                                    │ right
 *                                    ▼
 *                         stored (a full disk is no error), every waiter answered
 *
 * Lanes: a demand read never waits for a fetch of another lane that has not started:
 * it sends its own; what comes first counts. A demand fetch that brings more than was asked
 * for is unpacked while it comes, what was asked for first. When it fails, or one of another
 * lane does, it is dropped, and units with waiters go on as demand. A unit that came wrong
 * goes on alone, of whatever lane it was, until it is right or known to be wrong everywhere:
 * then nobody asks for it for a while (bs_origin_wrong). Readers see -EIO only when their deadline has passed, or
 * when every source gave wrong bytes, three times over, and while that is remembered.
 *
 * Locks: one; under it only an origin's is taken, and nobody called back.
 */
#ifndef BS_CACHE_FILL_H
#define BS_CACHE_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_blob;
struct bs_error;
struct bs_fill;
struct bs_loop;
struct bs_origin;

struct bs_fill_options {
	struct bs_loop *loop;
	unsigned int n_unpackers;
	uint64_t read_wait_ns;
	uint64_t
		wrong_wait_ns; /* not to ask for a unit that is wrong everywhere, at first; 0: 30 s */
	bool ahead;	       /* fetch what lies around each miss too, see ahead.c */
	uint64_t stream_bytes; /* of memory for what all streams have asked for, about; 0: 64 MiB */
	/* The per-thread state that a blob's ops get as scratch. */
	void *(*scratch_new)(void);
	void (*scratch_free)(void *scratch);
	/* A line for the log, from any thread; rate limited by the receiver. */
	void (*event)(void *cookie, const char *text);
	void *event_cookie;
	/* Units of a blob came from a source and were right: so many bytes of data. Any thread. */
	void (*fetched)(void *cookie, struct bs_blob *blob, uint64_t bytes);
	void *fetched_cookie;
};

int bs_fill_new(const struct bs_fill_options *o, struct bs_fill **ret, struct bs_error *err);
/* Ends the unpackers; no read may be open and the loop must be freed before. */
struct bs_fill *bs_fill_free(struct bs_fill *f);
DEFINE_BS_AUTO(fill, struct bs_fill, bs_fill_free)

/* One read; the caller owns it and buf until done was called, exactly once, on any thread. */
struct bs_read {
	struct bs_blob *blob;
	struct bs_origin *origin;
	uint64_t off; /* off + len within the blob */
	uint32_t len; /* > 0 */
	void *buf;
	void (*done)(struct bs_read *rd);
	void *cookie;
	int result; /* 0 or -EIO, -ENOMEM */
	/* of fill.c */
	void *waiters;
	uint64_t deadline_ns;
	unsigned int pending; /* atomic */
};

/*
 * Starts the read; done is called before it returns when everything is there. scratch
 * and unit_buf (BS_UNIT_BYTES_MAX) are the calling thread's.
 */
void bs_fill_read(struct bs_fill *f, struct bs_read *rd, void *scratch, void *unit_buf);

/* The same, and waits for it: its result. done and cookie are not the caller's. */
int bs_fill_read_wait(struct bs_fill *f, struct bs_read *rd, void *scratch, void *unit_buf);

/*
 * Unit i into unit_buf for who is in no hurry: from the cache, else from the first source that
 * gives it right, in the background lane, alone, and as nobody's demand; it is stored. One
 * attempt at each source: 0, or what the last one said. Blocks; scratch as above.
 */
int bs_fill_bring(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t i,
		  void *scratch, void *unit_buf, struct bs_error *err);

/*
 * Fetches all that is missing in the background lane, a few ranges at a time, and
 * calls bs_blob_finish; then done(cookie, result), on any thread. One at a time a blob.
 * Failures are retried with growing pauses until it is complete or the blob is dropped.
 */
int bs_fill_complete(struct bs_fill *f, struct bs_blob *blob, struct bs_origin *origin,
		     void (*done)(void *cookie, int result), void *cookie);

struct bs_fill_stats {
	uint64_t reads, read_bytes;	       /* asked for */
	uint64_t hits, misses, joined;	       /* units */
	uint64_t fetched_units, fetched_bytes; /* proven and of use */
	uint64_t copied_units;		       /* from another image of the node */
	uint64_t bad_units;		       /* wrong bytes, refused */
	uint64_t unstored_units;	       /* served from memory, the disk did not take them */
	uint64_t retries, failed_reads;
	uint64_t first_read_ns, first_frame_ns, last_frame_ns;
	uint64_t streamed_bytes, streamed_blocks; /* of hot packs: that came, and were of use */
	uint64_t stream_waits;			  /* pieces of reads that waited for one */
	uint64_t bad_segments;			  /* of hot packs, refused */
};
void bs_fill_stats(struct bs_fill *f, struct bs_fill_stats *ret);

#endif
