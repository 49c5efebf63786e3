/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "ctl/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/str.h"

#define SOCKET_NAME "bootseerd.sock"
#define LOG_NAME "bootseerd.log" /* of bootseerd --background */

/* The run directory may be deeper than sun_path is long: go by its descriptor. */
static int try_connect(int run_fd, uint64_t timeout_ns)
{
	/* a stopped daemon's full backlog would block us */
	const struct timeval tv = { .tv_sec = (time_t)(timeout_ns / BS_NS_PER_S),
				    .tv_usec = (suseconds_t)(timeout_ns % BS_NS_PER_S / 1000) };
	bs_autofd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[32];

	if (sock < 0)
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
		return -errno;
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", bs_path_of_fd(run_fd, dir),
		       SOCKET_NAME);
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return bs_take_fd(&sock);
}

static bool nobody_listens(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

/* What was last said in bootseerd's log since it was so long; NULL: nothing. malloc'ed. */
static char *last_said(int run_fd, off_t since)
{
	bs_autofd int fd = openat(run_fd, LOG_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[512], *line;
	struct stat st;
	off_t from;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= since)
		return NULL;
	from = BS_MAX(since, st.st_size - (off_t)sizeof(text) + 1);
	n = pread(fd, text, sizeof(text) - 1, from);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	line = strrchr(text, '\n');
	return bs_strf("%s", line ? line + 1 : text);
}

static off_t log_size(int run_fd)
{
	struct stat st;

	return fstatat(run_fd, LOG_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_size;
}

/* bootseerd --background returns when its socket listens. */
static int start_daemon(const struct bs_client_options *o, int run_fd, struct bs_error *err)
{
	const off_t logged = log_size(run_fd);
	bs_autofree char *said = NULL;
	const char *argv[] = { o->daemon, "--background", "--config", o->config, NULL };
	struct bs_spawn s = BS_SPAWN_INIT;
	struct bs_child c;
	int status, r;

	if (!o->config)
		argv[2] = NULL;
	s.argv = argv;
	s.stdio[2] = STDERR_FILENO;
	r = bs_spawn_start(&s, &c, err);
	if (r < 0)
		return r;
	r = bs_spawn_wait(&c, bs_clock_ns() + o->timeout_ns, &status);
	if (r < 0)
		return bs_fail_errno(err, r, "wait for '%s' to start", o->daemon);
	if (bs_spawn_exit_code(status) == 0)
		return 0;
	said = last_said(run_fd, logged);
	return bs_fail(err, -ENOTCONN,
		       "'%s' did not start (exit code %d)%s%s; see '%s/" LOG_NAME "'", o->daemon,
		       bs_spawn_exit_code(status), said ? ": " : "", said ? said : "", o->run_dir);
}

int bs_client_connect(const struct bs_client_options *o, struct bs_error *err)
{
	bs_autofd int run_fd = -EBADF, lock = -EBADF;
	int r, started;

	run_fd = o->daemon ? bs_mkdir_open(AT_FDCWD, o->run_dir, 0700)
			   : open(o->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run_fd < 0 && !o->daemon && errno == ENOENT)
		return bs_fail(err, -ENOTCONN, "bootseerd is not running (no '%s')", o->run_dir);
	if (run_fd < 0 && !o->daemon)
		return bs_fail_errno(err, -errno, "open run directory '%s'%s", o->run_dir,
				     errno == EACCES ? " (which only root may)" : "");
	if (run_fd < 0)
		return bs_fail_errno(err, run_fd, "make run directory '%s'", o->run_dir);
	r = try_connect(run_fd, o->timeout_ns);
	if (r >= 0)
		return r;
	if (!nobody_listens(r))
		return bs_fail_errno(err, r, "connect to '%s/%s'%s", o->run_dir, SOCKET_NAME,
				     r == -EACCES ? " (which only root may)" : "");
	if (!o->daemon)
		return bs_fail(err, -ENOTCONN,
			       "bootseerd is not running (nobody listens at '%s/%s')", o->run_dir,
			       SOCKET_NAME);
	/* of many starters one starts it, the others find it */
	lock = bs_lock_open(run_fd, "start.lock", o->timeout_ns);
	if (lock < 0)
		return bs_fail_errno(err, lock, "lock '%s/start.lock'", o->run_dir);
	r = try_connect(run_fd, o->timeout_ns);
	if (r >= 0)
		return r;
	started = start_daemon(o, run_fd, err);
	/* also when it did not start: somebody else's, at the same instant, may be the reason */
	r = try_connect(run_fd, o->timeout_ns);
	if (r < 0 && started < 0)
		return started;
	if (r < 0)
		return bs_fail_errno(err, r, "connect to the bootseerd just started at '%s/%s'",
				     o->run_dir, SOCKET_NAME);
	return r;
}

static int wait_readable(int sock, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = { .fd = sock, .events = POLLIN };
		uint64_t now = bs_clock_ns();
		int r;

		if (now >= deadline_ns)
			return -ETIMEDOUT;
		r = poll(&p, 1,
			 (int)BS_MIN((deadline_ns - now) / BS_NS_PER_MS + 1, (uint64_t)60000));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

int bs_client_result(const struct bs_msg *m, struct bs_error *err)
{
	const char *text = bs_msg_text(m, BS_TAG_TEXT, 0);
	uint64_t result = 0;

	if (bs_msg_u64(m, BS_TAG_RESULT, &result) < 0 || result > 4095)
		return bs_fail(err, -EPROTO, "bootseerd sent a reply without a result");
	if (result == 0)
		return 0;
	return bs_fail(err, -(int)result, "%s",
		       text ? text : "bootseerd failed without saying why");
}

/*
 * The connection is gone, before or after our request. What was said last may be a reply
 * to whatever is asked (id 0): why it was not accepted.
 */
static int not_accepted(int sock, int r, const char *what, struct bs_error *err)
{
	bs_automsg got;
	int why = 0;

	bs_msg_init(&got, 0, 0);
	if (r == -ECONNRESET && bs_msg_recv(sock, &got) == 0 && got.type == BS_MSG_REPLY &&
	    got.id == 0)
		why = bs_client_result(&got, err);
	return why < 0 ? why : bs_fail_errno(err, r, "%s bootseerd", what);
}

int bs_client_call(int sock, struct bs_msg *m, uint64_t timeout_ns, struct bs_msg *ret,
		   struct bs_error *err)
{
	return bs_client_call_slow(sock, m, timeout_ns, NULL, ret, err);
}

int bs_client_call_slow(int sock, struct bs_msg *m, uint64_t timeout_ns,
			const struct bs_client_slow *slow, struct bs_msg *ret, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns(), deadline = start + timeout_ns;
	int r = bs_msg_send(sock, m);

	if (r < 0)
		return not_accepted(sock, r, "send to", err);
	for (;;) {
		bs_automsg got;

		bs_msg_init(&got, 0, 0);
		r = slow ? wait_readable(sock, BS_MIN(deadline, start + slow->after_ns)) : 1;
		if (r == -ETIMEDOUT) {
			slow->fn(slow->cookie);
			slow = NULL;
		}
		if (r == -ETIMEDOUT || r == 1)
			r = wait_readable(sock, deadline);
		if (r < 0)
			return bs_fail(err, r, "bootseerd did not answer in time");
		r = bs_msg_recv(sock, &got);
		if (r < 0)
			return not_accepted(sock, r, "receive from", err);
		if (got.type != BS_MSG_REPLY || (got.id != m->id && got.id != 0))
			continue; /* the late answer to a call that was given up */
		r = bs_client_result(&got, err);
		if (r < 0)
			return r;
		*ret = got;
		bs_msg_init(&got, 0, 0);
		return 0;
	}
}

int bs_client_send(int sock, struct bs_msg *m, struct bs_error *err)
{
	int r = bs_msg_send(sock, m);

	return r < 0 ? not_accepted(sock, r, "send to", err) : 0;
}

int bs_client_next(int sock, uint64_t deadline_ns, struct bs_msg *ret, struct bs_error *err)
{
	for (;;) {
		bs_automsg got;
		int r = wait_readable(sock, deadline_ns);

		bs_msg_init(&got, 0, 0);
		if (r < 0)
			return bs_fail(err, r, "bootseerd did not answer in time");
		r = bs_msg_recv(sock, &got);
		if (r < 0)
			return not_accepted(sock, r, "receive from", err);
		if (got.type != BS_MSG_REPLY)
			continue;
		if (got.id == 0 && (r = bs_client_result(&got, err)) < 0)
			return r;
		if (got.id == 0)
			continue;
		*ret = got;
		bs_msg_init(&got, 0, 0);
		return 0;
	}
}
