/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A TCP proxy that is a longer way: every byte arrives so much later, in both directions,
 * and each connection carries no more than so many bytes a second towards the client.
 * The kernel's netem would do it, where there is one.
 *
 * usage: linkproxy LISTEN-ADDRESS UPSTREAM-ADDRESS PORT [--delay MS] [--flow BYTES/S]
 *
 * LISTEN-ADDRESS:PORT leads to UPSTREAM-ADDRESS:PORT (IPv4). --delay is for one
 * direction: a round trip takes twice that.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FLOWS_MAX 256
#define CHUNK 65536u
#define CHUNKS_MAX 128u /* on the way in one direction: 8 MiB, 1 Gbit/s for 64 ms */
#define BURST_NS 5000000u

struct chunk {
	uint64_t due_ns;
	size_t len, off;
	char data[CHUNK];
};

/* One direction of a connection. */
struct way {
	int from, to;
	struct chunk *ring;
	unsigned int head, n;
	bool ended, shut;
	uint64_t rate, free_ns; /* when the next byte may go */
};

struct flow {
	struct way way[2]; /* to the server, to the client */
	bool used, connecting;
};

static struct flow flows[FLOWS_MAX];
static uint64_t delay_ns, flow_rate;

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void end_flow(struct flow *f)
{
	(void)close(f->way[0].from);
	(void)close(f->way[1].from);
	for (int i = 0; i < 2; i++)
		free(f->way[i].ring);
	*f = (struct flow){ .used = false };
}

static int tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void accept_flow(int listener, const struct sockaddr_in *upstream)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1, up;
	struct flow *f = NULL;

	for (int i = 0; i < FLOWS_MAX && !f; i++)
		f = flows[i].used ? NULL : &flows[i];
	up = fd >= 0 && f ? tcp() : -1;
	if (up < 0 || (connect(up, (const struct sockaddr *)upstream, sizeof(*upstream)) < 0 &&
		       errno != EINPROGRESS)) {
		if (fd >= 0)
			(void)close(fd);
		if (up >= 0)
			(void)close(up);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*f = (struct flow){ .used = true,
			    .way = { { .from = fd, .to = up },
				     { .from = up, .to = fd, .rate = flow_rate } } };
	for (int i = 0; i < 2; i++)
		f->way[i].ring = calloc(CHUNKS_MAX, sizeof(struct chunk));
	if (!f->way[0].ring || !f->way[1].ring)
		end_flow(f);
}

/* Takes what there is, up to what may be on its way. */
static bool take(struct way *w)
{
	struct chunk *c = &w->ring[(w->head + w->n) % CHUNKS_MAX];
	ssize_t n = read(w->from, c->data, sizeof(c->data));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
	if (n == 0) {
		w->ended = true;
		return true;
	}
	c->len = (size_t)n;
	c->off = 0;
	c->due_ns = now_ns() + delay_ns;
	w->n++;
	return true;
}

/* Hands on what is due; ret_wait_ns becomes shorter when the next is due before. */
static bool give(struct way *w, uint64_t now, uint64_t *ret_wait_ns)
{
	while (w->n > 0) {
		struct chunk *c = &w->ring[w->head];
		uint64_t at = c->due_ns > w->free_ns ? c->due_ns : w->free_ns;
		ssize_t n;

		if (at > now) {
			if (at - now < *ret_wait_ns)
				*ret_wait_ns = at - now;
			return true;
		}
		n = write(w->to, c->data + c->off, c->len - c->off);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
		if (w->rate) {
			if (w->free_ns + BURST_NS < now)
				w->free_ns = now - BURST_NS;
			w->free_ns += (uint64_t)n * 1000000000u / w->rate;
		}
		c->off += (size_t)n;
		if (c->off < c->len)
			continue;
		w->head = (w->head + 1) % CHUNKS_MAX;
		w->n--;
	}
	if (w->ended && !w->shut) {
		(void)shutdown(w->to, SHUT_WR);
		w->shut = true;
	}
	return true;
}

static bool may_give(const struct way *w, uint64_t now)
{
	return w->n > 0 && w->ring[w->head].due_ns <= now && w->free_ns <= now;
}

/* A turn: what is ready is read, what is due is written. */
static void turn(int listener, const struct sockaddr_in *upstream)
{
	struct pollfd p[1 + 2 * FLOWS_MAX] = { { .fd = listener, .events = POLLIN } };
	uint64_t wait_ns = 1000000000u, now = now_ns();
	struct timespec ts;

	for (int i = 0; i < FLOWS_MAX; i++) {
		struct flow *f = &flows[i];

		for (int k = 0; k < 2; k++)
			p[1 + 2 * i + k] = (struct pollfd){ .fd = -1 };
		for (int k = 0; f->used && k < 2; k++) {
			if (!give(&f->way[k], now, &wait_ns)) {
				end_flow(f);
				break;
			}
		}
		if (f->used && f->way[0].shut && f->way[1].shut)
			end_flow(f);
		for (int k = 0; f->used && k < 2; k++) {
			struct way *in = &f->way[k], *out = &f->way[!k];

			p[1 + 2 * i + k].events = (short)((!in->ended && in->n < CHUNKS_MAX ? POLLIN
											    : 0) |
							  (may_give(out, now) ? POLLOUT : 0));
			p[1 + 2 * i + k].fd = p[1 + 2 * i + k].events ? in->from : -1;
		}
	}
	ts = (struct timespec){ .tv_sec = (time_t)(wait_ns / 1000000000u),
				.tv_nsec = (long)(wait_ns % 1000000000u) };
	if (ppoll(p, 1 + 2 * FLOWS_MAX, &ts, NULL) < 0)
		return;
	if (p[0].revents)
		accept_flow(listener, upstream);
	for (int i = 0; i < FLOWS_MAX; i++) {
		for (int k = 0; flows[i].used && k < 2; k++) {
			struct way *in = &flows[i].way[k];

			if ((p[1 + 2 * i + k].revents & (POLLIN | POLLHUP | POLLERR)) &&
			    !in->ended && in->n < CHUNKS_MAX && !take(in))
				end_flow(&flows[i]);
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, up = { .sin_family = AF_INET };
	int listener = tcp(), one = 1;

	for (int i = 4; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--delay") == 0)
			delay_ns = (uint64_t)(strtod(argv[i + 1], NULL) * 1e6);
		else if (strcmp(argv[i], "--flow") == 0)
			flow_rate = strtoull(argv[i + 1], NULL, 10);
		else
			argc = 0;
	}
	if (argc < 4 || argc % 2 != 0 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &up.sin_addr) != 1) {
		(void)fprintf(stderr, "usage: linkproxy LISTEN-ADDRESS UPSTREAM-ADDRESS PORT "
				      "[--delay MS] [--flow BYTES/S]\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	at.sin_port = up.sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10));
	(void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 64) < 0) {
		perror("linkproxy");
		return 1;
	}
	for (;;)
		turn(listener, &up);
}
