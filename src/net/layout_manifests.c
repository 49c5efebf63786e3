/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/layout_impl.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/layout_index.h"
#include "net/referrers.h"

static struct bs_layout *of(struct bs_repo *r)
{
	return BS_CONTAINER_OF(r, struct bs_layout, repo);
}

static void follow(struct bs_repo *r)
{
	if (of(r)->ops->follow)
		of(r)->ops->follow(r);
}

int bs_layout_check_version(const char *shown, const char *bytes, size_t len, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const char *version;
	int r = bs_json_parse("oci-layout", bytes, len, BS_LAYOUT_VERSION_MAX, &v, err);

	if (r < 0)
		return bs_error_context(err, "%s", shown), r;
	version = bs_json_str(bs_json_get(v, "imageLayoutVersion"));
	if (!version || !bs_str_after(version, "1."))
		return bs_fail(err, -EPROTONOSUPPORT,
			       "%s: an OCI layout of version '%s', known is 1.0.0", shown,
			       version ? version : "?");
	return 0;
}

static int read_manifest(struct bs_repo *r, const struct bs_digest *d, bool often,
			 struct bs_manifest *ret, struct bs_error *err)
{
	ret->digest = *d;
	return of(r)->ops->read_manifest(r, d, often, &ret->bytes, &ret->len, err);
}

/* The media type that a manifest says of itself; "" when it does not. */
static char *own_media_type(const struct bs_manifest *m)
{
	bs_auto(json) struct bs_json *v = NULL;
	const char *type = NULL;

	if (bs_json_parse("manifest", m->bytes, m->len, BS_MANIFEST_MAX, &v, NULL) == 0)
		type = bs_json_str(bs_json_get(v, "mediaType"));
	if (!type && bs_json_is(bs_json_get(v, "manifests"), BS_JSON_ARRAY))
		type = BS_TYPE_OCI_INDEX;
	if (!type && bs_json_is(bs_json_get(v, "layers"), BS_JSON_ARRAY))
		type = BS_TYPE_OCI_MANIFEST;
	return bs_strf("%s", type ? type : "");
}

int bs_layout_get_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			   struct bs_manifest *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	struct bs_manifest m = { 0 };
	const char *digest, *type = NULL;
	struct bs_digest d;
	int rc;

	if (bs_digest_parse(ref, strlen(ref), &d) < 0) {
		const struct bs_json *entry;

		follow(r); /* an old index would be found, too */
		rc = of(r)->ops->read_index(r, &index, err);
		if (rc < 0)
			return rc;
		entry = bs_layout_index_find(index, ref);
		if (!entry)
			return bs_fail(err, -ENOENT, "%s: there is no tag '%s'", r->name, ref);
		digest = bs_json_str(bs_json_get(entry, "digest"));
		type = bs_json_str(bs_json_get(entry, "mediaType"));
		if (!digest || bs_digest_parse(digest, strlen(digest), &d) < 0)
			return bs_fail(err, -EBADMSG,
				       "%s: index.json: tag '%s' has no sha256 digest", r->name,
				       ref);
	}
	rc = read_manifest(r, &d, false, &m, err);
	if (rc < 0)
		return rc;
	m.media_type = type && *type ? bs_strf("%s", type) : own_media_type(&m);
	if (!m.media_type) {
		bs_manifest_done(&m);
		return bs_fail(err, -ENOMEM, "%s: out of memory", r->name);
	}
	if (index) { /* by tag the generic part has nothing to compare with */
		struct bs_digest got;

		bs_digest_of(m.bytes, m.len, &got);
		if (!bs_digest_eq(&got, &d)) {
			bs_manifest_done(&m);
			return bs_fail(err, -EBADMSG,
				       "%s: tag '%s': the manifest's bytes do not "
				       "fit its digest",
				       r->name, ref);
		}
	}
	*ret = m;
	return 0;
}

