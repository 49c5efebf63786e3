/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/leave.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define CGROUPS "/sys/fs/cgroup"
#define LOG_NAME "bootseerd.log"
#define STAT_MAX 4096u
#define ANCESTORS_MAX 256

/* Engines end what is in a container's cgroup: move to the root of each hierarchy. */
static void join_cgroup(int dirfd)
{
	bs_autofd int fd = openat(dirfd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "0", 1); /* where we may not, we stay */
}

static void leave_cgroups(void)
{
	bs_autofd int top = open(CGROUPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *de;
	DIR *d;
	int fd;

	if (top < 0)
		return;
	join_cgroup(top); /* version 2 */
	fd = bs_dup(top);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	while (d && (de = readdir(d))) {
		bs_autofd int dir = -EBADF;

		if (de->d_name[0] == '.')
			continue;
		dir = openat(top, de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		/* version 1: a hierarchy each; in version 2 a child: refused or harmless */
		if (dir >= 0)
			join_cgroup(dir);
	}
	if (d)
		(void)closedir(d);
}

/* 0 when there is none, or none that we may know of. */
static pid_t parent_of(pid_t pid)
{
	bs_autofree char *path = bs_strf("/proc/%d/stat", (int)pid), *text = NULL;
	const char *p;
	size_t len;
	int parent;

	if (!path || bs_read_file_at(AT_FDCWD, path, 0, STAT_MAX, &text, &len) < 0)
		return 0;
	/* "PID (NAME) S PARENT ...", and the name may have anything in it */
	p = strrchr(text, ')');
	return p && sscanf(p, ") %*c %d", &parent) == 1 ? parent : 0;
}

static int open_namespace(pid_t pid)
{
	bs_autofree char *path = bs_strf("/proc/%d/ns/mnt", (int)pid);

	return path ? open(path, O_RDONLY | O_CLOEXEC) : -ENOMEM;
}

/*
 * Mounts that we make or see must be those of the machine, not of a caller's namespace,
 * which would also live as long as we. Where pid 1 is more than we may look at, the
 * namespace of our first ancestor that is not is the machine's, as far as we can know.
 */
static void join_first_namespace(void)
{
	bs_autofd int fd = open_namespace(1);
	pid_t pid = getppid();

	if (fd >= 0) {
		(void)setns(fd, CLONE_NEWNS);
		return;
	}
	for (int i = 0; pid > 1 && i < ANCESTORS_MAX; i++, pid = parent_of(pid)) {
		int next = open_namespace(pid);

		if (next < 0)
			break;
		(void)bs_close(fd);
		fd = next;
	}
	if (fd >= 0)
		(void)setns(fd, CLONE_NEWNS);
}

/* What a user's shell or an engine's unit may have set would end us, or break the cache. */
static void leave_limits(void)
{
	static const __rlimit_resource_t which[] = { RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA,
						     RLIMIT_FSIZE };
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	for (size_t i = 0; i < BS_ARRAY_LEN(which); i++) {
		struct rlimit rl;

		if (setrlimit(which[i], &none) == 0 || getrlimit(which[i], &rl) < 0)
			continue;
		rl.rlim_cur = rl.rlim_max; /* that far we may go */
		(void)setrlimit(which[i], &rl);
	}
}

static int redirect(const char *run_dir)
{
	bs_autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bs_autofd int dir = -EBADF, log = -EBADF;

	dir = bs_mkdir_open(AT_FDCWD, run_dir, 0700);
	if (null < 0 || dir < 0)
		return -EIO;
	log = openat(dir, LOG_NAME, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log < 0)
		return -errno;
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0)
		return -errno;
	return 0;
}

static int wait_started(int from)
{
	char byte;

	return bs_read_full(from, &byte, 1) == 1 ? 0 : 1;
}

int bs_leave(const char *run_dir, int *ret_started_fd, struct bs_error *err)
{
	int p[2], r;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return bs_fail_errno(err, -errno, "pipe");
	pid = fork();
	if (pid < 0)
		return bs_fail_errno(err, -errno, "fork");
	if (pid > 0) {
		(void)bs_close(p[1]);
		_exit(wait_started(p[0]));
	}
	(void)bs_close(p[0]);
	(void)setsid();
	leave_cgroups();
	leave_limits();
	join_first_namespace();
	(void)umask(022);
	if (chdir("/") < 0)
		return bs_fail_errno(err, -errno, "chdir '/'");
	r = redirect(run_dir);
	if (r < 0)
		return bs_fail_errno(err, r, "write '%s/%s'", run_dir, LOG_NAME);
	r = bs_close_from(3, &p[1], 1);
	if (r < 0)
		return bs_fail_errno(err, r, "close the caller's descriptors");
	*ret_started_fd = p[1];
	return 0;
}
