/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the worker tells the warmer: runs of files that are local now and should go into
 * the page cache, in that order. One list is one datagram:
 *
 *   "bswarm1\n", then for each run  le64 offset, le32 bytes, le16 length of the path
 *   with its NUL, le16 zero, the path. No path (length 0): that of the run before.
 *
 * Paths are relative, of clean components ("a/b"), shorter than PATH_MAX. The worker
 * may be anybody's: bs_warmlist_open refuses all but what bs_warmlist_add writes.
 */
#ifndef BS_HOT_WARMLIST_H
#define BS_HOT_WARMLIST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BS_WARMLIST_BYTES_MAX 65536u
#define BS_WARMLIST_RUN_BYTES_MAX (1u << 30)

struct bs_warmlist {
	size_t len;		   /* of data: what is sent */
	size_t path_off, path_len; /* of the last run's path in data; with the NUL */
	uint8_t data[BS_WARMLIST_BYTES_MAX];
};

/* An empty one; it has len > 0, so ask bs_warmlist_empty. */
void bs_warmlist_init(struct bs_warmlist *w);
bool bs_warmlist_empty(const struct bs_warmlist *w);

/*
 * Adds a run; one of more than BS_WARMLIST_RUN_BYTES_MAX bytes as several. -E2BIG: it is
 * full and as it was: send it, init, and add again. -EINVAL: no such run or path.
 */
int bs_warmlist_add(struct bs_warmlist *w, const char *path, uint64_t off, uint64_t len);

struct bs_warmlist_run {
	const char *path; /* in the data */
	uint64_t off;	  /* off + len fits an off_t */
	uint32_t len;	  /* > 0 */
};

struct bs_warmlist_reader {
	const uint8_t *data;
	size_t len, at;
	struct bs_warmlist_run last;
	size_t path_len; /* with the NUL */
};

/* Checks all of it: 0 or -EBADMSG. data is the caller's as long as it is read. */
int bs_warmlist_open(struct bs_warmlist_reader *r, const void *data, size_t len);
/* The next run; false: that was all. */
bool bs_warmlist_next(struct bs_warmlist_reader *r, struct bs_warmlist_run *ret);

#endif
