/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The FUSE filesystem that serves the blobs: a root directory with one file an image,
 * named by the digits of its digest, read by the kernel's EROFS as a device. A start
 * that is recorded reads through a file of its own (rootfs/hotstart.h).
 *
 * Its server can be replaced at any time: node ids and file handles mean the same to
 * every server, and what a dead one had taken is asked again (bs_fusedev_resend).
 * A read is answered with all its bytes or with an errno, never short.
 *
 * Threads: a fixed number, each reading the device; a miss is answered by whichever
 * thread lands it.
 */
#ifndef BS_ROOTFS_BLOCKFS_H
#define BS_ROOTFS_BLOCKFS_H

#include <stdbool.h>

#include "base/mem.h"

struct bs_blockfs;
struct bs_error;
struct bs_fill;
struct bs_hotstart;
struct bs_images;

struct bs_blockfs_options {
	int fuse_fd;   /* taken over */
	bool takeover; /* the connection had a server before that answered FUSE_INIT */
	unsigned int n_threads;
	struct bs_images *images;
	struct bs_fill *fill;
	struct bs_hotstart *hot;
};

/*
 * Serves: starts the threads and returns once the kernel and we have agreed (INIT).
 * -ETIMEDOUT: the kernel did not ask within 10 s.
 */
int bs_blockfs_start(const struct bs_blockfs_options *o, struct bs_blockfs **ret,
		     struct bs_error *err);

#endif
