/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * WebHDFS OPEN straight at a DataNode: where only HTTP is open, where block transfer wants
 * SASL, and for files whose blocks are not their bytes. The DataNode reads the file for us,
 * maybe from others, and checks sums; what we can see is the length.
 *
 * The transfer runs on the network loop's thread and fills memory of its own, so that an
 * attempt that lost can be forgotten at once; the event thread gets all of it at the end.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "hdfs/blocks.h"
#include "hdfs/ev.h"
#include "hdfs/readpriv.h"
#include "hdfs/reply.h"
#include "net/http.h"

#define SAID_MAX 4096u

struct bs_open {
	struct bs_ev *ev;
	struct bs_attempt *attempt; /* the event thread's; NULL: nobody waits */
	uint64_t last_ns;	    /* atomic: when something came last */
	struct bs_http http;
	struct bs_task task; /* to the loop, then back */
	char *url;
	char said[SAID_MAX]; /* the body, when it is not the file's bytes */
	size_t n_said;
	size_t len, got;
	char bytes[];
};

static void open_free(struct bs_open *op)
{
	bs_http_done(&op->http);
	free(op->url);
	free(op);
}

/* It answered, but not with the bytes: what it said. */
static void refused(const struct bs_open *op, struct bs_dn_read *dn)
{
	struct bs_hdfs_exception e;

	bs_reply_exception(op->http.status, op->said, op->n_said, &e);
	(void)snprintf(dn->text, sizeof(dn->text), "DataNode %.40s: %.40s%s%.60s", dn->node->key,
		       e.name, e.name[0] ? ": " : "", e.message);
	/* a status of 403 without a name may be anything's; another one may do better */
	dn->result = e.code == -EACCES && (e.name[0] || e.remedy == BS_HDFS_LOGIN) ? -EACCES
										   : -EREMOTEIO;
}

static void tell(const struct bs_open *op, struct bs_dn_read *dn)
{
	const struct bs_http *h = &op->http;

	if (h->result == 0 && h->status != 200) {
		refused(op, dn);
		return;
	}
	dn->result = h->result;
	if (h->result == 0 && op->got != op->len)
		dn->result = -EREMOTEIO; /* what a broken replica looks like here */
	(void)snprintf(dn->text, sizeof(dn->text),
		       "DataNode %s: WebHDFS answers %d, %zu bytes of %zu%s%.60s", dn->node->key,
		       h->status, op->got, op->len, h->text[0] ? ": " : "", h->text);
}

/* On the event thread. */
static void back(struct bs_task *t)
{
	struct bs_open *op = BS_CONTAINER_OF(t, struct bs_open, task);
	struct bs_attempt *a = op->attempt;

	if (a) {
		tell(op, &a->dn);
		bs_read_opened(a, op->bytes, op->len);
	}
	open_free(op);
}

static int on_data(struct bs_http *h, const void *data, size_t len)
{
	struct bs_open *op = BS_CONTAINER_OF(h, struct bs_open, http);

	if (h->status != 200) {
		size_t n = BS_MIN(len, sizeof(op->said) - op->n_said);

		memcpy(op->said + op->n_said, data, n);
		op->n_said += n;
		return n < len ? BS_HTTP_ENOUGH : 0;
	}
	if (len > op->len - op->got)
		return -EBADMSG;
	memcpy(op->bytes + op->got, data, len);
	op->got += len;
	__atomic_store_n(&op->last_ns, bs_clock_ns(), __ATOMIC_RELAXED);
	return 0;
}

uint64_t bs_open_last_ns(const struct bs_open *op)
{
	return __atomic_load_n(&op->last_ns, __ATOMIC_RELAXED);
}

static void on_done(struct bs_http *h)
{
	struct bs_open *op = BS_CONTAINER_OF(h, struct bs_open, http);

	struct bs_ev *ev = op->ev;

	op->task.fn = back;
	bs_ev_post(ev, &op->task);
	bs_ev_release(ev);
}

static void start(struct bs_task *t)
{
	struct bs_open *op = BS_CONTAINER_OF(t, struct bs_open, task);

	bs_http_start(&op->http);
}

int bs_open_start(const struct bs_reader_options *o, struct bs_ev *ev, struct bs_attempt *a,
		  const struct bs_replica *replica)
{
	const struct bs_dn_read *dn = &a->dn;
	uint16_t port = o->https ? replica->https_port : replica->http_port;
	const char *host = o->https ? replica->host : replica->address;
	bool v6 = strchr(host, ':') != NULL;
	struct bs_open *op;

	if (port == 0)
		return -EHOSTUNREACH;
	op = calloc(1, sizeof(*op) + dn->len);
	if (!op)
		return -ENOMEM;
	op->url = bs_strf("%s://%s%s%s:%u%s&offset=%" PRIu64 "&length=%zu",
			  o->https ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "", port,
			  a->piece->read->http, a->piece->block->off + dn->off, dn->len);
	if (!op->url) {
		free(op);
		return -ENOMEM;
	}
	op->ev = ev;
	op->attempt = a;
	op->len = dn->len;
	op->last_ns = dn->last_ns;
	op->http = (struct bs_http){ .loop = o->loop,
				     .peer = o->peer,
				     .lane = BS_LANE_DEMAND,
				     .method = "GET",
				     .url = op->url,
				     .data = on_data,
				     .done = on_done };
	op->task.fn = start;
	a->open = op;
	bs_ev_hold(ev);
	bs_loop_post(o->loop, &op->task);
	return 0;
}

void bs_open_cancel(struct bs_open *op)
{
	op->attempt = NULL;
	bs_http_cancel(&op->http);
}
