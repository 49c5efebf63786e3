/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One clock for everything that is compared: CLOCK_BOOTTIME, the same for all
 * processes of a machine and running through a suspend. Wall time only to tell people.
 */
#ifndef BS_BASE_CLOCK_H
#define BS_BASE_CLOCK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define BS_NS_PER_S UINT64_C(1000000000)
#define BS_NS_PER_MS UINT64_C(1000000)

uint64_t bs_clock_ns(void);	 /* CLOCK_BOOTTIME */
uint64_t bs_clock_wall_ns(void); /* CLOCK_REALTIME, since 1970 */

/*
 * pthread_cond_wait, but no longer than to a time of bs_clock_ns: 0, or ETIMEDOUT. The time of
 * a suspend is not waited off, since conditions know no CLOCK_BOOTTIME.
 */
int bs_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);

/* Whatever signals come. */
void bs_clock_sleep(uint64_t ns);

#define BS_CLOCK_RFC3339_LEN 36

/* "2026-11-29T20:45:39.123456789Z"; returns buf. */
const char *bs_clock_rfc3339(uint64_t wall_ns, char buf[BS_CLOCK_RFC3339_LEN]);

/* "412 ms", "3.21 s": three digits and a unit; returns buf. */
const char *bs_clock_human(uint64_t ns, char *buf, size_t size);

#endif
