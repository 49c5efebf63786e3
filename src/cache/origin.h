/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Where a blob's data comes from: repositories, best first. Reference-counted and
 * thread-safe; the list can grow while reads go on. Its lock is inside all others.
 */
#ifndef BS_CACHE_ORIGIN_H
#define BS_CACHE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_origin;
struct bs_repo;

#define BS_ORIGIN_SOURCES_MAX 16u

/* data: the digest under which the repositories hold it. NULL: out of memory. */
struct bs_origin *bs_origin_new(const struct bs_digest *data);
struct bs_origin *bs_origin_ref(struct bs_origin *o);
struct bs_origin *bs_origin_unref(struct bs_origin *o);
DEFINE_BS_AUTO(origin, struct bs_origin, bs_origin_unref)

const struct bs_digest *bs_origin_data(const struct bs_origin *o);

/*
 * Adds those that are not there yet, behind the others, with references of its own; when
 * there are BS_ORIGIN_SOURCES_MAX, the last one that never gave a right unit makes room,
 * or the last.
 */
void bs_origin_add(struct bs_origin *o, struct bs_repo *const *repos, size_t n);

/*
 * Which source to ask first: the one that worked last. bs_origin_failed tells that the
 * one whose turn was i did not.
 */
size_t bs_origin_start(const struct bs_origin *o);
void bs_origin_failed(struct bs_origin *o, size_t i);

/*
 * Units that every source gives wrong. To ask for one again and again would fetch it in
 * vain for each page that is read of it: bs_origin_is_wrong says so for wait_ns, twice as
 * long each next time (BS_ORIGIN_WRONG_GROWTH at most), until it came right or a new
 * source was added. bs_origin_right: it came right from the one whose turn was source.
 */
#define BS_ORIGIN_WRONG_MAX 4096u /* remembered; those beyond are asked for each time */
#define BS_ORIGIN_WRONG_GROWTH 32u
void bs_origin_wrong(struct bs_origin *o, uint32_t unit, uint64_t wait_ns);
void bs_origin_right(struct bs_origin *o, uint32_t unit, size_t source);
bool bs_origin_is_wrong(struct bs_origin *o, uint32_t unit);

/*
 * How many bytes of data the way to the source carries in one round trip, as far as seen:
 * measure of what is worth fetching with a miss. Starts at BS_ORIGIN_AHEAD_FIRST.
 */
#define BS_ORIGIN_AHEAD_FIRST (128u << 10)
#define BS_ORIGIN_AHEAD_MIN (16u << 10)
#define BS_ORIGIN_AHEAD_MAX (1u << 20)
uint32_t bs_origin_ahead(const struct bs_origin *o);

/* A range of so many bytes was waited for wait_ns, then took transfer_ns. */
void bs_origin_learn(struct bs_origin *o, size_t bytes, uint64_t wait_ns, uint64_t transfer_ns);

/* The repository whose turn is i, counted round and round, with a reference; NULL: none is known.
 */
struct bs_repo *bs_origin_pick(struct bs_origin *o, size_t i, size_t *ret_n);

#endif
