/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"

/* len 0: the whole file. */
static int lock_open(int dirfd, const char *name, uint64_t at, uint64_t len, uint64_t timeout_ns)
{
	bs_autofd int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	const uint64_t end = bs_clock_ns() + timeout_ns;
	int wait_ms = 1;

	if (fd < 0)
		return -errno;
	for (;;) {
		struct flock lk = { .l_type = F_WRLCK,
				    .l_whence = SEEK_SET,
				    .l_start = (off_t)at,
				    .l_len = (off_t)len };

		if (fcntl(fd, F_OFD_SETLK, &lk) == 0)
			return bs_take_fd(&fd);
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (timeout_ns == 0)
			return -EAGAIN;
		if (bs_clock_ns() >= end)
			return -ETIMEDOUT;
		/* no call waits for a lock with a deadline: look again, ever more seldom */
		(void)poll(NULL, 0, wait_ms);
		if (wait_ms < 50)
			wait_ms *= 2;
	}
}

int bs_lock_open(int dirfd, const char *name, uint64_t timeout_ns)
{
	return lock_open(dirfd, name, 0, 0, timeout_ns);
}

int bs_lock_byte(int dirfd, const char *name, uint64_t at, uint64_t timeout_ns)
{
	return lock_open(dirfd, name, at & (UINT64_MAX >> 2), 1, timeout_ns);
}
