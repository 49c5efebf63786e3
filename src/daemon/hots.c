/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Starts of workloads: the worker is asked for the hot pack while the image is made
 * ready, and says whether the start is to be recorded.
 *
 *   acquire ──▶ asked ──▶ not to be recorded ─────────────▶ the image's mount
 *                 │   └──▶ recorded: a mount of its own ──▶ that mount
 *                 └─ no answer, or a failure ─────────────▶ the image's mount
 *
 * Who waits for the answer waits HOT_WAIT_NS over the image's mount, no longer; then
 * nobody counts on a pack any more, until it comes after all.
 *
 * A start whose pack comes is kept (kept.c) as a text of its image, workload and sources,
 * a line each: worker and supervisor that come after ours go on with it.
 *
 * As long as a pack comes, or may come, the kernel reads nothing ahead on the image's
 * mount: what it would read is not in the pack. A warmer reads instead what has come. On
 * the mount of a start that is recorded it reads no more than is asked for until the window
 * is over.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/hots.h"
#include "daemon/super.h"
#include "daemon/warm.h"
#include "kern/mountfd.h"

#define WARM_GRACE_NS (10 * BS_NS_PER_S) /* over what a warmer gives itself */
#define ID_BEGIN_MIN 12u		 /* a shorter one may be the name of another container */
#define HOT_WAIT_NS (2 * BS_NS_PER_S)
#define MOUNT_NS (10 * BS_NS_PER_S)
#define KEPT_HOT_ONLY "hot-only " /* before the digest */
#define KEPT_MAX 65536u		  /* bytes of a start's text */
#define WORKERS_MAX 4u		  /* that one pack may take with it */

/* One start that was asked about. When a pack comes for it, it stays until that has ended. */
struct hot {
	struct bs_list all;
	struct pending ask;
	struct bs_msg start; /* SOURCEs, WORKLOAD: for another worker */
	struct held_image *image;
	struct waiter *waiter; /* NULL: it is gone, or has its mount */
	uint64_t until_ns;     /* that it waits; 0: while there is no mount, too */
	bool streams;	       /* a pack comes, or came to a worker that died */
	unsigned int workers;  /* that died while it came */
	int kept;	       /* its text, -EBADF */
	char kept_name[sizeof(HOTS_KEPT) + BS_DIGEST_TEXT_LEN];
};

static void drop_kept(struct super *s, struct hot *h)
{
	bool is_shared = false;

	if (h->kept < 0)
		return;
	bs_list_for_each(it, &s->hots) { /* another start of the same is kept by the same name */
		const struct hot *o = bs_list_entry(it, struct hot, all);

		is_shared |= o != h && o->kept >= 0 && bs_streq(o->kept_name, h->kept_name);
	}
	if (!is_shared)
		kept_drop(s, h->kept_name);
	h->kept = bs_close(h->kept);
}

static void hot_free(struct super *s, struct hot *h)
{
	struct held_image *i = h->image;

	drop_kept(s, h);
	if (h->waiter)
		hots_forget(h->waiter);
	pending_done(&h->ask);
	bs_msg_done(&h->start);
	bs_list_remove(&h->all);
	free(h);
	i->n_hots--;
	hots_readahead(s, i);
}

void hots_readahead(struct super *s, struct held_image *i)
{
	uint32_t kib = i->complete ? BS_BDI_WHOLE_KIB : BS_BDI_READAHEAD_KIB;

	if (i->warmer) /* it ends when it has read what came */
		kib = 0;
	bs_list_for_each(it, &s->hots) {
		const struct hot *h = bs_list_entry(it, struct hot, all);

		if (h->image == i && (h->streams || h->waiter))
			kib = 0;
	}
	if (!i->bdi[0] || i->readahead_kib == kib)
		return;
	/* where sysfs is not to be written it is only slower */
	(void)bs_bdi_set_readahead(s->bdi_fd, i->bdi, kib);
	i->readahead_kib = kib;
}

/* --- mounts of recorded starts --------------------------------------------------------------- */

const char *hots_recorded_name(const struct recorded_mount *r, char buf[KEPT_NAME_LEN])
{
	(void)snprintf(buf, KEPT_NAME_LEN, "recorded:%s", r->bdi);
	return buf;
}

