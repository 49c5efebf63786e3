/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/fusedev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "kern/mountfd.h"

#define NOTIFY_RESEND 7 /* enum fuse_notify_code; newer than Debian 12's header */

#define SOURCE_MAX 255 /* that fsconfig(2) takes of a string */

int bs_fusedev_open(struct bs_error *err)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return bs_fail_errno(err, -errno, "open '/dev/fuse' (is the fuse module loaded?)");
	return fd;
}

int bs_fusedev_mount(int fuse_fd, const struct bs_fusedev_mount *m, struct bs_error *err)
{
	bs_autofd int fs = bs_mountfd_open("fuse", err);
	const char *source = m->source ? m->source : "bootseer";
	char number[16], shown[SOURCE_MAX + 1];
	int r;

	if (fs < 0)
		return fs;
	/* it is only shown: the server knows all of it */
	if (snprintf(shown, sizeof(shown), "%s", source) >= (int)sizeof(shown))
		(void)snprintf(shown + SOURCE_MAX - 3, 4, "...");
	(void)snprintf(number, sizeof(number), "%d", fuse_fd);
	if ((r = bs_mountfd_set(fs, "source", shown, err)) < 0 ||
	    (r = bs_mountfd_set(fs, "subtype", m->subtype, err)) < 0 ||
	    (r = bs_mountfd_set(fs, "fd", number, err)) < 0 ||
	    (r = bs_mountfd_set(fs, "rootmode", "40000", err)) < 0 ||
	    (r = bs_mountfd_set(fs, "user_id", "0", err)) < 0 ||
	    (r = bs_mountfd_set(fs, "group_id", "0", err)) < 0 ||
	    (r = bs_mountfd_flag(fs, "allow_other", err)) < 0 ||
	    (r = bs_mountfd_flag(fs, "default_permissions", err)) < 0 ||
	    (r = m->writable ? 0 : bs_mountfd_flag(fs, "ro", err)) < 0)
		return r;
	return bs_mountfd_create(fs,
				 m->attrs | (m->writable ? 0 : MOUNT_ATTR_RDONLY) |
					 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				 err);
}

int bs_fusedev_set_readahead(int mnt, uint32_t kib)
{
	bs_autofd int fd = -EBADF;
	struct statx st;
	char text[64];
	int n;

	/* without asking the server, which may not be there */
	if (statx(mnt, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "/sys/class/bdi/%u:%u/read_ahead_kb", st.stx_dev_major,
		       st.stx_dev_minor);
	fd = open(text, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%u", kib);
	return bs_write_full(fd, text, (size_t)n);
}

int bs_fusedev_resend(int fuse_fd)
{
	const struct fuse_out_header out = { .len = sizeof(out), .error = NOTIFY_RESEND };
	ssize_t n = write(fuse_fd, &out, sizeof(out));

	return n == (ssize_t)sizeof(out) ? 0 : -errno;
}
