/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/ckptdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "kern/mountfd.h"

#define STACKED_MAX 16 /* mounts at one place: one, unless a start was killed at a bad time */

int bs_ckptdir_attach(int run_fd, const char *key, unsigned int n, int mnt, struct bs_error *err)
{
	bs_autofd int all = bs_mkdir_open(run_fd, BS_CKPTDIR, 0700), dir = -EBADF, at = -EBADF;
	char name[16];

	if (all < 0)
		return bs_fail_errno(err, all, "make the run directory's '" BS_CKPTDIR "'");
	dir = bs_mkdir_open(all, key, 0700);
	if (dir < 0)
		return bs_fail_errno(err, dir, "make the run directory's '" BS_CKPTDIR "/%s'", key);
	(void)snprintf(name, sizeof(name), "%u", n);
	at = bs_mkdir_open(dir, name, 0700);
	if (at < 0)
		return bs_fail_errno(err, at, "make the run directory's '" BS_CKPTDIR "/%s/%s'",
				     key, name);
	return bs_mountfd_attach(mnt, at, "", err);
}

/* One place, whose name is in dir. It is not looked into: who serves it may be gone. */
static int detach_one(int dir, const char *name)
{
	char base[32], path[32 + 1 + NAME_MAX + 1];
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", bs_path_of_fd(dir, base), name);
	for (int i = 0; r == 0 && i < STACKED_MAX; i++)
		r = bs_mountfd_detach(path);
	if (r < 0 && r != -EINVAL) /* that says: nothing is mounted there */
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int bs_ckptdir_detach(int run_fd, const char *key, struct bs_error *err)
{
	bs_autofree char *path = bs_strf(BS_CKPTDIR "/%s", key);
	const struct dirent *e;
	int r = 0;
	DIR *d;

	if (!path)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (!bs_path_name_ok(key, strlen(key)))
		return 0;
	d = bs_opendir_at(run_fd, path);
	if (!d)
		return errno == ENOENT ? 0 : bs_fail_errno(err, -errno, "open '%s'", path);
	while (r == 0 && (e = readdir(d))) {
		if (!bs_streq(e->d_name, ".") && !bs_streq(e->d_name, ".."))
			r = detach_one(dirfd(d), e->d_name);
	}
	(void)closedir(d);
	if (r == 0 && unlinkat(run_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r < 0 ? bs_fail_errno(err, r, "unmount what is in '%s' of the run directory", path)
		     : 0;
}