void hots_hold_recorded(struct super *s, const char *bdi, int mnt)
{
	struct recorded_mount *r = calloc(1, sizeof(*r));

	if (!r) {
		(void)bs_bdi_set_readahead(s->bdi_fd, bdi, BS_BDI_READAHEAD_KIB);
		(void)bs_close(mnt);
		return;
	}
	(void)snprintf(r->bdi, sizeof(r->bdi), "%s", bdi);
	r->mnt = mnt;
	r->until_ns = bs_clock_ns() + s->conf->record_window_ns;
	bs_list_append(&s->recorded, &r->all);
}

static void end_recorded(struct super *s, uint64_t now_ns)
{
	char name[KEPT_NAME_LEN];

	bs_list_for_each(it, &s->recorded) {
		struct recorded_mount *r = bs_list_entry(it, struct recorded_mount, all);

		if (r->until_ns > now_ns)
			continue;
		(void)bs_bdi_set_readahead(s->bdi_fd, r->bdi, BS_BDI_READAHEAD_KIB);
		kept_drop(s, hots_recorded_name(r, name));
		(void)bs_close(r->mnt);
		bs_list_remove(&r->all);
		free(r->container);
		free(r->workload);
		free(r);
	}
}

/* The worker records it no longer; lost, it only means that the recording lasts as long as any. */
static void end_recording(struct super *s, const char *digest, const char *workload, bool nobody)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_RECORDED, 0);
	if (bs_msg_add_text(&m, BS_TAG_DIGEST, digest) == 0 &&
	    bs_msg_add_text(&m, BS_TAG_WORKLOAD, workload) == 0 &&
	    bs_msg_add_u64(&m, BS_TAG_RESULT, nobody ? ECANCELED : 0) == 0)
		(void)workers_send(s, &m);
}

/* The start went on without, as when the answer came too late: nothing would be recorded. */
static void nobody_is_recorded(struct super *s, const struct hot *h)
{
	const char *workload = bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0);

	bs_list_for_each(it, &s->recorded) { /* another start of it is */
		const struct recorded_mount *r = bs_list_entry(it, struct recorded_mount, all);

		if (r->workload && bs_streq(r->workload, workload) &&
		    bs_streq(r->digest, h->image->digest))
			return;
	}
	bs_list_for_each(it, &s->hots) { /* or is going to be */
		const struct hot *o = bs_list_entry(it, struct hot, all);

		if (o != h && o->waiter && o->image == h->image &&
		    bs_streq(bs_msg_text(&o->start, BS_TAG_WORKLOAD, 0), workload))
			return;
	}
	end_recording(s, h->image->digest, workload, true);
}

static void stop_recording(struct super *s, struct recorded_mount *r)
{
	r->until_ns = 0;
	end_recording(s, r->digest, r->workload, false);
}

void hots_released(struct super *s, const char *container)
{
	bs_list_for_each(it, &s->recorded) {
		struct recorded_mount *r = bs_list_entry(it, struct recorded_mount, all);

		if (r->container && r->workload && bs_streq(r->container, container))
			stop_recording(s, r);
	}
}

/* Of the container ID, or of one whose id only begins so. A lease is ID@ROOT. */
static bool is_recorded(const struct recorded_mount *r, const char *id, bool begins)
{
	const char *rest = r->container && r->workload && r->until_ns
				   ? bs_str_after(r->container, id)
				   : NULL;

	return rest && (begins || (*rest == '@' && !strchr(rest + 1, '@')));
}

/* One of a beginning that engines show, if there is only one. */
static struct recorded_mount *only_one(struct super *s, const char *id)
{
	struct recorded_mount *found = NULL;

	if (strlen(id) < ID_BEGIN_MIN || id[strspn(id, "0123456789abcdef")])
		return NULL;
	bs_list_for_each(it, &s->recorded) {
		struct recorded_mount *r = bs_list_entry(it, struct recorded_mount, all);

		if (!is_recorded(r, id, true))
			continue;
		if (found)
			return NULL;
		found = r;
	}
	return found;
}

