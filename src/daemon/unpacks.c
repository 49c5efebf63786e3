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

#define UNPACK_WAIT_NS (3600 * BS_NS_PER_S) /* for the child; the whole image may be large */

/* An image that is being unpacked. */
struct unpacking {
	struct bs_list all;
	char digest[BS_DIGEST_TEXT_LEN];
	struct bs_msg request; /* to the worker; sent again to a new one until it is answered */
	bool sent;	       /* the worker that runs has it */
	bool answered;
	struct bs_list waiting; /* struct asker */
};

struct asker {
	struct bs_list in_unpacking;
	struct client *client;
	uint32_t id;
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

static void asker_free(struct asker *a)
{
	bs_list_remove(&a->in_unpacking);
	free(a);
}

/* text NULL: it is there. */
static void end(struct super *s, struct unpacking *u, int result, const char *text)
{
	bs_list_for_each(it, &u->waiting) {
		struct asker *a = bs_list_entry(it, struct asker, in_unpacking);

		if (result == 0)
			reply_path(s, a->client, a->id, u->digest);
		else
			clients_reply(s, a->client, a->id, result, text);
		asker_free(a);
	}
	bs_msg_done(&u->request);
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

bool unpacks_answered(struct super *s, uint32_t id, struct bs_msg *m)
{
	struct bs_error err = BS_ERROR_INIT;
	struct unpacking *u = NULL;
	uint64_t result = EPROTO;
	int fds[3], r;

	bs_list_for_each(it, &s->unpacks) {
		struct unpacking *candidate = bs_list_entry(it, struct unpacking, all);

		if (candidate->request.id == id && !candidate->answered)
			u = candidate;
	}
	if (!u)
		return false;
	u->answered = true;
	(void)bs_msg_u64(m, BS_TAG_RESULT, &result);
	if (result != 0) {
		const char *text = bs_msg_text(m, BS_TAG_TEXT, 0);

		end(s, u, result > 4095 ? -EPROTO : -(int)result,
		    text ? text : "the worker failed");
		return true;
	}
	fds[0] = m->n_fds > 0 ? m->fds[0] : -EBADF;
	fds[1] = m->n_fds > 1 ? m->fds[1] : -EBADF;
	fds[2] = s->unpacked_fd;
	r = children_start(s, "unpack", hex(u->digest), fds, 3, bs_clock_ns() + UNPACK_WAIT_NS,
			   child_ended, u, 0, &err);
	if (r < 0)
		end(s, u, r, bs_error_text(&err));
	return true;
}

void unpacks_send(struct super *s, bool again)
{
	bs_list_for_each(it, &s->unpacks) {
		struct unpacking *u = bs_list_entry(it, struct unpacking, all);

		if (!u->answered && (again || !u->sent))
			u->sent = workers_send(s, &u->request);
	}
}

void unpacks_client_gone(struct super *s, struct client *c)
{
	bs_list_for_each(it, &s->unpacks) {
		struct unpacking *u = bs_list_entry(it, struct unpacking, all);

		bs_list_for_each(w, &u->waiting) {
			struct asker *a = bs_list_entry(w, struct asker, in_unpacking);

			if (a->client == c)
				asker_free(a);
		}
	}
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
	const char *source;
	uint64_t wait_ns = s->conf->start_wait_ns;

	if (!u)
		return NULL;
	memcpy(u->digest, digest, BS_DIGEST_TEXT_LEN);
	bs_list_init(&u->waiting);
	bs_list_append(&s->unpacks, &u->all);
	bs_msg_init(&u->request, BS_MSG_UNPACK, ++s->next_id);
	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	(void)bs_msg_add_text(&u->request, BS_TAG_DIGEST, digest);
	(void)bs_msg_add_u64(&u->request, BS_TAG_WAIT_NS, wait_ns);
	for (size_t n = 0; (source = bs_msg_text(m, BS_TAG_SOURCE, n)); n++)
		(void)bs_msg_add_text(&u->request, BS_TAG_SOURCE, source);
	u->sent = workers_send(s, &u->request);
	return u;
}

void unpacks_request(struct super *s, struct client *c, struct bs_msg *m)
{
	const char *digest = bs_msg_text(m, BS_TAG_DIGEST, 0);
	struct unpacking *u;
	struct asker *a;
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
	a = u ? calloc(1, sizeof(*a)) : NULL;
	if (!a) {
		clients_reply(s, c, m->id, -ENOMEM, "out of memory");
		return;
	}
	a->client = c;
	a->id = m->id;
	bs_list_append(&u->waiting, &a->in_unpacking);
}
