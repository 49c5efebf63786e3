/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A converted image, opened to look at: its tree, table and config in memory, its
 * files' content fetched frame by frame and proven. For tools; a node serves images
 * by its cache.
 */
#ifndef BS_IMAGE_OPEN_H
#define BS_IMAGE_OPEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "image/artifact.h"

struct bs_error;
struct bs_framer;
struct bs_json;
struct bs_repo;
struct bs_table;
struct bs_tree;

struct bs_image {
	struct bs_repo *repo; /* a reference */
	struct bs_artifact a;
	struct bs_tree *tree;
	struct bs_table *table;
	char *config_text;
	struct bs_json *config;
};

int bs_image_open(struct bs_repo *repo, const struct bs_artifact *a, struct bs_image **ret,
		  struct bs_error *err);
struct bs_image *bs_image_free(struct bs_image *i);
DEFINE_BS_AUTO(image, struct bs_image, bs_image_free)

/* The entry at path, symlinks followed inside the image. -ENOENT, -ENOTDIR, -ELOOP. */
int64_t bs_image_lookup(const struct bs_image *i, const char *path);

/* A file as text with a NUL behind, "" when there is none; only the first max bytes. */
int bs_image_read_text(struct bs_image *i, const char *path, size_t max, char **ret,
		       struct bs_error *err);

/*
 * Fetches frame n and proves it: its blocks to out. packed: BS_FRAME_DATA_MAX bytes to work
 * in, f: a framer of the caller's.
 */
int bs_image_read_frame(struct bs_image *i, struct bs_framer *f, uint32_t n, void *packed,
			void *out, struct bs_error *err);

/* Fetches all data and proves every frame. progress (may be NULL): bytes of data more. */
int bs_image_verify(struct bs_image *i, void (*progress)(void *cookie, uint64_t bytes),
		    void *cookie, struct bs_error *err);

#endif
