/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/convertindex.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "image/artifact.h"
#include "image/convert.h"
#include "image/manifest.h"
#include "net/repo.h"

static void write_platform(struct bs_jsonw *w, const char *platform)
{
	const char *arch = strchr(platform, '/');
	const char *variant = arch ? strchr(arch + 1, '/') : NULL;

	if (!arch)
		return;
	bs_jsonw_key(w, "platform");
	bs_jsonw_object(w);
	bs_jsonw_key(w, "architecture");
	bs_jsonw_strn(w, arch + 1, variant ? (size_t)(variant - arch - 1) : strlen(arch + 1));
	bs_jsonw_key(w, "os");
	bs_jsonw_strn(w, platform, (size_t)(arch - platform));
	if (variant)
		bs_jsonw_kstr(w, "variant", variant + 1);
	bs_jsonw_end(w);
}

static void write_link(struct bs_jsonw *w, const char *type, const struct bs_digest *d,
		       uint64_t size)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_kstr(w, "mediaType", type);
	bs_jsonw_kstr(w, "digest", bs_digest_text(d, text));
	bs_jsonw_ku64(w, "size", size);
}

/* subject NULL: the index of stubs. */
static int write_index(const struct bs_converted_list *list, const struct bs_manifest *subject,
		       const char *subject_type, struct bs_buf *out)
{
	struct bs_jsonw *w = bs_jsonw_new(false);

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "schemaVersion", 2);
	bs_jsonw_kstr(w, "mediaType", BS_MEDIA_OCI_INDEX);
	if (subject)
		bs_jsonw_kstr(w, "artifactType", BS_ARTIFACT_TYPE);
	bs_jsonw_key(w, "manifests");
	bs_jsonw_array(w);
	for (size_t i = 0; i < list->n; i++) {
		const struct bs_converted *v = &list->v[i];

		bs_jsonw_object(w);
		write_link(w, BS_MEDIA_OCI_MANIFEST, subject ? &v->artifact : &v->stub,
			   subject ? v->artifact_size : v->stub_size);
		if (subject)
			bs_jsonw_kstr(w, "artifactType", BS_ARTIFACT_TYPE);
		write_platform(w, v->platform);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	if (subject) {
		bs_jsonw_key(w, "subject");
		bs_jsonw_object(w);
		write_link(w, subject_type, &subject->digest, subject->len);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	return bs_jsonw_finish(w, out);
}

int bs_convert_put_index(const struct bs_convert *c, const struct bs_manifest *m,
			 const struct bs_document *d, struct bs_converted_list *list,
			 struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_autobuf artifacts = BS_BUF_INIT(BS_MANIFEST_MAX), stubs = BS_BUF_INIT(BS_MANIFEST_MAX);
	int r = write_index(list, m, d->media_type, &artifacts);

	err = err ? err : &own;
	if (r == 0)
		r = write_index(list, NULL, NULL, &stubs);
	if (r < 0)
		return bs_fail_errno(err, r, "index");
	bs_digest_of(stubs.data, stubs.len, &list->stub);
	r = bs_repo_put_manifest(c->dst, NULL, BS_MEDIA_OCI_INDEX, artifacts.data, artifacts.len,
				 err);
	if (r < 0)
		return bs_error_context(err, "index of artifacts");
	r = bs_repo_put_manifest(c->dst, c->stub_tag, BS_MEDIA_OCI_INDEX, stubs.data, stubs.len,
				 err);
	return r < 0 ? bs_error_context(err, "index of stubs") : 0;
}
