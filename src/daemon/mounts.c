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
 *
 * The first of several preparations that works leads on to MOUNTING, the last that fails
 * back. One may also be on its way while the image is mounted: so the worker learns of
 * further places of the data.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomicfile.h"
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
#define TRIES_MAX 20u		    /* of PREPARE, with a new worker each */
#define PREPARATIONS_MAX 32u	    /* of one image, from different places */

/* --- images ----------------------------------------------------------------------------- */

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
	bs_list_init(&i->preparations);
	bs_list_init(&i->waiting);
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

void mounts_completed(struct super *s, const char *digest)
{
	struct held_image *i = mounts_get(s, digest, false);

	if (i)
		i->complete = true;
}

/* --- leases -------------------------------------------------------------------------------- */

static struct lease *lease_find(struct super *s, const char *container)
{
	bs_list_for_each(it, &s->leases) {
		struct lease *l = bs_list_entry(it, struct lease, all);

		if (bs_streq(l->container, container))
			return l;
	}
	return NULL;
}

static void lease_end(struct lease *l)
{
	l->image->leases--;
	l->image->used_ns = bs_clock_ns();
	bs_list_remove(&l->all);
	free(l->container);
	free(l);
}

static bool lease_add(struct super *s, const char *container, struct held_image *i)
{
	struct lease *l = lease_find(s, container);

	if (l)
		lease_end(l);
	l = calloc(1, sizeof(*l));
	if (!l)
		return false;
	l->container = strdup(container);
	if (!l->container) {
		free(l);
		return false;
	}
	l->image = i;
	i->leases++;
	bs_list_append(&s->leases, &l->all);
	return true;
}

void mounts_release(struct super *s, const char *container)
{
	struct lease *l = lease_find(s, container);

	if (l)
		lease_end(l);
	if (bs_path_name_ok(container, strlen(container)))
		(void)unlinkat(s->leases_fd, container, 0);
}

/* What a supervisor before us, or before a reboot of everything but the run directory, knew. */
void mounts_read_leases(struct super *s)
{
	int fd = openat(s->leases_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *de;

	if (!d) {
		(void)bs_close(fd);
		return;
	}
	while ((de = readdir(d))) {
		bs_autofree char *digest = NULL;
		struct held_image *i;

		if (de->d_name[0] == '.' ||
		    bs_read_file_at(s->leases_fd, de->d_name, O_NOFOLLOW | O_NONBLOCK, 256, &digest,
				    NULL) < 0)
			continue;
		i = mounts_get(s, digest, true);
		if (i)
			(void)lease_add(s, de->d_name, i);
	}
	(void)closedir(d);
}

/* --- those who wait --------------------------------------------------------------------------- */

static void acquirer_free(struct acquirer *a)
{
	bs_list_remove(&a->in_image);
	(void)bs_close(a->timeline);
	free(a->container);
	free(a);
}

static void mark(struct acquirer *a, enum bs_span span, uint64_t start_ns)
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

static void grant(struct super *s, struct held_image *i, struct acquirer *a)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, a->id);
	i->used_ns = bs_clock_ns();
	if (!lease_add(s, a->container, i) ||
	    bs_atomicfile_write(s->leases_fd, a->container, i->digest, strlen(i->digest), 0600,
				false) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_RESULT, 0) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_COMPLETE, !i->lazy) < 0 || add_mount(&m, i->mnt) < 0) {
		mounts_release(s, a->container);
		clients_reply(s, a->client, a->id, -ENOMEM, "out of memory");
	} else {
		clients_send(s, a->client, &m);
		if (a->client->gone) /* its release may have come before */
			mounts_release(s, a->container);
	}
	acquirer_free(a);
}

static void grant_all(struct super *s, struct held_image *i)
{
	bs_list_for_each(it, &i->waiting)
		grant(s, i, bs_list_entry(it, struct acquirer, in_image));
}

