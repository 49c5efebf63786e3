/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* rm -rf beneath a descriptor. */
#ifndef BS_BASE_RMTREE_H
#define BS_BASE_RMTREE_H

/*
 * Removes the directory name in dirfd with all below it; symlinks are not followed, and
 * no depth or length of a path is too much. Absent is fine. 0 or -errno.
 * The tree must not be changed by others meanwhile.
 */
int bs_rmtree(int dirfd, const char *name);

#endif
