/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/runc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "shim/args.h"

/* --- finding it ------------------------------------------------------------------------- */

static bool is_program(const char *path, const struct stat *self)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return false;
	return st.st_dev != self->st_dev || st.st_ino != self->st_ino;
}

static char *look_up(const char *name, const struct stat *self)
{
	const char *path = secure_getenv("PATH")
				   ?: "/usr/local/sbin:/usr/local/bin:"
				      "/usr/sbin:/usr/bin:/sbin:/bin";
	bs_autostrv dirs = { 0 };

	if (strchr(name, '/'))
		return is_program(name, self) ? strdup(name) : NULL;
	if (bs_strv_split(&dirs, path, ":") < 0)
		return NULL;
	/* engines may be started with a PATH that lacks the places of administrators' programs */
	(void)bs_strv_split(&dirs, "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin", ":");
	for (size_t i = 0; i < dirs.n; i++) {
		bs_autofree char *full = bs_strf("%s/%s", dirs.v[i], name);

		if (full && dirs.v[i][0] == '/' && is_program(full, self))
			return bs_take(&full);
	}
	return NULL;
}

int bs_runc_find(const struct bs_conf *conf, struct bs_runc *ret, struct bs_error *err)
{
	struct stat self = { 0 };
	const char *last;

	(void)stat("/proc/self/exe", &self); /* unknown: nothing equals it */
	*ret = (struct bs_runc){ .path = look_up(conf->runtime, &self) };
	if (!ret->path)
		return bs_fail(err, -ENOENT,
			       "the runtime '%s' is not installed (or is bootseer itself); install "
			       "it or set 'runtime' in section [runtime] of '%s'",
			       conf->runtime, conf->file);
	last = strrchr(ret->path, '/');
	ret->default_root = strstr(last ? last + 1 : ret->path, "crun") ? "/run/crun" : "/run/runc";
	return 0;
}

void bs_runc_done(struct bs_runc *r)
{
	free(bs_take(&r->path));
}

const char *bs_runc_root(const struct bs_runc *r, const struct bs_args *a)
{
	return a->root ?: r->default_root;
}

bool bs_runc_knows(const struct bs_runc *r, const struct bs_args *a, const char *id)
{
	bs_autofree char *path = bs_strf("%s/%s", bs_runc_root(r, a), id);
	struct stat st;

	/* when in doubt, yes: then nothing is taken away */
	return !path || stat(path, &st) == 0 || errno != ENOENT;
}

/* --- running it ------------------------------------------------------------------------- */

int bs_runc_exec(const struct bs_runc *r, const struct bs_args *a, struct bs_error *err)
{
	bs_autofree char **argv = calloc((size_t)a->argc + 1, sizeof(*argv));

	if (!argv)
		return bs_fail(err, -ENOMEM, "run '%s': out of memory", r->path);
	memcpy(argv, a->argv, (size_t)a->argc * sizeof(*argv));
	argv[0] = r->path;
	(void)execv(r->path, argv);
	return bs_fail_errno(err, -errno, "run '%s'", r->path);
}

/* What we changed for the time of the child's life. */
struct signals {
	sigset_t mask;		/* as we got it */
	struct sigaction child; /* SIGCHLD's, likewise */
	int fd;
};

static void restore_signals(const struct signals *s)
{
	(void)sigaction(SIGCHLD, &s->child, NULL);
	(void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

/* Job control and faults stay as they are: they concern us as well as the child. */
static int collect_signals(struct signals *s)
{
	static const int keep[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS,
				    SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS,	 SIGPIPE };
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t all;

	(void)sigfillset(&all);
	for (size_t i = 0; i < BS_ARRAY_LEN(keep); i++)
		(void)sigdelset(&all, keep[i]);
	if (sigprocmask(SIG_BLOCK, &all, &s->mask) < 0)
		return -errno;
	(void)sigaction(SIGCHLD, &dfl, &s->child); /* ignored, it would make wait(2) fail */
	s->fd = signalfd(-1, &all, SFD_CLOEXEC);
	if (s->fd < 0) {
		int r = -errno;

		restore_signals(s);
		return r;
	}
	return 0;
}

static pid_t start(const struct bs_runc *r, const struct bs_args *a, const struct signals *s,
		   int out)
{
	const pid_t parent = getpid();
	struct bs_error err = BS_ERROR_INIT;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	restore_signals(s);
	if (out >= 0 && dup2(out, STDOUT_FILENO) < 0)
		_exit(1);
	/* engines kill a runtime that takes too long: then all of it must go */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)bs_runc_exec(r, a, &err);
	_exit(1); /* the parent has seen that the file is there and may be run */
}

/* Gives signals on until the child has ended. */
static int follow(pid_t pid, int sigfd, int *ret_status)
{
	for (;;) {
		struct signalfd_siginfo si;
		pid_t r = waitpid(pid, ret_status, WNOHANG);

		if (r == pid)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (bs_read_full(sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
			return -EIO;
		/* what the terminal sends goes to the whole foreground group, the child too */
		if (si.ssi_signo == SIGCHLD || si.ssi_code == SI_KERNEL)
			continue;
		(void)kill(pid, (int)si.ssi_signo);
	}
}

int bs_runc_run(const struct bs_runc *r, const struct bs_args *a, int *ret_status,
		struct bs_error *err)
{
	struct signals s;
	int result = collect_signals(&s);
	pid_t pid;

	if (result < 0)
		return bs_fail_errno(err, result, "run '%s': signals", r->path);
	pid = start(r, a, &s, -EBADF);
	result = pid < 0 ? -errno : follow(pid, s.fd, ret_status);
	(void)bs_close(s.fd);
	restore_signals(&s);
	return result < 0 ? bs_fail_errno(err, result, "run '%s'", r->path) : 0;
}

int bs_runc_capture(const struct bs_runc *r, const struct bs_args *a, size_t max, char **ret_out,
		    size_t *ret_len, int *ret_status, struct bs_error *err)
{
	bs_autofd int from = -EBADF, to = -EBADF;
	struct signals s;
	int p[2], result, waited;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return bs_fail_errno(err, -errno, "run '%s': pipe", r->path);
	from = p[0];
	to = p[1];
	result = collect_signals(&s);
	if (result < 0)
		return bs_fail_errno(err, result, "run '%s': signals", r->path);
	pid = start(r, a, &s, to);
	result = pid < 0 ? -errno : 0;
	to = bs_close(to);
	if (pid > 0) {
		result = bs_read_file(from, max, ret_out, ret_len);
		from = bs_close(from); /* a child that still writes gets SIGPIPE, not a full pipe */
		waited = follow(pid, s.fd, ret_status);
		result = result < 0 ? result : waited;
	}
	(void)bs_close(s.fd);
	restore_signals(&s);
	return result < 0 ? bs_fail_errno(err, result, "run '%s'", r->path) : 0;
}

void bs_runc_end_as(int status)
{
	if (WIFSIGNALED(status)) {
		const struct rlimit none = { 0 };
		struct sigaction dfl = { .sa_handler = SIG_DFL };
		sigset_t set;

		(void)setrlimit(RLIMIT_CORE, &none); /* the core to look at is the child's */
		(void)sigaction(WTERMSIG(status), &dfl, NULL);
		(void)sigemptyset(&set);
		(void)sigaddset(&set, WTERMSIG(status));
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
		(void)raise(WTERMSIG(status));
		exit(128 + WTERMSIG(status));
	}
	exit(WEXITSTATUS(status));
}
