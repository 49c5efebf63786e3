/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The part of EROFS' on-disk format that we write, and what the writer's files share.
 * All fields are little-endian; the kernel's documentation has the meaning of each.
 */
#ifndef BS_IMAGE_EROFSDISK_H
#define BS_IMAGE_EROFSDISK_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "image/tree.h"

#define EROFS_MAGIC 0xe0f5e1e2u
#define EROFS_SUPER_OFFSET 1024u
#define EROFS_COMPAT_SB_CHKSUM 0x1u
#define EROFS_COMPAT_MTIME 0x2u
#define EROFS_INCOMPAT_CHUNKED_FILE 0x4u
#define EROFS_INCOMPAT_DEVICE_TABLE 0x8u
#define EROFS_SLOT 32u /* an inode's number is its offset in these */
#define EROFS_NULL_ADDR UINT32_MAX
#define EROFS_BLOB_DEVICE 1u
#define EROFS_CHUNK_BITS_MAX 31u
#define EROFS_CHUNK_INDEXES 0x20u

/* i_format: bit 0 is the extended inode, the rest is how its data lies */
enum erofs_layout {
	EROFS_PLAIN = 0 << 1 | 1,
	EROFS_INLINE = 2 << 1 | 1,
	EROFS_CHUNKS = 4 << 1 | 1,
};

struct erofs_super {
	uint32_t magic;
	uint32_t checksum;
	uint32_t feature_compat;
	uint8_t blkszbits;
	uint8_t sb_extslots;
	uint16_t root_nid;
	uint64_t inos;
	uint64_t build_time;
	uint32_t build_time_nsec;
	uint32_t blocks;
	uint32_t meta_blkaddr;
	uint32_t xattr_blkaddr;
	uint8_t uuid[16];
	uint8_t volume_name[16];
	uint32_t feature_incompat;
	uint16_t available_compr_algs;
	uint16_t extra_devices;
	uint16_t devt_slotoff; /* in units of a device slot */
	uint8_t dirblkbits;
	uint8_t xattr_prefix_count;
	uint32_t xattr_prefix_start;
	uint64_t packed_nid;
	uint8_t reserved[24];
};
static_assert(sizeof(struct erofs_super) == 128, "superblock");
static_assert(offsetof(struct erofs_super, feature_incompat) == 80, "superblock");

struct erofs_device {
	uint8_t tag[64]; /* empty: a mount without a device= fails */
	uint32_t blocks;
	uint32_t mapped_blkaddr;
	uint8_t reserved[56];
};
static_assert(sizeof(struct erofs_device) == 128, "device slot");

struct erofs_inode {
	uint16_t format;
	uint16_t xattr_icount;
	uint16_t mode;
	uint16_t reserved;
	uint64_t size;
	uint32_t u; /* first block, device number or chunk format */
	uint32_t ino;
	uint32_t uid;
	uint32_t gid;
	uint64_t mtime;
	uint32_t mtime_nsec;
	uint32_t nlink;
	uint8_t reserved2[16];
};
static_assert(sizeof(struct erofs_inode) == 64, "inode");

struct erofs_xattr_header {
	uint32_t name_filter;
	uint8_t shared_count;
	uint8_t reserved[7];
};
static_assert(sizeof(struct erofs_xattr_header) == 12, "xattr header");

struct erofs_xattr {
	uint8_t name_len;
	uint8_t name_index;
	uint16_t value_size;
};
static_assert(sizeof(struct erofs_xattr) == 4, "xattr");

struct erofs_index {
	uint16_t advise;
	uint16_t device_id;
	uint32_t blkaddr;
};
static_assert(sizeof(struct erofs_index) == 8, "chunk index");

struct erofs_dirent {
	uint64_t nid;
	uint16_t nameoff;
	uint8_t file_type;
	uint8_t reserved;
} __attribute__((packed));
static_assert(sizeof(struct erofs_dirent) == 12, "directory entry");

/* Where an entry's inode goes, and the names below it. */
struct erofs_place {
	uint32_t slot;	      /* its nid; 0 for a hard link */
	uint32_t first_child; /* 0: none */
	uint32_t next;	      /* sibling; 0: none */
	uint32_t dir_size;    /* bytes */
};

/* The names of one directory in order, "." and ".." among them. */
struct erofs_walk {
	const struct bs_tree *t;
	const struct erofs_place *places;
	uint32_t dir;
	uint32_t child; /* the next one, 0: none is left */
	uint8_t dots;	/* how many of the two are behind us */
};

void bs_erofs_walk(struct erofs_walk *w, const struct bs_tree *t, const struct erofs_place *places,
		   uint32_t dir);

/* i_size of the directory; UINT64_MAX when it cannot be expressed. */
uint64_t bs_erofs_dir_size(const struct bs_tree *t, const struct erofs_place *places, uint32_t dir);

/* Fills the next block, zeros behind; the bytes used, 0 at the end. Needs the nids. */
uint32_t bs_erofs_dir_block(struct erofs_walk *w, uint8_t block[BS_BLOCK_SIZE]);

/* Bytes of an inode's xattrs with their header; 0 without. */
uint32_t bs_erofs_xattr_size(const struct bs_tree *t, const struct bs_tree_entry *e);

/* One xattr into to, padded; the bytes used. At most BS_EROFS_XATTR_BYTES. */
#define BS_EROFS_XATTR_BYTES (4u + 255u + 65535u + 3u)
uint32_t bs_erofs_xattr_put(const struct bs_tree_xattr *x, uint8_t *to);

/* How a file's content is indexed: chunks of 2^bits blocks, each a hole or contiguous in the blob.
 */
struct erofs_chunks {
	uint32_t bits;
	uint64_t n;
};
struct erofs_chunks bs_erofs_chunks(const struct bs_tree *t, const struct bs_tree_entry *e);

#endif
