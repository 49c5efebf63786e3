/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Streams: blocks of a blob that come in segments, in the order in which they will be
 * needed (a hot pack). This module knows neither the form of a segment nor how it is
 * proven, only the functions that say so.
 *
 *   segments ──▶ ranges of neighbouring ones, a few on their way at once
 *                   │ net thread
 *                   ▼
 *                unpackers, hot lane: decode and prove, store, answer who waits
 *
 * Segments whose blocks are all there are not fetched, so that a stream that is started
 * again goes on where it was. While another stream of the blob brings all that is missing of
 * the next one, this one asks for nothing: what packs have in common comes once, and in the
 * order of need. A reader waits for a segment that comes, or is about to be asked for where
 * nothing stands in a queue; for all else it fetches on its own and overtakes. A range that fails is tried at the
 * next source, after the last one with growing pauses, for as long as something came within
 * wait_ns; one that brings nothing for a second lets others be asked for in its place. No
 * reader waits for either any longer: whoever does goes on as demand. A segment that is
 * wrong is asked for at the next source; when all have it wrong it ends the stream: nobody who
 * made one of them is to be believed about the others. That is the only thing that is said of
 * the stream's bytes; a range that no source has, or none answers for as it should, three times
 * over, ends it, too.
 *
 * How many ranges are on their way, and how large they are, follows what the link gives
 * (flows.h). Few and large ones cost the server least; each segment is unpacked when its last
 * byte is there, the next range is asked for when the last byte of one is, and towards the end
 * ranges become small, so that nothing needed waits for what is not yet.
 */
#ifndef BS_CACHE_STREAM_H
#define BS_CACHE_STREAM_H

#include <stdint.h>

#include "cache/blocks.h"

struct bs_blob;
struct bs_fill;
struct bs_origin;

#define BS_STREAM_SEGMENT_BYTES_MAX (1u << 20) /* uncompressed */

struct bs_stream_segment {
	uint64_t off; /* in the stream's data; segments follow each other without gaps */
	uint32_t len;
	const struct bs_extent *extents; /* as long as the stream lives */
	uint32_t n_extents;
};

struct bs_stream_result {
	/*
	 * 0; -EBADMSG: a segment came whole from every source, and wrong; -ENOENT: it is gone;
	 * -EIO, -EOPNOTSUPP: not all came; -ENOSPC …: not all was stored
	 */
	int error;
	char why[160];		 /* the last cause of a range that did not come; "" */
	unsigned int wrong;	 /* segments that came and were wrong, each time */
	char wrong_source[256];	 /* the last to give one; "" */
	uint64_t bytes;		 /* that came over the network */
	uint32_t segments;	 /* that were fetched */
	uint32_t local_segments; /* that were there before */
	uint64_t start_ns, end_ns;
	unsigned int parallel; /* ranges at once, at its end */
};

/* All but done may be called on any thread, several at once. */
struct bs_stream_ops {
	void (*segment)(void *cookie, uint32_t i, struct bs_stream_segment *ret);
	/* Proves as bs_blob_ops.decode does; out: the blocks in the order of the extents. */
	int (*decode)(void *cookie, void *scratch, uint32_t i, const void *data, void *out);
	void (*landed)(void *cookie, uint32_t i); /* its blocks are there; may be NULL */
	/* Called once, last; the stream is gone and cookie the owner's. */
	void (*done)(void *cookie, const struct bs_stream_result *result);
};

struct bs_stream_options {
	struct bs_blob *blob;
	struct bs_origin *origin;  /* of the stream's data; a reference is taken */
	uint32_t n_segments;	   /* > 0 */
	unsigned int parallel_max; /* > 0 */
	uint64_t wait_ns;	   /* without a byte, then it is given up; 0: three minutes */
	const struct bs_stream_ops *ops;
	void *cookie;
};

/* Starts it. -ENOMEM: done is not called. */
int bs_fill_stream(struct bs_fill *f, const struct bs_stream_options *o);

#endif
