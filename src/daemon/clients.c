/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Connections of shim, hooks and tools; only root may make one. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/ckpts.h"
#include "daemon/hots.h"
#include "daemon/super.h"

#define STATUS_WAIT_NS (2 * BS_NS_PER_S) /* a worker that hangs is left out */
#define COMPLETE_WAIT_NS (24 * 3600 * BS_NS_PER_S)
#define ACCEPT_PAUSE_NS (100 * BS_NS_PER_MS)
#define JSON_MAX (8u << 20)

void clients_send(struct super *s, struct client *c, struct bs_msg *m)
{
	/* who does not take its answer is not waited for */
	if (!c->gone && bs_msg_send(c->watch.fd, m) < 0)
		c->gone = true;
}

void clients_reply(struct super *s, struct client *c, uint32_t id, int result, const char *text)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, (uint64_t)-result);
	if (text && bs_msg_add_text(&m, BS_TAG_TEXT, text) < 0)
		(void)bs_msg_add_text(&m, BS_TAG_TEXT, "the text is too long");
	clients_send(s, c, &m);
}

/* --- status ---------------------------------------------------------------------------------- */

static int put_mounts(struct super *s, struct bs_json *array)
{
	bs_list_for_each(it, &s->images) {
		struct held_image *i = bs_list_entry(it, struct held_image, all);
		struct bs_json *o = bs_json_new(BS_JSON_OBJECT);

		if (bs_json_append(array, o) < 0 ||
		    bs_json_set(o, "digest", bs_json_new_str(i->digest)) < 0 ||
		    bs_json_set(o, "mounted", bs_json_new_bool(i->mnt >= 0)) < 0 ||
		    bs_json_set(o, "lazy", bs_json_new_bool(i->mnt >= 0 && i->lazy)) < 0 ||
		    bs_json_set(o, "containers", bs_json_new_u64(i->leases)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_process(struct bs_json *in, const char *key, pid_t pid)
{
	struct bs_json *o = bs_json_make(in, key, BS_JSON_OBJECT);

	return o ? bs_json_set(o, "pid", bs_json_new_u64((uint64_t)pid)) : -ENOMEM;
}

/* worker_text: its part, or NULL while it is silent. */
static int make_status(struct super *s, const char *worker_text, struct bs_buf *out)
{
	bs_auto(json) struct bs_json *v = bs_json_new(BS_JSON_OBJECT);
	struct bs_json *w, *part = NULL;

	if (!v || bs_json_set(v, "version", bs_json_new_str(PACKAGE_VERSION)) < 0 ||
	    put_process(v, "supervisor", getpid()) < 0 ||
	    put_process(v, "keeper", s->keeper_process.pid) < 0 ||
	    put_process(v, "worker", s->worker_process.pid) < 0)
		return -ENOMEM;
	w = bs_json_get(v, "worker");
	if (bs_json_set(w, "ready", bs_json_new_bool(s->worker_ready)) < 0 ||
	    bs_json_set(w, "restarts", bs_json_new_u64(s->worker_restarts)) < 0 ||
	    bs_json_set(v, "fuse", bs_json_new_bool(s->fuse_fd >= 0)) < 0 ||
	    put_mounts(s, bs_json_make(v, "mounts", BS_JSON_ARRAY)) < 0 ||
	    ckpts_put(s, bs_json_make(v, "checkpoints", BS_JSON_ARRAY)) < 0)
		return -ENOMEM;
	if (worker_text &&
	    bs_json_parse("the worker's status", worker_text, strlen(worker_text), JSON_MAX, &part,
			  NULL) == 0 &&
	    bs_json_set(v, "served", part) < 0)
		return -ENOMEM;
	return bs_json_write(v, out);
}

static void reply_status(struct super *s, struct client *c, uint32_t id, const char *worker_text)
{
	bs_autobuf text = BS_BUF_INIT(JSON_MAX);
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	if (make_status(s, worker_text, &text) < 0 || bs_msg_add_u64(&m, BS_TAG_RESULT, 0) < 0 ||
	    bs_msg_add_long(&m, BS_TAG_JSON, bs_buf_str(&text)) < 0)
		clients_reply(s, c, id, -E2BIG, "the status is too long");
	else
		clients_send(s, c, &m);
}

/* --- requests that the worker answers ---------------------------------------------------------- */

static bool forward(struct super *s, struct client *c, struct bs_msg *m, uint64_t wait_ns)
{
	struct forwarded *f = calloc(1, sizeof(*f));

	if (!f)
		return false;
	*f = (struct forwarded){ .worker_id = ++s->next_id,
				 .client = c,
				 .client_id = m->id,
				 .type = m->type,
				 .deadline_ns = bs_clock_ns() + wait_ns };
	bs_list_append(&s->forwarded, &f->all);
	m->id = f->worker_id;
	if (workers_send(s, m))
		return true;
	m->id = f->client_id;
	bs_list_remove(&f->all);
	free(f);
	return false;
}

static void forwarded_end(struct super *s, struct forwarded *f, struct bs_msg *m, int result,
			  const char *text)
{
	bs_autofree char *json = NULL;

	if (f->type == BS_MSG_STATUS) {
		if (m)
			(void)bs_msg_long(m, BS_TAG_JSON, JSON_MAX, &json);
		reply_status(s, f->client, f->client_id, json);
	} else if (m) {
		m->id = f->client_id;
		clients_send(s, f->client, m);
	} else {
		clients_reply(s, f->client, f->client_id, result, text);
	}
	bs_list_remove(&f->all);
	free(f);
}

void clients_forwarded(struct super *s, uint32_t worker_id, struct bs_msg *m)
{
	bs_list_for_each(it, &s->forwarded) {
		struct forwarded *f = bs_list_entry(it, struct forwarded, all);

		if (!m)
			forwarded_end(s, f, NULL, -EAGAIN, "the worker died, try again");
		else if (f->worker_id == worker_id)
			forwarded_end(s, f, m, 0, NULL);
	}
}

void clients_expire(struct super *s, uint64_t now_ns)
{
	if (s->accept_next_ns > 0 && s->accept_next_ns <= now_ns) {
		/* without memory for it, once more after the next pause */
		s->accept_next_ns = super_watch(s, &s->listen) < 0 ? now_ns + ACCEPT_PAUSE_NS : 0;
	}
	bs_list_for_each(it, &s->forwarded) {
		struct forwarded *f = bs_list_entry(it, struct forwarded, all);

		if (f->deadline_ns <= now_ns)
			forwarded_end(s, f, NULL, -ETIMEDOUT, "the worker did not answer in time");
	}
}

/* --- connections ----------------------------------------------------------------------------------- */

static void hello(struct super *s, struct client *c, uint32_t id)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_text(&m, BS_TAG_PROGRAM, PACKAGE_VERSION);
	clients_send(s, c, &m);
}

static void hot_ready(struct super *s, struct client *c, const struct bs_msg *m)
{
	const char *container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
	char text[256];
	bool found = container && hots_ready(s, container);

	(void)snprintf(
		text, sizeof(text),
		"'%.80s' is not recorded: its workload has a hot pack or is not to have one, "
		"its window is over, or there is no such container",
		container ? container : "");
	clients_reply(s, c, m->id, found ? 0 : -ENOENT, found ? NULL : text);
}

static void request(struct super *s, struct client *c, struct bs_msg *m)
{
	struct bs_error err = BS_ERROR_INIT;
	const char *container;
	int r;

	switch (m->type) {
	case BS_MSG_HELLO:
		hello(s, c, m->id);
		break;
	case BS_MSG_ACQUIRE:
		mounts_acquire(s, c, m);
		break;
	case BS_MSG_RELEASE:
		container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
		if (container)
			leases_release(s, container);
		clients_reply(s, c, m->id, 0, NULL);
		break;
	case BS_MSG_STATUS:
		if (!forward(s, c, m, STATUS_WAIT_NS))
			reply_status(s, c, m->id, NULL);
		break;
	case BS_MSG_COMPLETE:
	case BS_MSG_VERIFY:
		if (!forward(s, c, m, COMPLETE_WAIT_NS))
			clients_reply(s, c, m->id, -EAGAIN, "no worker is ready, try again");
		break;
	case BS_MSG_RESOLVE:
		resolves_request(s, c, m);
		break;
	case BS_MSG_CKPT_MOUNT:
		ckpts_request(s, c, m);
		break;
	case BS_MSG_CKPT_STATUS:
		ckpts_status(s, c, m);
		break;
	case BS_MSG_HOT_READY:
		hot_ready(s, c, m);
		break;
	case BS_MSG_UNPACK:
		unpacks_request(s, c, m);
		break;
	case BS_MSG_UPGRADE:
		r = workers_replace(s, &err);
		clients_reply(s, c, m->id, r, r < 0 ? bs_error_text(&err) : NULL);
		break;
	default:
		clients_reply(s, c, m->id, -EOPNOTSUPP, "this bootseerd does not know the request");
	}
}

static void client_ready(struct super *s, struct watch *w, uint32_t events)
{
	struct client *c = BS_CONTAINER_OF(w, struct client, watch);
	bs_automsg m;
	int r;

	bs_msg_init(&m, 0, 0);
	r = c->gone ? -ECONNRESET : bs_msg_recv(w->fd, &m);
	if (r == -EAGAIN)
		return;
	if (r < 0)
		c->gone = true;
	else
		request(s, c, &m);
}

/* A reply to whatever will be asked: see bs_client_call. */
static void refuse(int sock)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, EMFILE);
	(void)bs_msg_add_text(&m, BS_TAG_TEXT,
			      "bootseerd has too many files open; raise its limit (LimitNOFILE in "
			      "its unit, or ulimit -n) or try again");
	(void)bs_msg_send_now(sock, &m);
}

/*
 * There is no descriptor for the connection, and it would be shown again and again: with the
 * one that is kept for this it is taken and told so. Then a pause: others need time to end.
 */
static void out_of_fds(struct super *s)
{
	const uint64_t now = bs_clock_ns();
	int fd;

	if (bs_limit_take(&s->refusals, 1, now))
		bs_log_warning("too many open files, refusing connections");
	s->spare_fd = bs_close(s->spare_fd);
	fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(fd);
	(void)bs_close(fd);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	super_unwatch(s, &s->listen);
	s->accept_next_ns = now + ACCEPT_PAUSE_NS;
}

static void accept_one(struct super *s, struct watch *w, uint32_t events)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct client *c;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		out_of_fds(s);
	if (fd < 0)
		return;
	c = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == 0
		    ? calloc(1, sizeof(*c))
		    : NULL;
	if (!c) {
		(void)bs_close(fd);
		return;
	}
	c->watch = (struct watch){ .fd = fd, .ready = client_ready };
	bs_list_append(&s->clients, &c->all);
	if (super_watch(s, &c->watch) < 0)
		c->gone = true;
}

int clients_listen(struct super *s)
{
	bs_limit_init(&s->refusals, 1, 1, bs_clock_ns());
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->listen.ready = accept_one;
	return super_watch(s, &s->listen);
}

/* Between the rounds, when nothing on the stack refers to a client. */
void clients_sweep(struct super *s)
{
	bs_list_for_each(it, &s->clients) {
		struct client *c = bs_list_entry(it, struct client, all);

		if (!c->gone)
			continue;
		pendings_client_gone(s, c);
		ckpts_client_gone(s, c);
		bs_list_for_each(fit, &s->forwarded) {
			struct forwarded *f = bs_list_entry(fit, struct forwarded, all);

			if (f->client == c) {
				bs_list_remove(&f->all);
				free(f);
			}
		}
		super_unwatch(s, &c->watch);
		(void)bs_close(c->watch.fd);
		bs_list_remove(&c->all);
		free(c);
	}
}
