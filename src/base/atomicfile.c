/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/atomicfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

int bs_atomicfile_open(int dirfd, mode_t mode)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

int bs_atomicfile_publish(int fd, int dirfd, const char *name, bool sync)
{
	char from[32], beside[64];
	uint64_t random = 0;
	int r;

	if (sync && fsync(fd) < 0)
		return -errno;
	(void)bs_path_of_fd(fd, from);
	/* linkat cannot replace: a first publication is one call, a later one goes by rename */
	if (linkat(AT_FDCWD, from, dirfd, name, AT_SYMLINK_FOLLOW) < 0) {
		if (errno != EEXIST)
			return -errno;
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		(void)snprintf(beside, sizeof(beside), ".new-%016" PRIx64, random);
		if (linkat(AT_FDCWD, from, dirfd, beside, AT_SYMLINK_FOLLOW) < 0)
			return -errno;
		if (renameat(dirfd, beside, dirfd, name) < 0) {
			r = -errno;
			(void)unlinkat(dirfd, beside, 0);
			return r;
		}
	}
	if (sync) {
		bs_autofd int dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0 || fsync(dir) < 0)
			return -errno;
	}
	return 0;
}

int bs_atomicfile_write(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			bool sync)
{
	bs_autofd int fd = bs_atomicfile_open(dirfd, mode);
	int r;

	if (fd < 0)
		return fd;
	if (fchmod(fd, mode) < 0) /* whatever the umask */
		return -errno;
	r = bs_write_full(fd, data, len);
	if (r < 0)
		return r;
	return bs_atomicfile_publish(fd, dirfd, name, sync);
}
