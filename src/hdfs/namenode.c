/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * An exchange: attempts at one NameNode after the other until one gives an answer that
 * stands. An attempt runs on the network loop's thread; the caller waits for it, no longer
 * than attempt_ns, then takes it back.
 *
 * Authentication: the delegation token of the token file when it has one for this HDFS, else
 * SPNEGO (then the cookie that it brought, as long as it is taken), else user.name.
 */
#include "config.h"

#include "hdfs/namenode.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/latch.h"
#include "base/str.h"
#include "hdfs/nnpriv.h"
#include "hdfs/path.h"
#include "hdfs/place.h"
#include "hdfs/token.h"
#include "net/http.h"
#include "net/loop_impl.h"
#include "net/url.h"

#define DEADLINE_NS (30 * BS_NS_PER_S)
#define ATTEMPT_NS (5 * BS_NS_PER_S)
#define PAUSE_FIRST_NS (50 * BS_NS_PER_MS)
#define PAUSE_MAX_NS BS_NS_PER_S
#define QUERY_MAX (256u << 10) /* an attribute may have 64 KiB, in hexadecimal digits */

struct bs_nn {
	struct bs_nn_options o;
	struct bs_http_peer peer;
	char *shown, *user, *token_file, *ca_file;
	bool https;
	struct bs_strv endpoints, services;
	unsigned int active;	  /* atomic; of endpoints */
	struct bs_nn_stats stats; /* atomic members */

	pthread_mutex_t lock; /* guards what follows */
	bool looked_for_token;
	unsigned int login; /* counts the changes of token and cookie */
	char *token;	    /* text form, or NULL */
	char *cookie;	    /* "hadoop.auth=…" that SPNEGO brought, or NULL */
};

static void count(uint64_t *counter)
{
	(void)__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* --- calls ----------------------------------------------------------------------------------- */

int bs_nn_call_init(struct bs_nn_call *c, const char *method, const char *op, const char *path,
		    struct bs_error *err)
{
	bs_autofree char *shown = NULL;
	int r = bs_hdfs_path_check(path);

	*c = (struct bs_nn_call){ .method = method,
				  .op = op,
				  .path = path,
				  .query = BS_BUF_INIT(QUERY_MAX),
				  .body = BS_BUF_INIT(BS_REPLY_MAX) };
	if (r == 0)
		return 0;
	shown = bs_str_shown(path, strlen(path));
	return bs_fail(err, r, "'%s': %s", shown ? shown : "",
		       r == -ENAMETOOLONG
			       ? "a name is longer than HDFS can have"
			       : "HDFS can have no such name (':', '.', '..', no UTF-8)");
}

void bs_nn_call_done(struct bs_nn_call *c)
{
	bs_buf_done(&c->query);
	bs_buf_done(&c->body);
	free(c->location);
}

void bs_nn_add(struct bs_nn_call *c, const char *name, const char *value)
{
	(void)bs_buf_addf(&c->query, "&%s=", name);
	(void)bs_url_add_escaped(&c->query, value);
}

void bs_nn_add_u64(struct bs_nn_call *c, const char *name, uint64_t value)
{
	(void)bs_buf_addf(&c->query, "&%s=%llu", name, (unsigned long long)value);
}

/* --- who we are ------------------------------------------------------------------------------ */

/* "HOST:PORT" as "ADDRESS:PORT", for each address of the host. */
static int add_addresses(struct bs_strv *to, const char *service)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(service, ':');
	bs_autofree char *host = colon ? strndup(service, (size_t)(colon - service)) : NULL;
	struct addrinfo *all = NULL;
	int r = 0;

	if (!colon)
		return 0;
	if (!host)
		return -ENOMEM;
	if (strchr(host, ':') || getaddrinfo(host, NULL, &hints, &all) != 0)
		return 0; /* an address already, or nobody knows it */
	for (const struct addrinfo *a = all; r == 0 && a; a = a->ai_next) {
		char text[64];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0)
			r = bs_strv_addf(to, "%s%s", text, colon);
	}
	freeaddrinfo(all);
	return r;
}

