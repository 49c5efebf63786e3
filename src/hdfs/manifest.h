/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The manifest of a striped file and the sums of a segment (bootseer-stripe(5)): read with
 * everything checked, written, changed. Pure. -EBADMSG: no such thing, or one that lies;
 * -EPROTONOSUPPORT: of a later version.
 */
#ifndef BS_HDFS_MANIFEST_H
#define BS_HDFS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_error;

#define BS_STRIPES_BYTES 4096u
#define BS_STRIPES_SEGMENTS_MAX 16u
#define BS_STRIPES_MAP_MAX 48u
#define BS_STRIPES_ID_LEN 32
#define BS_STRIPES_SUMS_MAX (UINT32_C(64) << 20) /* bytes of a sums file */

struct bs_segment {
	char id[BS_STRIPES_ID_LEN + 1];
	uint64_t len;
	uint32_t files;
	uint32_t sums;
};

struct bs_stripes_run {
	uint64_t first, n; /* units of the file */
	uint32_t segment;
	uint64_t slot;
};

struct bs_stripes { /* what a manifest says */
	uint64_t size, generation;
	uint32_t unit;
	char writer[BS_STRIPES_ID_LEN + 1];
	struct bs_segment segments[BS_STRIPES_SEGMENTS_MAX];
	uint32_t n_segments;
	struct bs_stripes_run map[BS_STRIPES_MAP_MAX];
	uint32_t n_map;
};

/* Whether a file of BS_STRIPES_BYTES that begins so is a manifest, of whichever version. */
bool bs_stripes_is(const void *bytes, size_t len);

int bs_stripes_read(const void *bytes, size_t len, struct bs_stripes *ret, struct bs_error *err);
/* to: BS_STRIPES_BYTES. -EINVAL: it would not be read again. */
int bs_stripes_write(const struct bs_stripes *s, void *to);

/*
 * Where unit u is: its segment and slot, NULL for zeros. *ret_n: units from u on for which the
 * same holds, one slot after the other.
 */
const struct bs_segment *bs_stripes_find(const struct bs_stripes *s, uint64_t u, uint64_t *ret_slot,
					 uint64_t *ret_n);

/*
 * Appends a segment whose slots are the units of runs (segment and slot of them do not count),
 * which take the place of what was there, and drops segments and units that nobody needs any
 * more. -E2BIG: more than a manifest holds; s is then undefined.
 */
int bs_stripes_add(struct bs_stripes *s, const struct bs_segment *seg,
		   const struct bs_stripes_run *runs, uint32_t n_runs);
/* Drops what is behind s->size. */
void bs_stripes_cut(struct bs_stripes *s);

/* "sums": bytes of it, and whether they are those of a segment. */
size_t bs_sums_bytes(uint64_t slots);
void bs_sums_write(uint32_t unit, const uint32_t *crc, uint32_t n, void *to);
/* Sums of n slots in their order, to ret; crc32c: what the manifest says of the file. */
int bs_sums_read(const void *bytes, size_t len, uint32_t crc32c, uint32_t unit, uint64_t n,
		 uint32_t *ret, struct bs_error *err);

#endif