static void deny(struct super *s, struct acquirer *a, int result, const char *text)
{
	clients_reply(s, a->client, a->id, result, text);
	acquirer_free(a);
}

/* p NULL: whatever they wait for. */
static void fail_waiting(struct super *s, struct held_image *i, const struct preparation *p,
			 int result, const char *text)
{
	/* a newer mount could not be made, the one that is there serves as well as before */
	if (i->mnt >= 0)
		bs_log_warning("image %s: %s; its lazy mount goes on", i->digest, text);
	bs_list_for_each(it, &i->waiting) {
		struct acquirer *a = bs_list_entry(it, struct acquirer, in_image);

		if (p && a->by != p)
			continue;
		if (i->mnt >= 0)
			grant(s, i, a);
		else
			deny(s, a, result, text);
	}
}

void mounts_client_gone(struct super *s, struct client *c)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		bs_list_for_each(it, &i->waiting) {
			struct acquirer *a = bs_list_entry(it, struct acquirer, in_image);

			if (a->client == c)
				acquirer_free(a);
		}
	}
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
		fail_waiting(s, i, NULL, result ? -(int)result : -EPROTO,
			     text ? text : "mounting the image took too long");
		i->state = i->mnt >= 0 ? IMAGE_MOUNTED : IMAGE_IDLE;
		return;
	}
	drop_mount(s, i);
	i->mnt = fd;
	i->lazy = c->id == 0; /* see start_mounting */
	i->state = IMAGE_MOUNTED;
	kept_put(s, kept_name(i, name, sizeof(name)), i->mnt);
	bs_list_for_each(it, &i->waiting)
		mark(bs_list_entry(it, struct acquirer, in_image), BS_SPAN_MOUNT,
		     c->deadline_ns - GRACE_NS);
	grant_all(s, i);
}

/* m: the worker's answer, with the metadata and, when complete, the blob. */
static int start_mounting(struct super *s, struct held_image *i, struct bs_msg *m,
			  struct bs_error *err)
{
	bs_autofd int meta = bs_msg_take_fd(m, 0), blob = bs_msg_take_fd(m, 1);
	int fds[2], r;

	if (meta < 0 || (i->complete && blob < 0))
		return bs_fail(err, -EPROTO, "the worker sent no metadata");
	if (!i->complete && s->fuse_mnt < 0)
		return bs_fail(err, -EOPNOTSUPP, "no FUSE on this node");
	fds[0] = meta;
	fds[1] = i->complete ? blob : s->fuse_mnt;
	r = children_start(s, i->complete ? "mount-whole" : "mount-lazy",
			   i->digest + strlen("sha256:"), fds, 2, bs_clock_ns() + GRACE_NS, mounted,
			   i, i->complete, err);
	if (r == 0)
		i->state = IMAGE_MOUNTING;
	return r;
}

/* --- preparations ------------------------------------------------------------------------------- */

struct preparation *mounts_by_request(struct super *s, uint32_t id)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		bs_list_for_each(it, &i->preparations) {
			struct preparation *p = bs_list_entry(it, struct preparation, in_image);

			if (p->request == id)
				return p;
		}
	}
	return NULL;
}

static void preparation_free(struct preparation *p)
{
	bs_list_for_each(it, &p->image->waiting) {
		struct acquirer *a = bs_list_entry(it, struct acquirer, in_image);

		if (a->by == p)
			a->by = NULL;
	}
	p->image->n_preparations--;
	bs_list_remove(&p->in_image);
	bs_msg_done(&p->msg);
	free(p);
}

static bool is_known(const struct held_image *i, const char *source)
{
	struct bs_digest d;

	bs_digest_of(source, strlen(source), &d);
	for (unsigned int k = 0; k < i->n_known; k++) {
		if (bs_digest_eq(&i->known[k], &d))
			return true;
	}
	return false;
}

