/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A root filesystem in memory, to which layers are applied: names (nodes) and the
 * inodes behind them, which several names may share. No content, only where it
 * lies in a spool.
 *
 * Paths are resolved inside the tree, as a process with this root would: ".." stops
 * at the root, absolute symlinks start there. One thread at a time.
 */
#ifndef BS_IMAGE_NODES_H
#define BS_IMAGE_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "image/tree.h"

struct bs_error;
struct bs_spool;

/* --- extended attributes -------------------------------------------------------------------- */

/* Name and value of each lie in one block that the name points to; unique names, no order. */
struct bs_xset {
	struct bs_tree_xattr *v;
	size_t n, cap;
	size_t bytes; /* of all names and values */
};

/* Adds or replaces. -E2BIG above BS_TREE_XATTRS_MAX, -EINVAL for a bad name, -ENOMEM. */
int bs_xset_put(struct bs_xset *x, const char *name, size_t name_len, const void *value,
		size_t value_len);
const struct bs_tree_xattr *bs_xset_get(const struct bs_xset *x, const char *name);
void bs_xset_remove(struct bs_xset *x, const char *name);
void bs_xset_done(struct bs_xset *x);

/* --- inodes and names ------------------------------------------------------------------------ */

struct bs_inode {
	uint32_t refs; /* names that point here */
	uint32_t mode; /* as st_mode */
	uint32_t uid, gid;
	uint32_t rdev_major, rdev_minor;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t entry;		      /* for walkers: what they number it; UINT32_MAX at first */
	uint64_t size;		      /* of a regular file */
	char *target;		      /* of a symlink; owned */
	const struct bs_spool *spool; /* of a regular file with size > 0; not owned */
	uint64_t spool_off;
	struct bs_xset xattrs;
};

struct bs_inode *bs_inode_new(void); /* refs 1; NULL: out of memory */
struct bs_inode *bs_inode_unref(struct bs_inode *i);
DEFINE_BS_AUTO(inode, struct bs_inode, bs_inode_unref)

struct bs_node {
	struct bs_node *parent; /* NULL: the root */
	struct bs_inode *inode;
	struct bs_map *children; /* of a directory; NULL while empty */
	bool marked;		 /* for walkers */
	uint8_t name_len;
	char name[]; /* NUL behind */
};

struct bs_nodes {
	struct bs_node *root;
	uint32_t n;	/* names */
	uint64_t bytes; /* of the files; each inode once */
};

/* A root directory 0755 of user 0, time 0. */
int bs_nodes_init(struct bs_nodes *t);
void bs_nodes_done(struct bs_nodes *t);

struct bs_node *bs_node_child(const struct bs_node *dir, const char *name, size_t len);

/*
 * Adds a name (none of that name is there). inode is taken over, also on failure.
 * -ENOTDIR, -EINVAL for a name that cannot be, -EFBIG above BS_TREE_ENTRIES_MAX.
 */
int bs_node_add(struct bs_nodes *t, struct bs_node *dir, const char *name, size_t len,
		struct bs_inode *inode, struct bs_node **ret);
/* Takes the name and all below it away. Not the root. */
void bs_node_remove(struct bs_nodes *t, struct bs_node *n);
/* All that is in a directory. */
void bs_node_empty(struct bs_nodes *t, struct bs_node *dir);

/* The children in the order of their bytes; malloc'ed array, NULL when out of memory. */
struct bs_node **bs_node_sorted(const struct bs_node *dir, size_t *ret_n);

enum bs_walk_flags {
	BS_WALK_NOFOLLOW = 1u << 0, /* the last component may be a symlink */
	BS_WALK_MAKE = 1u << 1,	    /* missing directories are made, 0755 of user 0, time 0 */
};

/*
 * Resolves path from the root. each (may be NULL) sees every node that the way
 * passes, symlinks too. -ENOENT, -ENOTDIR, -ELOOP after 255 symlinks, -ENOMEM.
 */
int bs_nodes_walk(struct bs_nodes *t, const char *path, unsigned int flags,
		  void (*each)(void *cookie, struct bs_node *n), void *cookie,
		  struct bs_node **ret);

/* "/a/b" of the node, for messages; in a caller's buffer, cut in front when too long. */
const char *bs_node_path(const struct bs_node *n, char *buf, size_t size);

#endif
