/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A grant is the authorization for one scope, made when the registry challenges a request
 * of that scope; until then such requests carry none. Its states:
 *
 *   empty ──authorize──▶ asking (helper thread) ─▶ requesting (Bearer) ─▶ valid
 *     ▲                      └───────── Basic ──────────────────────────────▲ │
 *     └──────────────────── expired, or refused by the registry ──────────────┘
 *
 * Those who come while it is busy are put on its list and get the outcome together. A
 * failure is remembered for a moment, so that a storm of readers is not one of requests;
 * then the challenge is forgotten, and the next request learns what is wanted now.
 *
 * A challenge says nothing of other scopes: a registry that lets everybody read may want a
 * password of who pushes. Where a token for reading was had, one for reading another
 * repository is asked for unchallenged, to save a round trip; a failure of that guess is none.
 */
#include "config.h"

#include "net/session.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/header.h"
#include "net/loop_impl.h"
#include "net/repo.h"
#include "net/url.h"

#define GRANTS_MAX 256
#define BASIC_LIFE_S 300
#define TOKEN_LIFE_S 60 /* distribution's token specification: when it is not said */
#define TOKEN_LIFE_MAX_S 86400
#define MARGIN_MAX_NS (30 * BS_NS_PER_S)
#define FAILURE_HOLD_NS (1 * BS_NS_PER_S)

enum scheme { SCHEME_UNKNOWN, SCHEME_BASIC, SCHEME_BEARER };

struct grant {
	struct bs_list link;
	struct bs_session *session;
	char *scope;
	char *value; /* of Authorization; NULL: none is to be had */
	bool secret;
	uint64_t serial, until_ns;
	/* the challenge; unknown: none, or it is forgotten */
	enum scheme scheme;
	char *realm, *service;
	bool guessed; /* from another scope's */
	bool busy;
	struct bs_list waiters;
	/* the last failure */
	int code;
	uint64_t failed_until_ns;
	char text[160];
	/* while busy */
	struct bs_task task;
	char *user, *password;
	bool posted; /* the token is asked for by POST */
	int ask_code;
	struct bs_error ask_err;
	struct bs_http http;
	char *url, *form;
	struct bs_buf reply;
};

struct bs_session {
	struct bs_list link;
	unsigned int refs; /* the loop's sessions_lock guards link and refs */
	struct bs_loop *loop;
	struct bs_http_peer peer;
	char *host, *base, *ca_file, *proxy;
	bool plain;
	bs_credential_fn *credentials;
	void *cookie;
	/* the loop's thread only */
	char *realm, *service; /* where the last token for reading was had; NULL: nowhere yet */
	struct bs_list grants;
	unsigned int n_grants;
	uint64_t serial;
};

/* --- life ------------------------------------------------------------------------------------ */

static struct grant *grant_free(struct grant *g)
{
	bs_list_remove(&g->link);
	free(g->scope);
	free(g->value);
	free(g->realm);
	free(g->service);
	free(g);
	return NULL;
}

static void session_free(struct bs_session *s)
{
	bs_list_for_each(it, &s->grants)
		(void)grant_free(bs_list_entry(it, struct grant, link));
	free(s->host);
	free(s->base);
	free(s->ca_file);
	free(s->proxy);
	free(s->realm);
	free(s->service);
	free(s);
}

struct bs_session *bs_session_ref(struct bs_session *s)
{
	(void)pthread_mutex_lock(bs_loop_sessions_lock(s->loop));
	s->refs++;
	(void)pthread_mutex_unlock(bs_loop_sessions_lock(s->loop));
	return s;
}

struct bs_session *bs_session_unref(struct bs_session *s)
{
	bool last;

	if (!s)
		return NULL;
	(void)pthread_mutex_lock(bs_loop_sessions_lock(s->loop));
	last = --s->refs == 0;
	if (last)
		bs_list_remove(&s->link);
	(void)pthread_mutex_unlock(bs_loop_sessions_lock(s->loop));
	if (last)
		session_free(s);
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? bs_streq(a, b) : a == b;
}

