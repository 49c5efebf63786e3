/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Locks of the open file description (fcntl F_OFD_SETLK): released by
 * the last close, also when the holder is killed. Local files only.
 */
#ifndef BS_BASE_LOCK_H
#define BS_BASE_LOCK_H

#include <stdint.h>

/*
 * Opens (makes, 0600) name in dirfd and locks it exclusively, waiting at most
 * timeout_ns (0: do not wait). The descriptor holds the lock; close it to let go.
 * -EAGAIN when somebody else has it, -ETIMEDOUT after waiting.
 */
int bs_lock_open(int dirfd, const char *name, uint64_t timeout_ns);

/*
 * Locks one byte of the file, so that one file does for many things that have a number,
 * and none has to be removed. at: the two highest bits do not count.
 */
int bs_lock_byte(int dirfd, const char *name, uint64_t at, uint64_t timeout_ns);

#endif
