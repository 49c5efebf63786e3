/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The supervisor's side of the link to the keeper, whose other end is keeper.c; and what
 * a service manager holds, which is the same but for the socket and what leads to processes, the
 * worker and the servers of checkpoint mounts: the first is its own, and it ends those with us.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "daemon/ckpts.h"
#include "daemon/hots.h"
#include "daemon/program.h"
#include "daemon/super.h"
#include "daemon/systemd.h"

#define KEEPER_WAIT_MS 1000
#define KEEPER_RETRY_NS (2 * BS_NS_PER_S)

static void send_name(struct super *s, enum bs_msg_type type, const char *name, int fd)
{
	struct pollfd room = { .fd = s->keeper.fd, .events = POLLOUT };
	bs_automsg m;

	if (s->keeper.fd < 0)
		return;
	bs_msg_init(&m, type, 0);
	if (name)
		(void)bs_msg_add_text(&m, BS_TAG_NAME, name);
	if (fd >= 0)
		(void)bs_msg_add_fd(&m, fd);
	/* a keeper that is gone is seen in epoll; one that does not read is as good as gone */
	if (bs_msg_send_now(s->keeper.fd, &m) == -EAGAIN &&
	    (poll(&room, 1, KEEPER_WAIT_MS) != 1 || bs_msg_send_now(s->keeper.fd, &m) == -EAGAIN))
		super_kill(&s->keeper_process);
}

void kept_put(struct super *s, const char *name, int fd)
{
	send_name(s, BS_MSG_KEEP, name, fd);
	if (!bs_streq(name, "worker") && !ckpts_is_of_process(name))
		bs_systemd_store(name, fd);
}

void kept_drop(struct super *s, const char *name)
{
	send_name(s, BS_MSG_DROP, name, -EBADF);
	bs_systemd_forget(name);
}

void kept_quit_keeper(struct super *s)
{
	send_name(s, BS_MSG_QUIT, NULL, -EBADF);
}

/* The epoch is a number, kept in a name. */
static void put_epoch(struct super *s)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "epoch:%" PRIu64, s->epoch);
	send_name(s, BS_MSG_KEEP, name, s->run_fd);
	bs_systemd_store(name, s->run_fd); /* twice is once */
}

static void put_one(struct super *s, const char *name, int fd)
{
	send_name(s, BS_MSG_KEEP, name, fd);
}

static void put_everything(struct super *s)
{
	char name[KEPT_NAME_LEN];

	put_epoch(s);
	send_name(s, BS_MSG_KEEP, "listen", s->listen.fd);
	if (s->listen_given)
		send_name(s, BS_MSG_KEEP, "listen-given", s->listen.fd);
	if (s->worker_process.pid > 0)
		send_name(s, BS_MSG_KEEP, "worker", s->worker_process.pidfd);
	if (s->fuse_used) {
		send_name(s, BS_MSG_KEEP, "fuse", s->fuse_fd);
		send_name(s, BS_MSG_KEEP, "fuse-mount", s->fuse_mnt);
	}
	bs_list_for_each(it, &s->images) {
		struct held_image *i = bs_list_entry(it, struct held_image, all);

		if (i->mnt >= 0)
			send_name(s, BS_MSG_KEEP, mounts_kept_name(i, name), i->mnt);
	}
	bs_list_for_each(it, &s->recorded) {
		struct recorded_mount *r = bs_list_entry(it, struct recorded_mount, all);

		send_name(s, BS_MSG_KEEP, hots_recorded_name(r, name), r->mnt);
	}
	hots_keep_all(s, put_one);
	ckpts_keep_all(s, put_one);
}

static void keeper_gone(struct super *s, struct watch *w, uint32_t events)
{
	super_unwatch(s, w);
	w->fd = bs_close(w->fd);
	s->keeper_process.pidfd = bs_close(s->keeper_process.pidfd);
	if (s->stop)
		return;
	bs_log_warning("the keeper died, starting another");
	kept_tend_keeper(s);
}

int kept_start_keeper(struct super *s, struct bs_error *err)
{
	const struct bs_part part = { .role = "keeper", .config = s->config_file };
	int r = bs_program_start(&part, &s->keeper_process, &s->keeper.fd, err);

	if (r < 0)
		return r;
	s->keeper.ready = keeper_gone;
	put_everything(s);
	return super_watch(s, &s->keeper);
}