static bool fits(const struct bs_session *s, const struct bs_registry_options *o, const char *host)
{
	return bs_streq(s->host, host) && s->peer.verify == o->tls_verify &&
	       s->plain == o->plain_http && same_text(s->ca_file, o->ca_file) &&
	       same_text(s->proxy, o->proxy) && s->credentials == o->credentials &&
	       s->cookie == o->credentials_cookie;
}

static struct bs_session *session_new(const struct bs_registry_options *o, const char *host)
{
	struct bs_session *s = calloc(1, sizeof(*s));
	const char *name = bs_streq(host, "docker.io") ? "registry-1.docker.io" : host;

	if (!s)
		return NULL;
	bs_list_init(&s->link);
	bs_list_init(&s->grants);
	s->refs = 1;
	s->loop = o->loop;
	s->plain = o->plain_http;
	s->credentials = o->credentials;
	s->cookie = o->credentials_cookie;
	s->host = bs_strf("%s", host);
	s->base = bs_strf("%s://%s", o->plain_http ? "http" : "https", name);
	s->ca_file = o->ca_file ? bs_strf("%s", o->ca_file) : NULL;
	s->proxy = o->proxy ? bs_strf("%s", o->proxy) : NULL;
	s->peer = (struct bs_http_peer){
		.verify = o->tls_verify,
		.ca_file = s->ca_file,
		.proxy = s->proxy,
		.trust_hint = "see ca_file in bootseer.conf, --tls-verify",
		.plain_hint = "plain HTTP? see plain_http in bootseer.conf, --plain-http",
	};
	if (!s->host || !s->base || (o->ca_file && !s->ca_file) || (o->proxy && !s->proxy)) {
		session_free(s);
		return NULL;
	}
	return s;
}

int bs_session_get(const struct bs_registry_options *o, const char *host, struct bs_session **ret,
		   struct bs_error *err)
{
	struct bs_list *all = bs_loop_sessions(o->loop);
	struct bs_session *found = NULL;

	(void)pthread_mutex_lock(bs_loop_sessions_lock(o->loop));
	bs_list_for_each(it, all) {
		struct bs_session *s = bs_list_entry(it, struct bs_session, link);

		if (!found && fits(s, o, host)) {
			s->refs++;
			found = s;
		}
	}
	if (!found) {
		found = session_new(o, host);
		if (found)
			bs_list_append(all, &found->link);
	}
	(void)pthread_mutex_unlock(bs_loop_sessions_lock(o->loop));
	if (!found)
		return bs_fail(err, -ENOMEM, "registry %s: out of memory", host);
	*ret = found;
	return 0;
}

const char *bs_session_base(const struct bs_session *s)
{
	return s->base;
}

const struct bs_http_peer *bs_session_peer(const struct bs_session *s)
{
	return &s->peer;
}

struct bs_loop *bs_session_loop(const struct bs_session *s)
{
	return s->loop;
}

/* --- grants, and the challenges they are for --------------------------------------------------- */

static struct grant *find_grant(struct bs_session *s, const char *scope)
{
	bs_list_for_each(it, &s->grants) {
		struct grant *g = bs_list_entry(it, struct grant, link);

		if (bs_streq(g->scope, scope))
			return g;
	}
	return NULL;
}

