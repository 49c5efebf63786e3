/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/ckpts.h"
#include "daemon/hots.h"
#include "daemon/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/nofile.h"
#include "base/path.h"
#include "daemon/super.h"
#include "daemon/systemd.h"
#include "daemon/user.h"
#include "kern/caps.h"

#define SOCKET_NAME "bootseerd.sock"
#define LOCK_NAME "listen.lock"
#define LOCK_WAIT_NS (10 * BS_NS_PER_S)
#define ROUND_MS 100 /* deadlines are looked at so often while there are any */

int super_watch(struct super *s, struct watch *w)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = w };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->fd, &ev) < 0 ? -errno : 0;
}

void super_unwatch(struct super *s, struct watch *w)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

void super_kill(const struct bs_child *c)
{
	if (c->pid > 0 && c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

/* --- setting up ------------------------------------------------------------------------- */

static void signal_came(struct super *s, struct watch *w, uint32_t events)
{
	struct bs_error err = BS_ERROR_INIT;
	struct signalfd_siginfo si;

	while (read(w->fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			s->stop = true;
		else if (si.ssi_signo == SIGHUP && workers_replace(s, &err) < 0)
			bs_log_error("%s", bs_error_text(&err));
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* their sockets tell what matters */
}

static int set_up_signals(struct super *s, struct bs_error *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit is an error like a full disk */
	s->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals.fd < 0)
		return bs_fail_errno(err, -errno, "signalfd");
	s->signals.ready = signal_came;
	return super_watch(s, &s->signals);
}

/* The cache belongs to the worker's user, from the directory of images on down. */
int super_open_cache(struct super *s, struct bs_error *err)
{
	bs_autofd int cache = -EBADF, images = -EBADF;
	uid_t uid;
	gid_t gid;
	int unpacked, r = bs_worker_user(s->conf, &uid, &gid, err);

	if (r < 0)
		return r;
	cache = bs_mkdir_open(AT_FDCWD, s->conf->cache_dir, 0711);
	if (cache < 0)
		return bs_fail_errno(err, cache, "make cache directory '%s' ([node] cache_dir)",
				     s->conf->cache_dir);
	images = bs_mkdir_open(cache, "images", 0700);
	if (images < 0)
		return bs_fail_errno(err, images, "make '%s/images'", s->conf->cache_dir);
	if (fchown(images, uid, gid) < 0 && errno != EROFS)
		return bs_fail_errno(err, -errno, "give '%s/images' to user %u", s->conf->cache_dir,
				     uid);
	/* what is unpacked is root's alone: it holds set-user-ID programs */
	unpacked = bs_mkdir_open(cache, "unpacked", 0700);
	if (unpacked < 0 && unpacked != -EROFS)
		return bs_fail_errno(err, unpacked, "make '%s/unpacked'", s->conf->cache_dir);
	(void)bs_close(s->images_fd);
	(void)bs_close(s->unpacked_fd);
	s->images_fd = bs_take_fd(&images);
	s->unpacked_fd = unpacked;
	return 0;
}

static int open_directories(struct super *s, struct bs_error *err)
{
	s->run_fd = bs_mkdir_open(AT_FDCWD, s->conf->run_dir, 0700);
	if (s->run_fd < 0)
		return bs_fail_errno(err, s->run_fd, "make run directory '%s' ([node] run_dir)",
				     s->conf->run_dir);
	s->leases_fd = bs_mkdir_open(s->run_fd, "leases", 0700);
	if (s->leases_fd < 0)
		return bs_fail_errno(err, s->leases_fd, "make '%s/leases'", s->conf->run_dir);
	s->ckpts_fd = bs_mkdir_open(s->run_fd, "ckpts", 0700);
	if (s->ckpts_fd < 0)
		return bs_fail_errno(err, s->ckpts_fd, "make '%s/ckpts'", s->conf->run_dir);
	return super_open_cache(s, err);
}

static bool somebody_listens(const struct sockaddr_un *addr)
{
	bs_autofd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return sock >= 0 && connect(sock, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
}

/* Of several that are started at once one listens, and the others find it. */
static int make_socket(struct super *s, struct bs_error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	bs_autofd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* not start.lock: whoever has us started holds that */
	bs_autofd int lock = bs_lock_open(s->run_fd, LOCK_NAME, LOCK_WAIT_NS);
	char dir[32];
	mode_t mask;
	int r;

	if (sock < 0)
		return bs_fail_errno(err, -errno, "make a socket");
	if (lock < 0)
		return bs_fail_errno(err, lock, "lock '%s/%s'", s->conf->run_dir, LOCK_NAME);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", bs_path_of_fd(s->run_fd, dir),
		       SOCKET_NAME);
	if (somebody_listens(&addr))
		return bs_fail(err, -EADDRINUSE,
			       "another bootseerd listens at '%s/%s'; end it first, or give this "
			       "one directories of its own ([node] run_dir, cache_dir)",
			       s->conf->run_dir, SOCKET_NAME);
	(void)unlinkat(s->run_fd, SOCKET_NAME, 0);
	mask = umask(0177);
	r = bind(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	(void)umask(mask);
	if (r < 0 || listen(sock, 128) < 0)
		return bs_fail_errno(err, r < 0 ? r : -errno, "listen at '%s/%s'", s->conf->run_dir,
				     SOCKET_NAME);
	s->listen.fd = bs_take_fd(&sock);
	return 0;
}

static int first_start(struct super *s, struct bs_error *err)
{
	int r = kept_adopt_given(s, err);

	if (r == 0 && s->listen.fd < 0)
		r = make_socket(s, err);
	if (r < 0)
		return r;
	if (s->epoch == 0 && getrandom(&s->epoch, sizeof(s->epoch), 0) != sizeof(s->epoch))
		return bs_fail_errno(err, -errno, "getrandom");
	workers_tend(s); /* first, since it takes longest and a container waits for it */
	return kept_start_keeper(s, err);
}

static int set_up(struct super *s, const struct bs_supervisor_options *o, struct bs_error *err)
{
	int r;

	bs_list_init(&s->clients);
	bs_list_init(&s->images);
	bs_list_init(&s->leases);
	bs_list_init(&s->children);
	bs_list_init(&s->forwarded);
	bs_list_init(&s->unpacks);
	bs_list_init(&s->pending);
	bs_list_init(&s->hots);
	bs_list_init(&s->recorded);
	bs_list_init(&s->ckpts);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return bs_fail_errno(err, -errno, "epoll");
	if ((r = open_directories(s, err)) < 0 || (r = set_up_signals(s, err)) < 0)
		return r;
	r = bs_caps_bound(BS_ROLE_SUPERVISOR);
	if (r == 0 || r == -EPERM) /* a supervisor may be root with less than all */
		r = bs_caps_limit(BS_ROLE_SUPERVISOR);
	if (r < 0)
		return bs_fail_errno(err, r, "drop capabilities");
	r = o->keeper_link >= 0 ? kept_adopt(s, o->keeper_link, err) : first_start(s, err);
	if (r < 0)
		return r;
	leases_read(s);
	ckpts_settle(s, o->keeper_link < 0);
	r = clients_listen(s);
	return r < 0 ? bs_fail_errno(err, r, "watch the socket") : 0;
}

/* --- running --------------------------------------------------------------------------------- */

/* How long nothing can come due: deadlines are seldom and coarse. */
static int idle_ms(const struct super *s)
{
	if (s->worker.fd < 0 || s->keeper.fd < 0 || s->accept_next_ns > 0 ||
	    !bs_list_empty(&s->children) || !bs_list_empty(&s->forwarded) || pendings_open(s) ||
	    ckpts_waiting(s))
		return ROUND_MS;
	return bs_list_empty(&s->images) && bs_list_empty(&s->ckpts) && bs_list_empty(&s->recorded)
		       ? -1
		       : 1000;
}

static void run(struct super *s)
{
	struct epoll_event ev;

	while (!s->stop) {
		uint64_t now;
		int n;

		workers_tend(s);
		kept_tend_keeper(s);
		/* one at a time: what one event frees, a later one of the same round could mean */
		n = epoll_wait(s->epoll, &ev, 1, idle_ms(s));
		if (n == 1) {
			struct watch *w = ev.data.ptr;

			w->ready(s, w, ev.events);
		}
		now = bs_clock_ns();
		children_expire(s, now);
		clients_expire(s, now);
		leases_sweep(s, now);
		pendings_expire(s, now);
		hots_expire(s, now);
		ckpts_expire(s, now);
		mounts_expire(s, now);
		pendings_send(s);
		clients_sweep(s);
	}
}

int bs_supervisor_main(const struct bs_supervisor_options *o)
{
	static struct super s; /* zeroed; as long as the process */
	struct bs_error err = BS_ERROR_INIT;

	bs_nofile_raise();
	s.conf = o->conf;
	s.config_file = o->config_file;
	s.fuse_fd = s.fuse_mnt = s.spare_fd = -EBADF;
	s.bdi_fd = bs_bdi_open(); /* without, kernels read ahead as they like */
	s.images_fd = s.unpacked_fd = -EBADF;
	s.listen.fd = s.keeper.fd = s.worker.fd = s.old_worker.fd = -EBADF;
	s.worker_process.pidfd = s.keeper_process.pidfd = -EBADF;
	if (set_up(&s, o, &err) < 0) {
		bs_log_error("%s", bs_error_text(&err));
		kept_quit_keeper(&s);
		return 1;
	}
	bs_log_info("serving at '%s/%s', cache '%s'", o->conf->run_dir, SOCKET_NAME,
		    o->conf->cache_dir);
	if (o->started_fd >= 0) {
		(void)bs_write_full(o->started_fd, "1", 1); /* who waited may be gone: fine */
		(void)bs_close(o->started_fd);
	}
	bs_systemd_tell("READY=1");
	run(&s);
	bs_systemd_tell("STOPPING=1");
	kept_quit_keeper(&s);
	workers_stop(&s);
	if (!s.listen_given)
		(void)unlinkat(s.run_fd, SOCKET_NAME, 0);
	return 0;
}
