/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One HTTP request on the loop's thread. No redirect is followed and no credential
 * added here; see net/call.h for both.
 *
 * Errors of the transfer: -EHOSTUNREACH no connection (DNS, refused, no answer to
 * connect, a TLS handshake that failed), -EACCES the server's certificate is not
 * trusted, -ETIMEDOUT no byte for the stall timeout, or too few (net/pace.h), -EBADMSG the
 * headers are too big, -EREMOTEIO the connection broke, also before the promised end of the
 * body, -ECANCELED.
 * A complete answer is result 0 whatever its status.
 *
 * Threads: bs_http_start, and all callbacks, on the loop's thread only.
 */
#ifndef BS_NET_HTTP_H
#define BS_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "net/pace.h"
#include "net/repo.h"

struct bs_loop;
struct curl_slist;

enum bs_http_header {
	BS_HTTP_CONTENT_RANGE,
	BS_HTTP_CONTENT_TYPE,
	BS_HTTP_DOCKER_CONTENT_DIGEST,
	BS_HTTP_LINK,
	BS_HTTP_LOCATION,
	BS_HTTP_OCI_CHUNK_MIN_LENGTH,
	BS_HTTP_OCI_SUBJECT,
	BS_HTTP_RETRY_AFTER,
	BS_HTTP_SET_COOKIE,
	BS_HTTP_WWW_AUTHENTICATE,
	BS_HTTP_HEADER_MAX
};

#define BS_HTTP_HEADERS_MAX (64u << 10) /* bytes of all headers of one answer */
#define BS_HTTP_URL_MAX (16u << 10)

/* What the data callback may return beside 0 and -errno. */
#define BS_HTTP_PAUSE 1	 /* nothing taken; come again after bs_http_resume */
#define BS_HTTP_ENOUGH 2 /* all is there that was wanted: end with result 0 */

struct bs_http_peer { /* how to talk; borrowed, outlives the request */
	bool verify;
	const char *ca_file;
	const char *proxy;
	/* in an error, what could be set otherwise: certificates that are trusted, plain HTTP */
	const char *trust_hint, *plain_hint;
};

struct bs_http {
	/* set by the owner; all borrowed and unchanged until done */
	struct bs_loop *loop;
	const struct bs_http_peer *peer;
	enum bs_lane lane;
	const void *whose; /* net/yield.h */
	const char *method;
	const char *url;
	struct bs_strv headers; /* "Name: value"; the owner's */
	const void *body;	/* memory, or NULL */
	int body_fd;		/* when body is NULL and has_body: read by pread */
	uint64_t body_off, body_len;
	bool has_body;
	bool fresh;		    /* over a new connection */
	bool negotiate;		    /* SPNEGO, with the Kerberos ticket of the environment */
	bool led;		    /* url is a server's word: no link-local address is asked */
	uint64_t expected_bytes;    /* of the answer, for the background rate; 0 unknown */
	uint64_t *started_ns;	    /* atomic: set when its turn has come; NULL: nobody asks */
	uint64_t answer_timeout_ns; /* wait for the answer after the body was sent; 0: as a stall */
	/* the final status and headers are known; before the first byte of the body. May be NULL */
	int (*head)(struct bs_http *h);
	int (*data)(struct bs_http *h, const void *data, size_t len);
	void (*done)(struct bs_http *h);

	/* results; valid from head on, text and result in done */
	int result;
	int status;
	uint64_t length;		  /* Content-Length, UINT64_MAX when not said */
	char *header[BS_HTTP_HEADER_MAX]; /* NULL: absent; equal ones joined by ", " */
	uint64_t retry_after_ns;	  /* from Retry-After, 0: absent */
	char text[160];
	uint64_t sent; /* atomic: bytes of the body so far */

	/* the loop's */
	struct bs_list link;
	void *easy;
	struct curl_slist *slist;
	void *host;
	struct bs_pace pace;
	uint64_t begun_ns, last_ns;
	uint64_t charged, received, paced; /* paced: of received, told to the host */
	size_t header_bytes;
	int stop_code;
	bool connected, head_done, paused, enough, stopped, waited, link_local;
	bool canceled, resumed; /* atomic: asked for by another thread */
};

/* Queues it. Its results are reset; done comes later, never from within this call. */
void bs_http_start(struct bs_http *h);

/* Any thread, while h lives: end it with -ECANCELED; go on after BS_HTTP_PAUSE. */
void bs_http_cancel(struct bs_http *h);
void bs_http_resume(struct bs_http *h);

/* Frees the headers of the answer. */
void bs_http_done(struct bs_http *h);

/* --- for loop.c ------------------------------------------------------------------------------ */

/* Sets up easy for h; share is the loop's. -ENOMEM. */
int bs_http_prepare(struct bs_http *h, void *easy, void *share, const char *user_agent,
		    uint64_t connect_timeout_ns, uint64_t max_bytes_per_s);
/* Turns libcurl's end into result and text. */
void bs_http_conclude(struct bs_http *h, int curl_code);
void bs_http_fail(struct bs_http *h, int code, const char *text);
/* Forgets what an earlier run left. */
void bs_http_reset(struct bs_http *h);

#endif
