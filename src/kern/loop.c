/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define TRIES 64 /* others take free devices between our question and our claim */

static int claim(int control, int file, bool direct, int *ret_dev)
{
	struct loop_config config = {
		.fd = (unsigned int)file,
		.block_size = 4096,
		.info = { .lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR |
				      (direct ? LO_FLAGS_DIRECT_IO : 0) },
	};
	bs_autofd int dev = -EBADF;
	char path[32];
	int nr = ioctl(control, LOOP_CTL_GET_FREE);

	if (nr < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/dev/loop%d", nr);
	dev = open(path, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -errno;
	if (ioctl(dev, LOOP_CONFIGURE, &config) < 0)
		return -errno;
	*ret_dev = bs_take_fd(&dev);
	return 0;
}

int bs_loop_device_attach(const char *file, bool direct, struct bs_error *err)
{
	bs_autofd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	bs_autofd int fd = -EBADF;
	int dev, r = -EBUSY;

	if (control < 0)
		return bs_fail_errno(err, -errno, "open '/dev/loop-control'");
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return bs_fail_errno(err, -errno, "open '%s' for a loop device", file);
	for (int i = 0; i < TRIES && r == -EBUSY; i++)
		r = claim(control, fd, direct, &dev);
	if (r < 0)
		return bs_fail_errno(err, r, "set up a loop device");
	return dev;
}
