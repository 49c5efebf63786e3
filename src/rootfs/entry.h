/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Filling an image's entry in the cache (images.h says what is in it) from one source. */
#ifndef BS_ROOTFS_ENTRY_H
#define BS_ROOTFS_ENTRY_H

#include <stdint.h>

struct bs_artifact;
struct bs_digest;
struct bs_error;
struct bs_repo;
struct bs_timeline;

#define BS_ENTRY_METADATA "meta-1.erofs" /* the last file: with it the entry is prepared */
#define BS_ENTRY_TABLE_MAX (512u << 20)

/*
 * Fetches, proves and publishes what a mount needs into the entry, in two steps: first
 * manifest and table into images/<hex>/, with which blocks can be proven and kept; then,
 * into that directory, the rest. Two at once do no harm: they publish the same bytes, each
 * file whole.
 */
int bs_entry_fetch_table(int images, const struct bs_digest *digest, struct bs_repo *repo,
			 struct bs_timeline *tl, struct bs_error *err);
int bs_entry_fetch_tree(int dirfd, const struct bs_artifact *a, uint64_t blob_blocks,
			struct bs_repo *repo, struct bs_timeline *tl, struct bs_error *err);

/*
 * Whoever reads a tree takes what it needs (bs_tree_bytes) before and gives it back after: all
 * that this process reads at once are no larger than the largest. Take waits.
 */
void bs_entry_memory_take(uint64_t n);
void bs_entry_memory_give(uint64_t n);

#endif
