/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Overlay mounts: what an existing one is made of, and making one like it.
 *
 * In mountinfo each option's value is escaped twice: as bytes ("\054"), and within
 * layer lists by overlay's own rule (a backslash before ':' and itself). Options are
 * split first, then unescaped in that order. overlayfs.rst, fs/overlayfs/params.c.
 */
#ifndef BS_KERN_OVERLAY_H
#define BS_KERN_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct bs_error;

#define BS_OVERLAY_LAYERS_MAX 500u /* the kernel's own bound */

/* As mountinfo tells it. Paths may be relative to where the mounter stood. */
struct bs_overlay {
	struct bs_strv lowers; /* topmost first */
	char *upper, *work;    /* both NULL: read-only */
	bool ro;	       /* the filesystem, not only the mount */
	bool is_volatile;
	struct bs_strv options; /* all others, "key=value" or "key", unescaped */
};

/*
 * From the super options of a mountinfo line (still escaped). -EBADMSG when they are no
 * overlay's, -E2BIG over the bound, -EOPNOTSUPP for data-only layers.
 */
int bs_overlay_parse(const char *super, struct bs_overlay *ret, struct bs_error *err);
void bs_overlay_done(struct bs_overlay *o);
#define bs_autooverlay __attribute__((cleanup(bs_overlay_done))) struct bs_overlay

/* A directory as layer, held open. */
struct bs_layer {
	int fd;		  /* O_PATH or a mount; borrowed */
	const char *path; /* absolute, for mountinfo's readers; NULL: has none */
};

struct bs_overlay_spec {
	const char *source;
	const struct bs_layer *lowers; /* topmost first */
	size_t n_lowers;
	struct bs_layer upper, work; /* fd < 0: none */
	bool ro, is_volatile;
	const struct bs_strv *options; /* set in this order */
	uint64_t attrs;		       /* MOUNT_ATTR_* of the mount */
	/* a directory of ours, for kernels that must be given a string and a place */
	const char *scratch;
};

/*
 * An overlay being made: prepare checks all that can be without touching the layers,
 * create makes the filesystem (upper and work must be out of use then) and gives its
 * detached mount.
 */
struct bs_overlay_build {
	const struct bs_overlay_spec *spec;
	int fs; /* -EBADF: by mount(2) */
};

int bs_overlay_prepare(const struct bs_overlay_spec *spec, struct bs_overlay_build *ret,
		       struct bs_error *err);
int bs_overlay_create(struct bs_overlay_build *b, struct bs_error *err);
void bs_overlay_build_done(struct bs_overlay_build *b);
#define bs_autobuild __attribute__((cleanup(bs_overlay_build_done))) struct bs_overlay_build

/*
 * Whether the kernel takes the mounts behind both descriptors as layers: a detached
 * mount of another mount namespace is refused by some. Tries with a mount of its own.
 */
bool bs_overlay_takes(int upper_layer, int lower_layer);

/* Escapes for a layer list or upperdir=, workdir= (':', ',' and '\' get a backslash); malloc'ed. */
char *bs_overlay_escape(const char *path);

#endif
