/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The tree of an image: every name with its inode's attributes and, for regular
 * files, where its content lies in the blob. bootseer-image(5) is the format.
 *
 * Order is path order: a directory before what it holds, siblings by the bytes of
 * their names. So entry 0 is the root, parent < own index for all others, and the
 * children of a directory come in ascending order. The first name of an inode
 * carries its attributes; further names (hard links) only say which entry that is.
 *
 * bs_tree_read validates everything once, up front; later code trusts a struct bs_tree.
 */
#ifndef BS_IMAGE_TREE_H
#define BS_IMAGE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;

#define BS_BLOCK_SIZE 4096u
#define BS_TREE_ENTRIES_MAX (16u << 20)
#define BS_TREE_NAME_MAX 255u
#define BS_TREE_TARGET_MAX 4095u
#define BS_TREE_XATTRS_MAX                                                                         \
	65536u /* bytes of names and values of one inode: EROFS' and ext4's bound */
#define BS_TREE_BYTES_MAX (UINT64_C(2) << 30) /* uncompressed */

struct bs_tree_xattr {
	const char *name; /* full: user.*, trusted.*, security.* or the ACLs'; NUL behind */
	const uint8_t *value;
	uint32_t value_len;
	uint8_t name_len;
};

/* n_blocks from file_block on lie at blob_block on. Ascending, disjoint; what is not covered is a hole. */
struct bs_tree_extent {
	uint64_t file_block;
	uint64_t blob_block;
	uint64_t n_blocks;
};

struct bs_tree_entry {
	uint32_t parent;  /* entry 0: itself */
	uint32_t inode;	  /* index of the entry that carries the inode: itself unless a hard link */
	const char *name; /* NUL behind; "" for the root */
	uint8_t name_len;
	/* only where inode is the entry itself: */
	uint32_t mode;			 /* type and permission bits as in st_mode */
	uint32_t uid, gid;		 /* less than 2^32 - 1 */
	uint32_t rdev_major, rdev_minor; /* 12 and 20 bits */
	uint32_t nlink;			 /* names of this inode; a directory: 2 + subdirectories */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t size;			  /* regular file: bytes; symlink: of the target; else 0 */
	const char *target;		  /* symlink; NUL behind */
	uint32_t first_xattr, n_xattrs;	  /* sorted by name */
	uint32_t first_extent, n_extents; /* regular files */
};

struct bs_tree {
	struct bs_tree_entry *entries;
	uint32_t n_entries; /* >= 1 */
	uint32_t n_inodes;
	struct bs_tree_xattr *xattrs;
	uint32_t n_xattrs;
	struct bs_tree_extent *extents;
	uint32_t n_extents;
	uint64_t blob_blocks;	 /* size of the blob; less than 2^32 */
	struct bs_digest digest; /* of the compressed form */
	void *strings;		 /* what names, targets and values point into */
};

/*
 * Reads the compressed form (len bytes of zstd). -EBADMSG with the entry's number
 * and the reason for whatever is not canonical; -EFBIG above the bounds;
 * -EPROTONOSUPPORT for a newer version. Memory: about twice the uncompressed size.
 */
int bs_tree_read(const void *data, size_t len, struct bs_tree **ret, struct bs_error *err);

/* The uncompressed size that it says to have, at most BS_TREE_BYTES_MAX; 0: none. */
uint64_t bs_tree_bytes(const void *data, size_t len);
struct bs_tree *bs_tree_free(struct bs_tree *t);
DEFINE_BS_AUTO(tree, struct bs_tree, bs_tree_free)

/* --- writing -------------------------------------------------------------------------------- */

struct bs_tree_writer;

struct bs_tree_writer *bs_tree_writer_new(void); /* NULL: out of memory */
struct bs_tree_writer *bs_tree_writer_free(struct bs_tree_writer *w);
DEFINE_BS_AUTO(tree_writer, struct bs_tree_writer, bs_tree_writer_free)

/*
 * Appends the next entry in path order. e's parent and inode are indexes of earlier
 * calls (0 is the first, the root); inode is the entry's own index unless it is a hard
 * link, and then only parent and name count besides. nlink, first_xattr, first_extent
 * are ignored; xattrs (sorted here) and extents hold n_xattrs and n_extents of e.
 * Everything is copied. Extents that are one are joined. Returns the entry's index;
 * -EINVAL with what is wrong about it, -EFBIG above the bounds; then nothing was added.
 */
int64_t bs_tree_writer_add(struct bs_tree_writer *w, const struct bs_tree_entry *e,
			   const struct bs_tree_xattr *xattrs, const struct bs_tree_extent *extents,
			   struct bs_error *err);

/* The extents of an earlier regular file (content may be placed after its entry was written). */
int bs_tree_writer_set_extents(struct bs_tree_writer *w, uint32_t entry,
			       const struct bs_tree_extent *extents, uint32_t n,
			       struct bs_error *err);

/* The finished compressed tree (malloc'ed); same entries, same bytes. */
int bs_tree_writer_finish(struct bs_tree_writer *w, uint64_t blob_blocks, void **ret,
			  size_t *ret_len, struct bs_error *err);

#endif
