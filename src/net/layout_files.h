/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The files of an OCI layout: blobs that appear whole or not at all, and the rest
 * replaced atomically. Works where unnamed files do not (NFS): a file is written under
 * ".tmp-<random>" beside its place, locked while its writer lives, synced and renamed.
 * What writers that died left is removed by bs_layout_sweep. No symlink is followed.
 */
#ifndef BS_NET_LAYOUT_FILES_H
#define BS_NET_LAYOUT_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"

/* A file that is being written; name "" when there is none. */
struct bs_layout_temp {
	int dirfd; /* borrowed */
	int fd;
	char name[32];
};

int bs_layout_temp_open(int dirfd, struct bs_layout_temp *ret);
/* Syncs and renames it to name, and makes that durable. */
int bs_layout_temp_publish(struct bs_layout_temp *t, const char *name);
/* Closes, and removes what was not published. */
void bs_layout_temp_done(struct bs_layout_temp *t);

/* All of that for a file's bytes. */
int bs_layout_write_file(int dirfd, const char *name, const void *bytes, size_t len);

/* Removes temporary files in dirfd whose writer is gone. */
void bs_layout_sweep(int dirfd);

/* Opens path beneath dirfd for reading; -EINVAL when it is no regular file. */
int bs_layout_open_file(int dirfd, const char *path, uint64_t *ret_size);

/* A directory beneath dirfd; create: made when it is not there. */
int bs_layout_open_dir(int dirfd, const char *name, int create);

#endif
