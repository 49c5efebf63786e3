/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Mounts of checkpoint trees on HDFS, each served by a process of its own (ckptworker.c).
 *
 *            request ──▶ STARTING ──READY──▶ SERVING ──no holder──▶ ENDING
 *                           │ failed, late      │ unmounted, died      │ ended, late
 *                           ▼                   ▼                      ▼
 *                        forgotten          forgotten              forgotten
 *
 * Containers that ask for the same with the same options share one, and hold it until they
 * are deleted: as long we have the mount open, so that the next one gets a copy. When the last
 * holder is gone so is our copy, and the server ends by itself when no mount is left anywhere;
 * it is told to end, too, for whoever made a mount namespace meanwhile may have a copy for
 * long. A mount for nobody in particular (a person's) is not kept open here: whoever unmounts
 * it ends it.
 *
 * When a server dies another goes on in its place, with the connection to FUSE and a memory in
 * which it had kept what the kernel knows (hdfs/fskeep.h): who reads waits, files that were being
 * written are lost. One that cannot, since HDFS is away, is followed by a next one later, until
 * it is unmounted.
 *
 * The server does not need us: it goes on when we die, and the supervisor after us finds its
 * socket, its pidfd and the mount with the keeper, and the rest in RUN_DIR/ckpts/ID.json. A
 * service manager ends it with us: then the next supervisor starts another as after a death.
 */
#include "config.h"

#include "daemon/ckpts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "daemon/program.h"
#include "kern/fusedev.h"
#include "hdfs/mount.h"
#include "kern/mountfd.h"
#include "obs/timeline.h"
#include "rootfs/ckptdir.h"

#define GRACE_NS (5 * BS_NS_PER_S) /* over what the client waits, for the way there and back */
#define WAIT_NS (60 * BS_NS_PER_S)
#define END_NS (150 * BS_NS_PER_S)	/* for what was written to reach HDFS */
#define AGAIN_NS (600 * BS_NS_PER_S)	/* for a server that takes over thousands of files */
#define PAUSE_MAX_NS (30 * BS_NS_PER_S) /* between two that try */
#define DEATHS_NS (60 * BS_NS_PER_S)	/* further apart they are no row */
#define DEATHS_MAX 5u			/* what kills them may be a request that is repeated */
#define STATUS_NS (2 * BS_NS_PER_S)
#define READAHEAD_KIB 1024u

/* --- mounts ---------------------------------------------------------------------------------- */

static void ask_free(struct ask *a)
{
	bs_list_remove(&a->all);
	free(a->container);
	free(a);
}

static void fail_asks(struct super *s, struct ckpt *c, int result, const char *text)
{
	bs_list_for_each(it, &c->asks) {
		struct ask *a = bs_list_entry(it, struct ask, all);

		clients_reply(s, a->client, a->client_id, result, text);
		ask_free(a);
	}
}

void ckpt_let_go(struct super *s, struct ckpt *c)
{
	c->process.pid = 0;
	ckpt_forget(s, c);
}

void ckpt_forget(struct super *s, struct ckpt *c)
{
	fail_asks(s, c, -EIO, "its server has ended");
	if (c->state != STARTING)
		ckpt_drop_names(s, c);
	(void)bs_close(c->mnt);
	if (c->link.fd >= 0)
		super_unwatch(s, &c->link);
	(void)bs_close(c->link.fd);
	super_kill(&c->process);
	(void)bs_close(c->process.pidfd);
	(void)bs_close(c->fuse_fd);
	(void)bs_close(c->memory_fd);
	ckpt_remove_record(s, c);
	bs_list_remove(&c->all);
	bs_strv_done(&c->holders);
	free(c->source);
	free(c->options);
	free(c);
}

/* --- giving it out --------------------------------------------------------------------------- */

static int hold(struct super *s, struct ckpt *c, const char *container)
{
	int r;

	if (!container || bs_strv_has(&c->holders, container))
		return 0;
	r = bs_strv_add(&c->holders, container);
	return r < 0 ? r : ckpt_write_record(s, c);
}

static void grant(struct super *s, struct ckpt *c, struct ask *a)
{
	bs_autofd int copy = bs_mountfd_clone(c->mnt, "", NULL);
	bs_automsg m;
	int r = hold(s, c, a->container);

	bs_msg_init(&m, BS_MSG_REPLY, a->client_id);
	if (r == 0 && copy < 0 && !c->for_nobody)
		r = copy;
	if (r == 0)
		r = bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	if (r == 0)
		r = bs_msg_add_text(&m, BS_TAG_NAME, c->id);
	if (r == 0)
		r = bs_msg_add_fd(&m, copy >= 0 ? copy : c->mnt);
	if (r < 0)
		clients_reply(s, a->client, a->client_id, r, "hand over the mount");
	else
		clients_send(s, a->client, &m);
	ask_free(a);
}

void ckpt_end(struct super *s, struct ckpt *c)
{
	bs_automsg m;

	if (c->state == ENDING)
		return;
	ckpt_drop(s, c, &c->mnt);
	c->state = ENDING;
	c->deadline_ns = bs_clock_ns() + (c->link.fd >= 0 ? END_NS : 0);
	bs_msg_init(&m, BS_MSG_QUIT, 0);
	(void)bs_msg_send(c->link.fd, &m);
}

static void took_over(struct super *s, struct ckpt *c)
{
	c->again = false;
	c->tries = 0;
	bs_log_info("'%s' is served by process %d after %" PRIu64 " ms", c->source,
		    (int)c->process.pid, (bs_clock_ns() - c->started_ns) / BS_NS_PER_MS);
	if (c->holders.n == 0 && !c->for_nobody)
		ckpt_end(s, c);
}

static void became_ready(struct super *s, struct ckpt *c)
{
	c->state = SERVING;
	bs_log_info("'%s' is served as %s by process %d after %" PRIu64 " ms", c->source, c->id,
		    (int)c->process.pid, (bs_clock_ns() - c->started_ns) / BS_NS_PER_MS);
	(void)bs_fusedev_set_readahead(c->mnt, READAHEAD_KIB); /* slower with the kernel's own */
	if (ckpt_write_record(s, c) < 0)
		bs_log_warning("'%s': its record cannot be written, continuing", c->source);
	/* first: what somebody has, whoever comes after us must know */
	ckpt_keep(s, c, kept_put);
	bs_list_for_each(it, &c->asks)
		grant(s, c, bs_list_entry(it, struct ask, all));
	if (c->for_nobody)
		c->mnt = bs_close(c->mnt);
	else if (c->holders.n == 0) /* all who asked have gone away */
		ckpt_end(s, c);
}

/* --- its server --------------------------------------------------------------------------------- */

static void server_replied(struct super *s, struct ckpt *c, struct bs_msg *m)
{
	bs_list_for_each(it, &c->asks) {
		struct ask *a = bs_list_entry(it, struct ask, all);

		if (a->link_id != m->id || m->id == 0)
			continue;
		m->id = a->client_id;
		clients_send(s, a->client, m);
		ask_free(a);
		return;
	}
}

static int tell_start(const struct ckpt *c, int link, int timeline)
{
	bs_automsg m;
	int r;

	bs_msg_init(&m, BS_MSG_START, 0);
	r = bs_msg_add_text(&m, BS_TAG_SOURCE, c->source);
	if (r == 0)
		r = bs_msg_add_text(&m, BS_TAG_OPTIONS, c->options);
	if (r == 0)
		r = bs_msg_add_u64(&m, BS_TAG_EPOCH, c->generation);
	if (r == 0)
		r = bs_msg_add_u64(&m, BS_TAG_TAKEOVER, c->again);
	if (r == 0)
		r = bs_msg_add_fd(&m, c->memory_fd);
	if (r == 0 && timeline >= 0)
		r = bs_msg_add_fd(&m, timeline);
	return r == 0 ? bs_msg_send(link, &m) : r;
}

static int make_mount(struct ckpt *c, struct bs_error *err)
{
	const bool noexec = bs_str_option(c->options, "noexec", "exec");
	const bool noatime = bs_str_option(c->options, "noatime", "atime");
	const struct bs_fusedev_mount fm = { .subtype = "bootseer-hdfs",
					     .source = c->source,
					     .writable = !c->read_only,
					     .attrs = (noexec ? MOUNT_ATTR_NOEXEC : 0) |
						      (noatime ? MOUNT_ATTR_NOATIME : 0) };

	c->memory_fd = bs_memfd("bootseer-ckpt");
	if (c->memory_fd < 0)
		return bs_fail_errno(err, c->memory_fd, "make memory");
	if (ftruncate(c->memory_fd, (off_t)bs_mounted_kept_bytes()) < 0)
		return bs_fail_errno(err, -errno, "make memory");
	c->fuse_fd = bs_fusedev_open(err);
	if (c->fuse_fd < 0)
		return c->fuse_fd;
	c->mnt = bs_fusedev_mount(c->fuse_fd, &fm, err);
	return c->mnt < 0 ? c->mnt : 0;
}

static int start_server(struct super *s, struct ckpt *c, int timeline, struct bs_error *err)
{
	const struct bs_part part = { .role = "ckpt",
				      .arg = c->id,
				      .config = s->config_file,
				      .fds = &c->fuse_fd,
				      .n_fds = 1 };
	bs_autofd int link = -EBADF;
	int r;

	r = bs_program_start(&part, &c->process, &link, err);
	if (r < 0)
		return r;
	r = tell_start(c, link, timeline);
	if (r < 0)
		return bs_fail_errno(err, r, "tell the server to start");
	(void)fcntl(link, F_SETFL, O_NONBLOCK);
	c->link = (struct watch){ .fd = link, .ready = ckpt_link_ready };
	r = super_watch(s, &c->link);
	if (r < 0) {
		c->link.fd = -EBADF;
		return bs_fail_errno(err, r, "watch the server");
	}
	(void)bs_take_fd(&link);
	return 0;
}

/* Whether its connection is of use: an unmount or an abort ends that. */
static bool is_mounted(const struct ckpt *c)
{
	struct pollfd p = { .fd = c->fuse_fd };

	return poll(&p, 1, 0) == 0;
}

static bool can_go_on(const struct super *s, const struct ckpt *c)
{
	return c->state == SERVING && !c->said_unmounted && !s->stop && c->fuse_fd >= 0 &&
	       c->memory_fd >= 0 && c->generation < UINT16_MAX && is_mounted(c);
}

/* The pidfd stays, and kept: so whoever is next sees that none lives. */
static void end_server(struct super *s, struct ckpt *c)
{
	if (c->link.fd >= 0)
		super_unwatch(s, &c->link);
	c->link.fd = bs_close(c->link.fd);
	super_kill(&c->process);
}

/* A failure of HDFS passes: who waits is served then. */
static void try_later(struct super *s, struct ckpt *c, const char *why)
{
	const uint64_t pause_ns = c->tries < 5 ? BS_NS_PER_S << c->tries : PAUSE_MAX_NS;

	bs_log_warning("the server of '%s' (%s) died, and another cannot go on yet: %s; trying "
		       "again in %" PRIu64 " s",
		       c->source, c->id, why, pause_ns / BS_NS_PER_S);
	end_server(s, c);
	c->tries++;
	c->again_ns = bs_clock_ns() + pause_ns;
}

void ckpt_go_on(struct super *s, struct ckpt *c)
{
	struct bs_error err = BS_ERROR_INIT;

	end_server(s, c);
	c->process.pidfd = bs_close(c->process.pidfd);
	c->again = true;
	c->again_ns = 0;
	c->deadline_ns = bs_clock_ns() + AGAIN_NS;
	c->generation++;
	err.code = ckpt_write_record(s, c);
	if (err.code < 0)
		(void)bs_fail_errno(&err, err.code, "write its record");
	else if (start_server(s, c, -EBADF, &err) == 0)
		ckpt_keep(s, c, kept_put);
	else
		err.code = err.code ? err.code : -EIO;
	if (err.code < 0)
		try_later(s, c, bs_error_text(&err));
}

/* After a death; false: there is no next one. */
static bool start_again(struct super *s, struct ckpt *c)
{
	const uint64_t now = bs_clock_ns();

	if (now - c->died_ns > DEATHS_NS)
		c->deaths = 0;
	c->died_ns = now;
	if (!can_go_on(s, c) || ++c->deaths > DEATHS_MAX)
		return false;
	bs_log_warning("the server of '%s' (%s) died, starting another; files that were being "
		       "written are lost",
		       c->source, c->id);
	fail_asks(s, c, -EAGAIN, "its server died, try again");
	c->started_ns = now;
	c->tries = 0;
	ckpt_go_on(s, c);
	return true;
}

static void server_gone(struct super *s, struct ckpt *c)
{
	if (start_again(s, c))
		return;
	if (c->state == SERVING && !c->said_unmounted)
		bs_log_error("the server of '%s' (%s) died: %zu containers have lost their mount",
			     c->source, c->id, c->holders.n);
	fail_asks(s, c, -EIO, "its server died");
	ckpt_forget(s, c);
}

/* Whether what a server failed with may be otherwise the next time. */
static bool passes(int error)
{
	static const int lasting[] = { EINVAL, ENODEV,	ENOSYS,	  EOPNOTSUPP,
				       EPROTO, EBADMSG, EOVERFLOW };

	for (size_t i = 0; i < BS_ARRAY_LEN(lasting); i++) {
		if (error == lasting[i])
			return false;
	}
	return true;
}

static void server_ready(struct super *s, struct ckpt *c, struct bs_msg *m)
{
	const char *text = bs_msg_text(m, BS_TAG_TEXT, 0);
	uint64_t result = EPROTO;

	if (c->state != STARTING && !c->again)
		return;
	if (bs_msg_u64(m, BS_TAG_RESULT, &result) < 0 || result > 4095)
		result = EPROTO;
	if (result == 0 && c->again) {
		took_over(s, c);
		return;
	}
	if (result == 0) {
		became_ready(s, c);
		return;
	}
	if (c->again && can_go_on(s, c) && passes((int)result)) {
		try_later(s, c, text ? text : "?");
		return;
	}
	if (c->again)
		bs_log_error("the server of '%s' (%s) died, and another cannot go on: %s; %zu "
			     "containers have lost their mount",
			     c->source, c->id, text ? text : "?", c->holders.n);
	fail_asks(s, c, -(int)result, text ? text : "its server failed without a word");
	ckpt_forget(s, c);
}

void ckpt_link_ready(struct super *s, struct watch *w, uint32_t events)
{
	struct ckpt *c = BS_CONTAINER_OF(w, struct ckpt, link);
	bs_automsg m;
	int r;

	bs_msg_init(&m, 0, 0);
	r = bs_msg_recv(w->fd, &m);
	if (r == -EAGAIN)
		return;
	if (r < 0)
		server_gone(s, c);
	else if (m.type == BS_MSG_READY)
		server_ready(s, c, &m);
	else if (m.type == BS_MSG_REPLY)
		server_replied(s, c, &m);
	else if (m.type == BS_MSG_QUIT)
		c->said_unmounted = true;
}

/* --- asking for one ---------------------------------------------------------------------------- */

static struct ask *ask_new(struct ckpt *c, struct client *client, const struct bs_msg *m,
			   uint64_t wait_ns)
{
	const char *container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
	struct ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->client = client;
	a->client_id = m->id;
	a->deadline_ns = bs_clock_ns() + wait_ns;
	if (container && !(a->container = strdup(container))) {
		free(a);
		return NULL;
	}
	bs_list_append(&c->asks, &a->all);
	return a;
}

/* One that serves, or is about to, the same. */
static struct ckpt *find_same(struct super *s, const char *source, const char *options)
{
	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		if (c->state != ENDING && !c->for_nobody && !c->said_unmounted &&
		    (c->state == STARTING || c->mnt >= 0) && bs_streq(c->source, source) &&
		    bs_streq(c->options, options))
			return c;
	}
	return NULL;
}

