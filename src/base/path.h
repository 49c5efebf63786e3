/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Paths that somebody else wrote: resolved beneath a directory descriptor, never
 * as strings. See openat2(2).
 */
#ifndef BS_BASE_PATH_H
#define BS_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Opens path inside dirfd as a container whose root is dirfd would see it: ".."
 * and absolute symlinks stay inside. RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS.
 * flags as for open(2); O_CLOEXEC is added. -errno; -ENOSYS without openat2.
 */
int bs_path_open_in_root(int dirfd, const char *path, uint64_t flags, mode_t mode);

/* The same, but every symlink is refused (-ELOOP) and leaving dirfd is -EXDEV. */
int bs_path_open_beneath(int dirfd, const char *path, uint64_t flags, mode_t mode);

/* Turns an O_PATH descriptor into one opened with flags, through /proc/self/fd. */
int bs_path_reopen(int fd, int flags);

/* One path component: not empty, not "." or "..", no '/', no NUL within len. */
bool bs_path_name_ok(const char *name, size_t len);

/* Absolute, no "." or ".." components, no empty components, no trailing '/' except "/" itself. */
bool bs_path_is_clean(const char *path);

/*
 * "/a//b/../c/." becomes "/a/c": lexical only, ".." stops at the root. Relative
 * input is taken as from the root. malloc'ed; NULL when out of memory.
 */
char *bs_path_clean(const char *path);

/* True when path is dir itself or lies below it; both clean. */
bool bs_path_is_below(const char *path, const char *dir);

/* "/proc/self/fd/N" in a caller's buffer of at least 32 bytes; returns buf. */
const char *bs_path_of_fd(int fd, char buf[32]);

#endif
