/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Uploads (distribution-spec, "Pushing blobs"). A blob goes in one PUT, streamed from
 * its descriptor. A server that does not take that (413 from a proxy with a limit, 405,
 * 411, 415, 416, 501) gets pieces by PATCH. A failed upload is deleted and made anew: nothing is
 * resumed, and nothing is visible before the last request has worked.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/header.h"
#include "net/referrers.h"
#include "net/registry.h"
#include "net/url.h"

#define ANSWER_MAX (64u << 10)
#define PIECE_FIRST (UINT64_C(16) << 20)
#define PIECE_MIN (UINT64_C(1) << 20)
#define PIECE_MAX (UINT64_C(1) << 30) /* what a server's minimum may ask for */
#define OCTETS "Content-Type: application/octet-stream"

int bs_registry_has_blob(struct bs_repo *repo, const struct bs_digest *d, struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	struct bs_request q = { .method = "HEAD", .scope = r->pull };
	char what[128], text[BS_DIGEST_TEXT_LEN];
	struct bs_exchange x;
	int rc;

	(void)bs_digest_text(d, text);
	(void)snprintf(what, sizeof(what), "look for blob %s", text);
	q.url = bs_registry_url(r, "blobs/%s", text);
	rc = bs_registry_send(r, &q, &x);
	if (rc == 0)
		rc = 1;
	else if (rc == -ENOENT)
		rc = 0;
	else
		rc = bs_registry_fail(r, err, rc, what, &x.call);
	bs_exchange_done(&x);
	return rc;
}

/* --- one upload ------------------------------------------------------------------------------ */

struct upload {
	struct bs_registry *registry;
	const struct bs_digest *digest;
	int fd;
	uint64_t size;
	void (*progress)(void *cookie, uint64_t sent);
	void *cookie;
	char *location;	     /* where the next request of this upload goes */
	uint64_t piece_min;  /* the server's OCI-Chunk-Min-Length */
	uint64_t piece_from; /* offset of the piece that is being sent */
};

static void sent_in_piece(void *cookie, uint64_t sent)
{
	struct upload *u = cookie;

	u->progress(u->cookie, u->piece_from + sent);
}

/* Follows the upload to where the answer says that it goes on. */
static int take_location(struct upload *u, struct bs_exchange *x)
{
	const char *location = x->call.http.header[BS_HTTP_LOCATION];
	char *to = NULL;
	int rc = location ? bs_url_resolve(x->call.url, location, &to) : -EINVAL;

	if (rc < 0) {
		(void)snprintf(x->call.text, sizeof(x->call.text),
			       "the answer names no usable Location for the upload");
		return rc == -ENOMEM ? rc : -EREMOTEIO;
	}
	free(u->location);
	u->location = to;
	return 0;
}

static int begin(struct upload *u, const char *query, struct bs_exchange *x)
{
	struct bs_registry *r = u->registry;
	const char *min;
	struct bs_request q = { .method = "POST",
				.url = bs_registry_url(r, "blobs/uploads/%s", query),
				.scope = r->push,
				.has_body = true,
				.body = "",
				.max = ANSWER_MAX,
				.once = true };
	int rc = bs_registry_send(r, &q, x);

	if (rc < 0)
		return rc;
	min = x->call.http.header[BS_HTTP_OCI_CHUNK_MIN_LENGTH];
	if (!min || bs_parse_u64(min, &u->piece_min) < 0)
		u->piece_min = 0;
	u->piece_min = BS_MIN(u->piece_min, PIECE_MAX);
	return x->call.http.status == 202 ? take_location(u, x) : 0;
}

/* Tells the server to forget it; what it answers does not matter. */
static void give_up(struct upload *u)
{
	struct bs_request q = { .method = "DELETE", .scope = u->registry->push, .once = true };
	struct bs_exchange x;

	if (!u->location)
		return;
	q.url = bs_take(&u->location);
	(void)bs_registry_send(u->registry, &q, &x);
	bs_exchange_done(&x);
}

/* No answer came to the last request, but perhaps what it was for: is the blob there now? */
static int ask_for_it(struct upload *u, struct bs_call *unanswered)
{
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_request q = { .method = "HEAD", .scope = u->registry->pull, .once = true };
	struct bs_exchange x;
	int rc;

	q.url = bs_registry_url(u->registry, "blobs/%s", bs_digest_text(u->digest, text));
	rc = bs_registry_send(u->registry, &q, &x);
	bs_exchange_done(&x);
	if (rc == 0)
		return 0;
	if (bs_repo_is_silence(rc)) /* it says nothing at all: others are not to wait for it */
		unanswered->transient = false;
	return unanswered->result;
}

/* The last request: names the digest, and brings the bytes [from, size) when there are any. */
static int put(struct upload *u, uint64_t from, struct bs_exchange *x)
{
	bs_autobuf url = BS_BUF_INIT(BS_HTTP_URL_MAX);
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_request q = { .method = "PUT",
				.scope = u->registry->push,
				.headers = { OCTETS },
				.has_body = true,
				.body = u->size == from ? "" : NULL,
				.fd = u->fd,
				.fd_off = from,
				.body_len = u->size - from,
				.answer_ns = bs_registry_answer_ns(u->registry, u->size),
				.lane = BS_LANE_HOT,
				.max = ANSWER_MAX,
				.once = true };
	int rc;

	(void)bs_buf_adds(&url, u->location);
	(void)bs_url_add_query(&url, "digest", bs_digest_text(u->digest, text));
	q.url = bs_buf_take(&url);
	if (u->progress && u->size != from) {
		u->piece_from = from;
		q.progress = sent_in_piece;
		q.cookie = u;
	}
	rc = bs_registry_send(u->registry, &q, x);
	if (rc != -ETIMEDOUT || x->call.http.sent != x->call.http.body_len)
		return rc;
	return ask_for_it(u, &x->call);
}

