/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/nofile.h"

#define FDS_MAX 64

/* --- the child's side: only async-signal-safe calls ---------------------------------- */

static void reset_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL); /* KILL and STOP refuse: fine */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Puts descriptor map[i] at number i; all sources are above the targets before the first dup2. */
static int place_fds(const int *map, size_t n, int *report_fd)
{
	int high[FDS_MAX + 3];
	int low = (int)n;

	for (size_t i = 0; i < n; i++) {
		high[i] = map[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : map[i];
		if (high[i] < 0)
			return -errno;
		high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, low);
		if (high[i] < 0)
			return -errno;
	}
	*report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, low);
	if (*report_fd < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		if (dup2(high[i], (int)i) < 0)
			return -errno;
	}
	return bs_close_from(low, report_fd, 1);
}

static int prepare(const struct bs_spawn *s, const int *map, size_t n, pid_t parent, int *report_fd)
{
	int r;

	reset_signals();
	if (s->new_session && setsid() < 0)
		return -errno;
	if (s->die_with_parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			return -errno;
		if (getppid() != parent)
			return -ESRCH;
	}
	if (s->dir && chdir(s->dir) < 0)
		return -errno;
	r = place_fds(map, n, report_fd);
	if (r < 0)
		return r;
	bs_nofile_restore(); /* not before: descriptors above the lower limit were moved */
	return bs_set_cloexec(*report_fd, true);
}

static void run_child(const struct bs_spawn *s, const int *map, size_t n, pid_t parent,
		      int report_fd)
{
	int r = prepare(s, map, n, parent, &report_fd);

	if (r == 0 && s->run) {
		(void)close(report_fd); /* the parent waits for this */
		_exit(s->run(s->cookie));
	}
	if (r == 0) {
		char *const *argv = (char *const *)(uintptr_t)s->argv;
		char *const *envp = s->envp ? (char *const *)(uintptr_t)s->envp : environ;

		(void)execvpe(argv[0], argv, envp);
		r = -errno;
	}
	(void)bs_write_full(report_fd, &r, sizeof(r));
	_exit(127);
}

/* --- the parent's side ------------------------------------------------------------------ */

int bs_spawn_start(const struct bs_spawn *s, struct bs_child *ret, struct bs_error *err)
{
	bs_autofd int from = -EBADF, to = -EBADF;
	const pid_t parent = getpid();
	int map[FDS_MAX + 3], report[2], failure = 0;
	struct bs_child c = { 0 };

	if (s->n_fds > FDS_MAX)
		return bs_fail(err, -E2BIG, "start '%s': more than %d descriptors", s->argv[0],
			       FDS_MAX);
	for (int i = 0; i < 3; i++)
		map[i] = s->stdio[i];
	for (size_t i = 0; i < s->n_fds; i++)
		map[3 + i] = s->fds[i];
	if (pipe2(report, O_CLOEXEC) < 0)
		return bs_fail_errno(err, -errno, "start '%s': pipe", s->argv[0]);
	from = report[0];
	to = report[1];
	c.pid = fork();
	if (c.pid < 0)
		return bs_fail_errno(err, -errno, "start '%s': fork", s->argv[0]);
	if (c.pid == 0)
		run_child(s, map, 3 + s->n_fds, parent, to);
	to = bs_close(to);
	c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
	/* the pipe ends without a word when exec closed it */
	if (bs_read_full(from, &failure, sizeof(failure)) == (ssize_t)sizeof(failure)) {
		(void)bs_spawn_wait(&c, 0, NULL);
		return bs_fail_errno(err, failure, "start '%s'", s->argv[0]);
	}
	*ret = c;
	return 0;
}

static int poll_until(struct pollfd *p, nfds_t n, uint64_t deadline_ns)
{
	for (;;) {
		uint64_t now = bs_clock_ns();
		uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / BS_NS_PER_S),
				       .tv_nsec = (long)(left % BS_NS_PER_S) };
		int r = ppoll(p, n, deadline_ns ? &ts : NULL, NULL);

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

