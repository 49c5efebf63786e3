/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Names of images that clients want to be digests: the worker asks the sources. Many that
 * ask for the same at once, as containers of a job do, are answered by one answer.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/super.h"

#define GRACE_NS (10 * BS_NS_PER_S) /* over what the client waits, for the way there and back */
#define NAME_MAX_BYTES 256u	    /* a tag has at most 128, a digest 71 */

static void resolved(struct super *s, struct pending *p, int result, const char *text,
		     struct bs_msg *m)
{
	const char *digest = result == 0 ? bs_msg_text(m, BS_TAG_DIGEST, 0) : NULL;
	struct bs_digest d;

	if (result == 0 && (!digest || bs_digest_parse(digest, strlen(digest), &d) < 0))
		pending_fail(s, p, -EPROTO, "the worker found no digest");
	if (result < 0)
		pending_fail(s, p, result, text);
	bs_list_for_each(it, &p->waiting) {
		struct waiter *w = bs_list_entry(it, struct waiter, all);
		bs_automsg reply;

		bs_msg_init(&reply, BS_MSG_REPLY, w->id);
		(void)bs_msg_add_u64(&reply, BS_TAG_RESULT, 0);
		(void)bs_msg_add_text(&reply, BS_TAG_DIGEST, digest);
		clients_send(s, w->client, &reply);
		waiter_free(w);
	}
	pending_done(p);
	free(p);
}

static bool same_texts(const struct bs_msg *a, const struct bs_msg *b, enum bs_msg_tag tag)
{
	for (size_t n = 0;; n++) {
		const char *x = bs_msg_text(a, tag, n), *y = bs_msg_text(b, tag, n);

		if (!x || !y)
			return x == y;
		if (!bs_streq(x, y))
			return false;
	}
}

static struct pending *find(struct super *s, const struct bs_msg *m)
{
	bs_list_for_each(it, &s->pending) {
		struct pending *p = bs_list_entry(it, struct pending, all);

		if (p->ended == resolved && same_texts(&p->request, m, BS_TAG_NAME) &&
		    same_texts(&p->request, m, BS_TAG_SOURCE))
			return p;
	}
	return NULL;
}

static struct pending *start(struct super *s, const struct bs_msg *m, uint64_t wait_ns)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pending_init(s, p, resolved);
	(void)bs_msg_add_text(pending_begin(s, p, BS_MSG_RESOLVE, m, wait_ns), BS_TAG_NAME,
			      bs_msg_text(m, BS_TAG_NAME, 0));
	return p;
}

void resolves_request(struct super *s, struct client *c, struct bs_msg *m)
{
	const char *name = bs_msg_text(m, BS_TAG_NAME, 0);
	uint64_t wait_ns = s->conf->start_wait_ns;
	struct pending *p;

	if (!name || !*name || strlen(name) > NAME_MAX_BYTES) {
		clients_reply(s, c, m->id, -EINVAL, "resolve: bad name");
		return;
	}
	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	wait_ns = BS_MIN(wait_ns, 3600 * BS_NS_PER_S);
	p = find(s, m);
	if (!p)
		p = start(s, m, wait_ns);
	if (!p || !waiter_new(p, c, m->id, wait_ns + GRACE_NS)) {
		clients_reply(s, c, m->id, -ENOMEM, "out of memory");
		return;
	}
	pending_send(s, p);
}