void kept_tend_keeper(struct super *s)
{
	struct bs_error err = BS_ERROR_INIT;

	if (s->stop || s->keeper.fd >= 0 || bs_clock_ns() < s->keeper_next_ns)
		return;
	if (kept_start_keeper(s, &err) == 0)
		return;
	s->keeper_next_ns = bs_clock_ns() + KEEPER_RETRY_NS;
	bs_log_error("%s, continuing without a keeper", bs_error_text(&err));
}

static void old_worker_gone(struct super *s, struct watch *w, uint32_t events)
{
	super_unwatch(s, w);
	w->fd = bs_close(w->fd);
}

/* Two workers on one FUSE device would lose requests: the old one first, then ours. */
static void adopt_worker(struct super *s, int pidfd)
{
	const struct bs_child old = { .pid = 1, .pidfd = pidfd };

	super_kill(&old);
	s->old_worker = (struct watch){ .fd = pidfd, .ready = old_worker_gone };
	(void)super_watch(s, &s->old_worker);
}

static void replace(int *at, int fd)
{
	(void)bs_close(*at);
	*at = fd;
}

/* Takes over a descriptor that was kept, by its name. */
static void adopt_one(struct super *s, const char *name, int fd)
{
	const char *rest;

	if (bs_streq(name, "listen"))
		replace(&s->listen.fd, fd);
	else if (bs_streq(name, "listen-given"))
		s->listen_given = true, (void)bs_close(fd);
	else if (bs_streq(name, "fuse"))
		replace(&s->fuse_fd, fd);
	else if (bs_streq(name, "fuse-mount"))
		replace(&s->fuse_mnt, fd);
	else if (bs_streq(name, "worker"))
		adopt_worker(s, fd);
	else if ((rest = bs_str_after(name, "epoch:")) && bs_parse_u64(rest, &s->epoch) == 0)
		(void)bs_close(fd);
	else if (bs_str_after(name, CKPTS_KEPT))
		ckpts_adopt(s, name, fd);
	else
		mounts_adopt(s, name, fd);
}

/*
 * Whoever kept them may have lost some. A FUSE connection and its mount are of use only
 * together, and what was mounted through them only with both.
 */
static void settle(struct super *s)
{
	s->fuse_used = s->fuse_fd >= 0 && s->fuse_mnt >= 0;
	if (s->fuse_used)
		return;
	if (s->fuse_fd >= 0)
		kept_drop(s, "fuse");
	if (s->fuse_mnt >= 0)
		kept_drop(s, "fuse-mount");
	s->fuse_fd = bs_close(s->fuse_fd);
	s->fuse_mnt = bs_close(s->fuse_mnt);
	mounts_drop_lazy(s);
}

int kept_adopt_given(struct super *s, struct bs_error *err)
{
	char name[BS_DIGEST_TEXT_LEN + 32];
	int fd, r = 0;

	for (unsigned int i = 0; (fd = bs_systemd_next(i, name, sizeof(name))) >= 0; i++) {
		if (!bs_streq(name, BS_SYSTEMD_SOCKET)) {
			adopt_one(s, name, fd);
		} else if (s->listen.fd < 0 && r == 0) {
			r = bs_systemd_check_socket(fd, err);
			s->listen.fd = fd;
			s->listen_given = true;
		} else {
			(void)bs_close(fd);
		}
	}
	settle(s);
	return r;
}

int kept_adopt(struct super *s, int link, struct bs_error *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		s->keeper_process.pid = peer.pid; /* it made the pair, and so is alive now */
	s->keeper_process.pidfd = (int)syscall(SYS_pidfd_open, s->keeper_process.pid, 0);
	for (;;) {
		bs_automsg m;
		const char *name;
		int fd, r;

		bs_msg_init(&m, 0, 0);
		r = bs_msg_recv(link, &m);
		if (r < 0)
			return bs_fail_errno(err, r, "hear from the keeper");
		name = bs_msg_text(&m, BS_TAG_NAME, 0);
		if (!name)
			break;
		fd = bs_msg_take_fd(&m, 0);
		if (fd >= 0)
			adopt_one(s, name, fd);
	}
	s->keeper.fd = link;
	s->keeper.ready = keeper_gone;
	settle(s);
	return super_watch(s, &s->keeper);
}
