/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/pagecache.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* newer than Debian 12's header; the same on all architectures */
#endif

int bs_pagecache_bytes(int fd, uint64_t *ret)
{
	struct {
		uint64_t off, len; /* len 0: to the end */
	} range = { 0, 0 };
	struct {
		uint64_t cache, dirty, writeback, evicted, recently_evicted; /* pages */
	} stat = { 0 };

	if (syscall(SYS_cachestat, fd, &range, &stat, 0) < 0)
		return -errno;
	*ret = stat.cache * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}
