/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The worker's life as the supervisor sees it, and what it asks of us. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/hots.h"
#include "daemon/program.h"
#include "daemon/super.h"
#include "kern/fusedev.h"

#define PAUSE_NS (20 * BS_NS_PER_MS)   /* after a first death */
#define PAUSE_MAX_NS (5 * BS_NS_PER_S) /* after many that were never ready */
#define CREDENTIAL_WAIT_NS (45 * BS_NS_PER_S)

/* --- the FUSE connection ------------------------------------------------------------------ */

static void drop_fuse(struct super *s)
{
	s->fuse_fd = bs_close(s->fuse_fd);
	s->fuse_mnt = bs_close(s->fuse_mnt);
}

static const struct bs_fusedev_mount blobs = { .subtype = "bootseer-blobs" };

/* A connection that no server ever answered is not worth keeping: a new one each time. */
static void make_fuse(struct super *s)
{
	struct bs_error err = BS_ERROR_INIT;

	if (s->fuse_used || s->fuse_tried)
		return;
	drop_fuse(s);
	s->fuse_fd = bs_fusedev_open(&err);
	if (s->fuse_fd >= 0)
		s->fuse_mnt = bs_fusedev_mount(s->fuse_fd, &blobs, &err);
	if (s->fuse_mnt >= 0)
		return;
	drop_fuse(s);
	s->fuse_tried = true;
	bs_log_warning("no FUSE on this node, images will be unpacked instead: %s",
		       bs_error_text(&err));
}

/* --- requests of the worker ----------------------------------------------------------------- */

/* Answers go by the socket: a worker that takes over asks before it is ready. */
static void send_answer(struct super *s, struct bs_msg *m)
{
	if (s->worker.fd >= 0)
		(void)bs_msg_send(s->worker.fd, m);
}

static void answer(struct super *s, uint32_t id, int result, const char *text)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, (uint64_t)-result);
	if (text)
		(void)bs_msg_add_text(&m, BS_TAG_TEXT, text);
	send_answer(s, &m);
}

static void open_layout(struct super *s, const struct bs_msg *m)
{
	const char *source = bs_msg_text(m, BS_TAG_SOURCE, 0);
	const char *dir = source ? bs_str_after(source, "oci:") : NULL;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int fd = -EBADF;
	bs_automsg reply;

	if (!dir || bs_conf_allows(s->conf, source, &err) < 0) {
		answer(s, m->id, -EPERM, dir ? bs_error_text(&err) : "not a layout directory");
		return;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int r = bs_fail_errno(&err, -errno, "open layout '%s'", dir);

		answer(s, m->id, r, bs_error_text(&err));
		return;
	}
	bs_msg_init(&reply, BS_MSG_REPLY, m->id);
	(void)bs_msg_add_u64(&reply, BS_TAG_RESULT, 0);
	(void)bs_msg_add_fd(&reply, fd);
	send_answer(s, &reply);
}

/* The child's words go on to the worker as they are. */
static void credential_found(struct super *s, struct child *c, struct bs_msg *m)
{
	if (!m) {
		answer(s, c->id, -ETIMEDOUT, "the credential helpers did not answer in time");
		return;
	}
	m->type = BS_MSG_REPLY;
	m->id = c->id;
	send_answer(s, m);
}

static void find_credential(struct super *s, const struct bs_msg *m)
{
	const char *host = bs_msg_text(m, BS_TAG_HOST, 0);
	struct bs_error err = BS_ERROR_INIT;
	int r;

	if (!host || !*host) {
		answer(s, m->id, -EINVAL, "no host");
		return;
	}
	r = children_start(s, "credential", host, NULL, 0, bs_clock_ns() + CREDENTIAL_WAIT_NS,
			   credential_found, NULL, m->id, &err);
	if (r < 0)
		answer(s, m->id, r, bs_error_text(&err));
}

static void became_ready(struct super *s)
{
	s->worker_ready = true;
	s->worker_failures = 0;
	if (s->fuse_fd >= 0 && !s->fuse_used) {
		s->fuse_used = true;
		kept_put(s, "fuse", s->fuse_fd);
		kept_put(s, "fuse-mount", s->fuse_mnt);
	}
	bs_log_info("worker %d is ready after %llu ms", (int)s->worker_process.pid,
		    (unsigned long long)((bs_clock_ns() - s->worker_started_ns) / BS_NS_PER_MS));
	mounts_new_worker(s);
	pendings_new_worker(s);
	hots_new_worker(s);
}

static void message(struct super *s, struct bs_msg *m)
{
	uint64_t on, level;
	const char *text, *workload;

	switch (m->type) {
	case BS_MSG_READY:
		became_ready(s);
		break;
	case BS_MSG_REPLY:
		if (!pendings_answered(s, m))
			clients_forwarded(s, m->id, m);
		break;
	case BS_MSG_CREDENTIAL:
		find_credential(s, m);
		break;
	case BS_MSG_OPEN_LAYOUT:
		open_layout(s, m);
		break;
	case BS_MSG_EVENT:
		text = bs_msg_text(m, BS_TAG_TEXT, 0);
		if (bs_msg_u64(m, BS_TAG_LEVEL, &level) < 0 || level >= BS_LOG_LEVEL_MAX)
			level = BS_LOG_WARNING;
		if (text)
			bs_log((enum bs_log_level)level, "worker: %s", text);
		break;
	case BS_MSG_COMPLETED:
		text = bs_msg_text(m, BS_TAG_DIGEST, 0);
		if (text)
			mounts_completed(s, text);
		break;
	case BS_MSG_STREAMING:
		text = bs_msg_text(m, BS_TAG_DIGEST, 0);
		workload = bs_msg_text(m, BS_TAG_WORKLOAD, 0);
		if (text && workload && bs_msg_u64(m, BS_TAG_STREAM, &on) == 0)
			hots_streaming(s, text, workload, on != 0);
		break;
	default:
		break;
	}
}

