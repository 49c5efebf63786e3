/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Quantities for people to read; times are in base/clock. */
#ifndef BS_BASE_HUMAN_H
#define BS_BASE_HUMAN_H

#include <stddef.h>
#include <stdint.h>

#define BS_HUMAN_LEN 32

/* "512 B", "12.3 MiB", "412 GiB": two or three digits and a unit; returns buf. */
const char *bs_human_bytes(uint64_t bytes, char buf[BS_HUMAN_LEN]);

/* "12.3 MiB/s", of what came in ns; "0 B/s" for no time. */
const char *bs_human_rate(uint64_t bytes, uint64_t ns, char buf[BS_HUMAN_LEN]);

#endif
