/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The indexes of a conversion for several platforms: one of artifacts, one of stubs. */
#ifndef BS_IMAGE_CONVERTINDEX_H
#define BS_IMAGE_CONVERTINDEX_H

struct bs_convert;
struct bs_converted_list;
struct bs_document;
struct bs_error;
struct bs_manifest;

/* m, d: the original's index. Sets list->stub. */
int bs_convert_put_index(const struct bs_convert *c, const struct bs_manifest *m,
			 const struct bs_document *d, struct bs_converted_list *list,
			 struct bs_error *err);

#endif
