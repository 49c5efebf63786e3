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
#include "daemon/hots.h"
#include "daemon/super.h"
#include "kern/bdi.h"
#include "kern/mountfd.h"
#include "obs/timeline.h"

#define GRACE_NS (10 * BS_NS_PER_S) /* over what the client waits, for the way there and back */
#define LEFT_NS BS_NS_PER_S	    /* of its wait, for which nobody is worth asking again */
#define PRUNE_EVERY 256u	    /* starts, between two looks at the timelines */
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
	pending_init(s, &i->mount, NULL);
	bs_list_append(&s->images, &i->all);
	return i;
}

const char *mounts_kept_name(const struct held_image *i, char buf[KEPT_NAME_LEN])
{
	if (i->lazy)
		(void)snprintf(buf, KEPT_NAME_LEN, "lazy:%s:%s", i->digest, i->bdi);
	else
		(void)snprintf(buf, KEPT_NAME_LEN, "whole:%s", i->digest);
	return buf;
}

static void drop_mount(struct super *s, struct held_image *i)
{
	char name[KEPT_NAME_LEN];

	if (i->mnt < 0)
		return;
	/* containers may read through it for long yet, and nobody tends to it any more */
	if (i->bdi[0] && i->readahead_kib == 0)
		(void)bs_bdi_set_readahead(s->bdi_fd, i->bdi, BS_BDI_READAHEAD_KIB);
	kept_drop(s, mounts_kept_name(i, name));
	i->mnt = bs_close(i->mnt);
}

void mounts_adopt(struct super *s, const char *name, int fd)
{
	const char *whole = bs_str_after(name, "whole:"), *lazy = bs_str_after(name, "lazy:");
	const char *text = whole ? whole : lazy, *recorded = bs_str_after(name, "recorded:");
	size_t n = BS_DIGEST_TEXT_LEN - 1;
	char digest[BS_DIGEST_TEXT_LEN];
	struct held_image *i = NULL;

	if (bs_str_after(name, HOTS_KEPT)) {
		hots_adopt(s, name, fd);
		return;
	}
	if (recorded) {
		hots_hold_recorded(s, recorded, fd);
		return;
	}
	if (text && strlen(text) >= n && (text[n] == '\0' || (lazy && text[n] == ':'))) {
		(void)snprintf(digest, sizeof(digest), "%s", text);
		i = mounts_get(s, digest, true);
	}
	if (!i || i->mnt >= 0) {
		(void)bs_close(fd);
		return;
	}
	i->mnt = fd;
	i->lazy = lazy != NULL;
	i->complete = !i->lazy;
	i->state = IMAGE_MOUNTED;
	i->used_ns = bs_clock_ns();
	if (text[n] != ':')
		return;
	/* whoever was before us may have ended in mid-stream */
	(void)snprintf(i->bdi, sizeof(i->bdi), "%s", text + n + 1);
	i->readahead_kib = UINT32_MAX;
	hots_readahead(s, i);
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

	if (!i)
		return;
	i->complete = true;
	hots_readahead(s, i); /* who has the lazy mount goes on with it */
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

static void grant_mount(struct super *s, struct held_image *i, struct waiter *a, int mnt, bool lazy)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, a->id);
	i->used_ns = bs_clock_ns();
	if (!leases_add(s, a->container, i) || bs_msg_add_u64(&m, BS_TAG_RESULT, 0) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_COMPLETE, !lazy) < 0 || add_mount(&m, mnt) < 0) {
		leases_release(s, a->container);
		clients_reply(s, a->client, a->id, -ENOMEM, "out of memory");
	} else {
		clients_send(s, a->client, &m);
		if (a->client->gone) /* its release may have come before */
			leases_release(s, a->container);
	}
	waiter_free(a);
}

void mounts_grant_own(struct super *s, struct held_image *i, struct waiter *a, int mnt)
{
	grant_mount(s, i, a, mnt, true);
}

