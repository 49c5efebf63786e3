/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/registry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/header.h"
#include "net/referrers.h"
#include "net/url.h"

#define LANDINGS_MAX 64
#define ANSWER_NS (60 * BS_NS_PER_S)
#define ANSWER_BYTES_PER_S (UINT64_C(16) << 20)
#define TAGS_PAGE_MAX (4u << 20)
#define TAGS_PAGES_MAX 10000
#define ACCEPT_MANIFESTS                                                                           \
	"Accept: " BS_TYPE_OCI_MANIFEST ", " BS_TYPE_OCI_INDEX ", " BS_TYPE_DOCKER_MANIFEST        \
	", " BS_TYPE_DOCKER_LIST

/* --- exchanges -------------------------------------------------------------------------------- */

static int keep_body(struct bs_call *c, const void *data, size_t len)
{
	struct bs_exchange *x = BS_CONTAINER_OF(c, struct bs_exchange, call);
	int r;

	if (x->body.max == 0)
		return 0;
	r = bs_buf_add(&x->body, data, len);
	return r == -E2BIG ? -EFBIG : r;
}

static int prepare(struct bs_registry *r, const struct bs_request *q, struct bs_exchange *x)
{
	int rc = bs_call_init(&x->call, r->session, q->method,
			      q->url ? bs_strf("%s", q->url) : NULL, bs_strf("%s", q->scope));

	for (size_t i = 0; rc == 0 && i < BS_ARRAY_LEN(q->headers) && q->headers[i]; i++)
		rc = bs_strv_add(&x->call.headers, q->headers[i]);
	x->body = BS_BUF_INIT(q->max);
	x->call.data = keep_body;
	x->call.http.lane = q->lane;
	x->call.http.has_body = q->has_body;
	x->call.http.body = q->body;
	x->call.http.body_fd = q->fd;
	x->call.http.body_off = q->fd_off;
	x->call.http.body_len = q->body_len;
	x->call.http.answer_timeout_ns = q->answer_ns;
	return rc;
}

uint64_t bs_registry_answer_ns(const struct bs_registry *r, uint64_t bytes)
{
	return r->answer_ns + bytes / ANSWER_BYTES_PER_S * BS_NS_PER_S;
}

int bs_registry_send(struct bs_registry *r, struct bs_request *q, struct bs_exchange *x)
{
	struct bs_retry retry = { 0 };
	int rc;

	for (;;) {
		rc = prepare(r, q, x);
		if (rc < 0) {
			(void)snprintf(x->call.text, sizeof(x->call.text), "out of memory");
			break;
		}
		rc = bs_call_run(&x->call, q->progress, q->cookie);
		if (rc == 0 || q->once || (q->impatient && bs_repo_is_silence(rc)) ||
		    !bs_retry_again(&retry, &x->call))
			break;
		bs_exchange_done(x);
	}
	free(q->url);
	q->url = NULL;
	return rc;
}

void bs_exchange_done(struct bs_exchange *x)
{
	bs_call_done(&x->call);
	bs_buf_done(&x->body);
}

char *bs_registry_url(const struct bs_registry *r, const char *fmt, ...)
{
	bs_autobuf b = BS_BUF_INIT(BS_HTTP_URL_MAX);
	char *rest = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&rest, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	(void)bs_buf_addf(&b, "%s/v2/%s/%s", bs_session_base(r->session), r->path, rest);
	free(rest);
	return bs_buf_take(&b);
}

int bs_registry_fail(struct bs_registry *r, struct bs_error *err, int code, const char *what,
		     const struct bs_call *c)
{
	return bs_fail(err, code, "%s: %s: %s", r->repo.name, what, c->text);
}

/* --- redirects ------------------------------------------------------------------------------- */

struct landing {
	struct bs_list link;
	struct bs_digest blob;
	char *url;
};

static struct landing *find_landing(struct bs_registry *r, const struct bs_digest *d)
{
	bs_list_for_each(it, &r->landings) {
		struct landing *l = bs_list_entry(it, struct landing, link);

		if (bs_digest_eq(&l->blob, d))
			return l;
	}
	return NULL;
}

static void drop_landing(struct bs_registry *r, struct landing *l)
{
	bs_list_remove(&l->link);
	r->n_landings--;
	free(l->url);
	free(l);
}

