/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The client's end of the control socket: connect (starting bootseerd when nobody
 * listens), one request and its reply, with a deadline.
 */
#ifndef BS_CTL_CLIENT_H
#define BS_CTL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/msg.h"

struct bs_error;

struct bs_client_options {
	const char *run_dir; /* holds the socket "bootseerd.sock" */
	const char *config;  /* given on to an autostarted bootseerd; NULL: its default */
	const char *daemon;  /* path of bootseerd; NULL: never start it */
	uint64_t timeout_ns; /* for the connection and, unless a request says more, each reply */
};

/* The connected socket, or -errno: -ENOTCONN nobody listens and none was to be started. */
int bs_client_connect(const struct bs_client_options *o, struct bs_error *err);

/*
 * Sends m, waits for the reply with its id until timeout_ns from now. A reply with a
 * RESULT other than 0 becomes that error, with its TEXT. The reply is the caller's.
 */
int bs_client_call(int sock, struct bs_msg *m, uint64_t timeout_ns, struct bs_msg *ret,
		   struct bs_error *err);

/* Called once, when there is no reply after that time. */
struct bs_client_slow {
	uint64_t after_ns;
	void (*fn)(void *cookie);
	void *cookie;
};

/* The same; slow may be NULL. */
int bs_client_call_slow(int sock, struct bs_msg *m, uint64_t timeout_ns,
			const struct bs_client_slow *slow, struct bs_msg *ret,
			struct bs_error *err);

/* A request alone. */
int bs_client_send(int sock, struct bs_msg *m, struct bs_error *err);
/*
 * For whoever has sent several: the next reply to any of them, by its id; -ETIMEDOUT
 * after deadline_ns on bs_clock_ns. What it says of the request is bs_client_result's.
 */
int bs_client_next(int sock, uint64_t deadline_ns, struct bs_msg *ret, struct bs_error *err);
/* The reply's RESULT as an error, with its TEXT. */
int bs_client_result(const struct bs_msg *reply, struct bs_error *err);

#endif
