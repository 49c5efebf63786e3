/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A connection's way: CONNECT, SEND (the request), REPLY, PACKET (until the last one), then
 * our status, and it is IDLE until the next attempt takes it, the DataNode closes it (after
 * four seconds, by default) or we do a little sooner.
 *
 * A connection that was idle may turn out to be closed when the request is sent. Such an
 * attempt begins anew on a fresh one, as long as no byte of an answer came.
 */
#include "config.h"

#include "hdfs/datanode.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "hdfs/blocks.h"
#include "hdfs/ev.h"
#include "hdfs/xfer.h"

#define IDLE_NS (3 * BS_NS_PER_S)
#define IDLE_MAX 8u /* connections kept for one DataNode */
#define IN_SIZE (256u << 10)
#define ROUND_MAX (2u << 20) /* bytes of one connection before others have their turn */
#define REQUEST_MAX (256u << 10)

enum state { CONNECT, SEND, REPLY, PACKET, IDLE };

struct bs_dn_conn {
	struct bs_ev_io io;
	struct bs_list link; /* of pool->active or node->idle */
	struct bs_dn_pool *pool;
	struct bs_dn *node;
	struct bs_dn_read *rd; /* NULL while idle */
	enum state state;
	bool reused, answered;
	uint64_t since_ns; /* when the state began */
	struct bs_buf out;
	size_t sent;
	char *in;
	size_t in_len, in_cap;
	/* of the answer */
	enum bs_xfer_sum sum;
	uint32_t chunk;
	uint64_t pos; /* of the next packet's data in the block */
	int64_t seqno;
};

static struct bs_dn_conn *conn_free(struct bs_dn_conn *c)
{
	if (c->io.fd >= 0)
		bs_ev_remove(&c->io);
	(void)bs_close(c->io.fd);
	bs_list_remove(&c->link);
	bs_buf_done(&c->out);
	free(c->in);
	free(c);
	return NULL;
}

/* Tells the owner, who may begin another attempt or free rd. */
static void finish(struct bs_dn_conn *c, int result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void finish(struct bs_dn_conn *c, int result, const char *fmt, ...)
{
	struct bs_dn_read *rd = c->rd;
	int n = snprintf(rd->text, sizeof(rd->text), "DataNode %s: ", c->node->key);
	va_list ap;

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < sizeof(rd->text))
		(void)vsnprintf(rd->text + n, sizeof(rd->text) - (size_t)n, fmt, ap);
	va_end(ap);
	(void)conn_free(c);
	rd->conn = NULL;
	rd->result = result;
	rd->done(rd);
}

static void ready(struct bs_ev_io *io, uint32_t events);

/* --- connections ----------------------------------------------------------------------------- */

