/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the kernel holds of a file in its page cache: cachestat(2), Linux 6.5. */
#ifndef BS_KERN_PAGECACHE_H
#define BS_KERN_PAGECACHE_H

#include <stdint.h>

/*
 * Bytes of the file that are in the page cache, in whole pages. -EPERM: fd is not open for
 * writing and the file is not ours; -ENOSYS, -EOPNOTSUPP: it cannot be told.
 */
int bs_pagecache_bytes(int fd, uint64_t *ret);

#endif
