/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/referrers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/repo.h"

const char *bs_referrers_tag(const struct bs_digest *subject, char buf[BS_REFERRERS_TAG_LEN])
{
	char hex[BS_DIGEST_TEXT_LEN];

	(void)snprintf(buf, BS_REFERRERS_TAG_LEN, "sha256-%.64s", bs_digest_hex(subject, hex));
	return buf;
}

static int set_str(struct bs_json *o, const char *key, const char *text)
{
	return bs_json_set(o, key, bs_json_new_str(text));
}

/* The type by which people look for an artifact: its own, else its config's. */
static const char *artifact_type(const struct bs_json *m)
{
	const char *type = bs_json_str(bs_json_get(m, "artifactType"));

	if (type && *type)
		return type;
	return bs_json_str(bs_json_find(m, "config.mediaType"));
}

static int describe(const struct bs_json *m, const char *bytes, size_t len, const char *media_type,
		    struct bs_json **ret)
{
	bs_auto(json) struct bs_json *d = bs_json_new(BS_JSON_OBJECT);
	const struct bs_json *annotations = bs_json_get(m, "annotations");
	const char *type = artifact_type(m);
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest digest;
	int r;

	if (!d)
		return -ENOMEM;
	bs_digest_of(bytes, len, &digest);
	r = set_str(d, "mediaType", media_type);
	if (r == 0)
		r = set_str(d, "digest", bs_digest_text(&digest, text));
	if (r == 0)
		r = bs_json_set(d, "size", bs_json_new_u64(len));
	if (r == 0 && type)
		r = set_str(d, "artifactType", type);
	if (r == 0 && bs_json_is(annotations, BS_JSON_OBJECT) && bs_json_n(annotations))
		r = bs_json_set(d, "annotations", bs_json_copy(annotations));
	if (r == 0)
		*ret = bs_take(&d);
	return r;
}

int bs_referrers_describe(const char *bytes, size_t len, const char *media_type,
			  struct bs_digest *ret_subject, struct bs_json **ret_desc,
			  struct bs_error *err)
{
	bs_auto(json) struct bs_json *m = NULL;
	struct bs_digest subject;
	const char *text;
	int r = bs_json_parse("manifest", bytes, len, BS_MANIFEST_MAX, &m, err);

	if (r < 0)
		return r;
	text = bs_json_str(bs_json_find(m, "subject.digest"));
	if (!text || bs_digest_parse(text, strlen(text), &subject) < 0)
		return 0;
	if (ret_desc) {
		r = describe(m, bytes, len, media_type, ret_desc);
		if (r < 0)
			return bs_fail_errno(err, r, "manifest");
	}
	*ret_subject = subject;
	return 1;
}

struct bs_json *bs_referrers_new(void)
{
	bs_auto(json) struct bs_json *index = bs_json_new(BS_JSON_OBJECT);

	if (!index || bs_json_set(index, "schemaVersion", bs_json_new_u64(2)) < 0 ||
	    set_str(index, "mediaType", BS_TYPE_OCI_INDEX) < 0 ||
	    !bs_json_make(index, "manifests", BS_JSON_ARRAY))
		return NULL;
	return bs_take(&index);
}

int bs_referrers_parse(const char *what, const char *bytes, size_t len, struct bs_json **ret,
		       struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	int r = bs_json_parse(what, bytes, len, BS_MANIFEST_MAX, &index, err);

	if (r < 0)
		return r;
	if (!bs_json_is(index, BS_JSON_OBJECT))
		return bs_fail(err, -EBADMSG, "%s is no image index", what);
	if (bs_json_is(bs_json_get(index, "manifests"), BS_JSON_NULL))
		bs_json_remove(index, "manifests");
	if (!bs_json_make(index, "manifests", BS_JSON_ARRAY))
		return bs_fail(err, -EBADMSG, "%s: its \"manifests\" is no array", what);
	*ret = bs_take(&index);
	return 0;
}

int bs_referrers_add(struct bs_json *index, struct bs_json *desc)
{
	bs_auto(json) struct bs_json *d = desc;
	struct bs_json *list = bs_json_make(index, "manifests", BS_JSON_ARRAY);
	const char *digest = bs_json_str(bs_json_get(d, "digest"));
	int r;

	if (!list || !d)
		return -ENOMEM;
	if (!digest)
		return 0;
	for (size_t i = 0; i < bs_json_n(list); i++) {
		const char *other = bs_json_str(bs_json_get(bs_json_at(list, i), "digest"));

		if (other && bs_streq(other, digest))
			return 0;
	}
	if (bs_json_n(list) >= BS_REFERRERS_MAX)
		return -EFBIG;
	r = bs_json_append(list, bs_take(&d));
	return r < 0 ? r : 1;
}

int bs_referrers_merge(struct bs_json *index, struct bs_json *from)
{
	const struct bs_json *list = bs_json_get(from, "manifests");

	for (size_t i = 0; i < bs_json_n(list); i++) {
		int r = bs_referrers_add(index, bs_json_copy(bs_json_at(list, i)));

		if (r < 0)
			return r;
	}
	return 0;
}

size_t bs_referrers_remove(struct bs_json *index, const struct bs_digest *d)
{
	struct bs_json *list = bs_json_get(index, "manifests");
	char text[BS_DIGEST_TEXT_LEN];
	size_t n = 0;

	(void)bs_digest_text(d, text);
	for (size_t i = bs_json_n(list); i-- > 0;) {
		const char *digest = bs_json_str(bs_json_get(bs_json_at(list, i), "digest"));

		if (digest && bs_streq(digest, text)) {
			bs_json_remove_at(list, i);
			n++;
		}
	}
	return n;
}

int bs_referrers_finish(const struct bs_json *index, struct bs_manifest *ret, struct bs_error *err)
{
	bs_autobuf out = BS_BUF_INIT(2 * BS_MANIFEST_MAX);
	struct bs_manifest m = { 0 };
	int r;

	if (bs_json_n(bs_json_get(index, "manifests")) == 0)
		return bs_fail(err, -ENOENT, "nothing refers to it");
	r = bs_json_write(index, &out);
	if (r < 0)
		return bs_fail_errno(err, r, "list of referrers");
	m.len = out.len;
	m.bytes = bs_buf_take(&out);
	m.media_type = bs_strf("%s", BS_TYPE_OCI_INDEX);
	if (!m.bytes || !m.media_type) {
		bs_manifest_done(&m);
		return bs_fail(err, -ENOMEM, "list of referrers: out of memory");
	}
	*ret = m;
	return 0;
}
