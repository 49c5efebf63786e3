/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Writes the EROFS metadata image of a tree: all inodes, directories, symlinks and
 * xattrs; file content is on device 1, the blob, by chunk indexes. The on-disk format
 * is the kernel's (Documentation/filesystems/erofs.rst, fs/erofs/erofs_fs.h).
 *
 * Deterministic; memory is bounded by a small multiple of the tree's own. The image
 * goes to fd through a bounded buffer, front to back.
 */
#ifndef BS_IMAGE_EROFS_H
#define BS_IMAGE_EROFS_H

#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_tree;

#define BS_EROFS_META_MAX (UINT64_C(4) << 30)

/*
 * blob_blocks goes into the device table. ret_bytes: the image's size (a multiple of
 * 4096). fd: empty, written sequentially from its offset 0; not synced.
 * -EFBIG when the metadata would exceed BS_EROFS_META_MAX or a directory or file
 * cannot be expressed.
 */
int bs_erofs_write(const struct bs_tree *t, int fd, uint64_t *ret_bytes, struct bs_error *err);

#endif