static struct ckpt *make(struct super *s, const struct bs_msg *m, struct bs_error *err)
{
	const char *timeline = bs_msg_text(m, BS_TAG_TIMELINE, 0);
	struct bs_timeline tl;
	uint64_t n, read_only = 0;
	char id[ID_LEN + 1];
	struct ckpt *c;
	int r;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return (void)bs_fail_errno(err, -errno, "getrandom"), NULL;
	(void)snprintf(id, sizeof(id), "%016" PRIx64, n);
	c = ckpt_new(s, id);
	if (c) {
		c->source = strdup(bs_msg_text(m, BS_TAG_SOURCE, 0));
		c->options = strdup(bs_msg_text(m, BS_TAG_OPTIONS, 0));
	}
	if (!c || !c->source || !c->options) {
		if (c)
			ckpt_forget(s, c);
		return (void)bs_fail(err, -ENOMEM, "out of memory"), NULL;
	}
	(void)bs_msg_u64(m, BS_TAG_READ_ONLY, &read_only);
	c->read_only = read_only != 0;
	c->for_nobody = !bs_msg_text(m, BS_TAG_CONTAINER, 0);
	c->started_ns = bs_clock_ns();
	bs_timeline_open(&tl, s->run_fd, timeline ? timeline : "", "bootseer-ckpt");
	c->generation = 1;
	r = make_mount(c, err);
	if (r == 0)
		r = start_server(s, c, tl.fd, err);
	bs_timeline_done(&tl);
	if (r == 0)
		return c;
	ckpt_forget(s, c);
	return NULL;
}