char *bs_registry_landing(struct bs_registry *r, const struct bs_digest *d)
{
	const struct landing *l;
	char *url;

	(void)pthread_mutex_lock(&r->lock);
	l = find_landing(r, d);
	url = l ? bs_strf("%s", l->url) : NULL;
	(void)pthread_mutex_unlock(&r->lock);
	return url;
}

void bs_registry_landed(struct bs_registry *r, const struct bs_digest *d, const char *url)
{
	struct landing *l = url ? calloc(1, sizeof(*l)) : NULL, *old;

	if (l) {
		*l = (struct landing){ .blob = *d, .url = bs_strf("%s", url) };
		bs_list_init(&l->link);
		if (!l->url)
			free(bs_take(&l));
	}
	(void)pthread_mutex_lock(&r->lock);
	old = find_landing(r, d);
	if (!old && r->n_landings == LANDINGS_MAX && l)
		old = bs_list_entry(r->landings.next, struct landing, link);
	if (old)
		drop_landing(r, old);
	if (l) {
		bs_list_append(&r->landings, &l->link);
		r->n_landings++;
	}
	(void)pthread_mutex_unlock(&r->lock);
}

void bs_registry_strayed(struct bs_registry *r, const struct bs_digest *d, const char *url)
{
	struct landing *l;

	(void)pthread_mutex_lock(&r->lock);
	l = find_landing(r, d);
	if (l && bs_streq(l->url, url))
		drop_landing(r, l);
	(void)pthread_mutex_unlock(&r->lock);
}

/* --- manifests and tags ---------------------------------------------------------------------- */

/* What the registry says that the bytes are must be what they are. */
static bool digest_fits(const struct bs_exchange *x)
{
	const char *said = x->call.http.header[BS_HTTP_DOCKER_CONTENT_DIGEST];
	struct bs_digest want, got;

	if (!said || bs_digest_parse(said, strlen(said), &want) < 0)
		return true;
	bs_digest_of(bs_buf_str(&x->body), x->body.len, &got);
	return bs_digest_eq(&want, &got);
}

int bs_registry_get_manifest(struct bs_repo *repo, const char *ref, struct bs_manifest *ret,
			     struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	struct bs_request q = { .method = "GET",
				.scope = r->pull,
				.headers = { ACCEPT_MANIFESTS },
				.max = BS_MANIFEST_MAX,
				.impatient = r->impatient };
	struct bs_manifest m = { 0 };
	struct bs_exchange x;
	const char *type;
	char what[128];
	int rc;

	(void)snprintf(what, sizeof(what), "manifest %.100s", ref);
	q.url = bs_registry_url(r, "manifests/%s", ref);
	rc = bs_registry_send(r, &q, &x);
	if (rc < 0) {
		rc = bs_registry_fail(r, err, rc, what, &x.call);
	} else if (!digest_fits(&x)) {
		rc = bs_fail(err, -EBADMSG, "%s: %s: the bytes have another digest than is said",
			     repo->name, what);
	} else {
		type = x.call.http.header[BS_HTTP_CONTENT_TYPE];
		m.len = x.body.len;
		m.bytes = bs_buf_take(&x.body);
		m.media_type = bs_header_media_type(type ? type : "");
		if (m.bytes && m.media_type) {
			*ret = m;
		} else {
			bs_manifest_done(&m);
			rc = bs_fail(err, -ENOMEM, "%s: %s: out of memory", repo->name, what);
		}
	}
	bs_exchange_done(&x);
	return rc;
}

static int tell_tags(const struct bs_exchange *x, void (*each)(void *cookie, const char *tag),
		     void *cookie, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const struct bs_json *tags;
	int r = bs_json_parse("list of tags", bs_buf_str(&x->body), x->body.len, TAGS_PAGE_MAX, &v,
			      err);

	if (r < 0)
		return r;
	tags = bs_json_get(v, "tags");
	for (size_t i = 0; i < bs_json_n(tags); i++) {
		const char *tag = bs_json_str(bs_json_at(tags, i));

		if (tag)
			each(cookie, tag);
	}
	return 0;
}

/* The URL of the next page: NULL at the end. Another origin is none of ours. */
static int next_page(struct bs_registry *r, const struct bs_exchange *x, char **ret)
{
	bs_autofree char *next = NULL;
	const char *link = x->call.http.header[BS_HTTP_LINK];
	int rc = link ? bs_header_link_next(link, &next) : -ENOENT;

	*ret = NULL;
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	rc = bs_url_resolve(x->call.url, next, ret);
	if (rc == 0 && !bs_url_same_origin(*ret, bs_session_base(r->session))) {
		free(bs_take(ret));
		rc = -EBADMSG;
	}
	return rc;
}

