/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Which single blocks of a blob are there, beside those of whole units: what a hot pack
 * brought. A bitmap in the entry's file "blocks", made when the first one comes, mapped
 * shared as "present" is. Blocks cannot be proven again from disk, so those of another
 * epoch are forgotten.
 *
 * Threads: any, but for open and done.
 */
#ifndef BS_CACHE_BLOCKS_H
#define BS_CACHE_BLOCKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BS_BLOCK_BYTES 4096u

/* Neighbouring blocks of a blob. */
struct bs_extent {
	uint32_t block;
	uint32_t n_blocks;
};

struct bs_blocks {
	int dirfd; /* the blob's */
	uint64_t n;
	void *map;
	size_t map_bytes;
	_Atomic(_Atomic uint64_t *) bits; /* NULL: none is there */
	pthread_mutex_t lock;		  /* the file is made */
};

/* n blocks; believe: the file is of this epoch. dirfd stays the caller's. */
int bs_blocks_open(struct bs_blocks *b, int dirfd, uint64_t n, bool believe);
void bs_blocks_done(struct bs_blocks *b);

/* Whether all of them are there. Never blocks. */
bool bs_blocks_have(struct bs_blocks *b, uint64_t first, uint64_t n);
int bs_blocks_set(struct bs_blocks *b, uint64_t first, uint64_t n); /* -ENOSPC … : not set */
void bs_blocks_clear(struct bs_blocks *b, uint64_t first, uint64_t n);

#endif
