/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The cached content of one image: a sparse file for the blob, and which units of it
 * are there. A unit is what is fetched and proven at once (an image's frame); this
 * module knows neither its form nor where it comes from, only the functions that
 * say so.
 *
 * Files in the entry's directory:
 *   blob     sparse, of the blob's full size
 *   present  a bitmap, one bit a unit, mapped shared: a bit is set after the unit's
 *            bytes were written, so it survives the death of the process
 *   blocks   the same for single blocks (4 KiB), see blocks.h
 *   state    JSON: "epoch" under which present was kept, and, once complete and
 *            synced, the identity of blob (inode, size, mtime, ctime)
 *
 * What a crash may have left is never believed: bits that were set under another
 * epoch (another boot, another supervisor) only say that a unit may be there, and it
 * is proven again at its first use. A complete blob whose identity is unchanged was
 * synced after its last write and is believed.
 * After a sync that failed nothing is believed at all: the kernel takes the pages that it
 * could not write for clean, so that what reads right now may be gone from memory later,
 * and reading it again would prove the memory and not the disk. All is fetched anew.
 *
 * Threads: every function may be called from any thread, but for free. Bits are read
 * without a lock and changed under one, which is inside all others: a proven unit is
 * always a present one.
 */
#ifndef BS_CACHE_BLOB_H
#define BS_CACHE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_blob;
struct bs_error;
struct bs_near;

struct bs_unit {
	uint64_t blob_off;
	uint64_t data_off;
	uint32_t blob_len; /* 1 … BS_UNIT_BYTES_MAX */
	uint32_t data_len;
};

#define BS_UNIT_BYTES_MAX (128u << 10)
#define BS_UNIT_DATA_MAX (BS_UNIT_BYTES_MAX + 1024u)

/* All are thread-safe; scratch belongs to the calling thread (see bs_fill). */
struct bs_blob_ops {
	void (*unit)(void *cookie, uint32_t i, struct bs_unit *ret);
	uint32_t (*find)(void *cookie, uint64_t blob_off); /* the unit that holds the byte */
	/* Both prove: 0, or -EBADMSG. out and bytes are blob_len long. */
	int (*decode)(void *cookie, void *scratch, uint32_t i, const void *data, void *out);
	int (*verify)(void *cookie, void *scratch, uint32_t i, const void *bytes);
	/* A unit of another blob with the same identity; false: none is known. */
	bool (*alias)(void *cookie, uint32_t i, struct bs_blob **ret_blob, uint32_t *ret_unit);
};

struct bs_blob_geometry {
	const struct bs_blob_ops *ops;
	void *cookie;
	uint64_t bytes; /* of the blob */
	uint32_t n_units;
};

/*
 * Opens (makes) the files in dirfd. epoch: an arbitrary number that the caller keeps
 * as long as the machine and the page cache are surely the same.
 */
int bs_blob_open(int dirfd, const struct bs_blob_geometry *g, uint64_t epoch, struct bs_blob **ret,
		 struct bs_error *err);
struct bs_blob *bs_blob_free(struct bs_blob *b);
DEFINE_BS_AUTO(blob, struct bs_blob, bs_blob_free)

const struct bs_blob_geometry *bs_blob_geometry(const struct bs_blob *b);
int bs_blob_fd(const struct bs_blob *b); /* of the blob file; stays the blob's */

/* Whether unit i is there and proven. Cheap; never blocks. */
bool bs_blob_has(struct bs_blob *b, uint32_t i);

/*
 * Makes sure of unit i: true when it is there and proven, which may read and prove it
 * now. buf: BS_UNIT_BYTES_MAX bytes of the caller's.
 */
bool bs_blob_check(struct bs_blob *b, uint32_t i, void *scratch, void *buf);

/*
 * Proves unit i from its bytes on disk, whatever was believed: 1 right, 0 not present,
 * -EBADMSG wrong, and from now on not present.
 */
int bs_blob_prove(struct bs_blob *b, uint32_t i, void *scratch, void *buf);

/*
 * Whether every byte of the range is there and proven: of whole units, or of blocks that
 * came alone. Cheap; never blocks.
 */
bool bs_blob_has_range(struct bs_blob *b, uint64_t off, uint64_t len);
/* What is known of who reads it; guarded by the lock of the only fill that serves it. */
struct bs_near *bs_blob_near(struct bs_blob *b);

/* Whether any block ever came alone. */
bool bs_blob_has_blocks(struct bs_blob *b);

/*
 * Reads a range within the blob: 0; -ENODATA: not all of it is there. What should be
 * and cannot be read whole is forgotten.
 */
int bs_blob_read_range(struct bs_blob *b, uint64_t off, void *buf, uint32_t len);

/*
 * Stores n proven blocks from first on; whatever units they complete are there then.
 * 0, 1: all was there, or as bs_blob_store.
 */
int bs_blob_store_blocks(struct bs_blob *b, uint64_t first, uint32_t n, const void *bytes);

/*
 * Stores a unit's proven bytes: 0, or 1 when it was there (another was quicker). -ENOSPC and
 * the like: it is then simply not there.
 */
int bs_blob_store(struct bs_blob *b, uint32_t i, const void *bytes);

uint32_t bs_blob_n_present(struct bs_blob *b); /* also those that are not proven yet */
/* The first unit >= from that is not present (proven or not); n_units: none. */
uint32_t bs_blob_next_missing(struct bs_blob *b, uint32_t from);

/*
 * When every unit is present: proves what is not, syncs and records it. 0: the blob is
 * complete; -EAGAIN: units are missing (again); else the disk failed, and no unit is
 * present any more. Blocks for the disk.
 */
int bs_blob_finish(struct bs_blob *b, void *scratch, void *buf);
bool bs_blob_complete(struct bs_blob *b);

#endif