static struct grant *new_grant(struct bs_session *s, const char *scope)
{
	struct grant *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	bs_list_init(&g->link);
	bs_list_init(&g->waiters);
	g->session = s;
	g->scope = bs_strf("%s", scope);
	if (!g->scope)
		return grant_free(g);
	bs_list_append(&s->grants, &g->link);
	s->n_grants++;
	bs_list_for_each(it, &s->grants) {
		struct grant *old = bs_list_entry(it, struct grant, link);

		if (s->n_grants <= GRANTS_MAX || old == g || old->busy)
			continue;
		(void)grant_free(old);
		s->n_grants--;
	}
	return g;
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/* Replaces *to when the text is another one; keeps the old one when memory is out. */
static bool learn(char **to, char **from)
{
	if (same_text(*to, *from))
		return false;
	free(*to);
	*to = bs_take(from);
	return true;
}

static void learn_copy(char **to, const char *from)
{
	bs_autofree char *copy = from ? bs_strf("%s", from) : NULL;

	(void)learn(to, &copy);
}

bool bs_session_challenge(struct bs_session *s, const char *scope, const char *www_authenticate)
{
	struct grant *g = find_grant(s, scope);
	enum scheme scheme = SCHEME_UNKNOWN;
	struct bs_challenge c;
	bool changed = false;

	if (bs_header_challenge(www_authenticate, &c) < 0)
		return false;
	if (c.bearer && c.realm)
		scheme = SCHEME_BEARER;
	else if (c.basic)
		scheme = SCHEME_BASIC;
	if (!g && scheme != SCHEME_UNKNOWN)
		g = new_grant(s, scope);
	if (g && scheme == SCHEME_BEARER) {
		changed |= learn(&g->realm, &c.realm);
		changed |= learn(&g->service, &c.service);
	}
	bs_challenge_done(&c);
	if (!g || scheme == SCHEME_UNKNOWN)
		return false;
	changed |= g->scheme != scheme;
	g->scheme = scheme;
	g->guessed = false;
	if (changed) /* what was got for the old challenge is worth nothing */
		g->until_ns = 0;
	if (!g->busy && (changed || bs_clock_ns() >= g->failed_until_ns))
		g->code = 0;
	return true;
}

/* Forgets a challenge that led to nothing: the next request asks what is wanted. */
static void forget(struct grant *g)
{
	g->scheme = SCHEME_UNKNOWN;
	g->guessed = false;
	g->until_ns = 0;
	g->code = 0;
	wipe(&g->value);
}

void bs_session_refused(struct bs_session *s, const char *scope, uint64_t serial)
{
	struct grant *g = find_grant(s, scope);

	if (g && !g->busy && g->serial == serial)
		forget(g);
}

static bool only_reads(const char *scope)
{
	const char *end = strrchr(scope, ':');

	return end && bs_streq(end, ":pull") && !strchr(scope, ' ');
}

/* As another repository of the host is read, so perhaps this one. */
static struct grant *guess(struct bs_session *s, const char *scope)
{
	struct grant *g = s->realm && only_reads(scope) ? new_grant(s, scope) : NULL;

