/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Requests to the worker that outlive it: each is kept until it is answered and sent to
 * every worker that comes, with those who wait for it. But not for ever: what kills
 * worker after worker must not hold up all else.
 *
 *   idle ──start──▶ open, unsent ──▶ open, sent ──answer──▶ idle, ended(0)
 *                        ▲               │ the worker died
 *                        └───────────────┤
 *                                        └ too often ──▶ idle, ended(-EIO)
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "daemon/hots.h"
#include "daemon/super.h"

#define TRIES_MAX 20u /* workers that one request may take with it */

void pending_init(struct super *s, struct pending *p, pending_ended *ended)
{
	bs_msg_init(&p->request, 0, 0);
	bs_list_init(&p->waiting);
	p->ended = ended;
	p->open = p->sent = false;
	bs_list_append(&s->pending, &p->all);
}

void pending_done(struct pending *p)
{
	bs_list_for_each(it, &p->waiting)
		waiter_free(bs_list_entry(it, struct waiter, all));
	bs_msg_done(&p->request);
	bs_list_remove(&p->all);
}

/* --- those who wait --------------------------------------------------------------------- */

struct waiter *waiter_new(struct pending *p, struct client *c, uint32_t id, uint64_t wait_ns)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->client = c;
	w->id = id;
	w->deadline_ns = bs_clock_ns() + wait_ns;
	w->timeline = -EBADF;
	bs_list_append(&p->waiting, &w->all);
	return w;
}

void waiter_free(struct waiter *w)
{
	if (w->hot)
		hots_forget(w);
	bs_list_remove(&w->all);
	(void)bs_close(w->timeline);
	free(w->container);
	free(w);
}

void pending_fail(struct super *s, struct pending *p, int result, const char *text)
{
	bs_list_for_each(it, &p->waiting) {
		struct waiter *w = bs_list_entry(it, struct waiter, all);

		clients_reply(s, w->client, w->id, result, text);
		waiter_free(w);
	}
}

void pendings_client_gone(struct super *s, const struct client *c)
{
	bs_list_for_each(pit, &s->pending) {
		struct pending *p = bs_list_entry(pit, struct pending, all);

		bs_list_for_each(it, &p->waiting) {
			struct waiter *w = bs_list_entry(it, struct waiter, all);

			if (w->client == c)
				waiter_free(w);
		}
	}
}

void pendings_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(pit, &s->pending) {
		struct pending *p = bs_list_entry(pit, struct pending, all);

		bs_list_for_each(it, &p->waiting) {
			struct waiter *w = bs_list_entry(it, struct waiter, all);

			if (w->deadline_ns > now_ns)
				continue;
			clients_reply(s, w->client, w->id, -ETIMEDOUT,
				      "the image could not be made ready in time");
			waiter_free(w);
		}
	}
}

/* --- the request --------------------------------------------------------------------------- */

static void close_request(struct pending *p)
{
	bs_msg_done(&p->request);
	p->open = p->sent = false;
}

void pending_carry(struct bs_msg *to, const struct bs_msg *from)
{
	const char *source;
	uint64_t hot_only;

	for (size_t n = 0; (source = bs_msg_text(from, BS_TAG_SOURCE, n)); n++)
		(void)bs_msg_add_text(to, BS_TAG_SOURCE, source);
	if (bs_msg_u64(from, BS_TAG_HOT_ONLY, &hot_only) == 0)
		(void)bs_msg_add_u64(to, BS_TAG_HOT_ONLY, hot_only);
}

struct bs_msg *pending_begin(struct super *s, struct pending *p, enum bs_msg_type type,
			     const struct bs_msg *m, uint64_t wait_ns)
{
	close_request(p);
	bs_msg_init(&p->request, type, ++s->next_id);
	/* what does not fit is missed by the worker, which says so */
	(void)bs_msg_add_u64(&p->request, BS_TAG_WAIT_NS, wait_ns);
	pending_carry(&p->request, m);
	p->open = true;
	p->tries = 0;
	return &p->request;
}

void pending_send(struct super *s, struct pending *p)
{
	/* a worker that is not ready, or does not read now, gets it later */
	if (p->open && !p->sent)
		p->sent = workers_send(s, &p->request);
}

void pendings_send(struct super *s)
{
	bs_list_for_each(it, &s->pending)
		pending_send(s, bs_list_entry(it, struct pending, all));
}

bool pendings_open(const struct super *s)
{
	bs_list_for_each(it, &s->pending) {
		if (bs_list_entry(it, struct pending, all)->open)
			return true;
	}
	return false;
}

void pendings_new_worker(struct super *s)
{
	bs_list_for_each(it, &s->pending) {
		struct pending *p = bs_list_entry(it, struct pending, all);

		if (!p->open)
			continue;
		p->sent = false;
		if (++p->tries <= TRIES_MAX) {
			pending_send(s, p);
			continue;
		}
		close_request(p);
		p->ended(s, p, -EIO, "the worker died again and again over this image", NULL);
	}
}

bool pendings_answered(struct super *s, struct bs_msg *m)
{
	bs_list_for_each(it, &s->pending) {
		struct pending *p = bs_list_entry(it, struct pending, all);
		uint64_t result = EPROTO;
		const char *text;

		if (!p->open || p->request.id != m->id)
			continue;
		close_request(p);
		text = bs_msg_text(m, BS_TAG_TEXT, 0);
		(void)bs_msg_u64(m, BS_TAG_RESULT, &result);
		if (result > 4095)
			result = EPROTO;
		p->ended(s, p, -(int)result, text ? text : "the worker failed without a word", m);
		return true;
	}
	return false;
}
