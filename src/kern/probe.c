/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "kern/erofs.h"
#include "kern/fusedev.h"
#include "kern/mountfd.h"

int bs_probe_erofs(struct bs_error *err)
{
	bs_autofd int fs = bs_mountfd_open("erofs", err);

	return fs < 0 ? fs : 0;
}

static const struct bs_fusedev_mount probe_mount = { .subtype = "bootseer-probe" };

int bs_probe_fuse(struct bs_error *err)
{
	bs_autofd int dev = bs_fusedev_open(err), mnt = -EBADF;

	if (dev < 0)
		return dev;
	mnt = bs_fusedev_mount(dev, &probe_mount, err);
	return mnt < 0 ? mnt : 0;
}

int bs_probe_fuse_resend(struct bs_error *err)
{
	bs_autofd int dev = bs_fusedev_open(err), mnt = -EBADF;
	int r;

	if (dev < 0)
		return dev;
	mnt = bs_fusedev_mount(dev, &probe_mount, err);
	if (mnt < 0)
		return mnt;
	r = bs_fusedev_resend(dev);
	return r < 0 ? bs_fail_errno(err, r, "FUSE_NOTIFY_RESEND") : 0;
}

int bs_probe_overlay(struct bs_error *err)
{
	bs_autofd int tmpfs = bs_mountfd_open("tmpfs", err), lower = -EBADF;
	bs_autofd int overlay = -EBADF, mnt = -EBADF;
	char path[32];
	int r;

	if (tmpfs < 0)
		return tmpfs;
	lower = bs_mountfd_create(tmpfs, 0, err);
	if (lower < 0)
		return lower;
	overlay = bs_mountfd_open("overlay", err);
	if (overlay < 0)
		return overlay;
	(void)bs_path_of_fd(lower, path);
	if ((r = bs_mountfd_set(overlay, "lowerdir+", path, err)) < 0 ||
	    (r = bs_mountfd_set(overlay, "lowerdir+", path, err)) < 0)
		return r;
	mnt = bs_mountfd_create(overlay, MOUNT_ATTR_RDONLY, err);
	/* one directory twice is refused with ELOOP: by then the layers were accepted */
	return mnt < 0 && mnt != -ELOOP ? mnt : 0;
}

int bs_probe_openat2(struct bs_error *err)
{
	bs_autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bs_autofd int fd = bs_path_open_in_root(root, ".", O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? bs_fail_errno(err, fd, "openat2") : 0;
}

int bs_probe_pidfd(struct bs_error *err)
{
	bs_autofd int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? bs_fail_errno(err, -errno, "pidfd_open") : 0;
}

int bs_probe_erofs_files(const char *meta, const char *content, struct bs_error *err)
{
	bs_autofd int mnt = bs_erofs_mount(meta, content, false, err);

	return mnt < 0 ? mnt : 0;
}
