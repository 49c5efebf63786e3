/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One exchange with a registry: a request with the authorization that it wants, a
 * refused authorization refreshed, redirects of GET and HEAD followed. Credentials and
 * Authorization go to the registry's own origin only (and the token server it names).
 *
 * A shortcut that gives nothing of use (it expired, it moved) is told to the owner, who
 * forgets it, and the registry is asked at once; what that leads to is the call's result.
 *
 * How an answer reads: 2xx 0; 401 and 403 -EACCES; 404 and 410 -ENOENT; 405 and 501
 * -EOPNOTSUPP; 408 -ETIMEDOUT; 413 -EFBIG; 416 -EBADMSG; 429, and 503 with a
 * Retry-After, -EAGAIN; all else -EREMOTEIO. transient says whether repeating may help.
 */
#ifndef BS_NET_CALL_H
#define BS_NET_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http.h"
#include "net/loop_impl.h"
#include "net/session.h"

struct bs_error;
struct bs_latch;

struct bs_call {
	/* set by the owner after bs_call_init; http's lane, body and timeouts too */
	struct bs_strv headers; /* freed by bs_call_done */
	char *shortcut;		/* where a redirect led the last time, or NULL; freed too */
	void (*strayed)(struct bs_call *c); /* the shortcut is to be forgotten; may be NULL */
	bool rewinds;			    /* head may come again after data: it begins anew */
	int (*head)(struct bs_call *c);	    /* of a 2xx answer; may be NULL */
	int (*data)(struct bs_call *c, const void *data, size_t len);
	int (*tail)(struct bs_call *c);	 /* a 2xx answer ended: is it all? May be NULL */
	void (*done)(struct bs_call *c); /* the loop's thread */
	void *cookie;
	uint64_t deadline_ns; /* bs_clock_ns, for bs_call_run; 0: none. -ETIMEDOUT after it */
	struct bs_http http;

	/* results */
	int result;
	bool transient;
	uint64_t retry_after_ns;
	char text[160];
	char *landed; /* the other origin that answered 2xx after a redirect, or NULL */

	/* its own */
	struct bs_session *session;
	const char *method;
	char *url, *scope, *current;
	bool foreign, by_shortcut, resolved, secret;
	uint64_t serial;
	unsigned int n_redirects, n_refreshed;
	struct bs_auth_wait wait;
	struct bs_task task;
	struct bs_buf error_body;
	struct bs_task expiry;
	struct bs_latch *expired; /* opened when expiry has run */
	bool authorizing, over, late;
};

/*
 * url and scope are taken over (NULL: out of memory). Keeps a reference to the session.
 * method is a literal. 0 or -ENOMEM; bs_call_done is right in both cases.
 */
int bs_call_init(struct bs_call *c, struct bs_session *s, const char *method, char *url,
		 char *scope);
void bs_call_done(struct bs_call *c);

/* Any thread. done is called on the loop's, exactly once. */
void bs_call_start(struct bs_call *c);

/*
 * Starts it and waits; not on the loop's thread. progress, when given, is called on
 * this thread now and then with the bytes of the body sent so far.
 */
int bs_call_run(struct bs_call *c, void (*progress)(void *cookie, uint64_t sent), void *cookie);

/* Repeating: at most so often, with growing pauses, for at most this long. */
struct bs_retry {
	unsigned int n;
	uint64_t started_ns;
};

/*
 * After c failed: true when it should be tried again; the pause is over by then.
 * Honours Retry-After, and the call's deadline.
 */
bool bs_retry_again(struct bs_retry *r, const struct bs_call *c);

#endif
