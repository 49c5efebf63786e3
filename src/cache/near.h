/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How much of what lies around a miss is worth bringing along, learnt from the reads of
 * the blob so far.
 *
 * Where much was read, more will be: each unit near the miss that somebody read makes the
 * window longer. What was brought along and is never read speaks against it: when less than
 * a part of it was of use lately, windows shrink in proportion, to nearly nothing for who
 * reads at random.
 *
 * Pure arithmetic; the caller locks.
 */
#ifndef BS_CACHE_NEAR_H
#define BS_CACHE_NEAR_H

#include <stdint.h>

#define BS_NEAR_AFTER_MAX 48u  /* units behind a miss */
#define BS_NEAR_BEFORE_MAX 24u /* and before it */

struct bs_near {
	uint32_t n_units;
	uint64_t *read;		  /* a bit each: somebody read of it */
	uint64_t *unasked;	  /* brought along, and not read so far */
	uint32_t brought, useful; /* of late: so many came along; were read */
};

/* -ENOMEM */
int bs_near_init(struct bs_near *n, uint32_t n_units);
void bs_near_done(struct bs_near *n);

/* Units first to last are read. */
void bs_near_read(struct bs_near *n, uint32_t first, uint32_t last);
/* The unit is brought along with a miss. */
void bs_near_brought(struct bs_near *n, uint32_t unit);

/* How many units to bring along behind a miss of the unit, 1 at least, and before it. */
void bs_near_window(const struct bs_near *n, uint32_t unit, uint32_t *ret_after,
		    uint32_t *ret_before);

#endif