/* Does the worker know all places that m names? */
static bool all_known(const struct held_image *i, const struct bs_msg *m)
{
	const char *source;

	for (size_t n = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, n)); n++) {
		if (!is_known(i, source))
			return false;
	}
	return true;
}

static void note_known(struct held_image *i, const struct bs_msg *m)
{
	const char *source;

	for (size_t n = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, n)); n++) {
		if (is_known(i, source))
			continue;
		if (i->n_known == IMAGE_KNOWN_MAX)
			i->n_known = 0; /* then they are told once more */
		bs_digest_of(source, strlen(source), &i->known[i->n_known++]);
	}
}

/* Does p ask at all places that m names? */
static bool covers(const struct preparation *p, const struct bs_msg *m)
{
	const char *source, *has;

	for (size_t n = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, n)); n++) {
		for (size_t k = 0; (has = bs_msg_text(&p->msg, BS_TAG_SOURCE, k)); k++) {
			if (bs_streq(has, source))
				break;
		}
		if (!has)
			return false;
	}
	return true;
}

static void send_preparation(struct super *s, struct preparation *p)
{
	/* a worker that is not ready, or does not read now, gets it later: see mounts_expire */
	p->sent = workers_send(s, &p->msg);
}

/* The one that asks where m says: one on its way, or a new one. NULL: out of memory. */
static struct preparation *preparation_for(struct super *s, struct held_image *i,
					   const struct bs_msg *m, uint64_t wait_ns, int timeline)
{
	struct preparation *p = NULL;
	const char *source;

	bs_list_for_each(it, &i->preparations) {
		p = bs_list_entry(it, struct preparation, in_image);
		if (covers(p, m))
			return p;
	}
	if (i->n_preparations >= PREPARATIONS_MAX)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->image = i;
	p->request = ++s->next_id;
	bs_msg_init(&p->msg, BS_MSG_PREPARE, p->request);
	(void)bs_msg_add_text(&p->msg, BS_TAG_DIGEST, i->digest);
	(void)bs_msg_add_u64(&p->msg, BS_TAG_WAIT_NS, wait_ns);
	for (size_t n = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, n)); n++)
		(void)bs_msg_add_text(&p->msg, BS_TAG_SOURCE, source);
	if (timeline >= 0)
		(void)bs_msg_add_fd(&p->msg, timeline);
	i->n_preparations++;
	bs_list_append(&i->preparations, &p->in_image);
	send_preparation(s, p);
	return p;
}

/* Takes p down. Others that are on their way may still do better. */
static void preparation_failed(struct super *s, struct preparation *p, int result, const char *text)
{
	struct held_image *i = p->image;

	if (i->state != IMAGE_MOUNTING) /* else the mount decides */
		fail_waiting(s, i, p, result, text);
	preparation_free(p);
	if (i->state == IMAGE_PREPARING && bs_list_empty(&i->preparations))
		i->state = i->mnt >= 0 ? IMAGE_MOUNTED : IMAGE_IDLE;
}

static void preparation_worked(struct super *s, struct preparation *p, struct bs_msg *reply)
{
	struct held_image *i = p->image;
	struct bs_error err = BS_ERROR_INIT;
	uint64_t complete = 0;
	int r = 0;

	(void)bs_msg_u64(reply, BS_TAG_COMPLETE, &complete);
	i->complete = i->complete || complete;
	note_known(i, &p->msg);
	if (i->state == IMAGE_PREPARING || (i->state == IMAGE_MOUNTED && i->lazy && complete)) {
		i->complete = complete;
		r = start_mounting(s, i, reply, &err);
	}
	if (r < 0) {
		preparation_failed(s, p, r, bs_error_text(&err));
		return;
	}
	bs_list_for_each(it, &i->waiting) {
		struct acquirer *a = bs_list_entry(it, struct acquirer, in_image);

		if (i->state == IMAGE_MOUNTED && a->by == p)
			grant(s, i, a);
	}
	preparation_free(p);
}

