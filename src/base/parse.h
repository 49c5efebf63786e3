/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Strict numbers: the whole text must be the number, no sign, no space, no octal,
 * nothing out of range. 0, or -EINVAL / -ERANGE with *ret unchanged.
 */
#ifndef BS_BASE_PARSE_H
#define BS_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

int bs_parse_u64(const char *s, uint64_t *ret);
int bs_parse_u32(const char *s, uint32_t *ret);
int bs_parse_i64(const char *s, int64_t *ret); /* one leading '-' allowed */

/* Bytes: digits and then nothing, K, M, G or T (powers of 1024; KiB, MiB … accepted too). */
int bs_parse_size(const char *s, uint64_t *ret_bytes);

/* Nanoseconds: digits and then ns, us, ms, s, m or h; digits alone are seconds. */
int bs_parse_duration(const char *s, uint64_t *ret_ns);

/* yes/no, true/false, on/off, 1/0. */
int bs_parse_bool(const char *s, bool *ret);

#endif
