/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The NameNode is asked where to write, as every client does; its Location has the parameters
 * that DataNodes want (namenoderpcaddress, a token). The path in it is made anew: NameNodes
 * leave ';' as it is, which cuts the name off at the DataNode.
 *
 * A DataNode refuses (there is such a file already) after the first bytes of the body, so it
 * is asked to say when it wants them (100-continue).
 */
#include "config.h"

#include "hdfs/create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/str.h"
#include "hdfs/nnpriv.h"
#include "net/http.h"
#include "net/loop_impl.h"

#define DEADLINE_NS (60 * BS_NS_PER_S)
#define NS_PER_MIB BS_NS_PER_S
#define MODE 0644u
#define ANSWER_MAX (256u << 10)
#define LOOK_NS (20 * BS_NS_PER_MS)
#define LOOK_MAX_NS (500 * BS_NS_PER_MS)

struct upload {
	struct bs_http http;
	struct bs_task task;
	struct bs_latch over;
	struct bs_buf answer;
};

static int on_data(struct bs_http *h, const void *data, size_t len)
{
	struct upload *u = BS_CONTAINER_OF(h, struct upload, http);

	return bs_buf_add(&u->answer, data, len) < 0 ? -EFBIG : 0;
}

static void on_done(struct bs_http *h)
{
	bs_latch_open(&BS_CONTAINER_OF(h, struct upload, http)->over);
}

static void start(struct bs_task *t)
{
	bs_http_start(&BS_CONTAINER_OF(t, struct upload, task)->http);
}

/* What the NameNode's word and the chosen DataNode make together. */
static int make_url(struct bs_nn *nn, const struct bs_create *c, char **ret, struct bs_error *err)
{
	bs_autofree char *query = NULL, *origin = NULL;
	int r = bs_nn_create_query(nn, c, &query, &origin, err);

	if (r < 0)
		return r;
	*ret = c->datanode ? bs_strf("%s://%s%s", bs_nn_https(nn) ? "https" : "http", c->datanode,
				     query)
			   : bs_strf("%s%s", origin, query);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "HDFS: out of memory");
}

static int judge(const struct bs_create *c, const struct upload *u, bool timed_out,
		 struct bs_error *err)
{
	const struct bs_http *h = &u->http;
	struct bs_hdfs_exception e;

	if (h->result < 0)
		return bs_fail(err, timed_out ? -ETIMEDOUT : h->result, "HDFS '%s': write: %s",
			       c->path, timed_out ? "not done in time" : h->text);
	if (h->status == 200 || h->status == 201)
		return 0;
	bs_reply_exception(h->status, bs_buf_str(&u->answer), u->answer.len, &e);
	return bs_fail(err, e.code, "HDFS '%s': write: %s: %s", c->path, e.name, e.message);
}

static int send_file(struct bs_nn *nn, const struct bs_create *c, const char *url,
		     uint64_t deadline_ns, struct bs_error *err)
{
	struct upload u = { .over = BS_LATCH_INIT,
			    .answer = BS_BUF_INIT(ANSWER_MAX),
			    .task = { .fn = start } };
	uint64_t now = bs_clock_ns();
	bool timed_out;
	int r;

	u.http = (struct bs_http){ .loop = bs_nn_loop(nn),
				   .peer = bs_nn_peer(nn),
				   .lane = BS_LANE_DEMAND,
				   .method = "PUT",
				   .url = url,
				   .body = c->bytes,
				   .body_fd = c->fd,
				   .body_off = c->fd_off,
				   .body_len = c->len,
				   .has_body = true,
				   .data = on_data,
				   .done = on_done };
	if (bs_strv_add(&u.http.headers, "Content-Type: application/octet-stream") < 0 ||
	    (c->len && bs_strv_add(&u.http.headers, "Expect: 100-continue") < 0)) {
		bs_strv_done(&u.http.headers);
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	}
	bs_loop_post(u.http.loop, &u.task);
	timed_out = !bs_latch_wait_for(&u.over, deadline_ns > now ? deadline_ns - now : 0);
	if (timed_out) {
		bs_http_cancel(&u.http);
		bs_latch_wait(&u.over);
	}
	r = judge(c, &u, timed_out, err);
	bs_latch_done(&u.over);
	bs_strv_done(&u.http.headers);
	bs_http_done(&u.http);
	bs_buf_done(&u.answer);
	return r;
}

/* The NameNode may know of the last block a little later than its writer. */
static int look_after(struct bs_nn *nn, const struct bs_create *c, uint64_t deadline_ns,
		      struct bs_error *err)
{
	uint64_t pause = LOOK_NS;

	for (;;) {
		struct timespec ts = { .tv_nsec = (long)pause };
		struct bs_hdfs_status s = { 0 };
		int r = bs_nn_status(nn, c->path, &s, err);
		uint64_t len = s.len;

		bs_hdfs_status_done(&s);
		if (r < 0 || len == c->len)
			return r;
		if (bs_clock_ns() >= deadline_ns)
			return bs_fail(err, -EIO, "HDFS '%s': write: %llu bytes are there of %llu",
				       c->path, (unsigned long long)len,
				       (unsigned long long)c->len);
		while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
			;
		pause = BS_MIN(2 * pause, LOOK_MAX_NS);
	}
}

int bs_hdfs_create(struct bs_nn *nn, const struct bs_create *c, struct bs_error *err)
{
	uint64_t ns = c->deadline_ns ? c->deadline_ns : DEADLINE_NS + (c->len >> 20) * NS_PER_MIB;
	uint64_t deadline = bs_clock_ns() + ns;
	struct bs_create mine = *c;
	bs_autofree char *url = NULL;
	int r;

	if (!mine.mode)
		mine.mode = MODE;
	r = make_url(nn, &mine, &url, err);
	if (r == 0)
		r = send_file(nn, &mine, url, deadline, err);
	return r < 0 ? r : look_after(nn, &mine, deadline, err);
}
