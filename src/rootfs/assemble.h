/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The swap: an image's lazily served tree comes to lie in a container's rootfs.
 *
 * Where the engine mounted an overlay, that one is made anew in its place, with the
 * same upper and work directories, flags and options, and more layers:
 *
 *	[lowers above the stub] : [deps] : [image] : [the stub and those below]
 *
 * The stub is the lowest layer that holds the image's marker (without a marker: the
 * lowest of all); what was committed on top of it stays on top. The engine goes on to
 * own the mount: it unmounts it as if it were the one that it made.
 *
 * Where the rootfs is anything else (a plain directory, a bind mount), an overlay
 *
 *	[deps] : [image] : [what is there]
 *
 * is laid over it, which is ours to take away. What the container writes goes to
 * ROOTFS.bootseer/upper beside it and so survives a stop and start of the same bundle.
 *
 * plan only looks; swap changes, and after a failure everything is as it was.
 */
#ifndef BS_ROOTFS_ASSEMBLE_H
#define BS_ROOTFS_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "oci/state.h"

struct bs_error;
struct bs_rootfs;

struct bs_rootfs_request {
	const char *path;   /* absolute, resolved */
	const char *marker; /* its bytes as seen in the rootfs; NULL: there is none */
	size_t marker_len;
	bool readonly;	     /* the container may not write anyway */
	const char *run_dir; /* for a short-lived mountpoint, where the kernel needs one */
};

int bs_rootfs_plan(const struct bs_rootfs_request *q, struct bs_rootfs **ret, struct bs_error *err);
struct bs_rootfs *bs_rootfs_free(struct bs_rootfs *r);
DEFINE_BS_AUTO(rootfs, struct bs_rootfs, bs_rootfs_free)

/* Fills kind, upper, work and layers; image and deps (NULL: none) are names for theirs. */
int bs_rootfs_describe(const struct bs_rootfs *r, const char *image, const char *deps,
		       struct bs_state *s, struct bs_error *err);

/* The digest of the image in an overlay of ours that an engine kept; NULL: there is none. */
const char *bs_rootfs_image(const struct bs_rootfs *r);

/*
 * digest: the image's. image, deps (-EBADF: none): mounts or directories, borrowed. A detached mount must be
 * the caller's alone: it is attached and unmounted when it comes from another namespace.
 */
int bs_rootfs_swap(struct bs_rootfs *r, const char *digest, int image, int deps,
		   struct bs_error *err);

/* After a swap: everything as it was before. */
int bs_rootfs_undo(struct bs_rootfs *r, struct bs_error *err);

#endif
