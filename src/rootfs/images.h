/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The images of a node: found, fetched, proven, kept under CACHE_DIR/images/<hex>/ and
 * ready to be mounted and read. Worker's side: runs unprivileged.
 *
 * An entry's files, beside those of cache/blob.h, each published whole:
 *   manifest    the artifact's manifest, as its digest says
 *   table       the frame table
 *   tree        compressed, as it came, for unpacking
 *   meta-1.erofs  written here from the tree; its name changes with our writer
 *   sources     where the data was last said to be, one a line
 * An entry is prepared when all are there; the metadata is published last. With manifest and
 * table it is loaded, for streams only: their blocks can be proven and kept.
 *
 * A node id of the FUSE filesystem is made from the image's digest, so that it means the
 * same to every worker that will ever serve the mount.
 *
 * Threads: all functions from any thread. An image once loaded stays as long as the
 * process: mounts may refer to it at any time.
 */
#ifndef BS_ROOTFS_IMAGES_H
#define BS_ROOTFS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "obs/timeline.h"
#include "rootfs/rounds.h"

struct bs_blob;
struct bs_error;
struct bs_fill;
struct bs_images;
struct bs_jsonw;
struct bs_origin;
struct bs_repo;

struct bs_images_options {
	int dirfd; /* CACHE_DIR/images; duplicated */
	uint64_t epoch;
	struct bs_fill *fill;
	bs_open_source_fn *open_source;
	void (*event)(void *cookie, const char *text); /* a line for the log */
	/* The image is complete now: at most once for each time it became so. Any thread. */
	void (*completed)(void *cookie, const struct bs_digest *digest);
	void *cookie;
};

int bs_images_new(const struct bs_images_options *o, struct bs_images **ret, struct bs_error *err);

/* One image that is loaded; read-only but for its counters. */
struct bs_cached {
	struct bs_digest digest;
	uint64_t node;
	uint64_t blob_bytes;
	struct bs_blob *blob;
	struct bs_origin *origin;
};

/*
 * Makes sure that the image is prepared: at once when it is, else from the first of the
 * n sources that has it, trying until wait_ns is over. Spans go to tl (taken over), whose
 * marks are set as the image is read. The sources are remembered.
 */
int bs_images_prepare(struct bs_images *im, const struct bs_digest *digest,
		      const char *const *sources, size_t n, uint64_t wait_ns,
		      struct bs_timeline *tl, struct bs_cached **ret, struct bs_error *err);

/* The prepared image behind a node id or name (hex digits); NULL: there is none. */
struct bs_cached *bs_images_by_node(struct bs_images *im, uint64_t node);
/* The image that an entry of that name is of; false: it is none. */
bool bs_images_digest(const char *name, struct bs_digest *ret);
struct bs_cached *bs_images_by_name(struct bs_images *im, const char *name);
/* The same by digest. */
struct bs_cached *bs_images_cached(struct bs_images *im, const struct bs_digest *digest);
/*
 * Waits until another thread has prepared it. NULL: nobody did by deadline_ns, or one
 * failed since since_ns (bs_clock_ns).
 */
struct bs_cached *bs_images_await(struct bs_images *im, const struct bs_digest *digest,
				  uint64_t since_ns, uint64_t deadline_ns);
/*
 * The same, but satisfied with its table: then blocks of it can be proven and kept, and
 * nothing else is to be done with it.
 */
struct bs_cached *bs_images_await_table(struct bs_images *im, const struct bs_digest *digest,
					uint64_t since_ns, uint64_t deadline_ns);

/* A read-only descriptor of the image's metadata. */
int bs_cached_open_metadata(struct bs_cached *i);

int bs_cached_open_tree(struct bs_cached *i); /* and of its compressed tree */

/*
 * Completes the image: done (NULL: nobody waits) is called when it is, at once if it is
 * already, else on any thread. -ENOMEM: nothing was started.
 */
int bs_cached_complete(struct bs_cached *i, void (*done)(void *cookie, int result), void *cookie);

struct bs_artifact;
struct bs_table;
const struct bs_table *bs_cached_table(const struct bs_cached *i);
const struct bs_artifact *bs_cached_artifact(const struct bs_cached *i);
uint64_t bs_cached_manifest_len(const struct bs_cached *i); /* bytes */
int bs_cached_dirfd(const struct bs_cached *i);		    /* of its entry; stays the image's */

/*
 * Frames of i that other images of this node have too, ascending by frame: taken over;
 * a miss is then copied from there. Replaces nothing: the first list stays.
 */
struct bs_alias {
	uint32_t frame;
	uint32_t other_frame;
	struct bs_cached *other;
};
void bs_cached_set_aliases(struct bs_cached *i, struct bs_alias *list, size_t n);

/* The directory of entries, for whoever looks at those that are not loaded. */
int bs_images_dirfd(const struct bs_images *im);

/* To be called for each read that the kernel asks for. */
void bs_cached_note_read(struct bs_cached *i);

/* What bs_fill tells (bs_fill_options.fetched). */
void bs_images_note_fetched(void *cookie, struct bs_blob *blob, uint64_t bytes);

/* The scratch of bs_fill_options, for whoever decodes frames. */
void *bs_images_scratch_new(void);
void bs_images_scratch_free(void *scratch);

/*
 * Proves every frame that the cache says it has, of all images, loading them. Wrong ones
 * are forgotten and fetched again when they are read. *ret_frames: looked at.
 */
int bs_images_verify(struct bs_images *im, uint64_t *ret_images, uint64_t *ret_frames,
		     uint64_t *ret_wrong, struct bs_error *err);

/* An array with one object an image: digest, units, bytes, what came from where. */
void bs_images_status(struct bs_images *im, struct bs_jsonw *w);

#endif
