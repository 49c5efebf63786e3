/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 *   bs_call_start ─▶ authorize ─▶ send ─▶ on_done ─▶ done
 *                       ▲          ▲        │
 *      401, 403: refused┘          └────────┤ redirect
 *        again from the registry's own URL ─┘ a redirect's target that expired, and a
 *                                             shortcut to one that is of no use
 */
#include "config.h"

#include "net/call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/latch.h"
#include "net/url.h"

#define REDIRECTS_MAX 5
#define REFRESHES_MAX 2
#define ERROR_BODY_MAX (8u << 10)
#define DRAIN_MAX (64u << 10) /* of an answer that we do not want, to keep the connection */

int bs_call_init(struct bs_call *c, struct bs_session *s, const char *method, char *url,
		 char *scope)
{
	*c = (struct bs_call){ .method = method, .url = url, .scope = scope };
	c->session = bs_session_ref(s);
	c->http.loop = bs_session_loop(s);
	c->http.peer = bs_session_peer(s);
	c->http.method = method;
	c->http.body_fd = -EBADF;
	bs_list_init(&c->wait.link);
	return url && scope ? 0 : -ENOMEM;
}

void bs_call_done(struct bs_call *c)
{
	bs_http_done(&c->http);
	bs_strv_done(&c->http.headers);
	bs_strv_done(&c->headers);
	bs_buf_done(&c->error_body);
	if (c->wait.value)
		explicit_bzero(c->wait.value, strlen(c->wait.value));
	free(c->wait.value);
	free(c->shortcut);
	free(c->landed);
	free(c->url);
	free(c->scope);
	free(c->current);
	c->session = bs_session_unref(c->session);
}

static bool is_good(int status)
{
	return status >= 200 && status < 300;
}

static bool is_redirect(int status)
{
	return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool is_busy(int status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501);
}

static void stray(struct bs_call *c)
{
	if (c->by_shortcut && c->strayed)
		c->strayed(c);
}

static void end(struct bs_call *c, int result)
{
	if (result < 0 && result != -ECANCELED)
		stray(c);
	c->result = result;
	c->done(c);
}

static void fail(struct bs_call *c, int result, bool transient, const char *text)
{
	bs_http_fail(&c->http, result, text);
	(void)snprintf(c->text, sizeof(c->text), "%s", c->http.text);
	c->transient = transient;
	end(c, result);
}

/* --- the answer ------------------------------------------------------------------------------- */

static int on_head(struct bs_http *h)
{
	struct bs_call *c = BS_CONTAINER_OF(h, struct bs_call, http);

	if (is_good(h->status))
		return c->head ? c->head(c) : 0;
	/* a 416 may name the whole blob's length, and then come with a few bytes and hang */
	if (h->status == 416 || (h->length != UINT64_MAX && h->length > DRAIN_MAX))
		return BS_HTTP_ENOUGH;
	return 0;
}

static int on_data(struct bs_http *h, const void *data, size_t len)
{
	struct bs_call *c = BS_CONTAINER_OF(h, struct bs_call, http);

	if (is_good(h->status))
		return c->data ? c->data(c, data, len) : 0;
	if (c->error_body.len + len <= ERROR_BODY_MAX)
		(void)bs_buf_add(&c->error_body, data, len);
	return h->received + len > DRAIN_MAX ? BS_HTTP_ENOUGH : 0;
}

/* Adds what the registry says of the cause: {"errors":[{"code","message"}]}. */
static void add_message(struct bs_call *c, char *text, size_t size)
{
	bs_auto(json) struct bs_json *v = NULL;
	const struct bs_json *first;
	const char *code, *message;
	size_t at = strlen(text);

	if (bs_json_parse("error", bs_buf_str(&c->error_body), c->error_body.len, ERROR_BODY_MAX,
			  &v, NULL) < 0)
		return;
	first = bs_json_at(bs_json_get(v, "errors"), 0);
	code = bs_json_str(bs_json_get(first, "code"));
	message = bs_json_str(bs_json_get(first, "message"));
	if (!code && !message)
		return;
	(void)snprintf(text + at, size - at, ", %.40s %.60s", code ? code : "",
		       message ? message : "");
	for (; text[at]; at++) { /* it goes to terminals and logs */
		if ((unsigned char)text[at] < ' ' || text[at] == 0x7f)
			text[at] = '?';
	}
}

static int code_of(const struct bs_http *h, bool *ret_transient)
{
	*ret_transient = false;
	switch (h->status) {
	case 401:
	case 403:
		return -EACCES;
	case 404:
	case 410:
		return -ENOENT;
	case 405:
	case 501:
		return -EOPNOTSUPP;
	case 408:
		*ret_transient = true;
		return -ETIMEDOUT;
	case 413:
		return -EFBIG;
	case 416:
		return -EBADMSG;
	case 429:
		*ret_transient = true;
		return -EAGAIN;
	default:
		*ret_transient = h->status >= 500;
		return h->status == 503 && h->retry_after_ns ? -EAGAIN : -EREMOTEIO;
	}
}

