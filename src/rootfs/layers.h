/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The layers of an engine's overlay, held open: what mountinfo names, found again.
 *
 * Names may be relative to where the mounter stood (containerd "91/fs", podman
 * "l/ABCD"). They are looked up from the directories above the upper layer and above
 * the mountpoint: the first from which all of them are directories is the place.
 */
#ifndef BS_ROOTFS_LAYERS_H
#define BS_ROOTFS_LAYERS_H

#include <stddef.h>

#include "kern/overlay.h"

struct bs_error;

struct bs_layers {
	struct bs_layer *lowers; /* topmost first; paths and descriptors owned */
	size_t n;
	struct bs_layer upper, work; /* fd -EBADF: none */
};

int bs_layers_open(const struct bs_overlay *o, const char *mountpoint, struct bs_layers *ret,
		   struct bs_error *err);
void bs_layers_done(struct bs_layers *l);

/* The lowest lower whose marker file holds these bytes: its index, or -ENOENT. */
int bs_layers_find_stub(const struct bs_layers *l, const char *marker, size_t len);

/* Opens path with O_PATH and keeps its resolved name. */
int bs_layer_open(int dirfd, const char *path, struct bs_layer *ret);
void bs_layer_done(struct bs_layer *l);

/*
 * The marker's bytes in a root filesystem (malloc'ed, NUL behind). -ENOENT: there is
 * none. A marker that is no regular file, too large, or behind a symlink is an error.
 */
int bs_layer_marker(int dirfd, char **ret, size_t *ret_len, struct bs_error *err);

#endif
