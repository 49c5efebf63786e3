/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * All of it runs on the network loop's thread. An attempt without progress gets a rival
 * elsewhere and goes on: the first that the DataNode answers with 201 wins, and the put is
 * over when the others have ended.
 */
#include "config.h"

#include "hdfs/put.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/reply.h"
#include "hdfs/targets.h"
#include "net/http.h"
#include "net/loop.h"

#define TICK_NS (200 * BS_NS_PER_MS)
#define PAUSE_MAX_NS (2 * BS_NS_PER_S)
#define AT_ONCE 3u /* failures, before there are pauses */
#define PATIENCES 10u
#define STALL_NS (2 * BS_NS_PER_S) /* at least; three times as long as one takes */
#define ANSWER_MAX (16u << 10)
#define URL_MAX (128u << 10)

struct bs_putter {
	struct bs_nn *nn;
	struct bs_loop *loop;
	struct bs_targets *targets;
	unsigned int refs; /* atomic: the owner, and the tick that is to come */

	/* the loop's thread only */
	struct bs_list puts;
	bool ticking;
	uint64_t usual_ns; /* that a put takes */
};

struct bs_put_attempt {
	struct bs_http http;
	struct bs_put *put;
	struct bs_target *target;
	unsigned int number, slot;
	uint64_t begin_ns, progress_ns, seen;
	uint64_t started_ns; /* the loop's: 0 while it waits for its turn there */
	struct bs_buf answer;
	char *url;
	bool has_rival, canceled;
};

static void unref(struct bs_putter *p)
{
	if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	(void)bs_targets_free(p->targets);
	free(p);
}

int bs_putter_new(struct bs_nn *nn, struct bs_putter **ret, struct bs_error *err)
{
	struct bs_putter *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = bs_targets_new(nn, &p->targets, err);
	if (r < 0) {
		free(p);
		return r;
	}
	p->nn = nn;
	p->loop = bs_nn_loop(nn);
	p->refs = 1;
	bs_list_init(&p->puts);
	*ret = p;
	return 0;
}

struct bs_putter *bs_putter_free(struct bs_putter *p)
{
	if (p)
		unref(p);
	return NULL;
}

struct bs_targets *bs_putter_targets(struct bs_putter *p)
{
	return p->targets;
}

/* --- the end --------------------------------------------------------------------------------- */

static void conclude(struct bs_put *put)
{
	if (!put->over || put->n_running)
		return;
	bs_list_remove(&put->link);
	put->done(put);
}

static void finish(struct bs_put *put, int result)
{
	if (put->over)
		return;
	put->over = true;
	put->result = result;
	for (unsigned int i = 0; i < BS_PUT_AT_ONCE; i++) {
		if (put->running[i]) {
			put->running[i]->canceled = true;
			bs_http_cancel(&put->running[i]->http);
		}
	}
}

static void free_attempt(struct bs_put_attempt *a)
{
	bs_strv_done(&a->http.headers);
	bs_http_done(&a->http);
	bs_buf_done(&a->answer);
	free(a->url);
	free(a);
}

/* --- attempts -------------------------------------------------------------------------------- */

static void next_attempt(struct bs_put *put);

/* The tick begins the next attempt. */
static void pause_put(struct bs_put *put)
{
	if (put->again_ns)
		return;
	put->pause_ns = put->pause_ns ? BS_MIN(2 * put->pause_ns, PAUSE_MAX_NS) : TICK_NS;
	put->again_ns = bs_clock_ns() + put->pause_ns;
}

/* What the NameNode said through the DataNode, which no other DataNode would change. */
static bool is_final(int code)
{
	return code == -EDQUOT || code == -EACCES || code == -EPERM || code == -ENAMETOOLONG ||
	       code == -EINVAL || code == -ENOTDIR || code == -ENOENT || code == -EROFS;
}

/*
 * What became of it: whether the DataNode is to blame, or nobody, since it is only for now; sets
 * put's text.
 */
