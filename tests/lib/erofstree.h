/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Trees for the tests of the EROFS writer. A failure ends the program with its reason. */
#ifndef BS_TESTS_EROFSTREE_H
#define BS_TESTS_EROFSTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/tree.h"

/* Entries are appended in path order; open and close bracket what a directory holds. */
struct et {
	struct bs_tree_writer *w;
	struct bs_tree_entry e; /* attributes of the next entry; reset after each */
	struct bs_tree_xattr xattrs[64];
	struct bs_tree_extent extents[4096];
	uint32_t n;	 /* entries so far */
	uint32_t parent; /* of the next one */
	uint32_t *up;	 /* the directories that are open */
	size_t depth, cap;
	uint64_t blob_blocks; /* handed out so far */
};

void et_init(struct et *t); /* with a root */
void et_done(struct et *t);

/* All return the entry's number. Attributes are set in t->e before. */
uint32_t et_file(struct et *t, const char *name, uint64_t size); /* contiguous content */
uint32_t et_add(struct et *t, const char *name, uint32_t mode);
uint32_t et_link(struct et *t, const char *name, uint32_t inode);
uint32_t et_symlink(struct et *t, const char *name, const char *target);
void et_open(struct et *t, const char *name);
void et_close(struct et *t);
void et_xattr(struct et *t, const char *name, const void *value, uint32_t len);
/* n_blocks of blob (new ones) at file_block of the next entry. */
void et_extent(struct et *t, uint64_t file_block, uint64_t n_blocks);

/* The compressed tree; malloc'ed. */
void *et_finish(struct et *t, size_t *ret_len);

/* What is built: all the edges; many entries of all sorts by chance; n files in a shape like a real
 * image. */
void et_nasty(struct et *t);
void et_random(struct et *t, uint64_t seed, uint32_t n);
void et_many(struct et *t, uint32_t n);

uint64_t et_chance(uint64_t *state); /* pseudo-random */

#endif
