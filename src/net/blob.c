/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A whole blob, streamed. The loop's thread fills one half of a pair of buffers, the
 * caller's thread empties the other into the sink; when the sink is slower the transfer
 * pauses. What broke off is continued by Range, or by passing over what is there already
 * when the server ignores that.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/header.h"
#include "net/registry.h"

#define HALF (512u << 10)
#define PROGRESS_MIN (1u << 20) /* after so much the count of tries begins anew */

struct fetch {
	struct bs_call call;
	struct bs_registry *registry;
	const struct bs_digest *blob;
	uint64_t size;
	uint64_t off;	      /* where this attempt begins */
	uint64_t skip;	      /* the loop's thread: bytes to pass over */
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t cond;
	char *half[2];
	int filling; /* which half */
	size_t fill;
	bool full, over;
};

static int fetch_head(struct bs_call *c)
{
	struct fetch *f = BS_CONTAINER_OF(c, struct fetch, call);
	const char *said = c->http.header[BS_HTTP_CONTENT_RANGE];
	uint64_t first, last, total, length = c->http.length;

	f->skip = 0;
	if (c->http.status == 206 && f->off) {
		if (!said || bs_header_content_range(said, &first, &last, &total) < 0 ||
		    first != f->off || last != f->size - 1)
			return -EBADMSG;
		return length == UINT64_MAX || length == f->size - f->off ? 0 : -EBADMSG;
	}
	if (c->http.status != 200 || (length != UINT64_MAX && length != f->size))
		return -EBADMSG;
	f->skip = f->off;
	return 0;
}

static int fetch_data(struct bs_call *c, const void *data, size_t len)
{
	struct fetch *f = BS_CONTAINER_OF(c, struct fetch, call);
	size_t pass = (size_t)BS_MIN((uint64_t)len, f->skip);
	int r = 0;

	(void)pthread_mutex_lock(&f->lock);
	if (f->fill + len - pass > HALF) {
		f->full = true;
		r = BS_HTTP_PAUSE;
	} else {
		memcpy(f->half[f->filling] + f->fill, (const char *)data + pass, len - pass);
		f->fill += len - pass;
		f->skip -= pass;
		(void)pthread_cond_signal(&f->cond);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

static void fetch_strayed(struct bs_call *c)
{
	const struct fetch *f = BS_CONTAINER_OF(c, struct fetch, call);

	bs_registry_strayed(f->registry, f->blob, c->shortcut);
}

static void fetch_done(struct bs_call *c)
{
	struct fetch *f = BS_CONTAINER_OF(c, struct fetch, call);

	(void)pthread_mutex_lock(&f->lock);
	f->over = true;
	(void)pthread_cond_signal(&f->cond);
	(void)pthread_mutex_unlock(&f->lock);
}

/* The caller's thread: hands on what comes until the call is over. -errno: of the sink. */
static int drain(struct fetch *f, bs_repo_sink *sink, void *cookie, uint64_t *done)
{
	int r = 0;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		const char *from;
		size_t n;
		bool resume;

		while (!f->over && f->fill == 0)
			(void)pthread_cond_wait(&f->cond, &f->lock);
		if (f->fill == 0)
			break;
		from = f->half[f->filling];
		n = f->fill;
		f->filling = !f->filling;
		f->fill = 0;
		resume = f->full;
		f->full = false;
		(void)pthread_mutex_unlock(&f->lock);
		if (resume)
			bs_http_resume(&f->call.http);
		if (r == 0) {
			r = sink(cookie, from, n);
			if (r < 0)
				bs_http_cancel(&f->call.http);
			else
				*done += n;
		}
		(void)pthread_mutex_lock(&f->lock);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

static int prepare(struct bs_registry *r, struct fetch *f, const struct bs_digest *d)
{
	char text[BS_DIGEST_TEXT_LEN];
	int rc = bs_call_init(&f->call, r->session, "GET",
			      bs_registry_url(r, "blobs/%s", bs_digest_text(d, text)),
			      bs_strf("%s", r->pull));

	if (rc == 0 && f->off)
		rc = bs_strv_addf(&f->call.headers, "Range: bytes=%" PRIu64 "-", f->off);
	f->call.http.lane = BS_LANE_DEMAND;
	f->registry = r;
	f->blob = d;
	f->call.shortcut = bs_registry_landing(r, d);
	f->call.strayed = fetch_strayed;
	f->call.head = fetch_head;
	f->call.data = fetch_data;
	f->call.done = fetch_done;
	f->fill = 0;
	f->over = f->full = false;
	return rc;
}

/* All attempts. Leaves the last call in f for its text. */
static int fetch(struct bs_registry *r, struct fetch *f, const struct bs_digest *d,
		 bs_repo_sink *sink, void *cookie, int *ret_sink)
{
	struct bs_retry retry = { 0 };
	uint64_t done = 0;
	int rc;

	for (;;) {
		uint64_t before = done;

		f->off = done;
		rc = prepare(r, f, d);
		if (rc < 0) {
			(void)snprintf(f->call.text, sizeof(f->call.text), "out of memory");
			return rc;
		}
		bs_call_start(&f->call);
		*ret_sink = drain(f, sink, cookie, &done);
		rc = f->call.result;
		if (*ret_sink < 0)
			return *ret_sink;
		if (rc == 0 && done < f->size) {
			(void)snprintf(f->call.text, sizeof(f->call.text),
				       "the answer is too short");
			f->call.transient = true;
			rc = -EREMOTEIO;
			if (f->call.by_shortcut)
				fetch_strayed(&f->call);
		}
		if (rc == 0)
			bs_registry_landed(r, d, f->call.landed);
		if (done - before >= PROGRESS_MIN)
			retry = (struct bs_retry){ 0 };
		/* all bytes are there, whatever befell the connection then */
		if (rc < 0 && f->size && done == f->size)
			rc = 0;
		if (rc == 0 || !bs_retry_again(&retry, &f->call))
			return rc;
		bs_call_done(&f->call);
	}
}

int bs_registry_get_blob(struct bs_repo *repo, const struct bs_digest *d, uint64_t size,
			 bs_repo_sink *sink, void *cookie, struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	struct fetch f = { .size = size,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .cond = PTHREAD_COND_INITIALIZER };
	char what[128], text[BS_DIGEST_TEXT_LEN];
	int rc, sink_rc = 0;

	(void)snprintf(what, sizeof(what), "blob %s", bs_digest_text(d, text));
	f.half[0] = malloc(HALF);
	f.half[1] = malloc(HALF);
	if (!f.half[0] || !f.half[1]) {
		rc = bs_fail(err, -ENOMEM, "%s: %s: out of memory", repo->name, what);
	} else {
		rc = fetch(r, &f, d, sink, cookie, &sink_rc);
		if (sink_rc < 0)
			rc = bs_fail_errno(err, sink_rc, "%s: %s: while writing it down",
					   repo->name, what);
		else if (rc < 0)
			rc = bs_registry_fail(r, err, rc, what, &f.call);
		bs_call_done(&f.call);
	}
	free(f.half[0]);
	free(f.half[1]);
	(void)pthread_cond_destroy(&f.cond);
	(void)pthread_mutex_destroy(&f.lock);
	return rc;
}
