/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A tree with its spooled contents becomes tree, table and data by the packing rules
 * of bootseer-image(5). The same tree gives the same bytes, whatever jobs is.
 */
#ifndef BS_IMAGE_PACK_H
#define BS_IMAGE_PACK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;
struct bs_nodes;

struct bs_pack_options {
	unsigned int jobs;
	int level;	 /* zstd; 0: the default */
	const char *tmp; /* directory for data; NULL: as bs_spool_dir */
	void (*progress)(void *cookie, uint64_t bytes); /* bytes of files more */
	void *cookie;
};

struct bs_packed {
	void *tree, *table; /* owned */
	size_t tree_len, table_len;
	int data_fd; /* owned; from its offset 0 */
	uint64_t data_len;
	struct bs_digest data;
	uint64_t blob_blocks;
	uint32_t n_frames, n_entries;
	uint64_t shared_bytes; /* of files that are equal to earlier ones */
};

#define BS_PACKED_INIT ((struct bs_packed){ .data_fd = -EBADF })

int bs_pack(struct bs_nodes *t, const struct bs_pack_options *o, struct bs_packed *ret,
	    struct bs_error *err);
void bs_packed_done(struct bs_packed *p);

#endif
