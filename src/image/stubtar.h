/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Writes the marked nodes of a tree, and a marker, as a tar layer. */
#ifndef BS_IMAGE_STUBTAR_H
#define BS_IMAGE_STUBTAR_H

#include <stddef.h>

#include "base/digest.h"

struct bs_buf;
struct bs_error;
struct bs_nodes;

/* out: gzip. Names at BS_MARKER_PATH in the tree itself are left out. */
int bs_stubtar_write(struct bs_nodes *t, const char *marker, size_t marker_len, struct bs_buf *out,
		     struct bs_digest *ret_diff_id, struct bs_error *err);

#endif