static int patch(struct upload *u, uint64_t from, uint64_t len, struct bs_exchange *x)
{
	char range[80];
	struct bs_request q = { .method = "PATCH",
				.url = bs_strf("%s", u->location),
				.scope = u->registry->push,
				.headers = { OCTETS, range },
				.has_body = true,
				.fd = u->fd,
				.fd_off = from,
				.body_len = len,
				.answer_ns = bs_registry_answer_ns(u->registry, len),
				.lane = BS_LANE_HOT,
				.max = ANSWER_MAX,
				.once = true };
	int rc;

	(void)snprintf(range, sizeof(range), "Content-Range: %" PRIu64 "-%" PRIu64, from,
		       from + len - 1);
	if (u->progress) {
		u->piece_from = from;
		q.progress = sent_in_piece;
		q.cookie = u;
	}
	rc = bs_registry_send(u->registry, &q, x);
	return rc < 0 ? rc : take_location(u, x);
}

static bool wants_pieces(const struct bs_exchange *x)
{
	switch (x->call.http.status) {
	case 405:
	case 411:
	case 413:
	case 415:
	case 416:
	case 501:
		return true;
	default:
		return false;
	}
}

/* All in pieces of at most piece bytes. */
static int send_pieces(struct upload *u, uint64_t piece, struct bs_exchange *x)
{
	uint64_t at = 0;
	int rc = begin(u, "", x);

	if (rc == 0)
		piece = BS_MAX(piece, u->piece_min);
	while (rc == 0 && at < u->size) {
		uint64_t len = BS_MIN(piece, u->size - at);

		bs_exchange_done(x);
		rc = patch(u, at, len, x);
		at += len;
	}
	if (rc == 0) {
		bs_exchange_done(x);
		rc = put(u, u->size, x);
	}
	if (rc < 0)
		give_up(u);
	return rc;
}

static int send_whole(struct upload *u, struct bs_exchange *x)
{
	int rc = begin(u, "", x);

	if (rc == 0 && x->call.http.status == 202) {
		bs_exchange_done(x);
		rc = put(u, 0, x);
	}
	if (rc < 0)
		give_up(u);
	return rc;
}

static int put_blob(struct upload *u, struct bs_exchange *x)
{
	struct bs_retry retry = { 0 };
	uint64_t piece = 0; /* 0: whole */
	int rc;

	for (;;) {
		rc = piece ? send_pieces(u, piece, x) : send_whole(u, x);
		if (rc == 0)
			return 0;
		if (wants_pieces(x) && u->size && (!piece || piece / 4 >= PIECE_MIN)) {
			piece = piece ? piece / 4 : PIECE_FIRST;
		} else if (x->call.http.status == 404 && retry.n == 0 && u->location == NULL &&
			   !x->call.transient) {
			/* the upload vanished, as when the server was replaced: once more */
			x->call.transient = true;
			if (!bs_retry_again(&retry, &x->call))
				return rc;
		} else if (!bs_retry_again(&retry, &x->call)) {
			return rc;
		}
		bs_exchange_done(x);
	}
}

int bs_registry_put_blob(struct bs_repo *repo, const struct bs_digest *d, int fd, uint64_t size,
			 void (*progress)(void *cookie, uint64_t sent), void *cookie,
			 struct bs_error *err)
{
	struct upload u = { .registry = bs_registry_of(repo),
			    .digest = d,
			    .fd = fd,
			    .size = size,
			    .progress = progress,
			    .cookie = cookie };
	char what[128], text[BS_DIGEST_TEXT_LEN];
	struct bs_exchange x;
	int rc = bs_registry_has_blob(repo, d, err);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	(void)snprintf(what, sizeof(what), "upload of blob %s", bs_digest_text(d, text));
	rc = put_blob(&u, &x);
	if (rc < 0)
		(void)bs_registry_fail(u.registry, err, rc, what, &x.call);
	bs_exchange_done(&x);
	free(u.location);
	return rc;
}

int bs_registry_mount_blob(struct bs_repo *repo, const struct bs_digest *d, const char *from_name,
			   struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	bs_autofree char *query = NULL, *scope = NULL;
	struct upload u = { .registry = r, .digest = d, .fd = -EBADF };
	char what[128], text[BS_DIGEST_TEXT_LEN];
	struct bs_exchange x;
	struct bs_request q = { .method = "POST", .has_body = true, .body = "", .max = ANSWER_MAX };
	int rc;

	(void)bs_digest_text(d, text);
	(void)snprintf(what, sizeof(what), "mount of blob %s", text);
	scope = bs_strf("%s repository:%s:pull", r->push, from_name);
	q.url = bs_registry_url(r, "blobs/uploads/?mount=%s&from=%s", text, from_name);
	q.scope = scope;
	if (!scope) {
		free(q.url);
		return bs_fail(err, -ENOMEM, "%s: %s: out of memory", repo->name, what);
	}
	rc = bs_registry_send(r, &q, &x);
	if (rc == 0 && x.call.http.status == 201)
		rc = 1;
	else if (rc == 0 && x.call.http.status == 202 && take_location(&u, &x) == 0)
		give_up(&u); /* it began an upload instead */
	else if (rc == -EACCES || rc == -ENOENT || rc == -EOPNOTSUPP ||
		 (rc < 0 && x.call.http.status >= 400 && x.call.http.status < 500 &&
		  x.call.http.status != 429))
		rc = 0;
	else if (rc < 0)
		rc = bs_registry_fail(r, err, rc, what, &x.call);
	bs_exchange_done(&x);
	free(u.location);
	return rc;
}
