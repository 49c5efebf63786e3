/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A workload that is recorded again, because a start missed too much of its pack
 * (hotwatch.h): the new recording is merged with what the old pack was made of. If it
 * needed hardly more than that, others read what was missed, and the old pack stays.
 */
#ifndef BS_ROOTFS_HOTAGAIN_H
#define BS_ROOTFS_HOTAGAIN_H

#include <stdbool.h>

#include "base/mem.h"
#include "hot/store.h"
#include "rootfs/rounds.h"

struct bs_cached;
struct bs_error;
struct bs_profile;

/* What the node has of an earlier recording, and thinks stale. */
struct bs_hotagain {
	struct bs_hot hot;
	struct bs_profile *profile; /* NULL: it is not to be had any more */
};

/*
 * -ENOENT: there is none, or it is not stale. The profile is read from the image's entry, or
 * else from the first of its sources that has it; blocks.
 */
int bs_hotagain_load(const struct bs_cached *image, const char *workload,
		     bs_open_source_fn *open_source, void *cookie, struct bs_hotagain *ret);
void bs_hotagain_done(struct bs_hotagain *a);
#define bs_auto_hotagain __attribute__((cleanup(bs_hotagain_done))) struct bs_hotagain

/*
 * Makes *p, a new recording, that of both. -EALREADY: the old pack does as well, since what
 * is missed is less than so many percent of it; -ECANCELED: so it seems, but the recording has
 * less than half of it, and says nothing.
 */
int bs_hotagain_merge(struct bs_hotagain *a, unsigned int percent, struct bs_profile **p,
		      struct bs_error *err);

#endif
