/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * From blocks of an image's blob to the files that they are part of: what of which file
 * a hot pack's segment holds, so that it can be read into the page cache.
 *
 * An index of its own, some 20 bytes an extent and 8 and the name for each file and
 * directory; the tree may go when it is made. Not in it: of files with the same first
 * block all but BS_HOTFILES_SHARED_MAX; what lies behind the first 16 TiB of a file; and
 * files whose path is PATH_MAX or longer, which nobody can open in one step.
 *
 * Threads: any, but for free.
 */
#ifndef BS_ROOTFS_HOTFILES_H
#define BS_ROOTFS_HOTFILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "cache/blocks.h"

struct bs_error;
struct bs_hotfiles;
struct bs_tree;

#define BS_HOTFILES_SHARED_MAX 8u

/* -ENOMEM. */
int bs_hotfiles_new(const struct bs_tree *t, struct bs_hotfiles **ret);
/* The same from the tree's compressed form, as an image's cache entry has it. */
int bs_hotfiles_read(int tree_fd, struct bs_hotfiles **ret, struct bs_error *err);
struct bs_hotfiles *bs_hotfiles_free(struct bs_hotfiles *h);
DEFINE_BS_AUTO(hotfiles, struct bs_hotfiles, bs_hotfiles_free)

/*
 * A run of a file: bytes [off, off + len), multiples of 4096; the end may lie behind that
 * of the file. path is relative, and valid during the call. Not 0: no more, please.
 */
typedef int bs_hotfiles_fn(void *cookie, const char *path, uint64_t off, uint64_t len);

/*
 * Calls fn for each run of a file that the n extents hold, in the order of the extents;
 * those that continue one of the last few are one with it. Each file that shares a block
 * has its own (the page cache is one of files), but never more than
 * BS_HOTFILES_SHARED_MAX times as many as there are blocks. What fn returned last.
 */
int bs_hotfiles_runs(const struct bs_hotfiles *h, const struct bs_extent *extents, size_t n,
		     bs_hotfiles_fn *fn, void *cookie);

size_t bs_hotfiles_bytes(const struct bs_hotfiles *h); /* of memory */

#endif
