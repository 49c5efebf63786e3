/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Image manifests and indexes as OCI's image-spec and docker's schema 2 write them.
 * Foreign bytes: everything is checked, -EBADMSG names the member.
 */
#ifndef BS_IMAGE_MANIFEST_H
#define BS_IMAGE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "image/artifact.h"

struct bs_error;
struct bs_json;
struct bs_manifest;

#define BS_LAYERS_MAX 4096u
#define BS_INDEX_MAX 1024u
#define BS_CONFIG_MAX (8u << 20)

/* A descriptor with what may stand beside it; strings are the document's. */
struct bs_link {
	struct bs_descriptor d;
	const char *media_type;
	const char *artifact_type; /* NULL: not said */
	const struct bs_json *platform, *annotations;
};

/* A manifest or an index, read. */
struct bs_document {
	struct bs_json *json;	/* owned */
	const char *media_type; /* one of BS_MEDIA_* of artifact.h */
	const char *artifact_type;
	bool is_index;
	struct bs_link config; /* of a manifest */
	struct bs_link *links; /* layers, or manifests; owned */
	size_t n;
};

int bs_document_parse(const struct bs_manifest *m, struct bs_document *ret, struct bs_error *err);
void bs_document_done(struct bs_document *d);
#define bs_autodocument __attribute__((cleanup(bs_document_done))) struct bs_document

/* The annotation of a document or NULL. */
const char *bs_document_annotation(const struct bs_document *d, const char *key);

/* "linux/arm64/v8" of an index's entry, malloc'ed; NULL: none is said or it is no system's. */
char *bs_link_platform(const struct bs_link *l);

/* "linux/amd64" of this machine. */
const char *bs_platform_here(void);

/*
 * The entry for platform ("OS/ARCH[/VARIANT]"; NULL: this machine's): the one with
 * that variant, else the first of that architecture. -ENOENT lists those there are.
 */
int bs_document_pick(const struct bs_document *index, const char *platform,
		     const struct bs_link **ret, struct bs_error *err);

/* Reads one descriptor; what names it in errors. */
int bs_link_parse(const struct bs_json *v, const char *what, struct bs_link *ret,
		  struct bs_error *err);

#endif
