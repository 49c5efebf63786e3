/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The stub of an image: its config with one small layer of what engines look at
 * before a container runs. That is the marker, /etc/passwd, /etc/group, WorkingDir,
 * the user's home, and the volumes' directories with their content; all with their
 * attributes, and with the symlinks on the way there.
 *
 * Deterministic, without the time of the conversion.
 */
#ifndef BS_IMAGE_STUB_H
#define BS_IMAGE_STUB_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/str.h"
#include "image/artifact.h"

struct bs_error;
struct bs_json;
struct bs_nodes;

/* Content of volumes in a stub; beyond it only the volume's directory is there. */
#define BS_STUB_VOLUMES_MAX (16u << 20)

struct bs_stub {
	char *layer; /* gzip; all owned */
	size_t layer_len;
	char *config;
	size_t config_len;
	char *manifest;
	size_t manifest_len;
	struct bs_digest layer_digest, config_digest, manifest_digest;
	struct bs_strv left_out; /* volumes whose content is too large */
};

/* Once for a tree: it marks nodes. config: the image's. subject of a says which image it is the
 * stub of. */
int bs_stub_make(struct bs_nodes *t, const struct bs_json *config, const struct bs_artifact *a,
		 const struct bs_marker *marker, struct bs_stub *ret, struct bs_error *err);
void bs_stub_done(struct bs_stub *s);

/* The image's file at path as text with a NUL behind, "" when there is none; at most max bytes. */
int bs_nodes_read_text(struct bs_nodes *t, const char *path, size_t max, char **ret,
		       struct bs_error *err);

#endif
