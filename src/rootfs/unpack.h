/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The fallback where EROFS or FUSE is not to be had: a whole image as a plain directory
 * tree. It runs with the privileges that owners, devices and file capabilities want, on a
 * tree that bs_tree_read has accepted and content that was proven.
 */
#ifndef BS_ROOTFS_UNPACK_H
#define BS_ROOTFS_UNPACK_H

struct bs_error;
struct bs_tree;

/*
 * Writes all of t below dirfd, an empty directory, content from blob (a descriptor of
 * the image's complete blob). Everything is exact but the times of change. On failure
 * what was written stays, for the caller to remove.
 */
int bs_unpack(const struct bs_tree *t, int blob, int dirfd, struct bs_error *err);

#endif
