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
 * Who waits for the answer waits HOT_WAIT_NS over the image's mount, no longer.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/super.h"

#define HOT_WAIT_NS (2 * BS_NS_PER_S)
#define MOUNT_NS (10 * BS_NS_PER_S)

/* One start that was asked about. */
struct hot {
	struct bs_list all;
	struct pending ask;
	struct held_image *image;
	struct waiter *waiter; /* NULL: it is gone, or has its mount */
	uint64_t until_ns;     /* that it waits; 0: while there is no mount, too */
};

static void hot_free(struct hot *h)
{
	if (h->waiter)
		h->waiter->hot = NULL;
	h->image->n_hots--;
	pending_done(&h->ask);
	bs_list_remove(&h->all);
	free(h);
}

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
		hots_forget(a);
		mounts_grant_own(s, h->image, a, mnt);
	} else if (mnt < 0) {
		text = m ? bs_msg_text(m, BS_TAG_TEXT, 0) : NULL;
		bs_log_warning("image %s: a start is not recorded: %s", h->image->digest,
			       text ? text : "its mount took too long");
		share(s, h);
	}
	hot_free(h);
}

static void answered(struct super *s, struct pending *ask, int result, const char *text,
		     struct bs_msg *m)
{
	struct hot *h = BS_CONTAINER_OF(ask, struct hot, ask);
	const char *file = result == 0 ? bs_msg_text(m, BS_TAG_FILE, 0) : NULL;
	bs_autofd int meta = file ? bs_msg_take_fd(m, 0) : -EBADF;
	struct bs_error err = BS_ERROR_INIT;
	int fds[2] = { meta, s->fuse_mnt };

	if (result < 0)
		bs_log_warning("image %s: no hot start: %s", h->image->digest, text);
	if (h->waiter && meta >= 0 && s->fuse_mnt >= 0) {
		if (children_start(s, "mount-recorded", file, fds, 2, bs_clock_ns() + MOUNT_NS,
				   recorded, h, 0, &err) == 0)
			return;
		bs_log_warning("image %s: a start is not recorded: %s", h->image->digest,
			       bs_error_text(&err));
	}
	share(s, h);
	hot_free(h);
}

void hots_ask(struct super *s, struct held_image *i, struct waiter *a, const struct bs_msg *m,
	      uint64_t wait_ns)
{
	const char *workload = bs_msg_text(m, BS_TAG_WORKLOAD, 0);
	struct hot *h = workload ? calloc(1, sizeof(*h)) : NULL;
	uint64_t record = 0;
	struct bs_msg *q;

	if (!h) /* a start is as well without */
		return;
	(void)bs_msg_u64(m, BS_TAG_RECORD, &record);
	h->image = i;
	h->waiter = a;
	a->hot = h;
	i->n_hots++;
	bs_list_append(&s->hots, &h->all);
	pending_init(s, &h->ask, answered);
	q = pending_begin(s, &h->ask, BS_MSG_HOT, m, wait_ns);
	(void)bs_msg_add_text(q, BS_TAG_DIGEST, i->digest);
	(void)bs_msg_add_text(q, BS_TAG_WORKLOAD, workload);
	(void)bs_msg_add_u64(q, BS_TAG_RECORD, record);
	if (a->timeline >= 0)
		(void)bs_msg_add_fd(q, a->timeline);
	pending_send(s, &h->ask);
}

void hots_forget(struct waiter *a)
{
	a->hot->waiter = NULL;
	a->hot = NULL;
}

void hots_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(it, &s->hots) {
		struct hot *h = bs_list_entry(it, struct hot, all);

		if (!h->waiter || h->image->state != IMAGE_MOUNTED)
			continue;
		if (h->until_ns == 0)
			h->until_ns = now_ns + HOT_WAIT_NS;
		else if (h->until_ns <= now_ns)
			share(s, h);
	}
}
