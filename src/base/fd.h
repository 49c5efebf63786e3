/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * File descriptors: owned locals, whole reads and writes.
 *
 * "No descriptor" is -EBADF, so that a forgotten one fails at its first use.
 * All functions return >= 0 or a negative errno; none logs; all are thread-safe.
 */
#ifndef BS_BASE_FD_H
#define BS_BASE_FD_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Closes fd when it is one, keeping errno; returns -EBADF. */
int bs_close(int fd);

static inline void bs_close_at(int *fd)
{
	(void)bs_close(*fd);
}

#define bs_autofd __attribute__((cleanup(bs_close_at)))

/* Moves the descriptor out of *fd, which becomes -EBADF. */
static inline int bs_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -EBADF;
	return taken;
}

/* Duplicates with close-on-exec, at 3 or above. */
int bs_dup(int fd);

/* Sets or clears close-on-exec. */
int bs_set_cloexec(int fd, bool on);

/*
 * Read or write all of len bytes, repeating after EINTR and short counts. The
 * read ones return the count read, less than len only at end of file.
 */
ssize_t bs_read_full(int fd, void *buf, size_t len);
ssize_t bs_pread_full(int fd, void *buf, size_t len, uint64_t off);
int bs_write_full(int fd, const void *buf, size_t len);
int bs_pwrite_full(int fd, const void *buf, size_t len, uint64_t off);

/*
 * Reads a whole file of at most max bytes into *ret_buf (malloc'ed, with a NUL
 * behind that *ret_len does not count). -EFBIG when it is larger. name is
 * resolved at dirfd (AT_FDCWD allowed) with O_RDONLY | O_CLOEXEC | flags.
 */
int bs_read_file_at(int dirfd, const char *name, int flags, size_t max, char **ret_buf,
		    size_t *ret_len);
/*
 * Opens a regular file beneath dirfd to read, no symlink: anything else, which may make who
 * opens or reads it wait, is -EINVAL.
 */
int bs_open_regular_at(int dirfd, const char *name);
/* bs_read_file_at of such a file. */
int bs_read_regular_at(int dirfd, const char *name, size_t max, char **ret_buf, size_t *ret_len);
int bs_read_file(int fd, size_t max, char **ret_buf, size_t *ret_len);

/* A sealed-able memfd; write what you like, then bs_memfd_seal makes it immutable. */
int bs_memfd(const char *name);
int bs_memfd_seal(int fd);

/* mkdir -p of an absolute or dirfd-relative path that we own; returns an O_DIRECTORY fd. */
int bs_mkdir_open(int dirfd, const char *path, mode_t mode);

/* To read, name beneath dirfd, no symlink; NULL with errno. */
DIR *bs_opendir_at(int dirfd, const char *name);

/* Closes every descriptor from low on, except those in keep (sorted ascending). */
int bs_close_from(int low, const int *keep, size_t n_keep);

#endif
