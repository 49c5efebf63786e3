/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Where the mounts of checkpoints that a container asks for lie until its runtime has bound
 * them into it: RUN_DIR/ckpt/KEY/N. What is there is all that there is to know about them, so
 * that whoever finds it can take it away.
 */
#ifndef BS_ROOTFS_CKPTDIR_H
#define BS_ROOTFS_CKPTDIR_H

#define BS_CKPTDIR "ckpt"

struct bs_error;

/* Attaches a mount as number n of the container key's. */
int bs_ckptdir_attach(int run_fd, const char *key, unsigned int n, int mnt, struct bs_error *err);

/* Takes all of the container's away, and the directory. There is none: fine. */
int bs_ckptdir_detach(int run_fd, const char *key, struct bs_error *err);

#endif
