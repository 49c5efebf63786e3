/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Taking away what a swap left that nobody else takes away. */
#ifndef BS_ROOTFS_TEARDOWN_H
#define BS_ROOTFS_TEARDOWN_H

#include <stdbool.h>

#include "oci/state.h"

struct bs_error;
struct bs_mountinfo;

/*
 * How the source of our overlays begins, as mountinfo shows it, in an engine's place and
 * over a rootfs; behind it comes the digest of the image that is in it.
 */
#define BS_ROOTFS_SOURCE "bootseer:"
#define BS_ROOTFS_SOURCE_OVER "bootseer-over:"

/* Whether a mount is one of ours, and then of which kind a state that finds it is. */
bool bs_rootfs_is_ours(const struct bs_mountinfo *m, enum bs_state_kind *ret);

/* Unmounts the overlay that lies over the rootfs, if it is there and ours. */
int bs_rootfs_teardown(const struct bs_state *s, struct bs_error *err);

#endif
