/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "base/str.h"

#define SELF "/proc/self/exe"
#define DELETED " (deleted)" /* what the kernel shows behind a replaced file's path */

const char *bs_program_path(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink(SELF, path, sizeof(path) - 1);

	if (n <= 0)
		return SELF;
	path[n] = '\0';
	if (bs_str_ends(path, DELETED))
		path[(size_t)n - strlen(DELETED)] = '\0';
	return access(path, X_OK) == 0 ? path : SELF;
}

int bs_program_start(const struct bs_part *p, struct bs_child *ret, int *ret_link,
		     struct bs_error *err)
{
	const char *argv[8] = { bs_program_path(), "--role", p->role };
	struct bs_spawn sp = BS_SPAWN_INIT;
	bs_autofd int ours = -EBADF, theirs = -EBADF;
	int fds[1 + BS_PART_FDS_MAX], pair[2], r;
	size_t n = 3;

	if (p->n_fds > BS_PART_FDS_MAX)
		return bs_fail(err, -E2BIG, "start %s: too many descriptors", p->role);
	if (p->arg) {
		argv[n++] = "--arg";
		argv[n++] = p->arg;
	}
	if (p->config) {
		argv[n++] = "--config";
		argv[n++] = p->config;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return bs_fail_errno(err, -errno, "start %s: make its socket", p->role);
	ours = pair[0];
	theirs = fds[0] = pair[1];
	for (size_t i = 0; i < p->n_fds; i++)
		fds[1 + i] = p->fds[i];
	sp.argv = argv;
	sp.run = p->run;
	sp.cookie = (void *)(uintptr_t)p->arg;
	sp.stdio[2] = STDERR_FILENO;
	sp.fds = fds;
	sp.n_fds = 1 + p->n_fds;
	sp.die_with_parent = p->die_with_parent;
	r = bs_spawn_start(&sp, ret, err);
	if (r < 0)
		return bs_error_context(err, "start %s", p->role), r;
	*ret_link = bs_take_fd(&ours);
	return 0;
}

void bs_program_oom_score(int score)
{
	bs_autofd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score);

	if (fd >= 0)
		(void)bs_write_full(fd, text, (size_t)n);
}