/* Hadoop makes tokens out to the address of a NameNode, whatever name it goes by. */
static int all_services(const struct bs_nn *nn, struct bs_strv *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < nn->services.n; i++) {
		r = bs_strv_add(ret, nn->services.v[i]);
		if (r == 0 && strncmp(nn->services.v[i], "ha-", 3) != 0)
			r = add_addresses(ret, nn->services.v[i]);
	}
	return r;
}

/* 1: there is none for us. */
static int read_token_file(struct bs_nn *nn, char **ret, struct bs_error *err)
{
	const char *env = secure_getenv("HADOOP_TOKEN_FILE_LOCATION");
	const char *file = nn->token_file ? nn->token_file : env && *env ? env : NULL;
	bs_autofree char *bytes = NULL;
	bs_autostrv services = { 0 };
	size_t len;
	int r;

	if (!file)
		return 1;
	r = bs_read_file_at(AT_FDCWD, file, 0, BS_TOKEN_FILE_MAX, &bytes, &len);
	if (r < 0)
		return bs_fail_errno(err, r, "token file '%s'", file);
	r = bs_token_from_file(file, bytes, len, (const char *const *)nn->services.v,
			       nn->services.n, ret, err);
	if (r != -ENOENT)
		return r;
	r = all_services(nn, &services);
	if (r < 0)
		return bs_fail(err, r, "HDFS: out of memory");
	r = bs_token_from_file(file, bytes, len, (const char *const *)services.v, services.n, ret,
			       err);
	return r == -ENOENT ? 1 : r;
}

/*
 * The query's part that says who we are. refused: the token or cookie that *refused is the count
 * of was not taken; the token file is read again, unless another thread has done that. 1 when
 * there is something new, else 0.
 */
static int log_in(struct bs_nn *nn, const unsigned int *refused, struct bs_error *err)
{
	char *token = NULL;
	int r, changed;
	bool looked;

	(void)pthread_mutex_lock(&nn->lock);
	looked = nn->looked_for_token;
	changed = refused && nn->login != *refused;
	(void)pthread_mutex_unlock(&nn->lock);
	if (changed || (looked && !refused))
		return changed;
	r = read_token_file(nn, &token, err);
	count(&nn->stats.logins);
	if (r < 0 && !nn->o.kerberos)
		return r;
	(void)pthread_mutex_lock(&nn->lock);
	nn->looked_for_token = true;
	if (r == 0 && (!nn->token || !bs_streq(nn->token, token))) {
		nn->login++;
		free(nn->token);
		nn->token = bs_take(&token);
	}
	if (refused && nn->cookie && nn->login == *refused) {
		nn->login++;
		free(nn->cookie);
		nn->cookie = NULL;
	}
	changed = refused && nn->login != *refused;
	(void)pthread_mutex_unlock(&nn->lock);
	free(token);
	return changed;
}

static int add_identity(struct bs_nn *nn, struct bs_buf *url, unsigned int *ret_login,
			char **ret_cookie, bool *ret_spnego)
{
	(void)pthread_mutex_lock(&nn->lock);
	*ret_login = nn->login;
	if (nn->token)
		(void)bs_buf_addf(url, "&delegation=%s", nn->token);
	else if (!nn->o.kerberos)
		(void)bs_url_add_query(url, "user.name", nn->user);
	*ret_cookie = !nn->token && nn->cookie ? bs_strf("Cookie: %s", nn->cookie) : NULL;
	*ret_spnego = !nn->token && nn->o.kerberos && !nn->cookie;
	(void)pthread_mutex_unlock(&nn->lock);
	return url->error;
}

/* Of "hadoop.auth="…"; Path=/; …", the first part; empty ones are a logout. */
static void keep_cookie(struct bs_nn *nn, const char *header)
{
	const char *at = header ? strstr(header, "hadoop.auth=") : NULL;
	size_t len = at ? strcspn(at, ";") : 0;
	char *cookie;

	if (len < 16 || len > 4096 || at[strcspn(at, "\r\n")])
		return;
	cookie = strndup(at, len);
	if (!cookie)
		return;
	(void)pthread_mutex_lock(&nn->lock);
	free(nn->cookie);
	nn->cookie = cookie;
	nn->login++;
	(void)pthread_mutex_unlock(&nn->lock);
}

