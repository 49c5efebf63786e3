/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

static int open_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Unlinks what is no directory in fd; the name of one that is comes back in *ret_sub, or NULL. */
static int empty(int fd, char **ret_sub)
{
	int copy = open_dir(fd, ".");
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int r = 0;

	*ret_sub = NULL;
	if (!d) {
		(void)bs_close(copy);
		return copy < 0 ? copy : -ENOMEM;
	}
	while (r == 0 && !*ret_sub && (e = readdir(d))) {
		if (!bs_path_name_ok(e->d_name, strlen(e->d_name)) ||
		    unlinkat(dirfd(d), e->d_name, 0) == 0)
			continue;
		if (errno != EISDIR)
			r = -errno;
		else if (!(*ret_sub = strdup(e->d_name)))
			r = -ENOMEM;
	}
	(void)closedir(d);
	return r;
}

/* Goes down to what is not empty and up again by "..": one descriptor, whatever the depth. */
int bs_rmtree(int dirfd, const char *name)
{
	bs_autostrv path = { 0 };
	bs_autofd int at = open_dir(dirfd, name);
	int r = at == -ENOENT ? 0 : at;

	if (at < 0)
		return r;
	for (;;) {
		char *sub;
		int next;

		r = empty(at, &sub);
		if (r < 0)
			return r;
		if (!sub && path.n == 0)
			return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
		next = open_dir(at, sub ? sub : "..");
		if (sub && bs_strv_take(&path, sub) < 0) {
			(void)bs_close(next);
			return -ENOMEM;
		}
		if (next < 0)
			return next;
		(void)bs_close(at);
		at = next;
		if (sub)
			continue;
		if (unlinkat(at, path.v[path.n - 1], AT_REMOVEDIR) < 0)
			return -errno;
		free(path.v[--path.n]);
		path.v[path.n] = NULL;
	}
}
