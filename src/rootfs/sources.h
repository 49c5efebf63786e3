/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Lists of places in the cache: a text file, each source a line. */
#ifndef BS_ROOTFS_SOURCES_H
#define BS_ROOTFS_SOURCES_H

#include <stddef.h>

struct bs_strv;

#define BS_SOURCES_MAX 65536u	  /* bytes of a list */
#define BS_SOURCES_FILE "sources" /* in an image's entry: where its data was last said to be */

/* Adds those of the file to ret. */
int bs_sources_read(int dirfd, const char *name, struct bs_strv *ret);
/* What lets the user that the worker runs as push there ("" : nowhere); returns buf. */
#define BS_SOURCES_REMEDY_LEN 400
const char *bs_sources_push_remedy(const char *source, unsigned int uid,
				   char buf[BS_SOURCES_REMEDY_LEN]);
/* Replaces the file. -E2BIG. */
int bs_sources_write(int dirfd, const char *name, const char *const *sources, size_t n);

#endif
