/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One layer of an image, read: what its tar archive adds and hides, in its order.
 * Each layer is fetched and decompressed once, in whatever thread; applying it to
 * the tree below is image/layers.
 */
#ifndef BS_IMAGE_LAYER_H
#define BS_IMAGE_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;
struct bs_inode;
struct bs_repo;
struct bs_spool;

enum bs_layer_kind {
	BS_LAYER_ADD,	   /* path becomes inode */
	BS_LAYER_LINK,	   /* path becomes another name of link, which takes inode's attributes */
	BS_LAYER_WHITEOUT, /* path of lower layers is hidden */
	BS_LAYER_OPAQUE,   /* all that lower layers have in the directory path is hidden */
	BS_LAYER_KIND_MAX
};

struct bs_layer_entry {
	enum bs_layer_kind kind;
	char *path; /* clean, without leading slash, "" for the root */
	char *link; /* as it is written */
	struct bs_inode *inode;
};

struct bs_layer {
	char *name; /* for messages: "layer 2 of 5" */
	struct bs_layer_entry *entries;
	size_t n, cap;
	struct bs_spool *spool;	  /* contents of its files; must outlive their inodes */
	struct bs_digest diff_id; /* of the uncompressed bytes */
	uint64_t bytes;		  /* uncompressed */
};

struct bs_layer *bs_layer_free(struct bs_layer *l);
DEFINE_BS_AUTO(layer, struct bs_layer, bs_layer_free)

/* Frees what image/layers has used up; spool and name stay. */
void bs_layer_forget_entries(struct bs_layer *l);

/* Gives the next bytes of the blob: their count, 0 at the end, -errno. */
typedef ssize_t bs_layer_input(void *cookie, const void **ret_data);

/* Reads an archive that may be compressed (gzip, zstd) when packed. -EBADMSG, -EINVAL, … */
int bs_layer_parse(const char *name, bs_layer_input *input, void *cookie, bool packed,
		   const char *spool_dir, struct bs_layer **ret, struct bs_error *err);

struct bs_layer_source {
	struct bs_repo *repo;
	const char *name;	 /* for messages */
	struct bs_digest digest; /* of the blob as it lies in repo */
	uint64_t size;
	const char *media_type;
	struct bs_digest diff_id; /* what the image's config says */
	const char *spool_dir;
	void (*progress)(void *cookie, uint64_t bytes); /* bytes more of the blob; any thread */
	void *cookie;
};

/* 0 plain, 1 perhaps compressed, -errno with a clear text for a type that is none of ours. */
int bs_layer_media_type(const char *media_type, struct bs_error *err);

/* Fetches and reads it; digest and diff_id are verified. Makes a thread of its own for a while. */
int bs_layer_fetch(const struct bs_layer_source *src, struct bs_layer **ret, struct bs_error *err);

#endif