bool hots_ready(struct super *s, const char *id)
{
	struct recorded_mount *r;
	bool found = false;

	bs_list_for_each(it, &s->recorded) {
		r = bs_list_entry(it, struct recorded_mount, all);
		if (!is_recorded(r, id, false))
			continue;
		stop_recording(s, r);
		found = true;
	}
	r = found ? NULL : only_one(s, id);
	if (r)
		stop_recording(s, r);
	return found || r;
}

static void begin_recorded(struct super *s, const struct hot *h, const char *bdi, int mnt)
{
	int copy = bdi ? bs_dup(mnt) : -EBADF;
	struct recorded_mount *r;
	char name[KEPT_NAME_LEN];

	if (copy < 0)
		return;
	hots_hold_recorded(s, bdi, copy);
	if (bs_list_empty(&s->recorded))
		return;
	r = bs_list_entry(s->recorded.prev, struct recorded_mount, all);
	(void)snprintf(r->digest, sizeof(r->digest), "%s", h->image->digest);
	r->container = strdup(h->waiter->container);
	r->workload = strdup(bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0));
	kept_put(s, hots_recorded_name(r, name), r->mnt);
}

/* --- the warmer ------------------------------------------------------------------------------ */

static void tend_warmer(struct super *s, struct held_image *i);

static void warmer_ended(struct super *s, struct child *c, struct bs_msg *m)
{
	struct held_image *i = c->cookie;

	i->warmer = NULL;
	hots_readahead(s, i);
	tend_warmer(s, i);
}

/* The worker is told where it listens, and which process it is: its reads are not the start's. */
static void tell_worker(struct super *s, const struct held_image *i, const struct child *c, int fd)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_WARM, 0);
	if (bs_msg_add_text(&m, BS_TAG_DIGEST, i->digest) == 0 &&
	    bs_msg_add_u64(&m, BS_TAG_PID, (uint64_t)c->process.pid) == 0 &&
	    bs_msg_add_fd(&m, fd) == 0)
		(void)workers_send(s, &m); /* else the warmer reads an end at once */
}

static void start_warmer(struct super *s, struct held_image *i)
{
	bs_autofd int mnt = bs_mountfd_clone(i->mnt, "", NULL), ours = -EBADF, theirs = -EBADF;
	struct bs_error err = BS_ERROR_INIT;
	int pair[2], fds[2];

	i->to_warm = false;
	if (mnt < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	ours = pair[0];
	theirs = pair[1];
	fds[0] = theirs;
	fds[1] = mnt;
	if (children_start(s, "warm", "", fds, 2, bs_clock_ns() + BS_WARM_NS_MAX + WARM_GRACE_NS,
			   warmer_ended, i, 0, &err) < 0) {
		bs_log_warning("image %s: no warmer: %s", i->digest, bs_error_text(&err));
		return;
	}
	i->warmer = bs_list_entry(s->children.prev, struct child, all);
	tell_worker(s, i, i->warmer, ours);
}

static void tend_warmer(struct super *s, struct held_image *i)
{
	if (i->to_warm && i->mnt >= 0 && i->lazy && !i->warmer)
		start_warmer(s, i);
}

void hots_unused(struct held_image *i)
{
	if (i->warmer)
		super_kill(&i->warmer->process);
}

void hots_mounted(struct super *s, struct held_image *i)
{
	i->readahead_kib = BS_BDI_READAHEAD_KIB;
	hots_readahead(s, i);
	tend_warmer(s, i);
}

void hots_streaming(struct super *s, const char *digest, const char *workload, bool on)
{
	struct held_image *i = mounts_get(s, digest, false);

	if (!i)
		return;
	if (on) { /* it may be off again before there is a mount: all was there */
		i->to_warm = true;
		tend_warmer(s, i);
		return;
	}
	bs_list_for_each(it, &s->hots) {
		struct hot *h = bs_list_entry(it, struct hot, all);

		if (h->image == i && h->streams && !h->ask.open &&
		    bs_streq(bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0), workload))
			hot_free(s, h);
	}
}

/* --- asking -------------------------------------------------------------------------------------- */

/* The start goes on with the image's mount. */
static void share(struct super *s, struct hot *h)
{
	struct waiter *a = h->waiter;

	if (!a)
		return;
	hots_forget(a);
	mounts_grant_if_mounted(s, h->image, a);
}