static int add_entry(struct bs_json *index, void *cookie)
{
	return bs_layout_index_add(index, cookie);
}

static int remove_entry(struct bs_json *index, void *cookie)
{
	return bs_layout_index_remove(index, cookie);
}

/* guard: whether it is guarded, and by what. */
static int put(struct bs_repo *r, const char *tag, const struct bs_layout_entry *guard,
	       const char *media_type, const char *bytes, size_t len, struct bs_error *err)
{
	bs_auto(json) struct bs_json *desc = NULL;
	struct bs_digest d, subject;
	struct bs_layout_entry e;
	int rc, has_subject;

	has_subject = bs_referrers_describe(bytes, len, media_type, &subject, &desc, err);
	if (has_subject < 0)
		return has_subject;
	bs_digest_of(bytes, len, &d);
	rc = bs_repo_put_blob_mem(r, &d, bytes, len, err);
	if (rc < 0 || (!tag && !has_subject))
		return rc;
	e = *guard;
	e.tag = tag;
	e.media_type = media_type;
	e.digest = &d;
	e.len = len;
	e.artifact_type = has_subject ? bs_json_str(bs_json_get(desc, "artifactType")) : NULL;
	rc = of(r)->ops->change_index(r, add_entry, &e, err);
	return rc < 0 ? rc : 0;
}

int bs_layout_put_manifest(struct bs_repo *r, const char *tag, const char *media_type,
			   const char *bytes, size_t len, struct bs_error *err)
{
	struct bs_layout_entry e = { .guarded = false };

	return put(r, tag, &e, media_type, bytes, len, err);
}

int bs_layout_put_manifest_over(struct bs_repo *r, const char *tag, const struct bs_digest *was,
				const char *media_type, const char *bytes, size_t len,
				struct bs_error *err)
{
	struct bs_layout_entry e = { .guarded = true, .was = was };

	return put(r, tag, &e, media_type, bytes, len, err);
}

int bs_layout_list_tags(struct bs_repo *r, void (*each)(void *cookie, const char *tag),
			void *cookie, struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	const struct bs_json *list;
	int rc;

	follow(r);
	rc = of(r)->ops->read_index(r, &index, err);
	if (rc < 0)
		return rc;
	list = bs_json_get(index, "manifests");
	for (size_t i = 0; i < bs_json_n(list); i++) {
		const char *tag = bs_layout_index_tag(bs_json_at(list, i));

		if (tag && *tag)
			each(cookie, tag);
	}
	return 0;
}

/* Adds the manifest of an entry to out when its subject is the one that is asked for. */
static int add_if_referrer(struct bs_repo *r, const struct bs_json *entry,
			   const struct bs_digest *subject, struct bs_json *out,
			   struct bs_error *err)
{
	bs_auto(json) struct bs_json *desc = NULL;
	const char *text = bs_json_str(bs_json_get(entry, "digest"));
	const char *type = bs_json_str(bs_json_get(entry, "mediaType"));
	struct bs_manifest m = { 0 };
	struct bs_digest d, its;
	int rc;

	if (!text || !type || bs_digest_parse(text, strlen(text), &d) < 0)
		return 0;
	rc = read_manifest(r, &d, true, &m, err);
	if (rc == -ENOENT || rc == -EBADMSG || rc == -EFBIG || rc == -EINVAL)
		return 0; /* an entry whose blob is not here says nothing about the others */
	if (rc < 0)
		return rc;
	rc = bs_referrers_describe(m.bytes, m.len, type, &its, &desc, NULL);
	bs_manifest_done(&m);
	if (rc == -ENOMEM)
		return bs_fail_errno(err, rc, "%s: referrers", r->name);
	if (rc <= 0 || !bs_digest_eq(&its, subject))
		return 0;
	rc = bs_referrers_add(out, bs_take(&desc));
	return rc < 0 ? bs_fail_errno(err, rc, "%s: referrers", r->name) : 0;
}

