/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The tree and the table as bytes. bootseer-image(5) says what each field means. */
#ifndef BS_IMAGE_FORMAT_H
#define BS_IMAGE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define BS_DISK_VERSION 1u
#define BS_DISK_MUST 0u /* the features that this reader knows */

#define BS_DISK_TREE_MAGIC "bs-tree\n"
#define BS_DISK_TABLE_MAGIC "bs-table"

/* All fields are little-endian. Whoever has a pointer to one has it at a multiple of 8. */
struct bs_disk_tree {
	uint8_t magic[8];
	uint32_t version;
	uint32_t must;
	uint32_t may;
	uint32_t n_entries;
	uint32_t n_xattrs;
	uint32_t n_extents;
	uint64_t blob_blocks;
	uint64_t names_len;
	uint64_t targets_len;
	uint64_t xattrs_len;
	uint64_t extra_len;
};
static_assert(sizeof(struct bs_disk_tree) == 72, "tree head");
static_assert(offsetof(struct bs_disk_tree, blob_blocks) == 32, "tree head");

struct bs_disk_entry {
	uint32_t parent;
	uint32_t link; /* 0, or the entry that carries the inode */
	uint16_t mode;
	uint16_t n_xattrs;
	uint32_t n_extents;
	uint32_t uid;
	uint32_t gid;
	uint32_t rdev; /* major << 20 | minor */
	uint32_t mtime_ns;
	uint64_t mtime_s;
	uint64_t size;
};
static_assert(sizeof(struct bs_disk_entry) == 48, "entry");
static_assert(offsetof(struct bs_disk_entry, mtime_s) == 32, "entry");

struct bs_disk_extent {
	uint64_t hole_blocks;
	uint32_t blob_delta;
	uint32_t n_blocks; /* 0: to the end of the file */
};
static_assert(sizeof(struct bs_disk_extent) == 16, "extent");

struct bs_disk_table {
	uint8_t magic[8];
	uint32_t version;
	uint32_t must;
	uint32_t may;
	uint32_t n_frames;
	uint64_t blob_blocks;
	uint64_t data_len;
	uint64_t extra_len;
};
static_assert(sizeof(struct bs_disk_table) == 48, "table head");

struct bs_disk_frame {
	uint32_t len_blocks; /* n_blocks << 24 | len */
	uint8_t root[32];
};
static_assert(sizeof(struct bs_disk_frame) == 36, "frame");

#endif
