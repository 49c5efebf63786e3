/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A temporary file without a name that holds the contents of files until they are
 * packed: gone with its last descriptor, however the process ends. Holes stay holes,
 * and blocks of zeros become some. One writer; readers may be other threads after
 * bs_spool_flush.
 */
#ifndef BS_IMAGE_SPOOL_H
#define BS_IMAGE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_error;

/* No file system of today holds more in one file; a sparse file may claim anything. */
#define BS_SPOOL_MAX (UINT64_C(8) << 40)

struct bs_spool {
	int fd;
	char *dir;    /* for messages; owned */
	uint64_t end; /* of what was reserved */
	uint8_t *buf; /* [buf_off, buf_off + buf_len) is not written yet */
	uint64_t buf_off;
	size_t buf_len;
};

/* dir: where; NULL: $TMPDIR, else /var/tmp. */
int bs_spool_new(const char *dir, struct bs_spool **ret, struct bs_error *err);
struct bs_spool *bs_spool_free(struct bs_spool *s);
DEFINE_BS_AUTO(spool, struct bs_spool, bs_spool_free)

/* Room for one file; files above 64 KiB begin at a block, so that their holes are real. */
int bs_spool_reserve(struct bs_spool *s, uint64_t size, uint64_t *ret_off, struct bs_error *err);
/* Within what was reserved. -ENOSPC names the directory. */
int bs_spool_write(struct bs_spool *s, uint64_t off, const void *data, size_t len,
		   struct bs_error *err);
int bs_spool_flush(struct bs_spool *s, struct bs_error *err);

/* Reads; what was never written is zeros. -EIO with a text when it cannot. */
int bs_spool_read(const struct bs_spool *s, uint64_t off, void *buf, size_t len,
		  struct bs_error *err);
/* The first offset >= off that may hold anything but zeros (end when there is none before). */
uint64_t bs_spool_next_data(const struct bs_spool *s, uint64_t off, uint64_t end);

/* dir as bs_spool_new takes it. */
const char *bs_spool_dir(const char *dir);
/* -ENOSPC, with remedy, when dir's file system has less than need bytes free. */
int bs_spool_check_space(const char *dir, uint64_t need, struct bs_error *err);

#endif