/* --- one attempt ----------------------------------------------------------------------------- */

struct attempt {
	struct bs_http http;
	struct bs_task task;
	struct bs_latch over;
	struct bs_buf *body;
	uint64_t started_ns; /* the loop's: 0 while it waits for its turn there */
};

static int on_data(struct bs_http *h, const void *data, size_t len)
{
	struct attempt *a = BS_CONTAINER_OF(h, struct attempt, http);
	int r = bs_buf_add(a->body, data, len);

	return r == -E2BIG ? -EFBIG : r;
}

static void on_done(struct bs_http *h)
{
	bs_latch_open(&BS_CONTAINER_OF(h, struct attempt, http)->over);
}

static void start(struct bs_task *t)
{
	bs_http_start(&BS_CONTAINER_OF(t, struct attempt, task)->http);
}

static int make_url(struct bs_nn *nn, struct bs_nn_call *c, unsigned int at, char **ret_url,
		    char **ret_cookie, bool *ret_spnego)
{
	bs_autobuf url = BS_BUF_INIT(QUERY_MAX + (64u << 10));

	(void)bs_buf_addf(&url, "%s://%s/webhdfs/v1", nn->https ? "https" : "http",
			  nn->endpoints.v[at]);
	bs_hdfs_path_escape(&url, c->path);
	(void)bs_buf_addf(&url, "?op=%s%s%s", c->op, c->redirects ? "&noredirect=true" : "",
			  bs_buf_str(&c->query));
	if (c->query.error || add_identity(nn, &url, &c->login, ret_cookie, ret_spnego) < 0)
		return -ENOMEM;
	*ret_url = bs_buf_take(&url);
	return *ret_url ? 0 : -ENOMEM;
}

enum outcome { DONE, NEXT, WAIT, LOGIN, FINAL };

/* What a failed transfer means. */
static enum outcome after_transfer(struct bs_nn_call *c, const struct bs_http *h, bool timed_out)
{
	c->failure = (struct bs_hdfs_exception){ .code = timed_out ? -ETIMEDOUT : h->result };
	(void)snprintf(c->failure.message, sizeof(c->failure.message), "%s",
		       timed_out ? "no answer in time" : h->text);
	if (h->connected)
		c->lost = true;
	if (h->result == -ENOMEM || h->result == -EINVAL || h->result == -EFBIG ||
	    (h->result == -EACCES && !h->connected)) /* its certificate */
		return FINAL;
	return NEXT;
}

static enum outcome after_answer(struct bs_nn_call *c, int status)
{
	if (status >= 200 && status < (c->redirects ? 400 : 300))
		return DONE;
	if (status >= 500) /* a gateway's, which may have passed it on */
		c->lost = true;
	bs_reply_exception(status, bs_buf_str(&c->body), c->body.len, &c->failure);
	switch (c->failure.remedy) {
	case BS_HDFS_STANDBY:
	case BS_HDFS_RETRY: /* it starts, while another one may be active */
		return NEXT;
	case BS_HDFS_SAFEMODE:
		return WAIT;
	case BS_HDFS_LOGIN:
		return LOGIN;
	default:
		return FINAL;
	}
}

static enum outcome attempt(struct bs_nn *nn, struct bs_nn_call *c, unsigned int at, uint64_t ns)
{
	struct attempt a = { .over = BS_LATCH_INIT, .body = &c->body, .task = { .fn = start } };
	bs_autofree char *cookie = NULL;
	bs_autofree char *url = NULL;
	bool spnego = false, timed_out;
	enum outcome outcome;