void mounts_prepared(struct super *s, struct preparation *p, struct bs_msg *reply)
{
	const char *text = bs_msg_text(reply, BS_TAG_TEXT, 0);
	uint64_t result = EPROTO;

	(void)bs_msg_u64(reply, BS_TAG_RESULT, &result);
	if (result == 0)
		preparation_worked(s, p, reply);
	else
		preparation_failed(s, p, result > 4095 ? -EPROTO : -(int)result,
				   text ? text : "the worker failed without a word");
}

/* An image that kills worker after worker must not hold up all others. */
void mounts_send_again(struct super *s)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		i->n_known = 0; /* what could not be written is not known to this one */
		bs_list_for_each(it, &i->preparations) {
			struct preparation *p = bs_list_entry(it, struct preparation, in_image);

			if (++p->tries > TRIES_MAX)
				preparation_failed(
					s, p, -EIO,
					"the worker died again and again over this image");
			else
				send_preparation(s, p);
		}
	}
}

static struct acquirer *acquirer_new(struct super *s, struct client *c, const struct bs_msg *m,
				     const char *container, uint64_t wait_ns)
{
	const char *id = bs_msg_text(m, BS_TAG_TIMELINE, 0);
	struct acquirer *a = calloc(1, sizeof(*a));
	struct bs_timeline tl;

	if (!a)
		return NULL;
	a->container = strdup(container);
	if (!a->container) {
		free(a);
		return NULL;
	}
	bs_timeline_open(&tl, s->run_fd, id ? id : "", "bootseerd");
	a->timeline = tl.fd;
	a->client = c;
	a->id = m->id;
	a->deadline_ns = bs_clock_ns() + wait_ns + GRACE_NS;
	return a;
}

void mounts_acquire(struct super *s, struct client *c, struct bs_msg *m)
{
	const char *container = bs_msg_text(m, BS_TAG_CONTAINER, 0);
	const char *digest = bs_msg_text(m, BS_TAG_DIGEST, 0);
	uint64_t wait_ns = s->conf->start_wait_ns;
	struct held_image *i;
	struct bs_digest d;
	struct acquirer *a;

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
	a = i ? acquirer_new(s, c, m, container, wait_ns) : NULL;
	if (!a) {
		clients_reply(s, c, m->id, -ENOMEM, "out of memory");
		return;
	}
	bs_list_append(&i->waiting, &a->in_image);
	/* a lazy mount reads from wherever a start said: those places must be known, too */
	if (i->state == IMAGE_MOUNTED && (!i->lazy || (!i->complete && all_known(i, m)))) {
		grant(s, i, a);
		return;
	}
	if (i->state == IMAGE_MOUNTING && all_known(i, m))
		return;
	a->by = preparation_for(s, i, m, wait_ns, a->timeline);
	if (!a->by)
		deny(s, a, -ENOMEM, "out of memory");
	else if (i->state == IMAGE_MOUNTING) /* which comes first */
		a->by = NULL;
	else if (i->state == IMAGE_IDLE || i->complete)
		i->state = IMAGE_PREPARING;
}

void mounts_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		bs_list_for_each(it, &i->waiting) {
			struct acquirer *a = bs_list_entry(it, struct acquirer, in_image);

			if (a->deadline_ns > now_ns)
				continue;
			deny(s, a, -ETIMEDOUT, "the image could not be made ready in time");
		}
		bs_list_for_each(it, &i->preparations) {
			struct preparation *p = bs_list_entry(it, struct preparation, in_image);

			if (!p->sent && s->worker_ready)
				send_preparation(s, p);
		}
		if ((i->state != IMAGE_MOUNTED && i->state != IMAGE_IDLE) || i->leases > 0 ||
		    !bs_list_empty(&i->waiting) || !bs_list_empty(&i->preparations) ||
		    now_ns - i->used_ns < s->conf->keep_mounts_ns)
			continue;
		drop_mount(s, i);
		bs_list_remove(&i->all);
		free(i);
	}
}