static void refused(struct bs_call *c)
{
	char text[160] = "";
	bool transient;
	int r = code_of(&c->http, &transient);

	if (r == -EACCES && !c->foreign && c->serial)
		bs_session_refused(c->session, c->scope, c->serial);
	if (r == -EACCES && !c->foreign)
		(void)snprintf(text, sizeof(text), "access is refused%s (status %d)",
			       c->secret ? "" : " without credentials", c->http.status);
	else
		(void)snprintf(text, sizeof(text), "status %d", c->http.status);
	add_message(c, text, sizeof(text));
	c->retry_after_ns = c->http.retry_after_ns;
	fail(c, r, transient, text);
}

/* --- sending --------------------------------------------------------------------------------- */

static void authorize(struct bs_call *c, uint64_t refused_serial);
static void on_done(struct bs_http *h);

static int make_headers(struct bs_call *c)
{
	int r = 0;

	bs_strv_done(&c->http.headers);
	for (size_t i = 0; r == 0 && i < c->headers.n; i++)
		r = bs_strv_add(&c->http.headers, c->headers.v[i]);
	if (r == 0 && c->wait.value && !c->foreign)
		r = bs_strv_addf(&c->http.headers, "Authorization: %s", c->wait.value);
	return r;
}

static void send_it(struct bs_call *c)
{
	int r = make_headers(c);

	bs_buf_done(&c->error_body);
	c->error_body = BS_BUF_INIT(ERROR_BODY_MAX);
	c->http.url = c->current;
	c->http.led = c->foreign;
	c->http.head = on_head;
	c->http.data = on_data;
	c->http.done = on_done;
	if (r < 0) {
		fail(c, r, false, "out of memory");
		return;
	}
	bs_http_start(&c->http);
}

static void authorized(struct bs_auth_wait *w)
{
	struct bs_call *c = BS_CONTAINER_OF(w, struct bs_call, wait);

	c->serial = w->serial;
	c->secret = w->secret;
	if (w->result < 0) {
		c->retry_after_ns = w->retry_after_ns;
		c->transient = w->result != -EACCES && w->result != -ECANCELED &&
			       w->result != -ENOMEM;
		(void)snprintf(c->text, sizeof(c->text), "%s", w->text);
		end(c, w->result);
		return;
	}
	send_it(c);
}

static void authorize(struct bs_call *c, uint64_t refused_serial)
{
	free(c->wait.value);
	c->wait = (struct bs_auth_wait){ .fn = authorized };
	bs_session_authorize(c->session, c->scope, refused_serial, &c->wait);
}

/* From the registry's own URL. */
static void begin(struct bs_call *c, uint64_t refused_serial)
{
	free(c->current);
	c->current = bs_strf("%s", c->url);
	/* an upload's Location may be another host's already */
	c->foreign = !bs_url_same_origin(c->url, bs_session_base(c->session));
	c->by_shortcut = false;
	c->n_redirects = 0;
	c->http.url = c->url;
	if (!c->current)
		fail(c, -ENOMEM, false, "out of memory");
	else if (c->foreign)
		send_it(c);
	else
		authorize(c, refused_serial);
}

static void redirected(struct bs_call *c)
{
	const char *location = c->http.header[BS_HTTP_LOCATION];
	char *to = NULL;
	int r;

	if (!location || ++c->n_redirects > REDIRECTS_MAX) {
		fail(c, -EREMOTEIO, false, location ? "too many redirects" : "redirect to nowhere");
		return;
	}
	r = bs_url_resolve(c->current, location, &to);
	if (r < 0) {
		fail(c, r == -ENOMEM ? r : -EREMOTEIO, false,
		     r == -EPERM ? "redirect from https to http is refused"
				 : "redirect to an unusable URL");
		return;
	}
	free(c->current);
	c->current = to;
	c->foreign = !bs_url_same_origin(to, bs_session_base(c->session));
	send_it(c);
}

/* Was the authorization refused, and is there a better one to be had? Then it is tried. */
static bool try_refresh(struct bs_call *c)
{
	const char *challenge = c->http.header[BS_HTTP_WWW_AUTHENTICATE];
	bool known = challenge && bs_session_challenge(c->session, c->scope, challenge);

	if (c->n_refreshed >= REFRESHES_MAX)
		return false;
	if (c->http.status == 401 && !known && !c->serial)
		return false;
	/* an expired token may show as 403; one that was got for this call may not do it */
	if (c->http.status == 403 && (!c->serial || c->n_refreshed))
		return false;
	c->n_refreshed++;
	begin(c, c->serial);
	return true;
}

/* What stores say of a place whose time is over; S3 says 400 of a token that expired. */
static bool is_gone(int status)
{
	return status == 400 || status == 401 || status == 403 || status == 404 || status == 410;
}