static int merge_tagged(struct bs_repo *r, const char *tag, struct bs_json *out,
			struct bs_error *err)
{
	bs_auto(json) struct bs_json *list = NULL;
	struct bs_manifest m = { 0 };
	int rc = bs_layout_get_manifest(r, tag, &BS_LOOK_NEEDED, &m, err);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	rc = bs_referrers_parse(tag, m.bytes, m.len, &list, err);
	bs_manifest_done(&m);
	if (rc == 0) {
		rc = bs_referrers_merge(out, list);
		if (rc < 0)
			(void)bs_fail_errno(err, rc, "referrers");
	}
	return rc < 0 ? bs_error_context(err, "%s", r->name), rc : 0;
}

int bs_layout_get_referrers(struct bs_repo *r, const struct bs_digest *subject,
			    struct bs_manifest *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL, *out = bs_referrers_new();
	char tag[BS_REFERRERS_TAG_LEN];
	const struct bs_json *list;
	int rc;

	if (!out)
		return bs_fail(err, -ENOMEM, "%s: out of memory", r->name);
	follow(r);
	rc = of(r)->ops->read_index(r, &index, err);
	if (rc < 0)
		return rc;
	list = bs_json_get(index, "manifests");
	for (size_t i = 0; i < bs_json_n(list); i++) {
		rc = add_if_referrer(r, bs_json_at(list, i), subject, out, err);
		if (rc < 0)
			return rc;
	}
	rc = merge_tagged(r, bs_referrers_tag(subject, tag), out, err);
	if (rc < 0)
		return rc;
	rc = bs_referrers_finish(out, ret, err);
	return rc < 0 ? bs_error_context(err, "%s", r->name), rc : 0;
}

/* The list that a foreign tool keeps under the subject's tag. */
static int unlist_tagged(struct bs_repo *r, const char *tag, const struct bs_digest *d,
			 struct bs_error *err)
{
	bs_auto(json) struct bs_json *list = NULL;
	struct bs_manifest m = { 0 }, left = { 0 };
	struct bs_digest old;
	int rc = bs_layout_get_manifest(r, tag, &BS_LOOK_NEEDED, &m, err);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	bs_digest_of(m.bytes, m.len, &old);
	rc = bs_referrers_parse(tag, m.bytes, m.len, &list, err);
	bs_manifest_done(&m);
	if (rc < 0)
		return bs_error_context(err, "%s", r->name);
	if (bs_referrers_remove(list, d) == 0)
		return 0;
	rc = bs_referrers_finish(list, &left, err);
	if (rc == -ENOENT) {
		rc = of(r)->ops->change_index(r, remove_entry, &old, err);
		return rc < 0 ? rc : 1;
	}
	if (rc == 0)
		rc = bs_layout_put_manifest(r, tag, BS_TYPE_OCI_INDEX, left.bytes, left.len, err);
	bs_manifest_done(&left);
	return rc < 0 ? rc : 1;
}

/* Blobs stay, as with other tools: nobody knows what else names them. */
int bs_layout_delete_manifest(struct bs_repo *r, const struct bs_digest *d,
			      const struct bs_digest *subject, struct bs_error *err)
{
	char tag[BS_REFERRERS_TAG_LEN], text[BS_DIGEST_TEXT_LEN];
	struct bs_digest gone = *d;
	int listed, tagged = 0;

	follow(r);
	listed = of(r)->ops->change_index(r, remove_entry, &gone, err);
	if (listed >= 0 && subject)
		tagged = unlist_tagged(r, bs_referrers_tag(subject, tag), d, err);
	if (listed < 0 || tagged < 0)
		return listed < 0 ? listed : tagged;
	if (!listed && !tagged)
		return bs_fail(err, -ENOENT, "%s: manifest %s is not listed", r->name,
			       bs_digest_text(d, text));
	return 0;
}