static void recorded(struct super *s, struct child *c, struct bs_msg *m)
{
	struct hot *h = c->cookie;
	uint64_t result = ETIMEDOUT;
	bs_autofd int mnt = -EBADF;
	struct waiter *a = h->waiter;
	const char *text;

	if (m && bs_msg_u64(m, BS_TAG_RESULT, &result) == 0 && result == 0)
		mnt = bs_msg_take_fd(m, 0);
	if (mnt >= 0 && a) {
		begin_recorded(s, h, bs_msg_text(m, BS_TAG_NAME, 0), mnt);
		hots_forget(a);
		mounts_grant_own(s, h->image, a, mnt);
	} else if (mnt < 0) {
		text = m ? bs_msg_text(m, BS_TAG_TEXT, 0) : NULL;
		bs_log_warning("image %s: a start is not recorded: %s", h->image->digest,
			       text ? text : "its mount took too long");
		share(s, h);
		nobody_is_recorded(s, h);
	} else {
		nobody_is_recorded(s, h);
	}
	hot_free(s, h);
}

/* For the supervisor after us. */
static void keep_streaming(struct super *s, struct hot *h)
{
	bs_autobuf text = BS_BUF_INIT(KEPT_MAX);
	char hex[BS_DIGEST_TEXT_LEN];
	bs_autofd int fd = -EBADF;
	struct bs_digest d;
	const char *source;
	uint64_t hot_only = 0;

	if (h->kept >= 0)
		return;
	(void)bs_msg_u64(&h->start, BS_TAG_HOT_ONLY, &hot_only);
	(void)bs_buf_addf(&text, "%s%s\n%s\n", hot_only ? KEPT_HOT_ONLY : "", h->image->digest,
			  bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0));
	for (size_t n = 0; (source = bs_msg_text(&h->start, BS_TAG_SOURCE, n)); n++)
		(void)bs_buf_addf(&text, "%s\n", source);
	fd = text.error ? text.error : bs_memfd("hot");
	if (fd < 0 || bs_pwrite_full(fd, text.data, text.len, 0) < 0)
		return; /* then it is slower should we die */
	bs_digest_of(text.data, text.len, &d);
	(void)snprintf(h->kept_name, sizeof(h->kept_name), "%s%s", HOTS_KEPT,
		       bs_digest_hex(&d, hex));
	h->kept = bs_take_fd(&fd);
	kept_put(s, h->kept_name, h->kept);
}

void hots_keep_all(struct super *s, void (*put)(struct super *s, const char *name, int fd))
{
	bs_list_for_each(it, &s->hots) {
		const struct hot *h = bs_list_entry(it, struct hot, all);

		if (h->kept >= 0)
			put(s, h->kept_name, h->kept);
	}
}

static void answered(struct super *s, struct pending *ask, int result, const char *text,
		     struct bs_msg *m)
{
	struct hot *h = BS_CONTAINER_OF(ask, struct hot, ask);
	const char *file = result == 0 ? bs_msg_text(m, BS_TAG_FILE, 0) : NULL;
	bs_autofd int meta = file ? bs_msg_take_fd(m, 0) : -EBADF;
	struct bs_error err = BS_ERROR_INIT;
	int fds[2] = { meta, s->fuse_mnt };
	uint64_t stream = 0;

	h->streams = m && bs_msg_u64(m, BS_TAG_STREAM, &stream) == 0 && stream;
	hots_readahead(s, h->image);
	if (result < 0)
		bs_log_warning("image %s: no hot start: %s", h->image->digest, text);
	if (h->waiter && meta >= 0 && s->fuse_mnt >= 0) {
		if (children_start(s, "mount-recorded", file, fds, 2, bs_clock_ns() + MOUNT_NS,
				   recorded, h, 0, &err) == 0) {
			h->streams = false; /* whatever the worker says: the child's end frees it */
			return;
		}
		bs_log_warning("image %s: a start is not recorded: %s", h->image->digest,
			       bs_error_text(&err));
	}
	share(s, h);
	if (meta >= 0)
		nobody_is_recorded(s, h);
	if (h->streams)
		keep_streaming(s, h);
	else
		hot_free(s, h);
}

