/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseer(8): the OCI runtime in front of runc. */
#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include "shim/dispatch.h"

int main(int argc, char **argv)
{
	/* what we open must never become a standard stream that the caller left closed */
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			return 1;
	}
	return bs_dispatch(argc, argv);
}