/* Not before its hot start is decided (hots.c); till then it waits for the mount. */
static void grant(struct super *s, struct held_image *i, struct waiter *a)
{
	if (!a->hot) {
		grant_mount(s, i, a, i->mnt, i->lazy);
		return;
	}
	bs_list_remove(&a->all);
	bs_list_append(&i->mount.waiting, &a->all);
}

void mounts_grant_if_mounted(struct super *s, struct held_image *i, struct waiter *a)
{
	/* one that is being replaced serves as well; nobody might come back to a */
	if (i->mnt >= 0)
		grant(s, i, a);
}

static void grant_waiting(struct super *s, struct held_image *i, struct pending *p)
{
	bs_list_for_each(it, &p->waiting) {
		struct waiter *a = bs_list_entry(it, struct waiter, all);

		if (p != &i->mount || !a->hot)
			grant(s, i, a);
	}
}

/* Everybody who wants the image, whatever he waits for. */
static void grant_all(struct super *s, struct held_image *i)
{
	grant_waiting(s, i, &i->mount);
	bs_list_for_each(it, &i->preparations)
		grant_waiting(s, i, &bs_list_entry(it, struct preparation, in_image)->ask);
}

static void fail_waiting(struct super *s, struct held_image *i, struct pending *p, int result,
			 const char *text)
{
	/* a newer mount could not be made, the one that is there serves as well as before */
	if (i->mnt >= 0)
		grant_waiting(s, i, p);
	else
		pending_fail(s, p, result, text);
}

static void fail_all(struct super *s, struct held_image *i, int result, const char *text)
{
	if (i->mnt >= 0)
		bs_log_warning("image %s: %s; its lazy mount goes on", i->digest, text);
	fail_waiting(s, i, &i->mount, result, text);
	bs_list_for_each(it, &i->preparations)
		fail_waiting(s, i, &bs_list_entry(it, struct preparation, in_image)->ask, result,
			     text);
}

/* --- the way to a mount ------------------------------------------------------------------------- */

static void mark_waiting(struct pending *p, uint64_t start_ns)
{
	bs_list_for_each(it, &p->waiting)
		mark(bs_list_entry(it, struct waiter, all), BS_SPAN_MOUNT, start_ns);
}

static void mounted(struct super *s, struct child *c, struct bs_msg *m)
{
	struct held_image *i = c->cookie;
	char name[KEPT_NAME_LEN];
	const char *text = NULL, *bdi;
	uint64_t result = ETIMEDOUT;
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
		i->state = i->mnt >= 0 ? IMAGE_MOUNTED : IMAGE_IDLE;
		return;
	}
	drop_mount(s, i);
	i->mnt = fd;
	i->lazy = c->id == 0; /* see start_mounting */
	i->state = IMAGE_MOUNTED;
	bdi = m ? bs_msg_text(m, BS_TAG_NAME, 0) : NULL;
	(void)snprintf(i->bdi, sizeof(i->bdi), "%s", i->lazy && bdi ? bdi : "");
	if (i->lazy)
		hots_mounted(s, i);
	kept_put(s, mounts_kept_name(i, name), i->mnt);
	mark_waiting(&i->mount, c->deadline_ns - GRACE_NS);
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

static void preparation_free(struct preparation *p)
{
	p->image->n_preparations--;
	bs_list_remove(&p->in_image);
	pending_done(&p->ask);
	bs_msg_done(&p->from);
	free(p);
}

/* Who waits for p waits for the mount from now on. */
static void wait_for_mount(struct preparation *p)
{
	bs_list_for_each(it, &p->ask.waiting) {
		bs_list_remove(it);
		bs_list_append(&p->image->mount.waiting, it);
	}
}

static bool has_digest(const struct bs_digest *list, unsigned int n, const struct bs_digest *d)
{
	for (unsigned int k = 0; k < n; k++) {
		if (bs_digest_eq(&list[k], d))
			return true;
	}
	return false;
}

/* Whether the list has all places that m names. */
static bool has_sources(const struct bs_digest *list, unsigned int n, const struct bs_msg *m)
{
	const char *source;
	struct bs_digest d;

	for (size_t k = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, k)); k++) {
		bs_digest_of(source, strlen(source), &d);
		if (!has_digest(list, n, &d))
			return false;
	}
	return true;
}