static unsigned int count(const struct super *s)
{
	unsigned int n = 0;

	bs_list_for_each(it, &s->ckpts)
		n++;
	return n;
}

void ckpts_request(struct super *s, struct client *client, struct bs_msg *m)
{
	const char *source = bs_msg_text(m, BS_TAG_SOURCE, 0);
	const char *options = bs_msg_text(m, BS_TAG_OPTIONS, 0);
	const char *container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
	struct bs_error err = BS_ERROR_INIT;
	uint64_t wait_ns = WAIT_NS;
	struct ckpt *c;
	struct ask *a;

	if (!source || !options || (container && !bs_path_name_ok(container, strlen(container)))) {
		clients_reply(s, client, m->id, -EINVAL, "checkpoint: bad request");
		return;
	}
	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	wait_ns = BS_MIN(wait_ns, 3600 * BS_NS_PER_S) + GRACE_NS;
	c = container ? find_same(s, source, options) : NULL;
	if (!c && count(s) >= CKPTS_MAX)
		(void)bs_fail(&err, -EMFILE, "there are %u checkpoint mounts already", CKPTS_MAX);
	else if (!c)
		c = make(s, m, &err);
	if (!c) {
		clients_reply(s, client, m->id, err.code, bs_error_text(&err));
		return;
	}
	c->deadline_ns = BS_MAX(c->deadline_ns, bs_clock_ns() + wait_ns);
	a = ask_new(c, client, m, wait_ns);
	if (!a)
		clients_reply(s, client, m->id, -ENOMEM, "out of memory");
	else if (c->state == SERVING)
		grant(s, c, a);
}

