/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define FIRST_FD 3
#define FDS_MAX 4096u /* more is no service manager of ours */
#define LINE_MAX_BYTES 512

static struct {
	int sock; /* where to tell; -EBADF: nobody listens */
	struct sockaddr_un addr;
	socklen_t addr_len;
	uint32_t n_fds;
	char *names; /* "a:b:c"; NULL: none were given */
} manager = { .sock = -EBADF };

/* --- being started ------------------------------------------------------------------------ */

static void take_fds(void)
{
	const char *pid = secure_getenv("LISTEN_PID"), *fds = secure_getenv("LISTEN_FDS");
	const char *names = secure_getenv("LISTEN_FDNAMES");
	uint32_t n;

	/* the variables of a parent's start may be in our environment too */
	if (!pid || !fds || bs_parse_u32(pid, &n) < 0 || n != (uint32_t)getpid() ||
	    bs_parse_u32(fds, &n) < 0 || n > FDS_MAX)
		return;
	for (int fd = FIRST_FD; fd < FIRST_FD + (int)n; fd++)
		(void)bs_set_cloexec(fd, true);
	manager.n_fds = n;
	free(manager.names);
	manager.names = names ? strdup(names) : NULL;
}

static void find_socket(void)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(manager.addr.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	manager.addr.sun_family = AF_UNIX;
	memcpy(manager.addr.sun_path, path, n);
	if (path[0] == '@')
		manager.addr.sun_path[0] = '\0';
	manager.addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	manager.sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

void bs_systemd_begin(bool heed)
{
	if (heed) {
		take_fds();
		find_socket();
	}
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	(void)unsetenv("NOTIFY_SOCKET");
}

int bs_systemd_next(unsigned int i, char *name, unsigned int size)
{
	const char *at = manager.names ? manager.names : "";
	size_t len;

	if (i >= manager.n_fds)
		return -ENOENT;
	for (unsigned int skip = i; skip > 0 && *at; skip--) {
		at += strcspn(at, ":");
		at += *at == ':';
	}
	len = strcspn(at, ":");
	(void)snprintf(name, size, "%.*s", (int)len, at);
	for (char *p = name; *p; p++) {
		if (*p == '@')
			*p = ':';
	}
	return FIRST_FD + (int)i;
}

int bs_systemd_check_socket(int fd, struct bs_error *err)
{
	int domain = 0, type = 0, listens = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return bs_fail_errno(err, -errno, "the service manager's socket");
	if (domain != AF_UNIX || type != SOCK_SEQPACKET || !listens)
		return bs_fail(err, -EINVAL,
			       "the service manager's socket is of another kind; its unit needs "
			       "ListenSequentialPacket and a path");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return bs_fail_errno(err, -errno, "the service manager's socket");
	return 0;
}

/* --- telling ---------------------------------------------------------------------------------- */

/* A manager that does not hear us is no reason to fail: it only does less for us. */
static void send_line(const char *line, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line) };
	struct msghdr m = { .msg_name = &manager.addr,
			    .msg_namelen = manager.addr_len,
			    .msg_iov = &iov,
			    .msg_iovlen = 1 };

	if (manager.sock < 0)
		return;
	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	(void)sendmsg(manager.sock, &m, MSG_NOSIGNAL);
}

void bs_systemd_tell(const char *line)
{
	send_line(line, -EBADF);
}

static void send_named(const char *what, const char *name, int fd)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s\nFDNAME=%s", what, name);

	if (n < 0 || n >= (int)sizeof(line))
		return;
	for (char *p = strstr(line, "FDNAME="); *p; p++) {
		if (*p == ':')
			*p = '@';
	}
	send_line(line, fd);
}

void bs_systemd_store(const char *name, int fd)
{
	/* not polled: mounts cannot be, and a FUSE connection without a server must stay */
	send_named("FDSTORE=1\nFDPOLL=0", name, fd);
}

void bs_systemd_forget(const char *name)
{
	send_named("FDSTOREREMOVE=1", name, -EBADF);
}
