/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A token bucket for log lines, retries and bytes per second. Not thread-safe.
 */
#ifndef BS_BASE_LIMIT_H
#define BS_BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct bs_limit {
	uint64_t rate;	/* tokens per second; 0: no limit */
	uint64_t burst; /* tokens that may be saved up */
	uint64_t tokens;
	uint64_t at_ns;
	uint64_t refused; /* since the last grant */
};

void bs_limit_init(struct bs_limit *l, uint64_t rate, uint64_t burst, uint64_t now_ns);

/* Takes n tokens if they are there (n above burst: if the bucket is full). */
bool bs_limit_take(struct bs_limit *l, uint64_t n, uint64_t now_ns);

/* Nanoseconds until bs_limit_take(n) would succeed; 0: now. */
uint64_t bs_limit_wait_ns(struct bs_limit *l, uint64_t n, uint64_t now_ns);

#endif
