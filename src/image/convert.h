/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * From an image in one repository to its converted form in another (or the same):
 *
 *	layers ─▶ tree in memory + spools ─▶ tree, table, data ─▶ blobs ─▶ artifact
 *	                                  └▶ stub image ─▶ blobs ─▶ manifest, tag
 *
 * Manifests are put after all they name and the tag last, so nothing half-made shows.
 * Blobs that are there are not sent again.
 */
#ifndef BS_IMAGE_CONVERT_H
#define BS_IMAGE_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/str.h"

struct bs_error;
struct bs_repo;

enum bs_convert_phase {
	BS_CONVERT_READ, /* bytes of layers (or of a directory's files) */
	BS_CONVERT_PACK, /* bytes of files */
	BS_CONVERT_SEND, /* bytes of blobs */
	BS_CONVERT_PHASE_MAX
};

/* What is told while it runs. Calls come from any thread, one at a time. */
struct bs_convert_watch {
	/* a phase begins; total 0: not known. platform: "linux/amd64", or "" */
	void (*begin)(void *cookie, enum bs_convert_phase phase, const char *platform,
		      uint64_t total);
	void (*progress)(void *cookie, uint64_t done);
	/* something a person should know, and which is no error */
	void (*note)(void *cookie, const char *text);
	void *cookie;
};

struct bs_convert {
	struct bs_repo *src; /* or: */
	const char *rootfs;  /* a directory, with */
	const char *config;  /* an image config's text, NULL: an empty one of this platform */
	const char *ref;     /* of src */
	const struct bs_strv *platforms; /* only these; empty: all (of an index) */
	struct bs_repo *dst;
	const char *dst_repository; /* what the marker says */
	const char *stub_tag;
	unsigned int jobs;
	int level;			      /* zstd; 0: the default */
	const char *tmp;		      /* NULL: as bs_spool_dir */
	const struct bs_convert_watch *watch; /* may be NULL */
};

/* One platform's result. */
struct bs_converted {
	char *platform; /* owned */
	bool has_source;
	struct bs_digest source, artifact, stub;
	uint64_t artifact_size, stub_size; /* of the manifests */
	uint64_t layers_bytes;		   /* of the original's blobs */
	uint64_t files_bytes, shared_bytes, data_bytes, tree_bytes, table_bytes;
	uint32_t entries, frames;
};

struct bs_converted_list {
	struct bs_converted *v;
	size_t n, cap;
	struct bs_digest stub; /* what the tag is: a manifest or an index */
};

int bs_convert_run(const struct bs_convert *c, struct bs_converted_list *ret, struct bs_error *err);
void bs_converted_list_done(struct bs_converted_list *l);

#endif
