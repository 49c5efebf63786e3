/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the parts of the miss path share: fill.c (flights, unpackers), fillfetch.c (what
 * becomes of a fetch), fillread.c (reads), ahead.c (what lies around them and follows them),
 * stream.c and streamwait.c (hot packs) and complete.c (the background lane). The picture and
 * the rules are in fill.h.
 */
#ifndef BS_CACHE_FILLPRIV_H
#define BS_CACHE_FILLPRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "net/loop.h"
#include "net/repo.h"

/* An unpacker: one thread's own memory. */
struct unpacker {
	struct bs_fill *fill;
	pthread_t thread;
	void *scratch; /* what the blob's ops want */
	void *bytes;   /* one unit */
	void *segment; /* one of a stream; NULL until there is one */
};

/* Work for an unpacker, in fill.queue[lane]. */
struct job {
	struct bs_list queued;
	void (*run)(struct job *j, struct unpacker *un);
};

/* One reader waiting for one unit; lies in the read's array. */
struct waiter {
	struct bs_list in_flight; /* of flight.waiters */
	struct bs_read *read;
};

struct flight_key {
	struct bs_blob *blob;
	uint64_t unit;
};

/* A unit that is on its way; guarded by fill.lock. */
struct flight {
	struct flight_key key;
	struct bs_list waiters;
	struct fetch *by; /* of another lane, that will bring it; NULL: a demand fetch does */
	bool coming;	  /* no fetch at all: a stream brings what the waiters want */
};

/* A range of units asked of one source. Owned by whoever runs it: loop, queue, unpacker. */
struct fetch {
	struct bs_range range;
	struct job job; /* queued when the range ended */
	struct bs_fill *fill;
	struct bs_blob *blob;
	struct bs_origin *origin;
	struct completion *completion; /* of the background lane */
	uint32_t first, n;	       /* units */
	enum bs_lane lane;
	size_t source;	    /* index of the one to ask */
	unsigned int tried; /* sources asked since the last pause */
	unsigned int rounds, bad_rounds;
	bool only_bad;		     /* no source of this round failed otherwise */
	bool local;		     /* copied from other, unit other_unit */
	_Atomic unsigned int *ahead; /* the count that it is one of: n_around, n_scan; or NULL */
	struct bs_blob *other;
	uint32_t other_unit;
	int store_error; /* the disk did not take a unit of it */
	/*
	 * A demand fetch that brings more than was asked for. Each unit is taken as soon as it
	 * is there, those asked for first; the flights of all say by whom they come.
	 */
	bool around;
	uint32_t wanted, n_wanted; /* units asked for */
	uint64_t taken;		   /* units that are done with, a bit each; its job's */
	/* guarded by fill.lock */
	bool early;    /* the job is queued, or runs, while the range comes */
	bool ended;    /* the source is done; the early job goes on */
	bool in_doubt; /* a unit was wrong: nothing more until the range has ended */
};

struct completion {
	struct bs_fill *fill;
	struct bs_blob *blob;
	struct bs_origin *origin;
	uint32_t next;	      /* unit to look at; guarded by fill.lock */
	unsigned int running; /* ranges; guarded by fill.lock */
	bool finishing;	      /* finish is queued or runs; guarded by fill.lock */
	int error;	      /* the disk's; ends it; guarded by fill.lock */
	bool failed;	      /* one did since the last pause; guarded by fill.lock */
	struct job copy;      /* runs first, before there are ranges */
	struct job finish;    /* queued when nothing seems to be missing */
	struct job again;     /* queued after a pause */
	void (*done)(void *cookie, int result);
	void *cookie;
};

/* Somebody who reads a blob from front to back, see ahead.c. */
struct scan {
	const struct bs_blob *blob; /* compared only */
	uint32_t next;		    /* unit that it reads next */
	uint32_t asked;		    /* unit behind what was asked for ahead of it */
	uint32_t run;		    /* units it has gone through */
	uint64_t used_ns;
};
#define SCANS 16u

struct bs_fill {
	struct bs_fill_options o;
	pthread_mutex_t lock; /* flights, queue, completions, stop */
	pthread_cond_t work;
	struct bs_map flights;
	struct bs_list queue[BS_LANE_MAX]; /* jobs */
	struct bs_list streams;		   /* of stream.c */
	uint64_t stream_bytes;		   /* held by the ranges of all */
	struct unpacker *unpackers;
	unsigned int n_started;
	/* ranges of ahead.c on their way, around misses and ahead of scans; grow under lock */
	_Atomic unsigned int n_around, n_scan;
	struct scan scans[SCANS];
	unsigned int n_taken[BS_LANE_MAX]; /* jobs of that lane that run now */
	bool stop;
	struct {
		_Atomic uint64_t reads, read_bytes, hits, misses, joined, fetched_units,
			fetched_bytes, copied_units, bad_units, unstored_units, retries,
			failed_reads, first_read_ns, first_frame_ns, last_frame_ns, streamed_bytes,
			streamed_blocks, stream_waits, bad_segments;
	} stats;
};

