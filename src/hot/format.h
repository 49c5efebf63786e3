/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Profile and pack as bytes. bootseer-hot(5) says what each field means. */
#ifndef BS_HOT_FORMAT_H
#define BS_HOT_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define BS_DISK_HOT_VERSION 1u
#define BS_DISK_HOT_MUST 0u /* the features that this reader knows */

#define BS_DISK_PROFILE_MAGIC "bs-prof\n"
#define BS_DISK_PACK_MAGIC "bs-pack\n"

/* All fields are little-endian. */
struct bs_disk_profile {
	uint8_t magic[8];
	uint32_t version;
	uint32_t must;
	uint32_t may;
	uint32_t n_runs;
	uint32_t n_ranges;
	uint32_t window_ms;
	uint8_t table[32];
	uint64_t blob_blocks;
	uint64_t extra_len;
};
static_assert(sizeof(struct bs_disk_profile) == 80, "profile head");

struct bs_disk_range {
	uint32_t block;
	uint32_t n_blocks;
	uint32_t at_ms;
	uint32_t runs;
};
static_assert(sizeof(struct bs_disk_range) == 16, "range");

struct bs_disk_pack {
	uint8_t magic[8];
	uint32_t version;
	uint32_t must;
	uint32_t may;
	uint32_t n_segments;
	uint32_t n_extents;
	uint32_t n_blocks;
	uint8_t table[32];
	uint64_t segments_len;
	uint64_t extra_len;
};
static_assert(sizeof(struct bs_disk_pack) == 80, "pack head");

struct bs_disk_segment {
	uint32_t len;
	uint32_t n_extents;
};
static_assert(sizeof(struct bs_disk_segment) == 8, "segment");

struct bs_disk_hot_extent {
	uint32_t block;
	uint32_t n_blocks;
};
static_assert(sizeof(struct bs_disk_hot_extent) == 8, "extent");

#endif