/* The place may be none any longer: once, the registry says where to go now. */
static bool try_registry(struct bs_call *c)
{
	const struct bs_http *h = &c->http;

	if (c->by_shortcut && h->result != -ECANCELED && h->result != -ENOMEM) {
		/* it is slow or busy, as what the registry names now may be: the owner's turn */
		if (h->result == 0 ? is_busy(h->status) : h->result == -ETIMEDOUT && h->status)
			return false;
		if (is_good(h->status) && h->received && !c->rewinds)
			return false;
	} else if (h->result < 0 || !c->foreign || !c->n_redirects || !is_gone(h->status)) {
		return false;
	}
	if (c->resolved)
		return false;
	stray(c);
	c->resolved = true;
	begin(c, 0);
	return true;
}

static void on_done(struct bs_http *h)
{
	struct bs_call *c = BS_CONTAINER_OF(h, struct bs_call, http);
	bool may_redirect = bs_streq(c->method, "GET") || bs_streq(c->method, "HEAD");
	bool redirects = may_redirect && h->result == 0 && is_redirect(h->status);

	if (h->result == 0 && is_good(h->status) && c->tail) {
		int r = c->tail(c);

		if (r < 0)
			bs_http_fail(h, r, "the answer is too short");
	}
	if (!(h->result == 0 && is_good(h->status)) && !redirects && try_registry(c))
		return;
	if (h->result < 0) {
		(void)snprintf(c->text, sizeof(c->text), "%s", h->text);
		c->transient = h->result == -EHOSTUNREACH || h->result == -ETIMEDOUT ||
			       h->result == -EREMOTEIO || h->result == -EBADMSG;
		end(c, h->result);
		return;
	}
	if (is_good(h->status)) {
		if (c->foreign)
			c->landed = bs_strf("%s", c->current); /* without it: resolved again */
		end(c, 0);
		return;
	}
	if (!c->foreign && (h->status == 401 || h->status == 403) && try_refresh(c))
		return;
	if (redirects)
		redirected(c);
	else
		refused(c);
}

static void start(struct bs_task *t)
{
	struct bs_call *c = BS_CONTAINER_OF(t, struct bs_call, task);

	if (bs_loop_stopping(c->http.loop)) {
		c->http.url = c->url;
		fail(c, -ECANCELED, false, "given up");
	} else if (c->shortcut) {
		c->foreign = c->by_shortcut = true;
		c->current = bs_strf("%s", c->shortcut);
		c->http.url = c->url;
		if (c->current)
			send_it(c);
		else
			fail(c, -ENOMEM, false, "out of memory");
	} else {
		begin(c, 0);
	}
}

void bs_call_start(struct bs_call *c)
{
	c->task.fn = start;
	bs_loop_post(c->http.loop, &c->task);
}

/* --- waiting --------------------------------------------------------------------------------- */

#define PROGRESS_NS (100 * BS_NS_PER_MS)

static void call_waited(struct bs_call *c)
{
	bs_latch_open(c->cookie);
}

int bs_call_run(struct bs_call *c, void (*progress)(void *cookie, uint64_t sent), void *cookie)
{
	struct bs_latch over = BS_LATCH_INIT;
	void *old_cookie = c->cookie;
	uint64_t sent = 0;
	bool ended = false;

	assert(!bs_loop_is_self(c->http.loop));
	c->cookie = &over;
	c->done = call_waited;
	bs_call_start(c);
	if (!progress)
		bs_latch_wait(&over);
	while (progress && !ended) {
		uint64_t now_sent;

		ended = bs_latch_wait_for(&over, PROGRESS_NS);
		now_sent = __atomic_load_n(&c->http.sent, __ATOMIC_RELAXED);
		if (now_sent != sent)
			progress(cookie, sent = now_sent);
	}
	bs_latch_done(&over);
	c->cookie = old_cookie;
	return c->result;
}

/* --- repeating ------------------------------------------------------------------------------- */

#define TRIES_MAX 5
#define RETRY_FIRST_NS (250 * BS_NS_PER_MS)
#define RETRY_PAUSE_MAX_NS (60 * BS_NS_PER_S)
#define RETRY_TOTAL_NS (180 * BS_NS_PER_S)

bool bs_retry_again(struct bs_retry *r, const struct bs_call *c)
{
	uint64_t now = bs_clock_ns(), pause = RETRY_FIRST_NS << r->n;
	struct timespec ts;
	uint32_t random = 0;

	if (r->started_ns == 0)
		r->started_ns = now;
	if (!c->transient || ++r->n >= TRIES_MAX)
		return false;
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	pause = pause / 2 + (uint64_t)((unsigned __int128)pause * random >> 32);
	if (c->retry_after_ns) /* the jitter comes on top */
		pause = c->retry_after_ns + pause / 4;
	if (pause > RETRY_PAUSE_MAX_NS || now + pause > r->started_ns + RETRY_TOTAL_NS)
		return false;
	ts = (struct timespec){ .tv_sec = (time_t)(pause / BS_NS_PER_S),
				.tv_nsec = (long)(pause % BS_NS_PER_S) };
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
	return true;
}