static int open_socket(const char *address, uint16_t port, int *ret)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	bool is_v6 = strchr(address, ':') != NULL;
	const struct sockaddr *a = is_v6 ? (const struct sockaddr *)&v6
					 : (const struct sockaddr *)&v4;
	bs_autofd int fd = -EBADF;
	int one = 1;

	if (inet_pton(is_v6 ? AF_INET6 : AF_INET, address,
		      is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return -EINVAL;
	fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (connect(fd, a, is_v6 ? sizeof(v6) : sizeof(v4)) < 0 && errno != EINPROGRESS)
		return -errno;
	*ret = bs_take_fd(&fd);
	return 0;
}

static int conn_new(struct bs_dn_pool *p, struct bs_dn *node, struct bs_dn_conn **ret)
{
	struct bs_dn_conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pool = p;
	c->node = node;
	c->state = CONNECT;
	c->since_ns = bs_clock_ns();
	c->out = BS_BUF_INIT(REQUEST_MAX);
	c->io = (struct bs_ev_io){ .fd = -EBADF, .events = EPOLLOUT, .ready = ready };
	bs_list_init(&c->link);
	c->in = malloc(IN_SIZE);
	c->in_cap = IN_SIZE;
	r = c->in ? open_socket(node->address, node->port, &c->io.fd) : -ENOMEM;
	if (r == 0) {
		r = bs_ev_add(p->ev, &c->io);
		if (r < 0)
			c->io.fd = bs_close(c->io.fd);
	}
	if (r < 0) {
		(void)conn_free(c);
		return r;
	}
	p->connections++;
	*ret = c;
	return 0;
}

static struct bs_dn_conn *take_idle(struct bs_dn *node, uint64_t now)
{
	while (!bs_list_empty(&node->idle)) {
		/* the one that rested least is the likeliest to be alive */
		struct bs_dn_conn *c = bs_list_entry(node->idle.prev, struct bs_dn_conn, link);

		if (now - c->since_ns < IDLE_NS) {
			bs_list_remove(&c->link);
			return c;
		}
		(void)conn_free(c);
	}
	return NULL;
}

static int make_request(struct bs_dn_conn *c)
{
	const struct bs_dn_read *rd = c->rd;

	bs_buf_clear(&c->out);
	c->sent = 0;
	bs_xfer_put_read(&c->out, rd->block, c->pool->client, rd->off, rd->len);
	return c->out.error;
}

/* Over a kept connection when there is one and fresh is not set. */
static int begin(struct bs_dn_pool *p, struct bs_dn_read *rd, bool fresh)
{
	uint64_t now = bs_clock_ns();
	struct bs_dn_conn *c = fresh ? NULL : take_idle(rd->node, now);
	bool reused = c != NULL;
	int r = c ? 0 : conn_new(p, rd->node, &c);

	if (r < 0)
		return r;
	c->rd = rd;
	c->reused = reused;
	c->answered = false;
	c->in_len = 0;
	c->seqno = 0;
	c->since_ns = rd->last_ns = now;
	c->state = reused ? SEND : CONNECT;
	r = make_request(c);
	if (r == 0)
		r = bs_ev_wait_for(&c->io, EPOLLOUT);
	if (r < 0) {
		(void)conn_free(c);
		return r;
	}
	bs_list_append(&p->active, &c->link);
	p->reused += reused;
	rd->conn = c;
	return 0;
}

int bs_dn_read_start(struct bs_dn_pool *p, struct bs_dn_read *rd)
{
	rd->result = 0;
	rd->got = 0;
	rd->text[0] = '\0';
	return begin(p, rd, false);
}

void bs_dn_read_cancel(struct bs_dn_pool *p, struct bs_dn_read *rd)
{
	if (rd->conn)
		(void)conn_free(rd->conn);
	rd->conn = NULL;
}

/* The connection was closed or broke. */
static void broke(struct bs_dn_conn *c, int error)
{
	struct bs_dn_read *rd = c->rd;
	struct bs_dn_pool *p = c->pool;
	int r;

	if (c->reused && !c->answered) {
		(void)conn_free(c);
		rd->conn = NULL;
		r = begin(p, rd, true);
		if (r == 0)
			return;
		rd->result = r;
		(void)snprintf(rd->text, sizeof(rd->text), "DataNode %s: %s", rd->node->key,
			       strerror(-r));
		rd->done(rd);
	} else if (!c->answered && !c->node->spoke && (error == 0 || error == ECONNRESET)) {
		finish(c, -EPROTONOSUPPORT, "closed the connection without an answer");
	} else {
		finish(c, -EREMOTEIO, "the connection broke: %s",
		       error ? strerror(error) : "closed by the DataNode");
	}
}

/* --- the answer ------------------------------------------------------------------------------ */

/* What comes of the bytes that are there. */
enum step { MORE, NEXT, OVER }; /* more bytes are needed; go on; the attempt is over */

static void consume(struct bs_dn_conn *c, size_t n)
{
	c->in_len -= n;
	memmove(c->in, c->in + n, c->in_len);
}

static enum step on_reply(struct bs_dn_conn *c)
{
	struct bs_dn_read *rd = c->rd;
	struct bs_xfer_reply reply;
	ssize_t n = bs_xfer_reply(c->in, c->in_len, &reply);

	if (n == 0)
		return MORE;
	if (n < 0) {
		finish(c, -EBADMSG, "a broken answer");
		return OVER;
	}
	c->node->spoke = true;
	if (reply.status != BS_XFER_SUCCESS) {
		bs_autofree char *shown = bs_str_shown((const char *)reply.message.p,
						       BS_MIN(reply.message.len, (size_t)100));

		finish(c, reply.status == BS_XFER_ERROR_ACCESS_TOKEN ? -EACCES : -EREMOTEIO,
		       "%s%s%s", bs_xfer_status_text(reply.status), reply.message.len ? ": " : "",
		       shown ? shown : "");
		return OVER;
	}
	if (!reply.has_sums || reply.first > rd->off || rd->off - reply.first >= reply.chunk) {
		finish(c, -EBADMSG, "an answer for another range");
		return OVER;
	}
	c->sum = reply.sum;
	c->chunk = reply.chunk;
	c->pos = reply.first;
	c->state = PACKET;
	consume(c, (size_t)n);
	return NEXT;
}

/* All is there: the DataNode is told, and the connection kept. */
static void complete(struct bs_dn_conn *c)
{
	struct bs_dn_read *rd = c->rd;
	struct bs_dn *node = c->node;
	bs_autobuf b = BS_BUF_INIT(64);
	unsigned int n_idle = 0;

	bs_xfer_put_status(&b, BS_XFER_CHECKSUM_OK);
	bs_list_for_each(it, &node->idle)
		n_idle++;
	rd->conn = NULL;
	c->rd = NULL;
	if (b.error || c->in_len > 0 || n_idle >= IDLE_MAX ||
	    send(c->io.fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)b.len ||
	    bs_ev_wait_for(&c->io, EPOLLIN) < 0) {
		(void)conn_free(c);
	} else {
		bs_list_remove(&c->link);
		c->state = IDLE;
		c->since_ns = bs_clock_ns();
		bs_list_append(&node->idle, &c->link);
	}
	rd->result = 0;
	rd->done(rd);
}

/* Gives on the part of verified bytes that was asked for. */
static void deliver(struct bs_dn_conn *c, const uint8_t *data, size_t len)
{
	struct bs_dn_read *rd = c->rd;
	uint64_t from = BS_MAX(c->pos, rd->off), end = BS_MIN(c->pos + len, rd->off + rd->len);

	if (from < end) {
		size_t n = (size_t)(end - from);

		rd->got += n;
		rd->data(rd, data + (from - c->pos), n);
	}
}

static int make_room(struct bs_dn_conn *c, size_t want)
{
	char *bigger;

	if (want <= c->in_cap)
		return 0;
	bigger = realloc(c->in, want);
	if (!bigger)
		return -ENOMEM;
	c->in = bigger;
	c->in_cap = want;
	return 0;
}

static bool packet_fits(const struct bs_dn_conn *c, const struct bs_xfer_packet *p)
{
	uint64_t end = c->rd->off + c->rd->len;

	return p->seqno == c->seqno && (p->data_len == 0 || (uint64_t)p->off == c->pos) &&
	       c->pos + p->data_len <= end + c->chunk - 1 &&
	       (p->data_len % c->chunk == 0 || c->pos + p->data_len >= end);
}

static enum step on_packet(struct bs_dn_conn *c)
{
	struct bs_dn_read *rd = c->rd;
	struct bs_xfer_packet p;
	ssize_t n = bs_xfer_packet(c->in, c->in_len, &p);
	const uint8_t *sums;
	size_t whole;

	if (n == 0)
		return MORE;
	if (n < 0 || !packet_fits(c, &p)) {
		finish(c, -EBADMSG, "a packet that does not fit");
		return OVER;
	}
	whole = (size_t)n + p.sums_len + p.data_len;
	if (c->in_len < whole) {
		if (make_room(c, whole) == 0)
			return MORE;
		finish(c, -ENOMEM, "out of memory");
		return OVER;
	}
	sums = (const uint8_t *)c->in + n;
	if (p.data_len &&
	    !bs_xfer_sums_ok(c->sum, c->chunk, sums, p.sums_len, sums + p.sums_len, p.data_len)) {
		finish(c, -EBADMSG, "a wrong checksum in block %llu at %llu",
		       (unsigned long long)rd->block->id, (unsigned long long)c->pos);
		return OVER;
	}
	deliver(c, sums + p.sums_len, p.data_len);
	if (rd->conn != c)
		return OVER; /* canceled meanwhile: c is gone */
	c->pos += p.data_len;
	c->seqno++;
	consume(c, whole);
	if (!p.last)
		return NEXT;
	if (rd->got == rd->len)
		complete(c);
	else
		finish(c, -EBADMSG, "%zu bytes of %zu", rd->got, rd->len);
	return OVER;
}

static void on_readable(struct bs_dn_conn *c)
{
	enum step step = NEXT;

	for (size_t total = 0; total < ROUND_MAX;) {
		size_t room = c->in_cap - c->in_len;
		ssize_t n = recv(c->io.fd, c->in + c->in_len, room, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			broke(c, n < 0 ? errno : 0);
			return;
		}
		c->answered = true;
		c->in_len += (size_t)n;
		total += (size_t)n;
		c->rd->last_ns = bs_clock_ns();
		do {
			step = c->state == REPLY ? on_reply(c) : on_packet(c);
		} while (step == NEXT);
		if (step == OVER || (size_t)n < room)
			return;
	}
}

static void on_writable(struct bs_dn_conn *c)
{
	socklen_t len = sizeof(int);
	int error = 0;
	ssize_t n;

	if (c->state == CONNECT) {
		(void)getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error) {
			finish(c, -EHOSTUNREACH, "no connection: %s", strerror(error));
			return;
		}
		c->state = SEND;
		c->rd->last_ns = bs_clock_ns();
	}
	n = send(c->io.fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		broke(c, errno);
		return;
	}
	c->sent += (size_t)n;
	if (c->sent < c->out.len)
		return;
	c->state = REPLY;
	if (bs_ev_wait_for(&c->io, EPOLLIN) < 0)
		finish(c, -EIO, "epoll fails");
}