static int outcome(struct bs_put_attempt *a, bool *ret_blame, bool *ret_for_now)
{
	struct bs_hdfs_exception e = { 0 };
	struct bs_put *put = a->put;
	struct bs_http *h = &a->http;

	*ret_blame = *ret_for_now = false;
	if (h->result < 0) {
		*ret_blame = h->result != -ECANCELED && h->result != -ENOMEM;
		(void)snprintf(put->text, sizeof(put->text), "DataNode %s", h->text);
		return h->result;
	}
	if (h->status == 201)
		return 0;
	bs_reply_exception(h->status, bs_buf_str(&a->answer), a->answer.len, &e);
	(void)snprintf(put->text, sizeof(put->text), "DataNode %s: %d%s%.60s: %.120s",
		       bs_target_name(a->target), h->status, e.name[0] ? " " : "", e.name,
		       e.message);
	*ret_for_now = e.remedy != BS_HDFS_NONE;
	if (*ret_for_now)
		bs_targets_forget(put->putter->targets); /* the next Location has a new token */
	*ret_blame = !*ret_for_now && !is_final(e.code);
	return e.code ? e.code : -EREMOTEIO;
}

static void on_done(struct bs_http *h)
{
	struct bs_put_attempt *a = BS_CONTAINER_OF(h, struct bs_put_attempt, http);
	struct bs_put *put = a->put;
	struct bs_putter *p = put->putter;
	bool blame, for_now;
	int r = outcome(a, &blame, &for_now);

	put->running[a->slot] = NULL;
	put->n_running--;
	bs_targets_give(p->targets, a->target, r == 0, blame && !a->canceled);
	if (!put->over && r == 0) {
		uint64_t ns = bs_clock_ns() - a->begin_ns;

		p->usual_ns = p->usual_ns ? (7 * p->usual_ns + ns) / 8 : ns;
		put->attempt = a->number;
		finish(put, 0);
	} else if (!put->over && !for_now && (is_final(r) || r == -ECANCELED)) {
		finish(put, r);
	} else if (!put->over) {
		put->result = r;
		put->failures += !for_now;
		if (p->ticking && (for_now || put->failures >= AT_ONCE))
			pause_put(put);
		else
			next_attempt(put);
	}
	free_attempt(a);
	conclude(put);
}

static int on_data(struct bs_http *h, const void *data, size_t len)
{
	struct bs_put_attempt *a = BS_CONTAINER_OF(h, struct bs_put_attempt, http);

	(void)bs_buf_add(&a->answer, data, len); /* too long a text is none */
	return 0;
}

static int make(struct bs_put *put, struct bs_put_attempt *a)
{
	bs_autofree char *path = bs_strf("%s.%u", put->path, a->number);
	bs_autobuf url = BS_BUF_INIT(URL_MAX);
	struct bs_target_create c = { .path = path,
				      .block_size = put->block_size,
				      .replication = put->replication,
				      .mode = put->mode };

	if (!path)
		return -ENOMEM;
	bs_targets_url(put->putter->targets, a->target, &c, &url);
	a->url = bs_buf_take(&url);
	if (!a->url || bs_strv_add(&a->http.headers, "Expect: 100-continue") < 0 ||
	    bs_strv_add(&a->http.headers, "Content-Type: application/octet-stream") < 0)
		return -ENOMEM;
	a->http.loop = put->putter->loop;
	a->http.peer = bs_nn_peer(put->putter->nn);
	a->http.lane = BS_LANE_DEMAND;
	a->http.started_ns = &a->started_ns;
	a->http.method = "PUT";
	a->http.url = a->url;
	a->http.body = put->len ? put->body : "";
	a->http.body_len = put->len;
	a->http.has_body = true;
	a->http.data = on_data;
	a->http.done = on_done;
	return 0;
}

static int begin(struct bs_put *put, unsigned int slot)
{
	struct bs_put_attempt *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->put = put;
	a->slot = slot;
	a->number = put->attempts;
	a->answer = BS_BUF_INIT(ANSWER_MAX);
	a->begin_ns = a->progress_ns = bs_clock_ns();
	a->target = bs_targets_take(put->putter->targets, put->first + a->number, &put->tried);
	if (!a->target) {
		free(a);
		return -EHOSTUNREACH;
	}
	r = make(put, a);
	if (r < 0) {
		bs_targets_give(put->putter->targets, a->target, false, false);
		free_attempt(a);
		return r;
	}
	put->attempts++;
	put->running[slot] = a;
	put->n_running++;
	bs_http_start(&a->http);
	return 0;
}

