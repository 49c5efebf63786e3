/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int bs_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd); /* Linux frees the number whatever close returns */
	errno = saved;
	return -EBADF;
}

int bs_dup(int fd)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return r < 0 ? -errno : r;
}

int bs_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

/* off NULL: from where the descriptor stands. */
static ssize_t read_from(int fd, void *buf, size_t len, const uint64_t *off)
{
	size_t done = 0;

	while (done < len) {
		char *to = (char *)buf + done;
		ssize_t n = off ? pread(fd, to, len - done, (off_t)(*off + done))
				: read(fd, to, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t bs_read_full(int fd, void *buf, size_t len)
{
	return read_from(fd, buf, len, NULL);
}

ssize_t bs_pread_full(int fd, void *buf, size_t len, uint64_t off)
{
	return read_from(fd, buf, len, &off);
}

static int write_to(int fd, const void *buf, size_t len, const uint64_t *off)
{
	size_t done = 0;

	while (done < len) {
		const char *from = (const char *)buf + done;
		ssize_t n = off ? pwrite(fd, from, len - done, (off_t)(*off + done))
				: write(fd, from, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int bs_write_full(int fd, const void *buf, size_t len)
{
	return write_to(fd, buf, len, NULL);
}

int bs_pwrite_full(int fd, const void *buf, size_t len, uint64_t off)
{
	return write_to(fd, buf, len, &off);
}

int bs_read_file(int fd, size_t max, char **ret_buf, size_t *ret_len)
{
	bs_autofree char *buf = NULL;
	size_t cap = 0, len = 0;

	for (;;) {
		ssize_t n;
		int r = bs_grow(&buf, &cap, BS_MAX(len + 2, (size_t)4096), 1);

		if (r < 0)
			return r;
		n = bs_read_full(fd, buf + len, BS_MIN(cap - len - 1, max + 1 - len));
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	buf[len] = '\0';
	*ret_buf = bs_take(&buf);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int bs_read_file_at(int dirfd, const char *name, int flags, size_t max, char **ret_buf,
		    size_t *ret_len)
{
	bs_autofd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	return bs_read_file(fd, max, ret_buf, ret_len);
}

int bs_open_regular_at(int dirfd, const char *name)
{
	/* a FIFO would have us wait for a writer */
	bs_autofd int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? bs_take_fd(&fd) : -EINVAL;
}

int bs_read_regular_at(int dirfd, const char *name, size_t max, char **ret_buf, size_t *ret_len)
{
	bs_autofd int fd = bs_open_regular_at(dirfd, name);

	return fd < 0 ? fd : bs_read_file(fd, max, ret_buf, ret_len);
}

int bs_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

int bs_memfd_seal(int fd)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int bs_mkdir_open(int dirfd, const char *path, mode_t mode)
{
	bs_autofree char *copy = strdup(path);
	int fd;

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; *p && *copy; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdirat(dirfd, copy, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdirat(dirfd, copy, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dirfd, copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

DIR *bs_opendir_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), e;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d) {
		e = errno;
		(void)bs_close(fd);
		errno = e;
	}
	return d;
}

int bs_close_from(int low, const int *keep, size_t n_keep)
{
	unsigned int first = (unsigned int)low;

	for (size_t i = 0; i < n_keep; i++) {
		unsigned int k = (unsigned int)keep[i];

		if (keep[i] < low || k < first)
			continue;
		if (k > first && close_range(first, k - 1, 0) < 0)
			return -errno;
		first = k + 1;
	}
	return close_range(first, ~0U, 0) < 0 ? -errno : 0;
}