int bs_spawn_wait(struct bs_child *c, uint64_t deadline_ns, int *ret_status)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	int status = 0, r = 0;

	if (deadline_ns && c->pidfd >= 0)
		r = poll_until(&p, 1, deadline_ns);
	if (r < 0)
		(void)kill(c->pid, SIGKILL); /* not reaped yet: the pid is still the child's */
	while (waitpid(c->pid, &status, 0) < 0) {
		if (errno != EINTR) {
			r = r < 0 ? r : -errno;
			break;
		}
	}
	c->pidfd = bs_close(c->pidfd);
	if (ret_status)
		*ret_status = status;
	return r;
}

int bs_spawn_exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Moves input into *in and output out of *out until both are done. */
static int exchange(int *in, int *out, const char *input, size_t input_len, uint64_t deadline_ns,
		    struct bs_buf *got)
{
	while (*out >= 0) {
		struct pollfd p[2] = { { .fd = *out, .events = POLLIN },
				       { .fd = *in, .events = POLLOUT } };
		char *to;
		ssize_t n;
		int r = poll_until(p, 2, deadline_ns);

		if (r < 0)
			return r;
		if (p[1].revents) {
			n = write(*in, input, input_len);
			if (n > 0) {
				input += n;
				input_len -= (size_t)n;
			}
			if (input_len == 0 || (n < 0 && errno != EAGAIN))
				*in = bs_close(*in); /* EPIPE: it does not want to know */
		}
		if (!p[0].revents)
			continue;
		to = bs_buf_reserve(got, 4096);
		if (!to)
			return got->error == -E2BIG ? -EFBIG : got->error;
		n = read(*out, to, 4096);
		if (n > 0)
			bs_buf_commit(got, (size_t)n);
		else if (n == 0 || errno != EINTR)
			*out = bs_close(*out);
	}
	return 0;
}

int bs_spawn_capture(const struct bs_spawn *s, const char *input, size_t input_len,
		     uint64_t deadline_ns, size_t max, char **ret_out, size_t *ret_len,
		     struct bs_error *err)
{
	bs_autobuf got = BS_BUF_INIT(max + 4096);
	bs_autofd int in_w = -EBADF, out_r = -EBADF;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	struct bs_spawn child = *s;
	struct bs_child c;
	int in[2], out[2], status, r, r2;

	if (pipe2(in, O_CLOEXEC) < 0)
		return bs_fail_errno(err, -errno, "run '%s': pipe", s->argv[0]);
	in_w = in[1];
	if (pipe2(out, O_CLOEXEC) < 0) {
		r = -errno;
		(void)bs_close(in[0]);
		return bs_fail_errno(err, r, "run '%s': pipe", s->argv[0]);
	}
	out_r = out[0];
	child.stdio[0] = in[0];
	child.stdio[1] = out[1];
	r = bs_spawn_start(&child, &c, err);
	(void)bs_close(in[0]);
	(void)bs_close(out[1]);
	if (r < 0)
		return r;
	(void)fcntl(in_w, F_SETFL, O_NONBLOCK);
	(void)sigaction(SIGPIPE, &ignore, &old);
	if (input_len == 0)
		in_w = bs_close(in_w);
	r = exchange(&in_w, &out_r, input, input_len, deadline_ns, &got);
	(void)sigaction(SIGPIPE, &old, NULL);
	/* a child that hangs or talks too much is killed by a deadline that has passed */
	r2 = bs_spawn_wait(&c, r < 0 ? 1 : deadline_ns, &status);
	r = r < 0 ? r : r2;
	if (r == 0 && got.len > max)
		r = -EFBIG;
	if (r < 0)
		return bs_fail_errno(err, r, "run '%s'", s->argv[0]);
	if (ret_len)
		*ret_len = got.len;
	*ret_out = bs_buf_take(&got);
	if (!*ret_out)
		return bs_fail(err, -ENOMEM, "run '%s': out of memory", s->argv[0]);
	return bs_spawn_exit_code(status);
}
