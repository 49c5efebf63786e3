/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One mount an image, made once and handed to every container that asks.
 *
 *   IDLE ──acquire──▶ PREPARING ──worker: metadata──▶ MOUNTING ──child: mount──▶ MOUNTED
 *     ▲                  │ failed                        │ failed                  │
 *     └──────────────────┴───────────────────────────────┘      unused for long ◀──┘
 *
 * A lazy mount whose image has become complete stays with its containers; the next
 * acquire goes through PREPARING again and gets a mount that reads the file itself.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "daemon/super.h"
#include "kern/mountfd.h"
#include "obs/timeline.h"

#define GRACE_NS (10 * BS_NS_PER_S) /* over what the client waits, for the way there and back */
#define PRUNE_EVERY 256u	    /* starts, between two looks at the timelines */

/* --- images ----------------------------------------------------------------------------- */

static pending_ended prepared;

struct held_image *mounts_get(struct super *s, const char *digest, bool make)
{
	struct held_image *i;

	bs_list_for_each(it, &s->images) {
		i = bs_list_entry(it, struct held_image, all);
		if (bs_streq(i->digest, digest))
			return i;
	}
	i = make && strlen(digest) == BS_DIGEST_TEXT_LEN - 1 ? calloc(1, sizeof(*i)) : NULL;
	if (!i)
		return NULL;
	memcpy(i->digest, digest, BS_DIGEST_TEXT_LEN);
	i->mnt = -EBADF;
	i->used_ns = bs_clock_ns();
	pending_init(s, &i->prepare, prepared);
	bs_list_append(&s->images, &i->all);
	return i;
}

static const char *kept_name(const struct held_image *i, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s:%s", i->lazy ? "lazy" : "whole", i->digest);
	return buf;
}

static void drop_mount(struct super *s, struct held_image *i)
{
	char name[BS_DIGEST_TEXT_LEN + 16];

	if (i->mnt < 0)
		return;
	kept_drop(s, kept_name(i, name, sizeof(name)));
	i->mnt = bs_close(i->mnt);
}

void mounts_adopt(struct super *s, const char *name, int fd)
{
	const char *whole = bs_str_after(name, "whole:"), *lazy = bs_str_after(name, "lazy:");
	struct held_image *i = NULL;

	if (whole || lazy)
		i = mounts_get(s, whole ? whole : lazy, true);
	if (!i || i->mnt >= 0) {
		(void)bs_close(fd);
		return;
	}
	i->mnt = fd;
	i->lazy = lazy != NULL;
	i->complete = !i->lazy;
	i->state = IMAGE_MOUNTED;
	i->used_ns = bs_clock_ns();
}

void mounts_drop_lazy(struct super *s)
{
	bs_list_for_each(it, &s->images) {
		struct held_image *i = bs_list_entry(it, struct held_image, all);

		if (i->mnt < 0 || !i->lazy)
			continue;
		drop_mount(s, i);
		i->state = IMAGE_IDLE;
	}
}

void mounts_completed(struct super *s, const char *digest)
{
	struct held_image *i = mounts_get(s, digest, false);

	if (i)
		i->complete = true;
}

/* --- giving it out --------------------------------------------------------------------------- */

static void mark(struct waiter *a, enum bs_span span, uint64_t start_ns)
{
	struct bs_timeline tl = { .fd = a->timeline, .program = "bootseerd" };

	bs_timeline_span(&tl, span, start_ns, 0, NULL);
}

/*
 * A copy of the mount, so that whoever attaches it does not take ours away. Kernels that
 * copy no detached mount get the shared one, which is fine for all who only stack on it.
 */
static int add_mount(struct bs_msg *m, int mnt)
{
	bs_autofd int copy = bs_mountfd_clone(mnt, "", NULL);

	return bs_msg_add_fd(m, copy >= 0 ? copy : mnt);
}

static void grant(struct super *s, struct held_image *i, struct waiter *a)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, a->id);
	i->used_ns = bs_clock_ns();
	if (!leases_add(s, a->container, i) || bs_msg_add_u64(&m, BS_TAG_RESULT, 0) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_COMPLETE, !i->lazy) < 0 || add_mount(&m, i->mnt) < 0) {
		leases_release(s, a->container);
		clients_reply(s, a->client, a->id, -ENOMEM, "out of memory");
	} else {
		clients_send(s, a->client, &m);
		if (a->client->gone) /* its release may have come before */
			leases_release(s, a->container);
	}
	waiter_free(a);
}

static void grant_all(struct super *s, struct held_image *i)
{
	bs_list_for_each(it, &i->prepare.waiting)
		grant(s, i, bs_list_entry(it, struct waiter, all));
}

static void fail_all(struct super *s, struct held_image *i, int result, const char *text)
{
	/* a newer mount could not be made, the one that is there serves as well as before */
	if (i->mnt >= 0) {
		bs_log_warning("image %s: %s; its lazy mount goes on", i->digest, text);
		i->state = IMAGE_MOUNTED;
		grant_all(s, i);
		return;
	}
	i->state = IMAGE_IDLE;
	pending_fail(s, &i->prepare, result, text);
}

/* --- the way to a mount ------------------------------------------------------------------------- */