/* When the range's turn came; 0: it has not, other requests go first. */
static inline uint64_t bs_fill_begun_ns(const struct bs_range *rg)
{
	return __atomic_load_n(&rg->started_ns, __ATOMIC_RELAXED);
}

/* Nobody waits for a range that is not his own fetch before its turn has come. */
static inline bool bs_fill_has_begun(const struct bs_range *rg)
{
	return bs_fill_begun_ns(rg) != 0;
}

#define COUNT(f, what, n) atomic_fetch_add_explicit(&(f)->stats.what, (n), memory_order_relaxed)

/* --- fill.c ------------------------------------------------------------------------------- */

void bs_fill_unit(struct bs_blob *b, uint32_t i, struct bs_unit *ret);
void bs_fill_enqueue(struct bs_fill *f, enum bs_lane lane, struct job *j);

/* The flight of a unit, made when there is none and make is set. Lock held. */
struct flight *bs_fill_flight(struct bs_fill *f, struct bs_blob *b, uint32_t unit, bool make);

/* Ends a flight: every waiter gets its piece of the unit's bytes, or the error. */
void bs_fill_land(struct bs_fill *f, struct bs_blob *b, uint32_t unit, const void *bytes,
		  int result);

/*
 * Blocks of a unit have come alone, or will not come: who has all that he waits for is
 * answered; for the rest a demand fetch is sent, unless something is on its way.
 */
void bs_fill_settle(struct bs_fill *f, struct bs_blob *b, uint32_t unit);

/* n parts of a read are done; the last one calls its owner. */
void bs_fill_read_part(struct bs_fill *f, struct bs_read *rd, unsigned int n, int result);

struct fetch *bs_fill_fetch_new(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				uint32_t first, uint32_t n, enum bs_lane lane);
struct fetch *bs_fill_fetch_free(struct fetch *fe);
/* Asks the source whose turn it is; what becomes of it is seen to by the unpackers. */
void bs_fill_submit(struct fetch *fe);

/* --- fillfetch.c -------------------------------------------------------------------------- */

/* Run by an unpacker when the range has ended. */
void bs_fill_fetch_ended(struct job *j, struct unpacker *un);
/* Of one that brings more than was asked for: bytes have come; the range has ended. */
void bs_fill_fetch_progress(struct bs_range *rg);
void bs_fill_fetch_done(struct bs_range *rg);

/*
 * A copy of an equal unit is in un->bytes: proven, stored, its waiters answered. False
 * when it is not equal.
 */
bool bs_fill_store(struct bs_fill *f, struct bs_blob *b, uint32_t unit, struct unpacker *un);

/*
 * Stores a proven unit that a source brought as data_len bytes, and counts it: what the disk
 * says of it (1: it was there); readers are answered anyway.
 */
int bs_fill_keep(struct bs_fill *f, struct bs_blob *b, uint32_t unit, const void *bytes,
		 uint32_t data_len);

/* A pause that grows with the rounds, with jitter, or what the server asked for. */
uint64_t bs_fill_pause_ns(unsigned int rounds, uint64_t asked_ns);

/* --- streamwait.c ------------------------------------------------------------------------------ */

/* Whether a stream brings all of the range that is not there, soon; some of it at least. Lock held. */
bool bs_fill_is_coming(struct bs_fill *f, struct bs_blob *b, uint64_t off, uint64_t len);
/* Whether any stream of the blob brings something now. Lock held. */
bool bs_fill_is_streaming(struct bs_fill *f, struct bs_blob *b);
/* A reader's fetch took so long, from its begin. Lock held. */
void bs_fill_own_fetch(struct bs_fill *f, const struct bs_blob *b, uint64_t ns);

/* --- fillread.c ----------------------------------------------------------------------------- */

/* The piece of a read that lies in a unit. */
struct piece {
	uint64_t off; /* in the blob */
	uint32_t len;
	char *buf;
};
struct piece bs_fill_piece(const struct bs_read *rd, uint32_t unit);
/* The waiter, which is in no flight, waits for the unit (again); a fetch is sent if it needs one. */
void bs_fill_wait(struct bs_fill *f, struct waiter *w, uint32_t unit);

/* --- ahead.c ------------------------------------------------------------------------------ */

/* Takes note of a read of the units first to last: whether it is part of a scan. */
bool bs_fill_note(struct bs_fill *f, struct bs_blob *b, uint32_t first, uint32_t last);
/* The demand fetch of n units from first on, with what lies around them if around is set. */
struct fetch *bs_fill_fetch_around(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o,
				   uint32_t first, uint32_t n, bool around);
/* Asks for what a scan that has read the units first to last will want. */
void bs_fill_ahead(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t first,
		   uint32_t last);
/* A range of it has come. */
void bs_fill_ahead_learn(const struct fetch *fe);

/* --- complete.c --------------------------------------------------------------------------- */

/* A background range of c has ended. */
void bs_completion_range_ended(struct completion *c, bool failed, int store_error);

#endif
