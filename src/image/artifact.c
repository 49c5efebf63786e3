/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/artifact.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "image/manifest.h"
#include "net/repo.h"

static const char *const layer_types[] = { BS_MEDIA_TREE, BS_MEDIA_TABLE, BS_MEDIA_DATA };

static int read_subject(const struct bs_json *v, struct bs_artifact *a, struct bs_error *err)
{
	static const char *const types[] = { BS_MEDIA_OCI_MANIFEST, BS_MEDIA_DOCKER_MANIFEST };
	struct bs_link l;
	int r;

	if (!v)
		return 0;
	r = bs_link_parse(v, "subject", &l, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < BS_ARRAY_LEN(types); i++)
		if (bs_streq(l.media_type, types[i]))
			a->subject_type = types[i];
	if (!a->subject_type)
		return bs_fail(err, -EBADMSG, "subject is no image manifest");
	a->has_subject = true;
	a->subject = l.d;
	return 0;
}

static int read_artifact(const struct bs_document *d, struct bs_artifact *a, struct bs_error *err)
{
	struct bs_descriptor *to[] = { &a->tree, &a->table, &a->data };

	if (d->is_index || !d->artifact_type || !bs_streq(d->artifact_type, BS_ARTIFACT_TYPE))
		return bs_fail(err, -EBADMSG, "artifactType is not %s", BS_ARTIFACT_TYPE);
	if (d->n != BS_ARRAY_LEN(layer_types))
		return bs_fail(err, -EBADMSG, "it has %zu layers, not %zu", d->n,
			       BS_ARRAY_LEN(layer_types));
	for (size_t i = 0; i < d->n; i++) {
		if (!bs_streq(d->links[i].media_type, layer_types[i]))
			return bs_fail(err, -EBADMSG, "layers[%zu].mediaType is not %s", i,
				       layer_types[i]);
		*to[i] = d->links[i].d;
	}
	if (!bs_streq(d->config.media_type, BS_MEDIA_OCI_CONFIG))
		return bs_fail(err, -EBADMSG, "config.mediaType is not %s", BS_MEDIA_OCI_CONFIG);
	a->config = d->config.d;
	return read_subject(bs_json_get(d->json, "subject"), a, err);
}

int bs_artifact_parse(const struct bs_manifest *m, struct bs_artifact *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_autodocument d = { 0 };
	struct bs_artifact a = { .digest = m->digest };
	int r;

	err = err ? err : &own;
	r = bs_document_parse(m, &d, err);
	if (r == 0)
		r = read_artifact(&d, &a, err);
	if (r < 0)
		return bs_error_context(err, "converted image");
	*ret = a;
	return 0;
}

void bs_descriptor_write(struct bs_jsonw *w, const char *type, const struct bs_descriptor *d)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "mediaType", type);
	bs_jsonw_kstr(w, "digest", bs_digest_text(&d->digest, text));
	bs_jsonw_ku64(w, "size", d->size);
	bs_jsonw_end(w);
}

/* What a jsonw has written becomes the caller's. */
static int give(struct bs_jsonw *w, size_t max, const char *what, char **ret, size_t *ret_len,
		struct bs_error *err)
{
	bs_autobuf out = BS_BUF_INIT(max);
	int r = w ? bs_jsonw_finish(w, &out) : -ENOMEM;
	char *text;

	if (r < 0)
		return bs_fail_errno(err, r, "write %s", what);
	*ret_len = out.len;
	text = bs_buf_take(&out);
	if (!text)
		return bs_fail_errno(err, -ENOMEM, "write %s", what);
	*ret = text;
	return 0;
}

