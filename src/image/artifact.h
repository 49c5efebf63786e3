/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The OCI artifact that holds a converted image, and the ways to find it.
 * bootseer-image(5) lists media types and annotations.
 */
#ifndef BS_IMAGE_ARTIFACT_H
#define BS_IMAGE_ARTIFACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;
struct bs_jsonw;
struct bs_manifest;
struct bs_repo;

#define BS_ARTIFACT_TYPE "application/vnd.bootseer.image.v1"
#define BS_MEDIA_TREE "application/vnd.bootseer.image.tree.v1+zstd"
#define BS_MEDIA_TABLE "application/vnd.bootseer.image.table.v1"
#define BS_MEDIA_DATA "application/vnd.bootseer.image.data.v1+zstd"
#define BS_MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define BS_MEDIA_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define BS_MEDIA_OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define BS_MEDIA_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define BS_MEDIA_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"

struct bs_descriptor {
	struct bs_digest digest;
	uint64_t size;
};

/* As an object of the manifest that w writes (image-spec, descriptor.md). */
void bs_descriptor_write(struct bs_jsonw *w, const char *type, const struct bs_descriptor *d);

struct bs_artifact {
	struct bs_digest digest; /* of the manifest */
	struct bs_descriptor config, tree, table, data;
	bool has_subject;
	struct bs_descriptor subject; /* the original image's manifest */
	const char *subject_type;     /* its media type, a constant */
};

/* What a stub's manifest and an artifact's say about each other and the original. */
#define BS_ANNOTATION_ARTIFACT "dev.bootseer.artifact.digest"
#define BS_ANNOTATION_SOURCE "dev.bootseer.source.digest"
/* The tag of the stub of an image TAG, and where bs_artifact_find looks too. */
#define BS_STUB_TAG_SUFFIX "-bootseer"

/* Reads the artifact's manifest; digest is set from m. -EBADMSG with the member that is wrong. */
int bs_artifact_parse(const struct bs_manifest *m, struct bs_artifact *ret, struct bs_error *err);

/* The manifest's bytes (malloc'ed); a fixed order of members, so the same artifact has the same
 * digest. */
int bs_artifact_write(const struct bs_artifact *a, char **ret, size_t *ret_len,
		      struct bs_error *err);

/* What /.bootseer/image.json in a stub image says. Hostile until the digest is proven. */
struct bs_marker {
	struct bs_digest artifact;
	char *repository;	  /* "HOST/NAME" or "oci:DIR" it was converted to; owned */
	struct bs_digest stub_of; /* the original image's manifest */
};
#define BS_MARKER_PATH ".bootseer/image.json"
#define BS_MARKER_MAX 4096u

/* Strict: unknown versions -EPROTONOSUPPORT, anything else wrong -EBADMSG. */
int bs_marker_parse(const char *text, size_t len, struct bs_marker *ret, struct bs_error *err);
int bs_marker_write(const struct bs_marker *m, char **ret, size_t *ret_len, struct bs_error *err);
void bs_marker_done(struct bs_marker *m);

/*
 * Finds the artifact for platform ("linux/amd64"; NULL: this machine's) that ref of
 * repo means: the artifact's own digest or tag, the stub's tag or digest, or the
 * original's tag or digest (its converted form is looked for by referrers).
 */
int bs_artifact_find(struct bs_repo *repo, const char *ref, const char *platform,
		     struct bs_artifact *ret, struct bs_error *err);

#endif
