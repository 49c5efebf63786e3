/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* From a recording to profile and pack, made of the blocks in the cache. */
#ifndef BS_ROOTFS_HOTBUILD_H
#define BS_ROOTFS_HOTBUILD_H

#include <stddef.h>

#include "hot/store.h"

struct bs_cached;
struct bs_error;
struct bs_fill;
struct bs_hotagain;
struct bs_recording;

struct bs_hotbuild {
	struct bs_hot hot; /* image, workload, head_len are set */
	void *profile;	   /* owned */
	size_t profile_len;
	int pack_fd; /* an unnamed file in the image's entry; owned */
};

struct bs_hotbuild_options {
	struct bs_cached *image;
	struct bs_fill *fill;
	struct bs_recording *recording;
	const char *workload;
	struct bs_hotagain *again; /* NULL: it was never recorded before */
	unsigned int percent;	   /* bs_hotagain_merge's */
};

/*
 * Makes both; frames that are not whole in the cache are fetched (bs_fill_bring). Blocks for long:
 * for a thread of its own. -ENODATA: nothing was recorded; else as bs_hotagain_merge.
 */
int bs_hotbuild_make(const struct bs_hotbuild_options *o, struct bs_hotbuild *ret,
		     struct bs_error *err);

/* Names them in the image's entry (hotstart.h). */
int bs_hotbuild_keep(struct bs_hotbuild *b, const struct bs_cached *image, const char *id,
		     struct bs_error *err);

void bs_hotbuild_done(struct bs_hotbuild *b);
#define bs_auto_hotbuild __attribute__((cleanup(bs_hotbuild_done)))

#endif