static void note_known(struct held_image *i, const struct preparation *p)
{
	for (unsigned int k = 0; k < p->n_asked; k++) {
		if (has_digest(i->known, i->n_known, &p->asked[k]))
			continue;
		if (i->n_known == IMAGE_KNOWN_MAX)
			i->n_known = 0; /* then they are told once more */
		i->known[i->n_known++] = p->asked[k];
	}
}

/* Takes p down. Others that are on their way may still do better. */
static void preparation_failed(struct super *s, struct preparation *p, int result, const char *text)
{
	struct held_image *i = p->image;

	if (i->mnt >= 0)
		bs_log_warning("image %s: %s; its lazy mount goes on", i->digest, text);
	if (i->state == IMAGE_MOUNTING)
		wait_for_mount(p);
	else
		fail_waiting(s, i, &p->ask, result, text);
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
	note_known(i, p);
	if (i->state == IMAGE_PREPARING || (i->state == IMAGE_MOUNTED && i->lazy && complete)) {
		i->complete = complete;
		r = start_mounting(s, i, reply, &err);
	}
	if (r < 0) {
		preparation_failed(s, p, r, bs_error_text(&err));
		return;
	}
	if (i->state == IMAGE_MOUNTED)
		grant_waiting(s, i, &p->ask);
	else
		wait_for_mount(p);
	preparation_free(p);
}

static void ask_worker(struct super *s, struct preparation *p, uint64_t wait_ns, int timeline)
{
	const char *workload = bs_msg_text(&p->from, BS_TAG_WORKLOAD, 0);
	struct bs_msg *q = pending_begin(s, &p->ask, BS_MSG_PREPARE, &p->from, wait_ns);

	(void)bs_msg_add_text(q, BS_TAG_DIGEST, p->image->digest);
	if (workload)
		(void)bs_msg_add_text(q, BS_TAG_WORKLOAD, workload);
	if (timeline >= 0)
		(void)bs_msg_add_fd(q, timeline);
	pending_send(s, &p->ask);
}

/* Whether it may be another result a little later. */
static bool may_come(int result)
{
	return result == -ETIMEDOUT || result == -EHOSTUNREACH || result == -EREMOTEIO ||
	       result == -EAGAIN;
}

/*
 * The time is over of the start that p was begun for, and of those that came with it; others
 * that wait came later, and have theirs. False: none has.
 */
static bool goes_on_for_others(struct super *s, struct preparation *p, int result, const char *text)
{
	const uint64_t over_ns = bs_clock_ns() + GRACE_NS + LEFT_NS;
	const struct waiter *last = NULL;

	if (!may_come(result) || p->image->mnt >= 0 || p->image->state == IMAGE_MOUNTING)
		return false;
	bs_list_for_each(it, &p->ask.waiting) {
		struct waiter *a = bs_list_entry(it, struct waiter, all);

		if (a->deadline_ns <= over_ns) {
			clients_reply(s, a->client, a->id, result, text);
			waiter_free(a);
		} else if (!last || a->deadline_ns > last->deadline_ns) {
			last = a;
		}
	}
	if (last)
		ask_worker(s, p, last->deadline_ns - over_ns + LEFT_NS, last->timeline);
	return last != NULL;
}

static void prepared(struct super *s, struct pending *ask, int result, const char *text,
		     struct bs_msg *m)
{
	struct preparation *p = BS_CONTAINER_OF(ask, struct preparation, ask);

	if (result < 0 && goes_on_for_others(s, p, result, text))
		return;
	if (result < 0)
		preparation_failed(s, p, result, text);
	else
		preparation_worked(s, p, m);
}