	bs_buf_clear(&c->body);
	if (make_url(nn, c, at, &url, &cookie, &spnego) < 0) {
		c->failure.code = -ENOMEM;
		return FINAL;
	}
	a.http = (struct bs_http){ .loop = nn->o.loop,
				   .peer = &nn->peer,
				   .lane = BS_LANE_DEMAND,
				   .method = c->method,
				   .url = url,
				   .negotiate = spnego,
				   .started_ns = &a.started_ns,
				   .data = on_data,
				   .done = on_done };
	if (cookie && bs_strv_add(&a.http.headers, cookie) < 0) {
		c->failure.code = -ENOMEM;
		return FINAL;
	}
	count(&nn->stats.requests);
	bs_loop_post(nn->o.loop, &a.task);
	timed_out = !bs_latch_wait_for(&a.over, ns);
	if (timed_out) {
		bs_http_cancel(&a.http);
		bs_latch_wait(&a.over);
	}
	if (a.http.result >= 0)
		outcome = after_answer(c, a.http.status);
	else if (timed_out && !a.started_ns) /* it waited for its turn */
		outcome = WAIT;
	else
		outcome = after_transfer(c, &a.http, timed_out && a.http.result == -ECANCELED);
	if (outcome == DONE && c->redirects && a.http.header[BS_HTTP_LOCATION]) {
		free(c->location);
		c->location = bs_strf("%s", a.http.header[BS_HTTP_LOCATION]);
	}
	if (outcome == DONE && spnego)
		keep_cookie(nn, a.http.header[BS_HTTP_SET_COOKIE]);
	bs_latch_done(&a.over);
	bs_strv_done(&a.http.headers);
	bs_http_done(&a.http);
	return outcome;
}

/* --- all of them ----------------------------------------------------------------------------- */