void ckpts_status(struct super *s, struct client *client, struct bs_msg *m)
{
	const char *id = bs_msg_text(m, BS_TAG_NAME, 0);
	struct ckpt *c = id ? ckpt_find(s, id) : NULL;
	struct ask *a;
	bs_automsg q;

	if (!c || c->state == STARTING) {
		clients_reply(s, client, m->id, -ENOENT, "there is no such checkpoint mount");
		return;
	}
	a = ask_new(c, client, m, STATUS_NS);
	if (!a) {
		clients_reply(s, client, m->id, -ENOMEM, "out of memory");
		return;
	}
	a->link_id = ++s->next_id;
	bs_msg_init(&q, BS_MSG_STATUS, a->link_id);
	if (bs_msg_send(c->link.fd, &q) < 0) {
		clients_reply(s, client, m->id, -EAGAIN, "its server does not listen");
		ask_free(a);
	}
}

static int put_one(struct bs_json *o, const struct ckpt *c)
{
	static const char *const states[] = { "starting", "serving", "ending" };

	if (bs_json_set(o, "id", bs_json_new_str(c->id)) < 0 ||
	    bs_json_set(o, "state", bs_json_new_str(states[c->state])) < 0 ||
	    bs_json_set(o, "pid", bs_json_new_u64((uint64_t)c->process.pid)) < 0)
		return -ENOMEM;
	return ckpt_describe(o, c);
}