static struct preparation *preparation_new(struct super *s, struct held_image *i,
					   const struct bs_msg *m, uint64_t wait_ns,
					   const struct waiter *a)
{
	struct preparation *p = calloc(1, sizeof(*p));
	const char *source;

	if (!p)
		return NULL;
	p->image = i;
	bs_msg_init(&p->from, BS_MSG_PREPARE, 0);
	pending_carry(&p->from, m);
	if (a->hot) /* its request sees to what comes after */
		(void)bs_msg_add_text(&p->from, BS_TAG_WORKLOAD,
				      bs_msg_text(m, BS_TAG_WORKLOAD, 0));
	pending_init(s, &p->ask, prepared);
	for (size_t k = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, k)); k++) {
		if (p->n_asked < IMAGE_KNOWN_MAX)
			bs_digest_of(source, strlen(source), &p->asked[p->n_asked++]);
	}
	i->n_preparations++;
	bs_list_append(&i->preparations, &p->in_image);
	ask_worker(s, p, wait_ns, a->timeline);
	return p;
}

/* The one that asks where m says: one on its way, or a new one. NULL: out of memory. */
static struct preparation *preparation_for(struct super *s, struct held_image *i,
					   const struct bs_msg *m, uint64_t wait_ns,
					   const struct waiter *a)
{
	struct preparation *p = NULL;

	bs_list_for_each(it, &i->preparations) {
		p = bs_list_entry(it, struct preparation, in_image);
		if (has_sources(p->asked, p->n_asked, m))
			return p;
	}
	if (i->n_preparations >= PREPARATIONS_MAX)
		return p;
	return preparation_new(s, i, m, wait_ns, a);
}

void mounts_new_worker(struct super *s)
{
	/* what could not be written is not known to this one */
	bs_list_for_each(it, &s->images)
		bs_list_entry(it, struct held_image, all)->n_known = 0;
}

/* --- acquiring -------------------------------------------------------------------------------------- */

static struct waiter *acquirer_new(struct super *s, struct held_image *i, struct client *c,
				   const struct bs_msg *m, uint64_t wait_ns)
{
	const char *id = bs_msg_text(m, BS_TAG_TIMELINE, 0);
	struct waiter *a = waiter_new(&i->mount, c, m->id, wait_ns + GRACE_NS);
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

static void acquire(struct super *s, struct held_image *i, struct waiter *a, const struct bs_msg *m,
		    uint64_t wait_ns)
{
	struct preparation *p;

	/* a lazy mount reads from wherever a start said: those places must be known, too */
	if (i->state == IMAGE_MOUNTED &&
	    (!i->lazy || (!i->complete && has_sources(i->known, i->n_known, m)))) {
		grant(s, i, a);
		return;
	}
	if (i->state == IMAGE_MOUNTING && has_sources(i->known, i->n_known, m))
		return;
	p = preparation_for(s, i, m, wait_ns, a);
	if (!p) {
		clients_reply(s, a->client, a->id, -ENOMEM, "out of memory");
		waiter_free(a);
		return;
	}
	if (i->state == IMAGE_MOUNTING) /* which comes first */
		return;
	bs_list_remove(&a->all);
	bs_list_append(&p->ask.waiting, &a->all);
	if (i->state == IMAGE_IDLE || i->complete)
		i->state = IMAGE_PREPARING;
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
	/* a whole image has no use for it, and nothing that could be recorded */
	if (s->fuse_mnt >= 0 && !i->complete)
		hots_ask(s, i, a, m, wait_ns);
	acquire(s, i, a, m, wait_ns);
}

static bool is_unused(const struct super *s, const struct held_image *i, uint64_t now_ns)
{
	return (i->state == IMAGE_MOUNTED || i->state == IMAGE_IDLE) && i->leases == 0 &&
	       i->n_hots == 0 && bs_list_empty(&i->mount.waiting) &&
	       bs_list_empty(&i->preparations) && now_ns - i->used_ns >= s->conf->keep_mounts_ns;
}

void mounts_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(im, &s->images) {
		struct held_image *i = bs_list_entry(im, struct held_image, all);

		if (!is_unused(s, i, now_ns))
			continue;
		hots_unused(i);
		if (i->warmer) /* its end is told of with i */
			continue;
		drop_mount(s, i);
		pending_done(&i->mount);
		bs_list_remove(&i->all);
		free(i);
	}
}
