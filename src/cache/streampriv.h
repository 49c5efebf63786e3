/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What stream.c (what is asked for, and when), streampace.c (how much) and streamwait.c (who
 * waits for it) share.
 */
#ifndef BS_CACHE_STREAMPRIV_H
#define BS_CACHE_STREAMPRIV_H

#include <stdio.h>

#include "cache/fillpriv.h"
#include "cache/flows.h"
#include "cache/stream.h"

#define STREAM_SOON 4u /* segments behind those asked for that are worth waiting for */

/* LATE: it still comes, but a source failed over it or hangs: nobody waits for that. */
enum segment_state { SEGMENT_WAITING, SEGMENT_ASKED, SEGMENT_LATE, SEGMENT_LANDED, SEGMENT_LOST };

/* Where an extent's blocks come; sorted by block. */
struct place {
	uint32_t block, n_blocks;
	uint32_t segment;
};

struct stream {
	struct bs_list all; /* of fill.streams; guarded by fill.lock, as all that follows */
	struct bs_fill *fill;
	struct bs_stream_options o;
	uint8_t *states;
	struct place *places;
	uint32_t n_places;
	uint32_t next;	       /* segment to ask for */
	struct bs_list ranges; /* struct stream_range that run */
	unsigned int running;  /* ranges */
	unsigned int late;     /* of them: nobody waits for those, nor for their end */
	unsigned int came;     /* of them, and not late: whole, and not all unpacked */
	unsigned int doubtful; /* of them: late, or failed so far */
	unsigned int steppers; /* threads in go_on(), or on their way there */
	struct bs_flows flows; /* how many there should be */
	uint64_t moved_ns;     /* when something last came */
	uint64_t answer_ns;    /* the longest that a source took to answer */
	uint64_t own_ns;       /* that readers' own fetches take; 0: there was none */
	bool looking;	       /* look() will be called */
	bool over;	       /* and has nothing to do but to free it */
	bool ending;	       /* somebody is about to make it over: nobody begins anew */
	bool holding;	       /* another stream brings the next segment, and wakes this one */
	bool stepping;	       /* step is queued */
	struct job look, step;
	struct bs_stream_result result;
};

/*
 * Neighbouring segments asked for at once. Owned by whoever runs it, as a fetch is; while
 * it comes, its job unpacks all segments but the last one as soon as they are there.
 */
struct stream_range {
	struct bs_range range;
	struct job job;
	struct stream *stream;
	struct bs_list in_stream; /* of stream.ranges */
	uint32_t first, n;	  /* segments; first moves on, under the lock */
	uint64_t off;		  /* of the first one when it was asked for */
	size_t held;		  /* bytes of memory, as long as it lives */
	size_t source;
	unsigned int tried, bad_rounds;
	unsigned int bad, gone; /* of the sources tried in this round; gone: without it */
	uint32_t wrong_at;	/* a bit for each source that gave the first segment wrong */
	/* guarded by fill.lock */
	bool asked;	/* a source has it */
	bool early;	/* the job is queued, or runs, to unpack what has come so far */
	bool ended;	/* the source is done; the early job goes on with the rest */
	bool in_doubt;	/* something of it was wrong: nothing more until it has ended */
	size_t counted; /* bytes that learn() knows of */
	bool late, came, doubtful;
	bool told;	   /* who waits for it knows that it is queued */
	size_t seen;	   /* bytes, when it was last looked at */
	uint64_t moved_ns; /* when it was asked for, its turn came, or more than that came */
	size_t mark;	   /* bytes at mark_ns, from which its rate is taken */
	uint64_t mark_ns;
	uint64_t failed_ns; /* when a source last did */
};

static inline struct bs_stream_segment bs_stream_segment_of(const struct stream *st, uint32_t i)
{
	struct bs_stream_segment s;

	st->o.ops->segment(st->o.cookie, i, &s);
	return s;
}

/* Nothing that comes soon is to be counted on. Lock held. */
static inline void bs_stream_doubt(struct stream_range *r)
{
	r->stream->doubtful += !r->doubtful;
	r->doubtful = true;
}

/* Its range came to nothing. Lock held. */
static inline void bs_stream_failed(struct stream_range *r, uint64_t now_ns)
{
	struct bs_stream_result *to = &r->stream->result;

	if (r->range.text[0])
		(void)snprintf(to->why, sizeof(to->why), "%.*s", (int)sizeof(to->why) - 1,
			       r->range.text);
	r->asked = false;
	r->failed_ns = now_ns;
	bs_stream_doubt(r);
}

/* Whether something of it comes, or is just going to. Lock held. */
bool bs_stream_moves(const struct stream *st);
/* Of the next range. Lock held. */
uint64_t bs_stream_range_bytes(const struct stream *st);
/* Whether another may be asked for. Lock held. */
bool bs_stream_has_room(const struct stream *st);
/* So many have come. Lock held. */
void bs_stream_learn(struct stream *st, uint64_t bytes);
/*
 * The segments that nobody is to wait for any longer, or not until their range's turn has come;
 * false: there are none more.
 */
bool bs_stream_find_late(struct stream *st, uint64_t now, uint32_t *ret_first, uint32_t *ret_n);
/* Whether all blocks of segment i are there. */
bool bs_stream_is_local(const struct stream *st, uint32_t i);
/* Whether other streams of the blob bring all that is missing of segment i, just now. Lock held. */
bool bs_stream_comes_elsewhere(const struct stream *st, uint32_t i);
/* The streams that wait for what this one was to bring look again. */
void bs_stream_wake_others(struct stream *st);
/* Fills places. */
int bs_stream_list_places(struct stream *st);

#endif
