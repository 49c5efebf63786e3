/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * An image without a pack of a workload, on a node that knows the workload's pack of another
 * image with frames in common (an older version, mostly): what is the same is copied from
 * that one's cache, or comes with its pack, until there is an own recording.
 *
 * Nothing new is believed: each block is proven against the other image's table, and the
 * root of its frame stands in both tables (hot/translate.h).
 */
#ifndef BS_ROOTFS_HOTDONOR_H
#define BS_ROOTFS_HOTDONOR_H

#include <stdint.h>

#include "base/mem.h"
#include "hot/store.h"

struct bs_cached;
struct bs_error;
struct bs_images;
struct bs_pack;

/* The other image, whose pack of the workload this node came to know last; NULL: none. */
struct bs_cached *bs_hotdonor_find(struct bs_images *im, const struct bs_digest *image,
				   const char *workload, struct bs_hot *ret);

struct bs_hotdonor;

/*
 * pack (the donor's) is taken over and *pack becomes what image has of it. -ENOENT: they have
 * nothing in common.
 */
int bs_hotdonor_open(struct bs_cached *donor, struct bs_cached *image, struct bs_pack **pack,
		     struct bs_hotdonor **ret, struct bs_error *err);
struct bs_hotdonor *bs_hotdonor_free(struct bs_hotdonor *d);
DEFINE_BS_AUTO(hotdonor, struct bs_hotdonor, bs_hotdonor_free)

struct bs_cached *bs_hotdonor_image(const struct bs_hotdonor *d);

/* No more is decoded; the image stays known. */
void bs_hotdonor_end(struct bs_hotdonor *d);

/*
 * Copies the blocks of pack that image's cache has not from whole frames of the donor's, each
 * proven again: how many.
 */
uint64_t bs_hotdonor_copy(struct bs_hotdonor *d, struct bs_cached *image,
			  const struct bs_pack *pack);

/* As bs_pack_decode, for a segment of the donor's pack: out has what image has of it. */
int bs_hotdonor_decode(const struct bs_hotdonor *d, void *framer, const struct bs_pack *pack,
		       uint32_t segment, const void *data, void *out);

#endif
