/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What we did for a container, in RUN_DIR/state/KEY.json, written before it is done, so
 * that it can always be undone. KEY is the container's ID and a mark of the runtime's
 * state directory: engines use the same IDs with several of them.
 */
#ifndef BS_OCI_STATE_H
#define BS_OCI_STATE_H

#include "base/str.h"

struct bs_error;

#define BS_STATE_VERSION 1u
#define BS_STATE_BYTES_MAX (4u << 20)

enum bs_state_kind {
	BS_STATE_OVERLAY, /* the engine's overlay, made anew in its place: the engine's to unmount
			   */
	BS_STATE_OVER,	  /* an overlay of ours over what was at the rootfs: ours to unmount */
	BS_STATE_KEPT,	  /* an overlay of ours found in place: nothing to do */
	BS_STATE_NONE,	  /* its rootfs is as it was, and digest "" */
	BS_STATE_KIND_MAX
};

struct bs_state {
	enum bs_state_kind kind;
	char *id, *root;       /* of the runtime */
	char *bundle, *rootfs; /* absolute, resolved */
	char *digest;	       /* the image's */
	char *lease;	       /* bootseerd's name for us; "": none */
	char *upper, *work;    /* NULL: none */
	struct bs_strv layers; /* paths, topmost first; ours as "bootseer:DIGEST" */
};

void bs_state_done(struct bs_state *s);
#define bs_autostate __attribute__((cleanup(bs_state_done))) struct bs_state

/* "ID@HHHHHHHH"; malloc'ed, NULL when out of memory. */
char *bs_state_key(const char *id, const char *root);

/* dirfd is RUN_DIR/state. read: -ENOENT without text when there is none; -EBADMSG. */
int bs_state_read(int dirfd, const char *key, struct bs_state *ret, struct bs_error *err);
int bs_state_write(int dirfd, const char *key, const struct bs_state *s, struct bs_error *err);
int bs_state_remove(int dirfd, const char *key);

/* The reader's bytes, for tests and fuzzing. */
int bs_state_parse(const char *text, size_t len, struct bs_state *ret, struct bs_error *err);

#endif