int ckpts_put(struct super *s, struct bs_json *array)
{
	bs_list_for_each(it, &s->ckpts) {
		struct bs_json *o = bs_json_new(BS_JSON_OBJECT);

		if (bs_json_append(array, o) < 0 ||
		    put_one(o, bs_list_entry(it, struct ckpt, all)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- letting go ------------------------------------------------------------------------------- */

static void remove_holder(struct bs_strv *l, const char *container)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!bs_streq(l->v[i], container))
			continue;
		free(l->v[i]);
		l->v[i] = l->v[--l->n];
		return;
	}
}

static void let_go(struct super *s, struct ckpt *c, const char *container)
{
	if (!bs_strv_has(&c->holders, container))
		return;
	remove_holder(&c->holders, container);
	(void)ckpt_write_record(s, c); /* a sweep makes good what it does not say */
	if (c->holders.n == 0 && c->state == SERVING)
		ckpt_end(s, c);
}

void ckpts_released(struct super *s, const char *container)
{
	bs_list_for_each(it, &s->ckpts)
		let_go(s, bs_list_entry(it, struct ckpt, all), container);
}

void ckpts_client_gone(struct super *s, const struct client *client)
{
	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		bs_list_for_each(at, &c->asks) {
			struct ask *a = bs_list_entry(at, struct ask, all);

			if (a->client == client)
				ask_free(a);
		}
	}
}

