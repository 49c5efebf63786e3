/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * index.json of an OCI layout: what has a name, and what refers to something else.
 * dirfd is the layout's directory, shown its name in messages. What changes the file
 * does so under the lock of the file ".lock" beside it.
 */
#ifndef BS_NET_LAYOUT_INDEX_H
#define BS_NET_LAYOUT_INDEX_H

#include <stddef.h>

#include "base/digest.h"

struct bs_error;
struct bs_json;

/* Its "manifests" is an array afterwards. */
int bs_layout_index_read(int dirfd, const char *shown, struct bs_json **ret, struct bs_error *err);

/* The tag of an entry, or NULL. */
const char *bs_layout_index_tag(const struct bs_json *entry);
const struct bs_json *bs_layout_index_find(const struct bs_json *index, const char *tag);

/*
 * Lists a manifest: under tag, which the entry that had it loses, or (NULL) without a
 * name unless it is listed already. artifact_type may be NULL.
 */
int bs_layout_index_add(int dirfd, const char *shown, const char *tag, const char *media_type,
			const struct bs_digest *d, size_t len, const char *artifact_type,
			struct bs_error *err);

/* Takes out all entries of a manifest: 1, or 0 when there is none. */
int bs_layout_index_remove(int dirfd, const char *shown, const struct bs_digest *d,
			   struct bs_error *err);

#endif
