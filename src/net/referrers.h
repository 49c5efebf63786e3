/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Image indexes that list what refers to a manifest (distribution-spec, "Listing
 * Referrers" and "Referrers Tag Schema"). Pure; any thread.
 */
#ifndef BS_NET_REFERRERS_H
#define BS_NET_REFERRERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"

struct bs_error;
struct bs_json;
struct bs_manifest;

#define BS_TYPE_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define BS_TYPE_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define BS_TYPE_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define BS_TYPE_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"

#define BS_REFERRERS_MAX 10000	/* descriptors in one list */
#define BS_REFERRERS_TAG_LEN 72 /* "sha256-" + 64 + NUL */

/* "sha256-<hex>"; returns buf. */
const char *bs_referrers_tag(const struct bs_digest *subject, char buf[BS_REFERRERS_TAG_LEN]);

/*
 * Reads a manifest's subject. 1: *ret_subject, and *ret_desc (when wanted) is the
 * manifest's own descriptor as a list of referrers shows it; 0: it has none; -EINVAL
 * bad JSON, -ENOMEM.
 */
int bs_referrers_describe(const char *bytes, size_t len, const char *media_type,
			  struct bs_digest *ret_subject, struct bs_json **ret_desc,
			  struct bs_error *err);

/* An index with no manifests; NULL: out of memory. */
struct bs_json *bs_referrers_new(void);

/*
 * Reads an index as it came from a server or a file (what names it); its "manifests"
 * is an array afterwards.
 */
int bs_referrers_parse(const char *what, const char *bytes, size_t len, struct bs_json **ret,
		       struct bs_error *err);

/* Adds a descriptor (taken over) unless its digest is listed. 1 added, 0 was there, -errno. */
int bs_referrers_add(struct bs_json *index, struct bs_json *desc);

/* Moves all descriptors of from into index. */
int bs_referrers_merge(struct bs_json *index, struct bs_json *from);

/* Takes out what has that digest; how many there were. */
size_t bs_referrers_remove(struct bs_json *index, const struct bs_digest *d);

/* As a manifest (without digest); -ENOENT when it lists nothing. */
int bs_referrers_finish(const struct bs_json *index, struct bs_manifest *ret, struct bs_error *err);

#endif