static int list_tags(struct bs_repo *repo, void (*each)(void *cookie, const char *tag),
		     void *cookie, struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	char *url = bs_registry_url(r, "tags/list?n=1000");
	int rc = 0;

	for (unsigned int page = 0; rc == 0 && (url || page == 0); page++) {
		struct bs_request q = {
			.method = "GET", .url = url, .scope = r->pull, .max = TAGS_PAGE_MAX
		};
		struct bs_exchange x;

		url = NULL;
		rc = bs_registry_send(r, &q, &x);
		if (rc < 0) {
			(void)bs_registry_fail(r, err, rc, "list of tags", &x.call);
		} else {
			rc = tell_tags(&x, each, cookie, err);
			if (rc < 0)
				(void)bs_error_context(err, "%s", repo->name);
		}
		if (rc == 0) {
			rc = page < TAGS_PAGES_MAX ? next_page(r, &x, &url) : -EFBIG;
			if (rc < 0)
				(void)bs_fail_errno(err, rc, "%s: list of tags: next page",
						    repo->name);
		}
		bs_exchange_done(&x);
	}
	free(url);
	return rc;
}

/* --- opening --------------------------------------------------------------------------------- */

static void registry_free(struct bs_repo *repo)
{
	struct bs_registry *r = bs_registry_of(repo);

	while (!bs_list_empty(&r->landings))
		drop_landing(r, bs_list_entry(r->landings.next, struct landing, link));
	(void)bs_session_unref(r->session);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->repo.name);
	free(r->host);
	free(r->path);
	free(r->pull);
	free(r->push);
	free(r->remove);
	free(r);
}

static const struct bs_repo_ops registry_ops = {
	.scheme = "docker",
	.get_manifest = bs_registry_get_manifest,
	.get_blob = bs_registry_get_blob,
	.read = bs_registry_read,
	.has_blob = bs_registry_has_blob,
	.put_blob = bs_registry_put_blob,
	.mount_blob = bs_registry_mount_blob,
	.put_manifest = bs_registry_put_manifest,
	.list_tags = list_tags,
	.get_referrers = bs_registry_get_referrers,
	.delete_manifest = bs_registry_delete_manifest,
	.free = registry_free,
};

/* What goes into a URL must not change its meaning; oci/ref knows the full grammar. */
static bool plain(const char *text, const char *extra)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789.-";

	for (const char *c = text; *c; c++) {
		if (!strchr(letters, *c) && !strchr(extra, *c))
			return false;
	}
	return *text != '\0' && *text != '/' && !strstr(text, "//") && !strstr(text, "..");
}

int bs_registry_open(const struct bs_registry_options *o, const char *host, const char *name,
		     struct bs_repo **ret, struct bs_error *err)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	struct bs_registry *r;
	int rc;

	if (!plain(host, ":[]") || !plain(name, "/_"))
		return bs_fail(err, -EINVAL, "'%s/%s' is no repository's name", host, name);
	r = calloc(1, sizeof(*r));
	if (!r)
		return bs_fail(err, -ENOMEM, "docker://%s/%s: out of memory", host, name);
	r->repo = (struct bs_repo){ .ops = &registry_ops, .refs = 1 };
	(void)pthread_mutex_init(&r->lock, NULL);
	bs_list_init(&r->landings);
	repo = &r->repo;
	r->repo.name = bs_strf("docker://%s/%s", host, name);
	r->impatient = o->impatient;
	r->answer_ns = ANSWER_NS;
	r->host = bs_strf("%s", host);
	r->path = bs_strf("%s", name);
	r->pull = bs_strf("repository:%s:pull", name);
	r->push = bs_strf("repository:%s:pull,push", name);
	r->remove = bs_strf("repository:%s:pull,push,delete", name);
	if (!r->repo.name || !r->host || !r->path || !r->pull || !r->push || !r->remove)
		return bs_fail(err, -ENOMEM, "docker://%s/%s: out of memory", host, name);
	rc = bs_session_get(o, host, &r->session, err);
	if (rc < 0)
		return rc;
	*ret = bs_take(&repo);
	return 0;
}
