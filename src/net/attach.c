/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Manifests that refer to another one (distribution-spec, "Pushing manifests with
 * subject"): the server lists them itself and says so by OCI-Subject, else we keep the
 * index under the tag "sha256-<hex of the subject>". Two clients may change that index at
 * once and the protocol has no compare-and-swap: so it is read again after writing.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/header.h"
#include "net/referrers.h"
#include "net/registry.h"
#include "net/url.h"

#define INDEX_TRIES 4
#define PAGES_MAX 1000
#define NO_API_NS (600 * BS_NS_PER_S)

static int put_bytes(struct bs_registry *r, const char *ref, const char *media_type,
		     const char *bytes, size_t len, bool *ret_has_subject, struct bs_error *err)
{
	bs_autofree char *type = bs_strf("Content-Type: %s", media_type);
	struct bs_request q = { .method = "PUT",
				.scope = r->push,
				.headers = { type },
				.has_body = true,
				.body = bytes,
				.body_len = len,
				.answer_ns = bs_registry_answer_ns(r, len),
				.max = 64u << 10 };
	struct bs_exchange x;
	char what[128];
	int rc;

	(void)snprintf(what, sizeof(what), "upload of manifest %.100s", ref);
	if (!type)
		return bs_fail(err, -ENOMEM, "%s: %s: out of memory", r->repo.name, what);
	q.url = bs_registry_url(r, "manifests/%s", ref);
	rc = bs_registry_send(r, &q, &x);
	if (rc < 0)
		rc = bs_registry_fail(r, err, rc, what, &x.call);
	else if (ret_has_subject)
		*ret_has_subject = x.call.http.header[BS_HTTP_OCI_SUBJECT] != NULL;
	bs_exchange_done(&x);
	return rc;
}

/* The index under the tag; an empty one when there is none. */
static int get_index(struct bs_registry *r, const char *tag, struct bs_json **ret,
		     struct bs_error *err)
{
	struct bs_manifest m = { 0 };
	int rc = bs_registry_get_manifest(&r->repo, tag, &m, err);

	if (rc == -ENOENT) {
		*ret = bs_referrers_new();
		return *ret ? 0 : bs_fail(err, -ENOMEM, "%s: out of memory", r->repo.name);
	}
	if (rc < 0)
		return rc;
	rc = bs_referrers_parse(tag, m.bytes, m.len, ret, err);
	bs_manifest_done(&m);
	return rc < 0 ? bs_error_context(err, "%s", r->repo.name), rc : 0;
}

/* Takes out what is not there any more, as when somebody deleted it without us; how many. */
static size_t prune(struct bs_registry *r, struct bs_json *index)
{
	struct bs_json *list = bs_json_get(index, "manifests");
	size_t n = 0;

	for (size_t i = bs_json_n(list); i-- > 0;) {
		const char *text = bs_json_str(bs_json_get(bs_json_at(list, i), "digest"));
		struct bs_manifest m = { 0 };
		struct bs_digest d;

		if (!text || bs_digest_parse(text, strlen(text), &d) < 0)
			continue;
		if (bs_registry_get_manifest(&r->repo, text, &m, NULL) == -ENOENT) {
			bs_json_remove_at(list, i);
			n++;
		}
		bs_manifest_done(&m);
	}
	return n;
}

/*
 * Puts the list under its tag. Registries refuse one that names what they do not have, and
 * would for ever. -ENOENT: it is empty.
 */
static int put_index(struct bs_registry *r, const char *tag, struct bs_json *index,
		     struct bs_error *err)
{
	bool pruned = false;

	for (;;) {
		struct bs_manifest m = { 0 };
		int rc = bs_referrers_finish(index, &m, err);

		if (rc < 0)
			return rc;
		rc = put_bytes(r, tag, BS_TYPE_OCI_INDEX, m.bytes, m.len, NULL, err);
		bs_manifest_done(&m);
		if (rc != -EREMOTEIO || pruned || prune(r, index) == 0)
			return rc;
		pruned = true;
	}
}

static int list_under_tag(struct bs_registry *r, const struct bs_digest *subject,
			  const struct bs_json *desc, struct bs_error *err)
{
	char tag[BS_REFERRERS_TAG_LEN];

	(void)bs_referrers_tag(subject, tag);
	for (int i = 0; i < INDEX_TRIES; i++) {
		bs_auto(json) struct bs_json *index = NULL;
		int rc = get_index(r, tag, &index, err);

		if (rc < 0)
			return rc;
		rc = bs_referrers_add(index, bs_json_copy(desc));
		if (rc == 0)
			return 0;
		if (rc < 0)
			return bs_fail_errno(err, rc, "%s: referrers tag %s", r->repo.name, tag);
		rc = put_index(r, tag, index, err);
		if (rc < 0)
			return rc;
	}
	return bs_fail(err, -EAGAIN, "%s: referrers tag %s: others change it all the time",
		       r->repo.name, tag);
}

int bs_registry_put_manifest(struct bs_repo *repo, const char *tag, const char *media_type,
			     const char *bytes, size_t len, struct bs_error *err)
{
	bs_auto(json) struct bs_json *desc = NULL;
	struct bs_registry *r = bs_registry_of(repo);
	struct bs_digest digest, subject;
	char text[BS_DIGEST_TEXT_LEN];
	bool listed = false;
	int rc, has_subject;

	has_subject = bs_referrers_describe(bytes, len, media_type, &subject, &desc, err);
	if (has_subject < 0)
		return bs_error_context(err, "%s", repo->name), has_subject;
	bs_digest_of(bytes, len, &digest);
	rc = put_bytes(r, tag ? tag : bs_digest_text(&digest, text), media_type, bytes, len,
		       &listed, err);
	if (rc == 0 && has_subject && !listed)
		rc = list_under_tag(r, &subject, desc, err);
	return rc;
}

/* --- deleting ------------------------------------------------------------------------------- */

static int delete_bytes(struct bs_registry *r, const struct bs_digest *d, struct bs_error *err)
{
	struct bs_request q = { .method = "DELETE", .scope = r->remove };
	char what[128], text[BS_DIGEST_TEXT_LEN];
	struct bs_exchange x;
	int rc;

	(void)bs_digest_text(d, text);
	(void)snprintf(what, sizeof(what), "deletion of manifest %s", text);
	q.url = bs_registry_url(r, "manifests/%s", text);
	rc = bs_registry_send(r, &q, &x);
	if (rc == -EOPNOTSUPP)
		rc = bs_fail(err, rc,
			     "%s: %s: the registry does not allow it (%s): let its administrator "
			     "allow deletion, or delete it there",
			     r->repo.name, what, x.call.text);
	else if (rc < 0)
		rc = bs_registry_fail(r, err, rc, what, &x.call);
	bs_exchange_done(&x);
	return rc;
}

/* One change of the list; 1: it is to be looked at again, 0: the manifest is not in it. */
static int unlist_once(struct bs_registry *r, const char *tag, const struct bs_digest *d,
		       struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	struct bs_manifest m = { 0 };
	struct bs_digest old;
	int rc = bs_registry_get_manifest(&r->repo, tag, &m, err);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	bs_digest_of(m.bytes, m.len, &old);
	rc = bs_referrers_parse(tag, m.bytes, m.len, &index, err);
	bs_manifest_done(&m);
	if (rc < 0)
		return bs_error_context(err, "%s", r->repo.name);
	if (bs_referrers_remove(index, d) == 0)
		return 0;
	rc = put_index(r, tag, index, err);
	if (rc == -ENOENT)
		rc = delete_bytes(r, &old, err);
	return rc < 0 && rc != -ENOENT ? rc : 1;
}

static int unlist_under_tag(struct bs_registry *r, const struct bs_digest *subject,
			    const struct bs_digest *d, struct bs_error *err)
{
	char tag[BS_REFERRERS_TAG_LEN];

	(void)bs_referrers_tag(subject, tag);
	for (int i = 0; i < INDEX_TRIES; i++) {
		int rc = unlist_once(r, tag, d, err);

		if (rc <= 0)
			return rc;
	}
	return bs_fail(err, -EAGAIN, "%s: referrers tag %s: others change it all the time",
		       r->repo.name, tag);
}

int bs_registry_delete_manifest(struct bs_repo *repo, const struct bs_digest *d,
				const struct bs_digest *subject, struct bs_error *err)
{
	struct bs_registry *r = bs_registry_of(repo);
	int rc = delete_bytes(r, d, err), unlisted;

	if (!subject || (rc < 0 && rc != -ENOENT))
		return rc;
	unlisted = unlist_under_tag(r, subject, d, err);
	return unlisted < 0 ? unlisted : rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static bool api_is_missing(struct bs_registry *r)
{
	bool missing;

	(void)pthread_mutex_lock(&r->lock);
	missing = bs_clock_ns() < r->no_referrers_until_ns;
	(void)pthread_mutex_unlock(&r->lock);
	return missing;
}

static void remember_missing(struct bs_registry *r)
{
	(void)pthread_mutex_lock(&r->lock);
	r->no_referrers_until_ns = bs_clock_ns() + NO_API_NS;
	(void)pthread_mutex_unlock(&r->lock);
}

/* Merges one answer into out; *next is where the following page is, or NULL. */
static int take_page(struct bs_registry *r, const struct bs_exchange *x, struct bs_json *out,
		     char **next, struct bs_error *err)
{
	bs_auto(json) struct bs_json *page = NULL;
	bs_autofree char *link = NULL;
	const char *said = x->call.http.header[BS_HTTP_LINK];
	int rc = bs_referrers_parse("referrers", bs_buf_str(&x->body), x->body.len, &page, err);

	*next = NULL;
	if (rc < 0)
		return bs_error_context(err, "%s", r->repo.name), rc;
	rc = bs_referrers_merge(out, page);
	if (rc == 0 && said && bs_header_link_next(said, &link) == 0) {
		rc = bs_url_resolve(x->call.url, link, next);
		if (rc == 0 && !bs_url_same_origin(*next, bs_session_base(r->session)))
			rc = -EBADMSG;
	}
	return rc < 0 ? bs_fail_errno(err, rc, "%s: referrers", r->repo.name) : 0;
}

/* -EOPNOTSUPP: the server has no such API. */
static int ask_api(struct bs_registry *r, const struct bs_digest *subject, struct bs_json *out,
		   struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	char *url = bs_registry_url(r, "referrers/%s", bs_digest_text(subject, text));
	int rc = 0;

	for (int page = 0; rc == 0 && (url || page == 0); page++) {
		struct bs_request q = { .method = "GET",
					.url = url,
					.scope = r->pull,
					.headers = { "Accept: " BS_TYPE_OCI_INDEX },
					.max = BS_MANIFEST_MAX };
		struct bs_exchange x;
		bs_autofree char *type = NULL;

		url = NULL;
		rc = bs_registry_send(r, &q, &x);
		if (rc == 0) {
			const char *said = x.call.http.header[BS_HTTP_CONTENT_TYPE];

			type = bs_header_media_type(said ? said : "");
		}
		if (rc == -ENOENT || rc == -EOPNOTSUPP ||
		    (rc == 0 && (!type || !bs_streq(type, BS_TYPE_OCI_INDEX))))
			rc = -EOPNOTSUPP;
		else if (rc < 0)
			(void)bs_registry_fail(r, err, rc, "referrers", &x.call);
		else if (page >= PAGES_MAX)
			rc = bs_fail(err, -EFBIG, "%s: referrers: too many pages", r->repo.name);
		else
			rc = take_page(r, &x, out, &url, err);
		bs_exchange_done(&x);
	}
	free(url);
	return rc;
}

int bs_registry_get_referrers(struct bs_repo *repo, const struct bs_digest *subject,
			      struct bs_manifest *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *out = bs_referrers_new(), *tagged = NULL;
	struct bs_registry *r = bs_registry_of(repo);
	char tag[BS_REFERRERS_TAG_LEN];
	int rc;

	if (!out)
		return bs_fail(err, -ENOMEM, "%s: out of memory", repo->name);
	rc = api_is_missing(r) ? -EOPNOTSUPP : ask_api(r, subject, out, err);
	if (rc == -EOPNOTSUPP) {
		remember_missing(r);
		rc = get_index(r, bs_referrers_tag(subject, tag), &tagged, err);
		if (rc == 0) {
			rc = bs_referrers_merge(out, tagged);
			if (rc < 0)
				(void)bs_fail_errno(err, rc, "%s: referrers", repo->name);
		}
	}
	if (rc < 0)
		return rc;
	rc = bs_referrers_finish(out, ret, err);
	return rc < 0 ? bs_error_context(err, "%s", repo->name), rc : 0;
}
