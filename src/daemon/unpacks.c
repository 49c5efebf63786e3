/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Images as directories, CACHE_DIR/unpacked/<hex>/: the worker completes the image and
 * hands over tree and blob, a child writes them out beside and renames. Once a node.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/super.h"

#define WAITER_NS (24 * 3600 * BS_NS_PER_S) /* clients give up by themselves, and sooner */
#define UNPACK_WAIT_NS (3600 * BS_NS_PER_S) /* for the child; the whole image may be large */

/* An image that is being unpacked. */
struct unpacking {
	struct bs_list all;
	char digest[BS_DIGEST_TEXT_LEN];
	struct pending request;
};

static const char *hex(const char *digest)
{
	return digest + strlen("sha256:");
}

static void reply_path(struct super *s, struct client *c, uint32_t id, const char *digest)
{
	bs_autofree char *path = bs_strf("%s/unpacked/%s", s->conf->cache_dir, hex(digest));
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	if (!path || bs_msg_add_u64(&m, BS_TAG_RESULT, 0) < 0 ||
	    bs_msg_add_text(&m, BS_TAG_PATH, path) < 0)
		clients_reply(s, c, id, -ENOMEM, "out of memory");
	else
		clients_send(s, c, &m);
}

/* result 0: it is there. */
static void end(struct super *s, struct unpacking *u, int result, const char *text)
{
	if (result < 0)
		pending_fail(s, &u->request, result, text);
	bs_list_for_each(it, &u->request.waiting) {
		struct waiter *w = bs_list_entry(it, struct waiter, all);

		reply_path(s, w->client, w->id, u->digest);
		waiter_free(w);
	}
	pending_done(&u->request);
	bs_list_remove(&u->all);
	free(u);
}

static void child_ended(struct super *s, struct child *c, struct bs_msg *m)
{
	uint64_t result = ETIMEDOUT;
	const char *text = "unpacking the image took too long, or its process was killed";

	if (m) {
		text = bs_msg_text(m, BS_TAG_TEXT, 0);
		if (bs_msg_u64(m, BS_TAG_RESULT, &result) < 0 || result > 4095)
			result = EPROTO;
	}
	end(s, c->cookie, -(int)result, text ? text : "unpacking the image failed");
}

static void fetched(struct super *s, struct pending *p, int result, const char *text,
		    struct bs_msg *m)
{
	struct unpacking *u = BS_CONTAINER_OF(p, struct unpacking, request);
	struct bs_error err = BS_ERROR_INIT;
	int fds[3];

	if (result < 0) {
		end(s, u, result, text);
		return;
	}
	fds[0] = m->n_fds > 0 ? m->fds[0] : -EBADF;
	fds[1] = m->n_fds > 1 ? m->fds[1] : -EBADF;
	fds[2] = s->unpacked_fd;
	result = children_start(s, "unpack", hex(u->digest), fds, 3, bs_clock_ns() + UNPACK_WAIT_NS,
				child_ended, u, 0, &err);
	if (result < 0)
		end(s, u, result, bs_error_text(&err));
}

static struct unpacking *find(struct super *s, const char *digest)
{
	bs_list_for_each(it, &s->unpacks) {
		struct unpacking *u = bs_list_entry(it, struct unpacking, all);

		if (bs_streq(u->digest, digest))
			return u;
	}
	return NULL;
}

static struct unpacking *start(struct super *s, const char *digest, const struct bs_msg *m)
{
	struct unpacking *u = calloc(1, sizeof(*u));
	uint64_t wait_ns = s->conf->start_wait_ns;

	if (!u)
		return NULL;
	memcpy(u->digest, digest, BS_DIGEST_TEXT_LEN);
	bs_list_append(&s->unpacks, &u->all);
	pending_init(s, &u->request, fetched);
	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	(void)bs_msg_add_text(pending_begin(s, &u->request, BS_MSG_UNPACK, m, wait_ns),
			      BS_TAG_DIGEST, digest);
	pending_send(s, &u->request);
	return u;
}

void unpacks_request(struct super *s, struct client *c, struct bs_msg *m)
{
	const char *digest = bs_msg_text(m, BS_TAG_DIGEST, 0);
	struct unpacking *u;
	struct bs_digest d;

	if (!digest || bs_digest_parse(digest, strlen(digest), &d) < 0) {
		clients_reply(s, c, m->id, -EINVAL, "unpack: bad digest");
		return;
	}
	if (faccessat(s->unpacked_fd, hex(digest), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		reply_path(s, c, m->id, digest);
		return;
	}
	u = find(s, digest);
	if (!u)
		u = start(s, digest, m);
	if (!u || !waiter_new(&u->request, c, m->id, WAITER_NS))
		clients_reply(s, c, m->id, -ENOMEM, "out of memory");
}
