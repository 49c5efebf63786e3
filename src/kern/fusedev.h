/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * /dev/fuse: opened and mounted here by the privileged side, served elsewhere. The
 * connection lives as long as any process holds the descriptor, so its server can be
 * killed and replaced.
 */
#ifndef BS_KERN_FUSEDEV_H
#define BS_KERN_FUSEDEV_H

#include <stdbool.h>
#include <stdint.h>

struct bs_error;

int bs_fusedev_open(struct bs_error *err);

struct bs_fusedev_mount {
	const char *subtype; /* shown as "fuse.SUBTYPE" */
	const char *source;  /* NULL: "bootseer" */
	bool writable;
	uint32_t attrs; /* further MOUNT_ATTR_* */
};

/*
 * Mounts a filesystem served through fuse_fd, attached nowhere; returns the mount's
 * descriptor. nosuid, nodev, allow_other, default_permissions. Does not wait for the server.
 */
int bs_fusedev_mount(int fuse_fd, const struct bs_fusedev_mount *m, struct bs_error *err);

/*
 * The kernel's readahead of the mount's files that are opened from now on. Its own is 128 KiB.
 * What was agreed at INIT is the most that counts. Privileged.
 */
int bs_fusedev_set_readahead(int mnt, uint32_t kib);

/*
 * FUSE_NOTIFY_RESEND (protocol 7.40, Linux 6.9): the kernel queues again what a dead
 * server had read and not answered. -EINVAL: the kernel cannot.
 */
int bs_fusedev_resend(int fuse_fd);

#endif
