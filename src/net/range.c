/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One range of a blob, asynchronously.
 *
 * A server that ignores Range and sends the whole blob (200) is used as long as the
 * range ends within the first WHOLE_MAX bytes: what lies before is passed over and the
 * transfer cut off behind. For ranges of that blob further on the answer is -EOPNOTSUPP, for a
 * while without asking again: reading a blob of gigabytes from its start for each range would
 * help nobody; whole blobs can still be fetched.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/header.h"
#include "net/registry.h"

#define WHOLE_MAX (4u << 20)
#define NO_RANGES_NS (10 * BS_NS_PER_S)

struct reader {
	struct bs_call call;
	struct bs_registry *registry; /* a reference */
	struct bs_range *rg;
	uint64_t skip; /* bytes to pass over before the range */
};

static uint64_t range_end(const struct bs_range *rg)
{
	return rg->off + rg->len;
}

static int range_head(struct bs_call *c)
{
	struct reader *rd = BS_CONTAINER_OF(c, struct reader, call);
	const char *said = c->http.header[BS_HTTP_CONTENT_RANGE];
	const struct bs_range *rg = rd->rg;
	uint64_t first, last, total;

	rd->rg->answered_ns = bs_clock_ns();
	__atomic_store_n(&rd->rg->got, 0, __ATOMIC_RELAXED);
	rd->skip = 0;
	if (c->http.status == 206) {
		if (!said || bs_header_content_range(said, &first, &last, &total) < 0 ||
		    first != rg->off || last != range_end(rg) - 1)
			return -EBADMSG;
		return c->http.length == UINT64_MAX || c->http.length == rg->len ? 0 : -EBADMSG;
	}
	if (c->http.status != 200)
		return -EBADMSG;
	if (c->http.length != UINT64_MAX && c->http.length < range_end(rg))
		return -EBADMSG;
	if (rg->off == 0 && c->http.length == rg->len)
		return 0; /* the range is the blob */
	if (range_end(rg) > WHOLE_MAX)
		return -EOPNOTSUPP;
	rd->skip = rg->off;
	return 0;
}

static int range_data(struct bs_call *c, const void *data, size_t len)
{
	struct reader *rd = BS_CONTAINER_OF(c, struct reader, call);
	const char *from = data;
	size_t n = (size_t)BS_MIN((uint64_t)len, rd->skip);

	rd->skip -= n;
	from += n;
	len -= n;
	if (len > rd->rg->len - rd->rg->got) {
		if (c->http.status == 206)
			return -EBADMSG;
		len = rd->rg->len - rd->rg->got;
	}
	memcpy((char *)rd->rg->buf + rd->rg->got, from, len);
	/* who sees so many sees their bytes */
	__atomic_store_n(&rd->rg->got, rd->rg->got + len, __ATOMIC_RELEASE);
	if (rd->rg->progress && len > 0)
		rd->rg->progress(rd->rg);
	if (rd->rg->got == rd->rg->len && c->http.status == 200 &&
	    c->http.length != range_end(rd->rg))
		return BS_HTTP_ENOUGH;
	return 0;
}

static void finish(struct reader *rd, int result, uint64_t retry_after_ns, const char *text)
{
	struct bs_registry *r = rd->registry;
	struct bs_range *rg = rd->rg;

	rg->result = result;
	rg->retry_after_ns = result == -EAGAIN ? retry_after_ns : 0;
	if (result < 0)
		(void)snprintf(rg->text, sizeof(rg->text), "%s", text);
	rg->ended_ns = bs_clock_ns();
	bs_call_done(&rd->call);
	free(rd);
	rg->done(rg);
	(void)bs_repo_unref(&r->repo);
}

static int range_tail(struct bs_call *c)
{
	const struct reader *rd = BS_CONTAINER_OF(c, struct reader, call);

	/* its length was not said, or head had seen that it is another one: the connection broke */
	return rd->rg->got == rd->rg->len ? 0 : -EREMOTEIO;
}

