/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reads a plain directory as a root filesystem. It must not change meanwhile: what
 * is seen to change is an error. File systems mounted below it are left out (their
 * mount points are empty directories), sockets too, and overlayfs' own attributes.
 */
#ifndef BS_IMAGE_ROOTFS_H
#define BS_IMAGE_ROOTFS_H

#include <stdint.h>

struct bs_error;
struct bs_nodes;
struct bs_spool;

/* t: initialised and empty; contents go to spool. progress (may be NULL): bytes more. */
int bs_rootfs_read(const char *dir, struct bs_nodes *t, struct bs_spool *spool,
		   void (*progress)(void *cookie, uint64_t bytes), void *cookie,
		   struct bs_error *err);

#endif
