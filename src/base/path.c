/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_how(int dirfd, const char *path, uint64_t flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		how.mode = mode;
	for (int tries = 0;; tries++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		/* a rename or mount raced with the walk; the kernel asks to try again */
		if (errno != EAGAIN || tries == 64)
			return -errno;
	}
}

int bs_path_open_in_root(int dirfd, const char *path, uint64_t flags, mode_t mode)
{
	return open_how(dirfd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int bs_path_open_beneath(int dirfd, const char *path, uint64_t flags, mode_t mode)
{
	return open_how(dirfd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int bs_path_reopen(int fd, int flags)
{
	char buf[32];
	int r = open(bs_path_of_fd(fd, buf), flags | O_CLOEXEC);

	return r < 0 ? -errno : r;
}

bool bs_path_name_ok(const char *name, size_t len)
{
	if (len == 0 || memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	if (name[0] != '.')
		return true;
	return len > 2 || (len == 2 && name[1] != '.');
}

bool bs_path_is_clean(const char *path)
{
	if (path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *p = path; *p;) {
		size_t n = strcspn(p + 1, "/");

		if (!bs_path_name_ok(p + 1, n))
			return false;
		p += 1 + n;
	}
	return true;
}

char *bs_path_clean(const char *path)
{
	char *out = malloc(strlen(path) + 2);
	size_t len = 0;

	if (!out)
		return NULL;
	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		size_t n = strcspn(path, "/");

		if (n == 2 && memcmp(path, "..", 2) == 0) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (!(n == 1 && path[0] == '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n;
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

bool bs_path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1) /* "/" */
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const char *bs_path_of_fd(int fd, char buf[32])
{
	(void)snprintf(buf, 32, "/proc/self/fd/%d", fd);
	return buf;
}