	if (!g)
		return NULL;
	learn_copy(&g->realm, s->realm);
	learn_copy(&g->service, s->service);
	g->scheme = g->realm ? SCHEME_BEARER : SCHEME_UNKNOWN;
	g->guessed = true;
	return g;
}

/* --- the end of a refresh -------------------------------------------------------------------- */

static void tell(struct grant *g, struct bs_auth_wait *w)
{
	const uint64_t now = bs_clock_ns();

	w->result = g->code;
	w->value = NULL;
	w->serial = 0;
	w->secret = false;
	w->retry_after_ns = 0;
	w->text[0] = '\0';
	if (g->code < 0) {
		(void)snprintf(w->text, sizeof(w->text), "%s", g->text);
		if (g->code == -EAGAIN && g->failed_until_ns > now)
			w->retry_after_ns = g->failed_until_ns - now;
	} else if (g->value) {
		w->value = bs_strf("%s", g->value);
		w->serial = g->serial;
		w->secret = g->secret;
		if (!w->value)
			w->result = -ENOMEM;
	}
	w->fn(w);
}

static void end_refresh(struct grant *g)
{
	struct bs_session *s = g->session;
	struct bs_list waiters;

	wipe(&g->user);
	wipe(&g->password);
	wipe(&g->form);
	free(g->url);
	g->url = NULL;
	bs_buf_done(&g->reply);
	bs_strv_done(&g->http.headers);
	bs_http_done(&g->http);
	g->busy = false;
	/* move them first: a waiter may come back at once */
	bs_list_init(&waiters);
	bs_list_for_each(it, &g->waiters) {
		bs_list_remove(it);
		bs_list_append(&waiters, it);
	}
	bs_list_for_each(it, &waiters) {
		bs_list_remove(it);
		tell(g, bs_list_entry(it, struct bs_auth_wait, link));
	}
	(void)bs_session_unref(s);
}

static void refresh_failed(struct grant *g, int code, uint64_t hold_ns, const char *text)
{
	if (g->guessed) { /* the registry did not ask for it: without */
		forget(g);
		end_refresh(g);
		return;
	}
	g->code = code;
	g->failed_until_ns = bs_clock_ns() + BS_MAX(hold_ns, FAILURE_HOLD_NS);
	(void)snprintf(g->text, sizeof(g->text), "%s", text);
	end_refresh(g);
}

/* Takes value over; NULL: anonymous without any Authorization. */
static void refresh_worked(struct grant *g, char *value, bool secret, uint64_t life_s)
{
	uint64_t life = life_s * BS_NS_PER_S, margin = BS_MIN(life / 4, MARGIN_MAX_NS);
	uint32_t random = 0;

	wipe(&g->value);
	g->value = value;
	g->secret = secret;
	g->serial = ++g->session->serial;
	g->code = 0;
	/* jitter: many nodes that started together do not come back together */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	margin += (uint64_t)((unsigned __int128)(margin / 2) * random >> 32);
	g->until_ns = bs_clock_ns() + life - margin;
	g->guessed = false;
	if (g->scheme == SCHEME_BEARER && only_reads(g->scope)) {
		learn_copy(&g->session->realm, g->realm);
		learn_copy(&g->session->service, g->service);
	}
	end_refresh(g);
}

/* --- Basic ----------------------------------------------------------------------------------- */

static char *basic_value(const char *user, const char *password)
{
	bs_autofree char *plain = bs_strf("%s:%s", user, password), *code = NULL;
	size_t len = plain ? strlen(plain) : 0;
	char *value = NULL;

	code = plain && len < INT32_MAX / 2 ? malloc(len / 3 * 4 + 8) : NULL;
	if (code) {
		(void)EVP_EncodeBlock((unsigned char *)code, (unsigned char *)plain, (int)len);
		value = bs_strf("Basic %s", code);
	}
	wipe(&plain);
	wipe(&code);
	return value;
}

static void use_basic(struct grant *g)
{
	char *value, text[160];

	if (!g->password) {
		(void)snprintf(text, sizeof(text),
			       "%s wants a user name and password, and none are known for "
			       "it (docker login, podman login)",
			       g->session->host);
		refresh_failed(g, -EACCES, 0, text);
		return;
	}
	value = basic_value(g->user, g->password);
	if (!value) {
		refresh_failed(g, -ENOMEM, 0, "out of memory");
		return;
	}
	refresh_worked(g, value, true, BASIC_LIFE_S);
}

/* --- Bearer ---------------------------------------------------------------------------------- */

/* Letters of a token68 and of a JWT: nothing that could end a header line. */
static bool token_ok(const char *s)
{
	for (const char *c = s; *c; c++) {
		if (*c <= ' ' || *c > '~')
			return false;
	}
	return *s != '\0';
}

int bs_token_parse(const char *text, size_t len, char **ret_token, uint64_t *ret_life_s,
		   struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const char *token;
	uint64_t life;
	int r = bs_json_parse("token", text, len, BS_TOKEN_REPLY_MAX, &v, err);

	if (r < 0)
		return r;
	token = bs_json_str(bs_json_get(v, "token"));
	if (!token || !*token)
		token = bs_json_str(bs_json_get(v, "access_token"));
	if (!token || !token_ok(token))
		return bs_fail(err, -EBADMSG, "the reply has no usable token");
	if (bs_json_u64(bs_json_get(v, "expires_in"), &life) < 0 || life == 0)
		life = TOKEN_LIFE_S;
	*ret_token = bs_strf("%s", token);
	if (!*ret_token)
		return bs_fail(err, -ENOMEM, "out of memory");
	*ret_life_s = BS_MIN(life, (uint64_t)TOKEN_LIFE_MAX_S);
	return 0;
}

static int on_reply(struct bs_http *h, const void *data, size_t len)
{
	struct grant *g = BS_CONTAINER_OF(h, struct grant, http);

	return bs_buf_add(&g->reply, data, len) < 0 ? -EBADMSG : 0;
}

static void request_token(struct grant *g, bool post);

static void on_token(struct bs_http *h)
{
	struct grant *g = BS_CONTAINER_OF(h, struct grant, http);
	bs_autofree char *token = NULL;
	struct bs_error err = BS_ERROR_INIT;
	char text[160], *value;
	uint64_t life;
	bool post_next = !g->posted && g->password && (h->status == 404 || h->status == 405);
	int r = h->result;

	if (r == 0 && post_next) { /* a server that only knows OAuth2's form */
		request_token(g, true);
		return;
	}
	if (r < 0)
		(void)snprintf(text, sizeof(text), "token: %.140s", h->text);
	else if (h->status == 401 || h->status == 403 || h->status == 400)
		r = -EACCES;
	else if (h->status == 429 || (h->status == 503 && h->retry_after_ns))
		r = -EAGAIN;
	else if (h->status != 200)
		r = -EREMOTEIO;
	if (h->result == 0 && r < 0) {
		bs_http_fail(h, r,
			     r == -EACCES && g->password ? "credentials are refused"
			     : r == -EACCES		 ? "no token without credentials"
							 : "no token");
		(void)snprintf(text, sizeof(text), "token: %.120s (status %d)", h->text, h->status);
	}
	if (r == 0) {
		r = bs_token_parse(bs_buf_str(&g->reply), g->reply.len, &token, &life, &err);
		(void)snprintf(text, sizeof(text), "token: %.140s", bs_error_text(&err));
		if (r == -EINVAL || r == -E2BIG)
			r = -EBADMSG;
	}
	if (r < 0) {
		refresh_failed(g, r, h->retry_after_ns, text);
		return;
	}
	value = bs_strf("Bearer %s", token);
	wipe(&token);
	if (!value)
		refresh_failed(g, -ENOMEM, 0, "out of memory");
	else
		refresh_worked(g, value, g->password != NULL, life);
}

/* The scopes of a grant are separated by spaces, as OAuth2 has it; GET repeats the member. */
static int add_scopes(struct bs_buf *url, const char *scope)
{
	bs_autostrv scopes = { 0 };
	int r = bs_strv_split(&scopes, scope, " ");

	for (size_t i = 0; r == 0 && i < scopes.n; i++)
		r = bs_url_add_query(url, "scope", scopes.v[i]);
	return r;
}

static int make_get(struct grant *g)
{
	bs_autobuf url = BS_BUF_INIT(BS_HTTP_URL_MAX);
	bs_autofree char *basic = NULL;
	int r;

	(void)bs_buf_adds(&url, g->realm);
	if (g->service)
		(void)bs_url_add_query(&url, "service", g->service);
	r = add_scopes(&url, g->scope);
	if (r < 0 || url.error)
		return r < 0 ? r : url.error;
	g->url = bs_buf_take(&url);
	g->http.method = "GET";
	if (!g->password)
		return g->url ? 0 : -ENOMEM;
	basic = basic_value(g->user, g->password);
	if (!basic || !g->url)
		return -ENOMEM;
	r = bs_strv_addf(&g->http.headers, "Authorization: %s", basic);
	wipe(&basic);
	return r;
}

static void add_field(struct bs_buf *form, const char *name, const char *value)
{
	(void)bs_buf_addf(form, "%s%s=", form->len ? "&" : "", name);
	(void)bs_url_add_escaped(form, value);
}

static int make_post(struct grant *g)
{
	bs_autobuf form = BS_BUF_INIT(BS_TOKEN_REPLY_MAX);

	if (g->user[0]) {
		add_field(&form, "grant_type", "password");
		add_field(&form, "username", g->user);
		add_field(&form, "password", g->password);
	} else {
		add_field(&form, "grant_type", "refresh_token");
		add_field(&form, "refresh_token", g->password);
	}
	if (g->service)
		add_field(&form, "service", g->service);
	add_field(&form, "scope", g->scope);
	add_field(&form, "client_id", PACKAGE);
	g->http.body_len = form.len;
	g->form = bs_buf_take(&form);
	g->url = bs_strf("%s", g->realm);
	if (!g->form || !g->url)
		return -ENOMEM;
	g->http.method = "POST";
	g->http.body = g->form;
	g->http.has_body = true;
	return bs_strv_addf(&g->http.headers, "Content-Type: application/x-www-form-urlencoded");
}

static void request_token(struct grant *g, bool post)
{
	struct bs_session *s = g->session;
	bs_autofree char *checked = NULL;
	int r;

	wipe(&g->form);
	free(g->url);
	g->url = NULL;
	bs_buf_done(&g->reply);
	bs_strv_done(&g->http.headers);
	bs_http_done(&g->http);
	/* https's word must not send credentials out in the clear */
	r = g->realm ? bs_url_resolve(s->base, g->realm, &checked) : -EINVAL;
	if (r < 0) {
		refresh_failed(g, -EACCES, 0,
			       r == -EPERM ? "token: an https registry names an http token server"
					   : "token: the registry names no usable token server");
		return;
	}
	(void)learn(&g->realm, &checked);
	g->posted = post;
	g->reply = BS_BUF_INIT(BS_TOKEN_REPLY_MAX);
	g->http = (struct bs_http){ .loop = s->loop,
				    .peer = &s->peer,
				    .lane = BS_LANE_DEMAND,
				    .data = on_reply,
				    .done = on_token };
	r = post ? make_post(g) : make_get(g);
	if (r < 0) {
		refresh_failed(g, r == -E2BIG ? -EBADMSG : r, 0, "token: request cannot be made");
		return;
	}
	g->http.url = g->url;
	g->http.led = !bs_url_same_origin(g->url, s->base);
	bs_loop_count_token(s->loop);
	bs_http_start(&g->http);
}

/* --- asking for credentials ------------------------------------------------------------------- */

/* On the loop's thread again, with the answer. */
static void asked(struct bs_task *t)
{
	struct grant *g = BS_CONTAINER_OF(t, struct grant, task);
	char text[160];

	if (g->ask_code < 0 && g->ask_code != -ENOENT) {
		(void)snprintf(text, sizeof(text), "credentials for %.60s: %.80s", g->session->host,
			       bs_error_text(&g->ask_err));
		refresh_failed(g, -EACCES, 0, text);
	} else if (bs_loop_stopping(g->session->loop)) {
		refresh_failed(g, -ECANCELED, 0, "given up");
	} else if (g->scheme == SCHEME_BASIC) {
		use_basic(g);
	} else {
		request_token(g, g->password && !g->user[0]);
	}
}

/* On the helper's thread. */
static void ask(struct bs_task *t)
{
	struct grant *g = BS_CONTAINER_OF(t, struct grant, task);
	struct bs_session *s = g->session;

	g->ask_code = -ENOENT;
	if (s->credentials)
		g->ask_code = s->credentials(s->cookie, s->host, &g->user, &g->password,
					     &g->ask_err);
	if (g->ask_code >= 0 && (!g->user || !g->password))
		g->ask_code = -ENOENT;
	if (g->ask_code < 0) {
		wipe(&g->user);
		wipe(&g->password);
	}
	g->task.fn = asked;
	bs_loop_post(s->loop, &g->task);
}

/* --- getting one ----------------------------------------------------------------------------- */

void bs_session_authorize(struct bs_session *s, const char *scope, uint64_t refused,
			  struct bs_auth_wait *w)
{
	struct grant none = { 0 }, *g = find_grant(s, scope);
	const uint64_t now = bs_clock_ns();

	if (!g)
		g = guess(s, scope);
	if (g && !g->busy && g->code < 0 && now >= g->failed_until_ns)
		forget(g);
	if (!g || (g->scheme == SCHEME_UNKNOWN && !g->busy)) { /* it may want nothing: ask first */
		tell(&none, w);
		return;
	}
	if (refused && refused == g->serial)
		g->until_ns = 0;
	if (!g->busy && (now < g->until_ns || (g->code < 0 && now < g->failed_until_ns))) {
		tell(g, w);
		return;
	}
	bs_list_append(&g->waiters, &w->link);
	if (g->busy)
		return;
	g->busy = true;
	g->ask_err = BS_ERROR_INIT;
	g->task.fn = ask;
	(void)bs_session_ref(s); /* until end_refresh */
	bs_loop_block(s->loop, &g->task);
}