static void ready(struct bs_ev_io *io, uint32_t events)
{
	struct bs_dn_conn *c = BS_CONTAINER_OF(io, struct bs_dn_conn, io);

	switch (c->state) {
	case CONNECT:
	case SEND:
		on_writable(c);
		break;
	case REPLY:
	case PACKET:
		on_readable(c);
		break;
	case IDLE: /* closed by the DataNode, or it says what nobody asked for */
		(void)conn_free(c);
		break;
	}
}

/* --- the pool -------------------------------------------------------------------------------- */

static uint64_t look_at(struct bs_dn_conn *c, uint64_t now)
{
	uint64_t until = c->state == CONNECT ? c->since_ns + c->pool->connect_ns
					     : c->rd->last_ns + c->pool->stall_ns;

	if (now < until)
		return until;
	if (c->state == CONNECT)
		finish(c, -EHOSTUNREACH, "no connection in time");
	else
		finish(c, -ETIMEDOUT, "no byte came for too long");
	return now; /* what came of it is to be seen */
}

uint64_t bs_dn_tick(struct bs_dn_pool *p, uint64_t now_ns)
{
	uint64_t until = now_ns + 3600 * BS_NS_PER_S;
	size_t pos = 0;
	struct bs_dn *node;

	/* done of one may end others: begin again from the start after each */
	for (struct bs_list *it = p->active.next; it != &p->active;) {
		uint64_t at = look_at(bs_list_entry(it, struct bs_dn_conn, link), now_ns);

		until = BS_MIN(until, at);
		it = at > now_ns ? it->next : p->active.next;
	}
	while ((node = bs_map_next(&p->nodes, &pos))) {
		bs_list_for_each(it, &node->idle) {
			struct bs_dn_conn *c = bs_list_entry(it, struct bs_dn_conn, link);

			if (now_ns - c->since_ns >= IDLE_NS)
				(void)conn_free(c);
			else
				until = BS_MIN(until, c->since_ns + IDLE_NS);
		}
	}
	return until;
}