static void next_attempt(struct bs_put *put)
{
	int r = -ETIMEDOUT;

	put->again_ns = 0;
	if (put->failures < BS_PUT_FAILURES && bs_clock_ns() < put->deadline_ns) {
		for (unsigned int i = 0; i < BS_PUT_AT_ONCE; i++) {
			if (put->running[i])
				continue;
			r = begin(put, i);
			break;
		}
	} else if (put->result < 0) {
		r = put->result;
	}
	if (r < 0 && put->n_running == 0) {
		if (!put->text[0])
			(void)snprintf(put->text, sizeof(put->text), "%s", strerror(-r));
		finish(put, r);
	}
}

/* --- stalls ---------------------------------------------------------------------------------- */

/* Without progress for too long: another one is to try it, too. */
static void look_at(struct bs_putter *p, struct bs_put_attempt *a, uint64_t now)
{
	uint64_t sent = __atomic_load_n(&a->http.sent, __ATOMIC_RELAXED);

	if (sent != a->seen || !__atomic_load_n(&a->started_ns, __ATOMIC_RELAXED)) {
		a->seen = sent;
		a->progress_ns = now;
		a->put->deadline_ns = BS_MIN(now + a->put->patience_ns, a->put->last_ns);
	}
	if (a->has_rival || now - a->progress_ns < BS_MAX(STALL_NS, 3 * p->usual_ns))
		return;
	a->has_rival = true;
	bs_targets_suspect(p->targets, a->target);
	next_attempt(a->put);
}

static void time_out(struct bs_put *put)
{
	int r = put->again_ns ? put->result : -ETIMEDOUT; /* what it waits for */

	if (!put->again_ns)
		(void)snprintf(put->text, sizeof(put->text), "no DataNode took the bytes in time");
	finish(put, r == -EAGAIN ? -EHOSTUNREACH : r);
}

static void on_tick(void *cookie)
{
	struct bs_putter *p = cookie;
	uint64_t now = bs_clock_ns();

	bs_list_for_each(it, &p->puts) {
		struct bs_put *put = bs_list_entry(it, struct bs_put, link);

		if (!put->over && now >= put->deadline_ns)
			time_out(put);
		if (!put->over && put->again_ns && now >= put->again_ns)
			next_attempt(put);
		for (unsigned int i = 0; !put->over && i < BS_PUT_AT_ONCE; i++) {
			if (put->running[i])
				look_at(p, put->running[i], now);
		}
		conclude(put);
	}
	if (!bs_list_empty(&p->puts) && bs_loop_after(p->loop, TICK_NS, on_tick, p) == 0)
		return;
	p->ticking = false;
	unref(p);
}

static void on_start(struct bs_task *t)
{
	struct bs_put *put = BS_CONTAINER_OF(t, struct bs_put, task);
	struct bs_putter *p = put->putter;

	bs_list_append(&p->puts, &put->link);
	if (!p->ticking) {
		(void)__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
		p->ticking = bs_loop_after(p->loop, TICK_NS, on_tick, p) == 0;
		if (!p->ticking)
			unref(p);
	}
	next_attempt(put);
	conclude(put);
}

void bs_put_start(struct bs_putter *p, struct bs_put *put)
{
	put->putter = p;
	put->result = 0;
	put->text[0] = '\0';
	put->attempt = put->attempts = put->n_running = 0;
	put->tried = 0;
	put->failures = 0;
	put->again_ns = put->pause_ns = 0;
	put->deadline_ns = bs_clock_ns() + put->patience_ns;
	put->last_ns = bs_clock_ns() + PATIENCES * put->patience_ns;
	put->over = false;
	memset(put->running, 0, sizeof(put->running));
	bs_list_init(&put->link);
	put->task.fn = on_start;
	bs_loop_post(p->loop, &put->task);
}

static void on_over(struct bs_put *put)
{
	bs_latch_open(&BS_CONTAINER_OF(put, struct bs_put_job, put)->over);
}

void bs_put_begin(struct bs_putter *p, struct bs_put_job *job)
{
	job->over = BS_LATCH_INIT;
	job->put.done = on_over;
	bs_put_start(p, &job->put);
}

int bs_put_end(struct bs_put_job *job, struct bs_error *err)
{
	const struct bs_put *put = &job->put;

	bs_latch_wait(&job->over);
	bs_latch_done(&job->over);
	if (put->result < 0)
		return bs_fail(err, put->result, "HDFS '%s': cannot be written: %s", put->path,
			       put->text);
	return (int)put->attempt;
}