static void ask(struct super *s, struct hot *h, uint64_t wait_ns, bool record, int timeline)
{
	struct bs_msg *q = pending_begin(s, &h->ask, BS_MSG_HOT, &h->start, wait_ns);

	(void)bs_msg_add_text(q, BS_TAG_DIGEST, h->image->digest);
	(void)bs_msg_add_text(q, BS_TAG_WORKLOAD, bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0));
	(void)bs_msg_add_u64(q, BS_TAG_RECORD, record);
	if (timeline >= 0)
		(void)bs_msg_add_fd(q, timeline);
	pending_send(s, &h->ask);
}

static struct hot *hot_new(struct super *s, struct held_image *i, const char *workload)
{
	struct hot *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	bs_msg_init(&h->start, BS_MSG_HOT, 0);
	(void)bs_msg_add_text(&h->start, BS_TAG_WORKLOAD, workload);
	if (!bs_msg_text(&h->start, BS_TAG_WORKLOAD, 0)) {
		bs_msg_done(&h->start);
		free(h);
		return NULL;
	}
	h->image = i;
	h->kept = -EBADF;
	i->n_hots++;
	bs_list_append(&s->hots, &h->all);
	pending_init(s, &h->ask, answered);
	return h;
}

void hots_ask(struct super *s, struct held_image *i, struct waiter *a, const struct bs_msg *m,
	      uint64_t wait_ns)
{
	const char *workload = bs_msg_text(m, BS_TAG_WORKLOAD, 0);
	struct hot *h = workload ? hot_new(s, i, workload) : NULL;
	uint64_t record = 0;

	if (!h) /* a start is as well without */
		return;
	pending_carry(&h->start, m);
	(void)bs_msg_u64(m, BS_TAG_RECORD, &record);
	h->waiter = a;
	a->hot = h;
	hots_readahead(s, i);
	ask(s, h, wait_ns, record != 0, a->timeline);
}

void hots_adopt(struct super *s, const char *name, int fd)
{
	bs_autofree char *text = calloc(1, KEPT_MAX + 1);
	bs_autofd int kept = fd;
	bs_autostrv lines = { 0 };
	struct held_image *i = NULL;
	const char *only = NULL;
	struct hot *h = NULL;

	if (text && bs_pread_full(kept, text, KEPT_MAX, 0) > 0 &&
	    bs_strv_split(&lines, text, "\n") == 0 && lines.n >= 2) {
		only = bs_str_after(lines.v[0], KEPT_HOT_ONLY);
		i = mounts_get(s, only ? only : lines.v[0], true);
	}
	if (i)
		h = hot_new(s, i, lines.v[1]);
	if (!h)
		return;
	for (size_t n = 2; n < lines.n; n++)
		(void)bs_msg_add_text(&h->start, BS_TAG_SOURCE, lines.v[n]);
	if (only)
		(void)bs_msg_add_u64(&h->start, BS_TAG_HOT_ONLY, 1);
	h->streams = true; /* the new worker is asked, see hots_new_worker */
	(void)snprintf(h->kept_name, sizeof(h->kept_name), "%s", name);
	h->kept = bs_take_fd(&kept);
	hots_readahead(s, i);
}

void hots_new_worker(struct super *s)
{
	bs_list_for_each(it, &s->images)
		bs_list_entry(it, struct held_image, all)->to_warm = false;
	bs_list_for_each(it, &s->hots) {
		struct hot *h = bs_list_entry(it, struct hot, all);

		if (!h->streams || h->ask.open)
			continue;
		if (++h->workers < WORKERS_MAX) {
			ask(s, h, s->conf->start_wait_ns, false, -EBADF);
			continue;
		}
		bs_log_warning("image %s: %u workers died over its hot pack, which is left",
			       h->image->digest, h->workers);
		hot_free(s, h);
	}
}

void hots_forget(struct waiter *a)
{
	a->hot->waiter = NULL;
	a->hot = NULL;
}

void hots_expire(struct super *s, uint64_t now_ns)
{
	end_recorded(s, now_ns);
	bs_list_for_each(it, &s->hots) {
		struct hot *h = bs_list_entry(it, struct hot, all);

		if (!h->waiter || h->image->mnt < 0)
			continue;
		if (h->until_ns == 0)
			h->until_ns = now_ns + HOT_WAIT_NS;
		if (h->until_ns > now_ns)
			continue;
		share(s, h);
		hots_readahead(s, h->image);
	}
}
