/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* CRC-32C (Castagnoli, RFC 3720 B.4), by the processor's instruction where there is one. */
#ifndef BS_BASE_CRC32C_H
#define BS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues crc (0 at first) over the bytes. */
uint32_t bs_crc32c(uint32_t crc, const void *data, size_t len);

/*
 * The sums of n pieces of len bytes that follow each other, one each: several times as fast
 * as one after the other, since the instruction's latency is hidden.
 */
void bs_crc32c_each(const void *data, size_t len, size_t n, uint32_t *ret);

/* The same without the instruction; for tests. */
uint32_t bs_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