void bs_dn_pool_init(struct bs_dn_pool *p, struct bs_ev *ev)
{
	uint64_t random = 0;

	p->ev = ev;
	p->connect_ns = 3 * BS_NS_PER_S;
	p->stall_ns = 15 * BS_NS_PER_S;
	(void)!getrandom(&random, sizeof(random), 0);
	(void)snprintf(p->client, sizeof(p->client), "bootseer_%016llx",
		       (unsigned long long)random);
	bs_list_init(&p->active);
	bs_map_init(&p->nodes);
}

void bs_dn_pool_done(struct bs_dn_pool *p)
{
	struct bs_dn *node;
	size_t pos = 0;

	while ((node = bs_map_next(&p->nodes, &pos))) {
		bs_list_for_each(it, &node->idle)
			(void)conn_free(bs_list_entry(it, struct bs_dn_conn, link));
		free(node->key);
		free(node->address);
		free(node);
	}
	bs_map_done(&p->nodes);
}

struct bs_dn *bs_dn_get(struct bs_dn_pool *p, const char *address, uint16_t port)
{
	bs_autofree char *key = bs_strf("%s:%u", address, port);
	struct bs_dn *node = key ? bs_map_get(&p->nodes, key, strlen(key)) : NULL;

	if (node || !key || p->nodes.n >= BS_DN_MAX)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	bs_list_init(&node->idle);
	node->port = port;
	node->address = bs_strf("%s", address);
	if (!node->address || bs_map_put(&p->nodes, key, strlen(key), node) < 0) {
		free(node->address);
		free(node);
		return NULL;
	}
	node->key = bs_take(&key);
	return node;
}
