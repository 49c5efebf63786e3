/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Mounts by descriptor: built detached (fsopen, fsconfig, fsmount), attached last
 * (move_mount). Errors carry what the kernel wrote into the context's log.
 * See fsopen(2) ff.; Linux 5.2 and later, mount_setattr 5.12.
 */
#ifndef BS_KERN_MOUNTFD_H
#define BS_KERN_MOUNTFD_H

#include <stdint.h>

struct bs_error;

/* A new context for a filesystem type. -EOPNOTSUPP: the kernel does not have it. */
int bs_mountfd_open(const char *type, struct bs_error *err);

int bs_mountfd_set(int fs, const char *key, const char *value, struct bs_error *err);
int bs_mountfd_flag(int fs, const char *key, struct bs_error *err);

/* Makes the filesystem and mounts it nowhere; attrs: MOUNT_ATTR_*. The mount's descriptor. */
int bs_mountfd_create(int fs, uint32_t attrs, struct bs_error *err);

/* Attaches a detached (or moves an attached) mount onto the directory that dirfd/path is. */
int bs_mountfd_attach(int mnt, int dirfd, const char *path, struct bs_error *err);

/* A detached copy (open_tree OPEN_TREE_CLONE) of the mount at dirfd/path. */
int bs_mountfd_clone(int dirfd, const char *path, struct bs_error *err);

/* Makes the mount private, whatever it is attached to. */
int bs_mountfd_make_private(int mnt);

/* Sets MOUNT_ATTR_* that the mount may lack. */
int bs_mountfd_restrict(int mnt, uint64_t attrs);

/* Lazy unmount of the topmost mount at path, which is not followed if it is a symlink. */
int bs_mountfd_detach(const char *path);

#endif
