/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reads of a layout's blobs, on threads of their own: a store that hangs (a network file system
 * whose server is gone) must hold up neither who asks nor anything that is read elsewhere.
 *
 * BS_READS_THREADS read, demand first; one of them is always demand's. A read that brings
 * nothing for the stall time is given up for its caller (-ETIMEDOUT); its thread is lost until
 * the kernel lets it go, and another takes its place. When BS_READS_LOST_MAX are lost the store
 * is said to hang, and reads fail at once until one of them returns.
 *
 * Threads are started when there is something to read, and end when there was nothing for a
 * while. All functions may be called from any thread.
 */
#ifndef BS_NET_LAYOUT_READS_H
#define BS_NET_LAYOUT_READS_H

#include <stdint.h>

#define BS_READS_THREADS 4u
#define BS_READS_LOST_MAX 8u

struct bs_range;
struct bs_reads;
struct bs_repo;

/* Opens what the range is of: a descriptor or -errno; may block. */
typedef int bs_reads_open(struct bs_repo *r, const struct bs_range *rg);

struct bs_reads *bs_reads_new(bs_reads_open *open); /* NULL: out of memory */
/* The last call for it, by the repository's free: no read is open then. */
void bs_reads_end(struct bs_reads *p);

/* After so much silence a read is given up; before the first one. */
void bs_reads_set_stall(struct bs_reads *p, uint64_t ns);

/* Ends with rg->done, on a thread of ours, or before it returns when that fails. */
void bs_reads_read(struct bs_reads *p, struct bs_repo *r, struct bs_range *rg);

#endif
