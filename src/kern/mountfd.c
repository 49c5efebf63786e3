/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define LOG_MAX 256

/* The last "e …" line of the context's log, or the errno's text. */
static int fail_with_log(int fs, int code, const char *what, struct bs_error *err)
{
	char line[LOG_MAX + 1], last[LOG_MAX + 1] = "";
	ssize_t n;

	while ((n = read(fs, line, LOG_MAX)) > 0) {
		line[n] = '\0';
		if (line[0] == 'e')
			memcpy(last, line, (size_t)n + 1);
	}
	last[strcspn(last, "\n")] = '\0';
	if (last[0])
		return bs_fail(err, code, "%s: %s (%s)", what, last + 2, strerrorname_np(-code));
	return bs_fail_errno(err, code, "%s", what);
}

int bs_mountfd_open(const char *type, struct bs_error *err)
{
	int fd = fsopen(type, FSOPEN_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENODEV)
		return bs_fail(err, -EOPNOTSUPP, "the kernel has no filesystem '%s'", type);
	return bs_fail_errno(err, -errno, "fsopen '%s'", type);
}

int bs_mountfd_set(int fs, const char *key, const char *value, struct bs_error *err)
{
	if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0)
		return 0;
	return fail_with_log(fs, -errno, key, err);
}

int bs_mountfd_flag(int fs, const char *key, struct bs_error *err)
{
	if (fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0) == 0)
		return 0;
	return fail_with_log(fs, -errno, key, err);
}

int bs_mountfd_create(int fs, uint32_t attrs, struct bs_error *err)
{
	int mnt;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail_with_log(fs, -errno, "create the filesystem", err);
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	if (mnt < 0)
		return bs_fail_errno(err, -errno, "fsmount");
	return mnt;
}

int bs_mountfd_attach(int mnt, int dirfd, const char *path, struct bs_error *err)
{
	if (move_mount(mnt, "", dirfd, path,
		       MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) == 0)
		return 0;
	return bs_fail_errno(err, -errno, "attach a mount at '%s'", path);
}

int bs_mountfd_clone(int dirfd, const char *path, struct bs_error *err)
{
	int fd = open_tree(dirfd, path,
			   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
				   (*path ? 0 : AT_EMPTY_PATH));

	return fd < 0 ? bs_fail_errno(err, -errno, "copy the mount at '%s'", path) : fd;
}

int bs_mountfd_make_private(int mnt)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };

	return mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int bs_mountfd_restrict(int mnt, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };

	return mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int bs_mountfd_detach(const char *path)
{
	return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}
