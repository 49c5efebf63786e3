/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Where the bytes of a striped file are (bootseer-stripe(5)). Arithmetic alone. */
#ifndef BS_HDFS_STRIPE_H
#define BS_HDFS_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#define BS_STRIPE_UNIT_MIN (UINT32_C(1) << 20)
#define BS_STRIPE_UNIT_MAX (UINT32_C(1) << 30)
#define BS_STRIPE_UNIT (UINT32_C(4) << 20)
#define BS_STRIPE_FILES_MAX 256u
#define BS_STRIPE_SIZE_MAX (UINT64_C(1) << 50)

bool bs_stripe_unit_ok(uint64_t unit);

/* Units or slots that len bytes have; unit > 0. */
uint64_t bs_stripe_units(uint64_t len, uint32_t unit);
/* Bytes of unit (or slot) u of len bytes; 0 behind the end. */
uint32_t bs_stripe_unit_len(uint64_t len, uint32_t unit, uint64_t u);

struct bs_stripe_at {
	uint32_t file;
	uint64_t off;
};
/* files > 0; slot < 2^50 / unit */
struct bs_stripe_at bs_stripe_slot(uint64_t slot, uint32_t files, uint32_t unit);
/* Bytes of data file k of a segment of len bytes. */
uint64_t bs_stripe_file_len(uint64_t len, uint32_t files, uint32_t unit, uint32_t k);
/* Data files that have a slot. */
uint32_t bs_stripe_files_used(uint64_t len, uint32_t files, uint32_t unit);

/* How many data files a segment gets: two for a DataNode, 16 at most, the same for each. */
uint32_t bs_stripe_files(uint64_t datanodes);

/* A time of access that says a size, and back: false when it says none. */
uint64_t bs_stripe_atime(uint64_t size);
bool bs_stripe_atime_size(uint64_t atime_ms, uint64_t *ret);

#endif