static void mounted(struct super *s, struct child *c, struct bs_msg *m)
{
	struct held_image *i = c->cookie;
	char name[BS_DIGEST_TEXT_LEN + 16];
	uint64_t result = ETIMEDOUT;
	const char *text = NULL;
	int fd;

	if (m) {
		text = bs_msg_text(m, BS_TAG_TEXT, 0);
		if (bs_msg_u64(m, BS_TAG_RESULT, &result) < 0 || result > 4095)
			result = EPROTO;
	}
	fd = m ? bs_msg_take_fd(m, 0) : -EBADF;
	if (result != 0 || fd < 0) {
		fail_all(s, i, result ? -(int)result : -EPROTO,
			 text ? text : "mounting the image took too long");
		return;
	}
	drop_mount(s, i);
	i->mnt = fd;
	i->lazy = c->id == 0; /* see start_mounting */
	i->state = IMAGE_MOUNTED;
	kept_put(s, kept_name(i, name, sizeof(name)), i->mnt);
	bs_list_for_each(it, &i->prepare.waiting)
		mark(bs_list_entry(it, struct waiter, all), BS_SPAN_MOUNT,
		     c->deadline_ns - GRACE_NS);
	grant_all(s, i);
}

/* m: the worker's answer, with the metadata and, when complete, the blob. */
static int start_mounting(struct super *s, struct held_image *i, struct bs_msg *m,
			  struct bs_error *err)
{
	bs_autofd int meta = bs_msg_take_fd(m, 0), blob = bs_msg_take_fd(m, 1);
	uint64_t complete = 0;
	int fds[2];

	(void)bs_msg_u64(m, BS_TAG_COMPLETE, &complete);
	if (meta < 0 || (complete && blob < 0))
		return bs_fail(err, -EPROTO, "the worker sent no metadata");
	if (!complete && s->fuse_mnt < 0)
		return bs_fail(err, -EOPNOTSUPP, "no FUSE on this node");
	i->complete = complete;
	fds[0] = meta;
	fds[1] = complete ? blob : s->fuse_mnt;
	i->state = IMAGE_MOUNTING;
	return children_start(s, complete ? "mount-whole" : "mount-lazy",
			      i->digest + strlen("sha256:"), fds, 2, bs_clock_ns() + GRACE_NS,
			      mounted, i, complete != 0, err);
}

static void prepared(struct super *s, struct pending *p, int result, const char *text,
		     struct bs_msg *m)
{
	struct held_image *i = BS_CONTAINER_OF(p, struct held_image, prepare);
	struct bs_error err = BS_ERROR_INIT;
	int r;

	if (result < 0) {
		fail_all(s, i, result, text);
		return;
	}
	r = start_mounting(s, i, m, &err);
	if (r < 0)
		fail_all(s, i, r, bs_error_text(&err));
}

static void start_preparing(struct super *s, struct held_image *i, const struct bs_msg *m,
			    uint64_t wait_ns, int timeline)
{
	struct bs_msg *q = pending_begin(s, &i->prepare, BS_MSG_PREPARE, m, wait_ns);

	(void)bs_msg_add_text(q, BS_TAG_DIGEST, i->digest);
	if (timeline >= 0)
		(void)bs_msg_add_fd(q, timeline);
	i->state = IMAGE_PREPARING;
	pending_send(s, &i->prepare);
}

static struct waiter *acquirer_new(struct super *s, struct held_image *i, struct client *c,
				   const struct bs_msg *m, uint64_t wait_ns)
{
	const char *id = bs_msg_text(m, BS_TAG_TIMELINE, 0);
	struct waiter *a = waiter_new(&i->prepare, c, m->id, wait_ns + GRACE_NS);
	struct bs_timeline tl;

	if (!a)
		return NULL;
	a->container = strdup(bs_msg_text(m, BS_TAG_CONTAINER, 0));
	if (!a->container) {
		waiter_free(a);
		return NULL;
	}
	bs_timeline_open(&tl, s->run_fd, id ? id : "", "bootseerd");
	a->timeline = tl.fd;
	return a;
}

void mounts_acquire(struct super *s, struct client *c, struct bs_msg *m)
{
	const char *container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
	const char *digest = bs_msg_text(m, BS_TAG_DIGEST, 0);
	uint64_t wait_ns = s->conf->start_wait_ns;
	struct held_image *i;
	struct bs_digest d;
	struct waiter *a;

	if (!container || strlen(container) > 255 ||
	    !bs_path_name_ok(container, strlen(container)) || !digest ||
	    bs_digest_parse(digest, strlen(digest), &d) < 0) {
		clients_reply(s, c, m->id, -EINVAL, "acquire: bad container id or digest");
		return;
	}
	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	wait_ns = BS_MIN(wait_ns, 3600 * BS_NS_PER_S);
	if (++s->starts % PRUNE_EVERY == 1)
		bs_timeline_prune(s->run_fd);
	i = mounts_get(s, digest, true);
	a = i ? acquirer_new(s, i, c, m, wait_ns) : NULL;
	if (!a) {
		clients_reply(s, c, m->id, -ENOMEM, "out of memory");
		return;
	}
	if (i->state == IMAGE_MOUNTED && !(i->lazy && i->complete))
		grant(s, i, a);
	else if (i->state == IMAGE_IDLE || i->state == IMAGE_MOUNTED)
		start_preparing(s, i, m, wait_ns, a->timeline);
}

void mounts_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		if ((i->state != IMAGE_MOUNTED && i->state != IMAGE_IDLE) || i->leases > 0 ||
		    !bs_list_empty(&i->prepare.waiting) ||
		    now_ns - i->used_ns < s->conf->keep_mounts_ns)
			continue;
		drop_mount(s, i);
		pending_done(&i->prepare);
		bs_list_remove(&i->all);
		free(i);
	}
}