/* The shim writes a container's state before it asks, and removes it after all else. */
static bool has_state(struct super *s, const char *container)
{
	bs_autofree char *path = bs_strf("state/%s.json", container);

	return !path || faccessat(s->run_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENAMETOOLONG);
}

void ckpts_sweep(struct super *s)
{
	struct bs_error err = BS_ERROR_INIT;

	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		for (size_t i = c->holders.n; i-- > 0;) {
			bs_autofree char *container = strdup(c->holders.v[i]);

			if (!container || has_state(s, container))
				continue;
			bs_log_info("container '%s' is gone without giving '%s' back", container,
				    c->source);
			if (bs_ckptdir_detach(s->run_fd, container, &err) < 0)
				bs_log_warning("%s, continuing", bs_error_text(&err));
			let_go(s, c, container);
		}
	}
}

static void expire_asks(struct super *s, struct ckpt *c, uint64_t now_ns)
{
	bs_list_for_each(it, &c->asks) {
		struct ask *a = bs_list_entry(it, struct ask, all);

		if (a->deadline_ns > now_ns)
			continue;
		clients_reply(s, a->client, a->client_id, -ETIMEDOUT,
			      "its server did not answer in time");
		ask_free(a);
	}
}

/* Of one whose next server is on its way. */
static void expire_again(struct super *s, struct ckpt *c, uint64_t now_ns)
{
	if (!c->again || now_ns < (c->again_ns ? c->again_ns : c->deadline_ns))
		return;
	if (!c->again_ns) {
		try_later(s, c, "it takes too long");
	} else if (can_go_on(s, c)) {
		ckpt_go_on(s, c);
	} else {
		bs_log_info("'%s' (%s) is unmounted", c->source, c->id);
		ckpt_forget(s, c);
	}
}

void ckpts_expire(struct super *s, uint64_t now_ns)
{
	if (s->stop)
		return;
	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		expire_asks(s, c, now_ns);
		if (c->state == SERVING) {
			expire_again(s, c, now_ns);
			continue;
		}
		if (c->deadline_ns > now_ns)
			continue;
		if (c->state == ENDING && c->link.fd >= 0)
			bs_log_error("the server of '%s' (%s) does not end, killing it", c->source,
				     c->id);
		ckpt_forget(s, c);
	}
}

bool ckpts_waiting(const struct super *s)
{
	bs_list_for_each(it, &s->ckpts) {
		const struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		if (c->state != SERVING || c->again || !bs_list_empty(&c->asks))
			return true;
	}
	return false;
}
