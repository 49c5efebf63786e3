/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/layout_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#define TEMP_PREFIX ".tmp-"
#define TEMP_AGE_S (24 * 3600) /* where locks do not work, age decides */

static int try_lock(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lk) < 0 ? -errno : 0;
}

int bs_layout_temp_open(int dirfd, struct bs_layout_temp *ret)
{
	struct bs_layout_temp t = { .dirfd = dirfd };

	for (int tries = 0; tries < 16; tries++) {
		bs_autofd int fd = -EBADF;
		uint64_t random = 0;
		struct stat st;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		(void)snprintf(t.name, sizeof(t.name), TEMP_PREFIX "%016" PRIx64, random);
		fd = openat(dirfd, t.name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0644);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		/* a sweep may have seen it before the lock: then it has no name any more */
		if (try_lock(fd) == -EAGAIN || fstat(fd, &st) < 0 || st.st_nlink == 0)
			continue;
		t.fd = bs_take_fd(&fd);
		*ret = t;
		return 0;
	}
	return -EAGAIN;
}

int bs_layout_temp_publish(struct bs_layout_temp *t, const char *name)
{
	if (fsync(t->fd) < 0 || renameat(t->dirfd, t->name, t->dirfd, name) < 0)
		return -errno;
	t->name[0] = '\0';
	return fsync(t->dirfd) < 0 ? -errno : 0;
}

void bs_layout_temp_done(struct bs_layout_temp *t)
{
	if (t->name[0])
		(void)unlinkat(t->dirfd, t->name, 0);
	t->name[0] = '\0';
	t->fd = bs_close(t->fd);
}

static void sweep_one(int dirfd, const char *name)
{
	bs_autofd int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	r = try_lock(fd);
	if (r == 0 || (r != -EAGAIN && r != -EACCES && st.st_mtime + TEMP_AGE_S < time(NULL)))
		(void)unlinkat(dirfd, name, 0);
}

void bs_layout_sweep(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		(void)bs_close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (bs_str_after(e->d_name, TEMP_PREFIX))
			sweep_one(dirfd, e->d_name);
	}
	(void)closedir(d);
}

int bs_layout_open_file(int dirfd, const char *path, uint64_t *ret_size)
{
	bs_autofd int fd = bs_path_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_size = (uint64_t)st.st_size;
	return bs_take_fd(&fd);
}

int bs_layout_open_dir(int dirfd, const char *name, int create)
{
	if (create && mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return bs_path_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
}

int bs_layout_write_file(int dirfd, const char *name, const void *bytes, size_t len)
{
	struct bs_layout_temp t;
	int r = bs_layout_temp_open(dirfd, &t);

	if (r < 0)
		return r;
	r = bs_write_full(t.fd, bytes, len);
	if (r == 0)
		r = bs_layout_temp_publish(&t, name);
	bs_layout_temp_done(&t);
	return r;
}