static void range_strayed(struct bs_call *c)
{
	struct reader *rd = BS_CONTAINER_OF(c, struct reader, call);

	bs_registry_strayed(rd->registry, &rd->rg->blob, c->shortcut);
}

/* Of this blob alone: what answers for others may be another server, or a store. */
static void note_no_ranges(struct bs_registry *r, const struct bs_digest *d)
{
	size_t at = 0;

	(void)pthread_mutex_lock(&r->lock);
	for (size_t i = 1; i < BS_ARRAY_LEN(r->no_ranges); i++) {
		if (r->no_ranges[i].until_ns < r->no_ranges[at].until_ns)
			at = i;
	}
	r->no_ranges[at].blob = *d;
	r->no_ranges[at].until_ns = bs_clock_ns() + NO_RANGES_NS;
	(void)pthread_mutex_unlock(&r->lock);
}

static void range_done(struct bs_call *c)
{
	struct reader *rd = BS_CONTAINER_OF(c, struct reader, call);
	const char *text = c->text;

	if (c->result == -EOPNOTSUPP && c->http.status == 200) {
		note_no_ranges(rd->registry, &rd->rg->blob);
		text = "the server ignores Range";
	}
	if (c->result == 0)
		bs_registry_landed(rd->registry, &rd->rg->blob, c->landed);
	finish(rd, c->result, c->retry_after_ns, text);
}

static bool knows_no_ranges(struct bs_registry *r, const struct bs_range *rg)
{
	const uint64_t now = bs_clock_ns();
	bool no = false;

	if (range_end(rg) <= WHOLE_MAX)
		return false;
	(void)pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < BS_ARRAY_LEN(r->no_ranges); i++)
		no |= now < r->no_ranges[i].until_ns &&
		      bs_digest_eq(&r->no_ranges[i].blob, &rg->blob);
	(void)pthread_mutex_unlock(&r->lock);
	return no;
}

static int prepare(struct reader *rd)
{
	struct bs_registry *r = rd->registry;
	struct bs_range *rg = rd->rg;
	char text[BS_DIGEST_TEXT_LEN];
	int rc = bs_call_init(&rd->call, r->session, "GET",
			      bs_registry_url(r, "blobs/%s", bs_digest_text(&rg->blob, text)),
			      bs_strf("%s", r->pull));

	if (rc == 0)
		rc = bs_strv_addf(&rd->call.headers, "Range: bytes=%" PRIu64 "-%" PRIu64, rg->off,
				  range_end(rg) - 1);
	rd->call.http.lane = rg->lane < BS_LANE_MAX ? rg->lane : BS_LANE_DEMAND;
	rd->call.http.whose = rg->whose;
	rd->call.http.expected_bytes = rg->len;
	rd->call.http.started_ns = &rg->started_ns;
	rd->call.http.fresh = rg->fresh;
	rd->call.shortcut = rg->fresh ? NULL : bs_registry_landing(r, &rg->blob);
	rd->call.strayed = range_strayed;
	rd->call.rewinds = true;
	rd->call.head = range_head;
	rd->call.data = range_data;
	rd->call.tail = range_tail;
	rd->call.done = range_done;
	return rc;
}

void bs_registry_read(struct bs_repo *repo, struct bs_range *rg)
{
	struct bs_registry *r = bs_registry_of(repo);
	struct reader *rd = calloc(1, sizeof(*rd));
	int rc;

	if (!rd) {
		rg->result = -ENOMEM;
		(void)snprintf(rg->text, sizeof(rg->text), "out of memory");
		rg->ended_ns = bs_clock_ns();
		rg->done(rg);
		return;
	}
	(void)bs_repo_ref(repo);
	rd->registry = r;
	rd->rg = rg;
	rc = prepare(rd);
	if (rc < 0)
		finish(rd, rc, 0, "out of memory");
	else if (knows_no_ranges(r, rg))
		finish(rd, -EOPNOTSUPP, 0, "the server ignores Range");
	else
		bs_call_start(&rd->call);
}
