/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(id, &ts); /* cannot fail for these clocks */
	return (uint64_t)ts.tv_sec * BS_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t bs_clock_ns(void)
{
	return now(CLOCK_BOOTTIME);
}

uint64_t bs_clock_wall_ns(void)
{
	return now(CLOCK_REALTIME);
}

int bs_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	const uint64_t at = bs_clock_ns();
	uint64_t left = deadline_ns > at ? deadline_ns - at : 0;
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	left += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left / BS_NS_PER_S);
	until.tv_nsec = (long)(left % BS_NS_PER_S);
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until);
}

void bs_clock_sleep(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / BS_NS_PER_S),
			       .tv_nsec = (long)(ns % BS_NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

const char *bs_clock_rfc3339(uint64_t wall_ns, char buf[BS_CLOCK_RFC3339_LEN])
{
	time_t s = (time_t)(wall_ns / BS_NS_PER_S);
	struct tm tm = { 0 };
	size_t n;

	(void)gmtime_r(&s, &tm);
	n = strftime(buf, BS_CLOCK_RFC3339_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, BS_CLOCK_RFC3339_LEN - n, ".%09" PRIu64 "Z",
		       (uint64_t)(wall_ns % BS_NS_PER_S));
	return buf;
}

const char *bs_clock_human(uint64_t ns, char *buf, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { BS_NS_PER_S, "s" }, { BS_NS_PER_MS, "ms" }, { 1000, "us" }, { 1, "ns" } };
	size_t i = 0;
	double v;

	while (i < 3 && ns < units[i].ns)
		i++;
	v = (double)ns / (double)units[i].ns;
	(void)snprintf(buf, size, "%.*f %s",
		       i == 3 || v >= 100 ? 0
		       : v >= 10	  ? 1
					  : 2,
		       v, units[i].name);
	return buf;
}