/* Others may have moved on already. */
static void move_on(struct bs_nn *nn, unsigned int from)
{
	unsigned int expected = from, next = (unsigned int)((from + 1) % nn->endpoints.n);

	if (nn->endpoints.n > 1 && __atomic_compare_exchange_n(&nn->active, &expected, next, false,
							       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		count(&nn->stats.failovers);
}

static int give_up(struct bs_nn *nn, const struct bs_nn_call *c, bool in_time, struct bs_error *err)
{
	bs_autofree char *path = bs_str_shown(c->path, strlen(c->path));
	int code = c->failure.code ? c->failure.code : -ETIMEDOUT;

	if (code == -EAGAIN) /* which a caller would take for its own */
		code = -EHOSTUNREACH;

	return bs_fail(err, code, "%s%s: %s: %s%s%s", nn->shown, path ? path : "", c->op,
		       c->failure.name[0] ? c->failure.name : "", c->failure.name[0] ? ": " : "",
		       c->failure.message[0] ? c->failure.message
		       : in_time	     ? strerror(-code)
					     : "no NameNode answered in time");
}

int bs_nn_exchange(struct bs_nn *nn, struct bs_nn_call *c, struct bs_error *err)
{
	uint64_t until = bs_clock_ns() + nn->o.deadline_ns, pause = PAUSE_FIRST_NS;
	uint64_t patience = nn->o.attempt_ns;
	unsigned int in_round = 0;
	bool logged_in = false;
	int r = log_in(nn, NULL, err);

	if (r < 0)
		return r;
	for (;;) {
		uint64_t now = bs_clock_ns();
		unsigned int at = __atomic_load_n(&nn->active, __ATOMIC_RELAXED);

		if (now >= until)
			return give_up(nn, c, false, err);
		switch (attempt(nn, c, at, BS_MIN(patience, until - now))) {
		case DONE:
			return 0;
		case FINAL:
			return give_up(nn, c, true, err);
		case LOGIN:
			if (logged_in || log_in(nn, &c->login, NULL) <= 0)
				return give_up(nn, c, true, err);
			logged_in = true;
			continue;
		case NEXT:
			move_on(nn, at);
			if (++in_round < nn->endpoints.n)
				continue;
			break;
		case WAIT:
			break;
		}
		count(&nn->stats.retries);
		in_round = 0;
		if (c->failure.code == -ETIMEDOUT) /* deleting a tree of millions takes its time */
			patience = BS_MIN(2 * patience, nn->o.deadline_ns / 2);
		now = bs_clock_ns();
		bs_clock_sleep(now < until ? BS_MIN(pause, until - now) : 0);
		pause = BS_MIN(2 * pause, PAUSE_MAX_NS);
	}
}

int bs_nn_where(struct bs_nn *nn, struct bs_nn_call *c, struct bs_error *err)
{
	int r;

	c->redirects = true;
	r = bs_nn_exchange(nn, c, err);
	if (r == 0 && !c->location)
		r = bs_reply_location(bs_buf_str(&c->body), c->body.len, &c->location, err);
	return r;
}

/* --- making and ending ----------------------------------------------------------------------- */

static char *user_name(const char *wanted)
{
	const char *env = secure_getenv("HADOOP_USER_NAME");
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (!wanted && env && *env)
		wanted = env;
	if (!wanted && getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) == 0 && found)
		wanted = found->pw_name;
	return wanted ? bs_strf("%s", wanted) : bs_strf("%u", geteuid());
}

static int copy_place(struct bs_nn *nn, const struct bs_hdfs_place *place)
{
	int r = 0;

	nn->https = place->https;
	nn->shown = bs_strf("%s", place->name);
	for (size_t i = 0; r == 0 && i < place->endpoints.n; i++)
		r = bs_strv_add(&nn->endpoints, place->endpoints.v[i]);
	for (size_t i = 0; r == 0 && i < place->services.n; i++)
		r = bs_strv_add(&nn->services, place->services.v[i]);
	return nn->shown ? r : -ENOMEM;
}

int bs_nn_new(const struct bs_nn_options *o, const struct bs_hdfs_place *place, struct bs_nn **ret,
	      struct bs_error *err)
{
	bs_auto(nn) struct bs_nn *nn = calloc(1, sizeof(*nn));

	if (!nn)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	(void)pthread_mutex_init(&nn->lock, NULL);
	nn->o = *o;
	if (!nn->o.deadline_ns)
		nn->o.deadline_ns = DEADLINE_NS;
	if (!nn->o.attempt_ns)
		nn->o.attempt_ns = ATTEMPT_NS;
	nn->user = user_name(o->user);
	nn->token_file = o->token_file ? bs_strf("%s", o->token_file) : NULL;
	nn->ca_file = o->ca_file ? bs_strf("%s", o->ca_file) : NULL;
	nn->peer = (struct bs_http_peer){
		.verify = o->tls_verify,
		.ca_file = nn->ca_file,
		.trust_hint = "see ca and insecure in mount.bootseer-hdfs(8)",
		.plain_hint = "plain HTTP? see webhdfs:// in mount.bootseer-hdfs(8)",
	};
	if (!nn->user || (o->token_file && !nn->token_file) || (o->ca_file && !nn->ca_file) ||
	    copy_place(nn, place) < 0)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	*ret = bs_take(&nn);
	return 0;
}

struct bs_nn *bs_nn_free(struct bs_nn *nn)
{
	if (!nn)
		return NULL;
	free(nn->shown);
	free(nn->user);
	free(nn->token_file);
	free(nn->ca_file);
	free(nn->token);
	free(nn->cookie);
	bs_strv_done(&nn->endpoints);
	bs_strv_done(&nn->services);
	(void)pthread_mutex_destroy(&nn->lock);
	free(nn);
	return NULL;
}

struct bs_loop *bs_nn_loop(const struct bs_nn *nn)
{
	return nn->o.loop;
}

const struct bs_http_peer *bs_nn_peer(const struct bs_nn *nn)
{
	return &nn->peer;
}

bool bs_nn_https(const struct bs_nn *nn)
{
	return nn->https;
}

void bs_nn_stats(struct bs_nn *nn, struct bs_nn_stats *ret)
{
	const uint64_t *from = (const uint64_t *)&nn->stats;
	uint64_t *to = (uint64_t *)ret;

	_Static_assert(sizeof(*ret) % sizeof(uint64_t) == 0, "counters only");
	for (size_t i = 0; i < sizeof(*ret) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