int bs_artifact_write(const struct bs_artifact *a, char **ret, size_t *ret_len,
		      struct bs_error *err)
{
	const struct bs_descriptor *from[] = { &a->tree, &a->table, &a->data };
	struct bs_jsonw *w = bs_jsonw_new(false);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return bs_fail_errno(err, -ENOMEM, "write the artifact's manifest");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "schemaVersion", 2);
	bs_jsonw_kstr(w, "mediaType", BS_MEDIA_OCI_MANIFEST);
	bs_jsonw_kstr(w, "artifactType", BS_ARTIFACT_TYPE);
	bs_jsonw_key(w, "config");
	bs_descriptor_write(w, BS_MEDIA_OCI_CONFIG, &a->config);
	bs_jsonw_key(w, "layers");
	bs_jsonw_array(w);
	for (size_t i = 0; i < BS_ARRAY_LEN(from); i++)
		bs_descriptor_write(w, layer_types[i], from[i]);
	bs_jsonw_end(w);
	if (a->has_subject) {
		bs_jsonw_key(w, "subject");
		bs_descriptor_write(w, a->subject_type, &a->subject);
		bs_jsonw_key(w, "annotations");
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, BS_ANNOTATION_SOURCE, bs_digest_text(&a->subject.digest, text));
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	return give(w, BS_MANIFEST_MAX, "the artifact's manifest", ret, ret_len, err);
}

/* --- the marker ------------------------------------------------------------------------------ */

static int read_digest(const struct bs_json *v, const char *key, struct bs_digest *ret,
		       struct bs_error *err)
{
	const struct bs_json *text = bs_json_get(v, key);

	if (!bs_json_is(text, BS_JSON_STRING) || bs_digest_parse(text->text, text->len, ret) < 0)
		return bs_fail(err, -EBADMSG, "%s is no sha256 digest", key);
	return 0;
}

/* One line of printable text: it is shown, and goes into requests. */
static bool repository_ok(const struct bs_json *v)
{
	if (!bs_json_is(v, BS_JSON_STRING) || v->len == 0)
		return false;
	for (size_t i = 0; i < v->len; i++)
		if ((unsigned char)v->text[i] < 0x20 || v->text[i] == 0x7f)
			return false;
	return true;
}

static int read_marker(const struct bs_json *v, struct bs_marker *m, struct bs_error *err)
{
	const struct bs_json *repository = bs_json_get(v, "repository");
	uint64_t version;
	int r;

	if (bs_json_u64(bs_json_get(v, "version"), &version) < 0)
		return bs_fail(err, -EBADMSG, "version is no number");
	if (version != 1)
		return bs_fail(err, -EPROTONOSUPPORT, "version %llu is newer than this program",
			       (unsigned long long)version);
	if (bs_json_n(v) != 4)
		return bs_fail(err, -EBADMSG, "it has members that version 1 does not have");
	r = read_digest(v, "artifact", &m->artifact, err);
	if (r == 0)
		r = read_digest(v, "source", &m->stub_of, err);
	if (r < 0)
		return r;
	if (!repository_ok(repository))
		return bs_fail(err, -EBADMSG, "repository is no line of text");
	m->repository = strdup(repository->text);
	return m->repository ? 0 : bs_fail_errno(err, -ENOMEM, "repository");
}

int bs_marker_parse(const char *text, size_t len, struct bs_marker *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_marker m = { 0 };
	int r;

	err = err ? err : &own;
	r = bs_json_parse("marker", text, len, BS_MARKER_MAX, &v, err);
	if (r == -EINVAL || r == -E2BIG)
		r = err->code = -EBADMSG;
	if (r < 0)
		return r;
	r = read_marker(v, &m, err);
	if (r < 0) {
		bs_marker_done(&m);
		return bs_error_context(err, "marker");
	}
	*ret = m;
	return 0;
}

int bs_marker_write(const struct bs_marker *m, char **ret, size_t *ret_len, struct bs_error *err)
{
	struct bs_jsonw *w = bs_jsonw_new(false);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return bs_fail_errno(err, -ENOMEM, "write the marker");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "version", 1);
	bs_jsonw_kstr(w, "artifact", bs_digest_text(&m->artifact, text));
	bs_jsonw_kstr(w, "repository", m->repository);
	bs_jsonw_kstr(w, "source", bs_digest_text(&m->stub_of, text));
	bs_jsonw_end(w);
	return give(w, BS_MARKER_MAX, "the marker", ret, ret_len, err);
}

void bs_marker_done(struct bs_marker *m)
{
	free(m->repository);
	*m = (struct bs_marker){ 0 };
}
