/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What libarchive does not tell about a tar entry: the type as it is written, and
 * the pax records as raw bytes (libarchive turns ACLs into its own form, cuts names
 * at a NUL and reads fractions of negative times wrongly).
 */
#ifndef BS_IMAGE_TARHEAD_H
#define BS_IMAGE_TARHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_xset;

#define BS_TAR_BLOCK 512u

struct bs_tarhead {
	char type;	/* '0' … '9', 'S', …; '0' also for the old NUL */
	bool has_mtime; /* from a pax record */
	int64_t mtime_s;
	uint32_t mtime_ns;
};

/*
 * Reads the headers of one entry: data begins with its first one (extension headers
 * come before the entry's own). Extended attributes are added to xattrs. -EINVAL with
 * what is wrong; -EFBIG when len does not reach to the entry's own header.
 */
int bs_tarhead_read(const uint8_t *data, size_t len, struct bs_tarhead *ret, struct bs_xset *xattrs,
		    struct bs_error *err);

/* "-1.5" (pax, "mtime"): rounded towards the past, as the kernel keeps times. */
int bs_tarhead_time(const char *text, size_t len, int64_t *ret_s, uint32_t *ret_ns);

#endif
