/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/erofs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "kern/loop.h"
#include "kern/mountfd.h"

static int mount_files(const char *meta, const char *content, bool direct, struct bs_error *err)
{
	bs_autofd int fs = bs_mountfd_open("erofs", err);
	int r;

	if (fs < 0)
		return fs;
	if ((r = bs_mountfd_set(fs, "source", meta, err)) < 0 ||
	    (r = bs_mountfd_set(fs, "device", content, err)) < 0 ||
	    (r = bs_mountfd_flag(fs, "ro", err)) < 0)
		return r;
	/* a kernel without directio still serves, it only caches the content twice */
	if (direct)
		(void)bs_mountfd_flag(fs, "directio", NULL);
	return bs_mountfd_create(fs, MOUNT_ATTR_RDONLY, err);
}

static int mount_loops(const char *meta, const char *content, bool direct, struct bs_error *err)
{
	bs_autofd int meta_dev = -EBADF, content_dev = -EBADF;
	char meta_path[32], content_path[32];

	meta_dev = bs_loop_device_attach(meta, false, err);
	if (meta_dev < 0)
		return meta_dev;
	content_dev = bs_loop_device_attach(content, direct, err);
	if (content_dev < 0)
		return content_dev;
	return mount_files(bs_path_of_fd(meta_dev, meta_path),
			   bs_path_of_fd(content_dev, content_path), false, err);
}

int bs_erofs_mount(const char *meta, const char *content, bool direct, struct bs_error *err)
{
	int r = mount_files(meta, content, direct, err);

	if (r != -ENOTBLK)
		return r;
	r = mount_loops(meta, content, direct, err);
	if (r < 0)
		return bs_error_context(err, "no file-backed mounts; by loop device");
	return r;
}
