/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * index.json of an OCI layout: what has a name, and what refers to something else. Pure; any
 * thread.
 */
#ifndef BS_NET_LAYOUT_INDEX_H
#define BS_NET_LAYOUT_INDEX_H

#include <stddef.h>

#include "base/digest.h"

struct bs_error;
struct bs_json;

#define BS_LAYOUT_INDEX_MAX (16u << 20)

/* Its "manifests" is an array afterwards. shown: the layout's name in messages. */
int bs_layout_index_parse(const char *shown, const char *bytes, size_t len, struct bs_json **ret,
			  struct bs_error *err);

/* The tag of an entry, or NULL. */
const char *bs_layout_index_tag(const struct bs_json *entry);
const struct bs_json *bs_layout_index_find(const struct bs_json *index, const char *tag);

/* A manifest to be listed. */
struct bs_layout_entry {
	const char *tag; /* may be NULL */
	const char *media_type;
	const struct bs_digest *digest;
	size_t len;
	const char *artifact_type; /* may be NULL */
	bool guarded;		   /* only if the tag has was, or nothing when that is NULL */
	const struct bs_digest *was;
};

/*
 * Lists it: under its tag, which the entry that had it loses, or without a name unless it is
 * listed already. 1, or 0 when nothing changed; -EEXIST: the tag has another; -ENOMEM.
 */
int bs_layout_index_add(struct bs_json *index, const struct bs_layout_entry *e);

/* Takes out all entries of a manifest: 1, or 0 when there is none. */
int bs_layout_index_remove(struct bs_json *index, const struct bs_digest *d);

#endif
