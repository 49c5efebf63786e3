/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Frames that several images of a node have in common are fetched once: a frame is
 * known by its Merkle root, so equal roots are equal bytes, whatever image or registry
 * they came with.
 */
#ifndef BS_ROOTFS_SHARE_H
#define BS_ROOTFS_SHARE_H

struct bs_cached;
struct bs_images;

/*
 * Looks through the tables of the cache's other images for missing frames of i and tells
 * i about them (bs_cached_set_aliases). Reads at most SHARE_ENTRIES_MAX of them. Blocks
 * for the disk; any thread, not twice at once for one image. What cannot be read is
 * passed over.
 */
#define SHARE_ENTRIES_MAX 256u
void bs_images_share(struct bs_images *im, struct bs_cached *i);

#endif