/* --- life and death --------------------------------------------------------------------------- */

static void forget_worker(struct super *s)
{
	super_kill(&s->worker_process);
	(void)bs_close(s->worker_process.pidfd);
	s->worker_process = (struct bs_child){ .pidfd = -EBADF };
}

static void worker_gone(struct super *s)
{
	uint64_t pause = PAUSE_NS << BS_MIN(s->worker_failures, 8u);

	super_unwatch(s, &s->worker);
	s->worker.fd = bs_close(s->worker.fd);
	forget_worker(s);
	s->worker_ready = false;
	s->worker_failures++;
	s->worker_restarts++;
	s->worker_next_ns = bs_clock_ns() +
			    (s->worker_failures == 1 ? 0 : BS_MIN(pause, PAUSE_MAX_NS));
	if (s->worker_replaced)
		bs_log_info("the worker is replaced, as was asked for");
	else if (!s->stop)
		bs_log_warning("the worker died, starting another");
	s->worker_replaced = false;
	clients_forwarded(s, 0, NULL);
}

static void socket_ready(struct super *s, struct watch *w, uint32_t events)
{
	for (int i = 0; i < 64; i++) { /* others want to be heard too */
		bs_automsg m;
		int r;

		bs_msg_init(&m, 0, 0);
		r = bs_msg_recv(w->fd, &m);
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			worker_gone(s);
			return;
		}
		message(s, &m);
	}
}

static int tell_start(struct super *s, int link, struct bs_error *err)
{
	bs_automsg m;
	int r;

	bs_msg_init(&m, BS_MSG_START, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_EPOCH, s->epoch);
	(void)bs_msg_add_u64(&m, BS_TAG_TAKEOVER, s->fuse_used);
	(void)bs_msg_add_fd(&m, s->images_fd);
	if (s->fuse_fd >= 0)
		(void)bs_msg_add_fd(&m, s->fuse_fd);
	r = bs_msg_send(link, &m);
	/* one that is dead already is seen as any that dies */
	return r < 0 && r != -ECONNRESET ? bs_fail_errno(err, r, "tell the worker to start") : 0;
}

static bool is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Somebody cleared the disk: a new worker begins with a new cache. */
static int tend_cache(struct super *s, struct bs_error *err)
{
	if (!is_removed(s->images_fd) && !is_removed(s->unpacked_fd))
		return 0;
	bs_log_warning("the cache in '%s' was removed, making it anew", s->conf->cache_dir);
	return super_open_cache(s, err);
}

static int start_worker(struct super *s, struct bs_error *err)
{
	const struct bs_part part = { .role = "worker", .config = s->config_file };
	bs_autofd int ours = -EBADF;
	int r = tend_cache(s, err);

	if (r < 0)
		return r;
	make_fuse(s);
	r = bs_program_start(&part, &s->worker_process, &ours, err);
	if (r < 0)
		return r;
	r = tell_start(s, ours, err);
	if (r < 0) {
		forget_worker(s);
		return r;
	}
	kept_put(s, "worker", s->worker_process.pidfd);
	(void)fcntl(ours, F_SETFL, O_NONBLOCK);
	s->worker_started_ns = bs_clock_ns();
	s->worker.fd = bs_take_fd(&ours);
	s->worker.ready = socket_ready;
	return super_watch(s, &s->worker);
}

void workers_tend(struct super *s)
{
	struct bs_error err = BS_ERROR_INIT;

	if (s->stop || s->worker.fd >= 0 || s->old_worker.fd >= 0 ||
	    bs_clock_ns() < s->worker_next_ns)
		return;
	if (start_worker(s, &err) < 0) {
		bs_log_error("%s", bs_error_text(&err));
		s->worker_next_ns = bs_clock_ns() + PAUSE_MAX_NS;
	}
}

void workers_stop(struct super *s)
{
	super_kill(&s->worker_process);
}

/* Policy and times count anew; the directories are open, and stay. */
static int read_conf_again(struct super *s, struct bs_error *err)
{
	struct bs_conf c;
	char *run_dir = strdup(s->conf->run_dir), *cache_dir = strdup(s->conf->cache_dir);
	int r = bs_conf_read(s->config_file, &c, err);

	if (r == 0 && (!run_dir || !cache_dir))
		r = bs_fail_errno(err, -ENOMEM, "read the configuration");
	if (r < 0) {
		free(run_dir);
		free(cache_dir);
		bs_conf_done(&c);
		return r;
	}
	free(c.run_dir);
	free(c.cache_dir);
	c.run_dir = run_dir;
	c.cache_dir = cache_dir;
	if (s->conf == &s->conf_again)
		bs_conf_done(&s->conf_again);
	s->conf_again = c;
	s->conf = &s->conf_again;
	return 0;
}

int workers_replace(struct super *s, struct bs_error *err)
{
	int r = read_conf_again(s, err);

	if (r < 0) /* a new worker could not read it either */
		return bs_error_context(err, "the worker stays as it is");
	s->worker_replaced = s->worker.fd >= 0;
	super_kill(&s->worker_process);
	return 0;
}

bool workers_send(struct super *s, struct bs_msg *m)
{
	if (!s->worker_ready)
		return false;
	return bs_msg_send(s->worker.fd, m) == 0;
}
