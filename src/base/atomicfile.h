/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Files that appear whole or not at all: written beside, synced, renamed into place. */
#ifndef BS_BASE_ATOMICFILE_H
#define BS_BASE_ATOMICFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Replaces (or makes) name in dirfd with the bytes. sync also makes the rename
 * durable. 0 or -errno; on failure the old file is untouched and nothing is left.
 */
int bs_atomicfile_write(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			bool sync);

/* An unnamed file in dirfd, opened read-write: gone unless bs_atomicfile_publish names it. */
int bs_atomicfile_open(int dirfd, mode_t mode);

/* Names it, replacing what is there; sync as above. The descriptor stays the caller's. */
int bs_atomicfile_publish(int fd, int dirfd, const char *name, bool sync);

#endif
