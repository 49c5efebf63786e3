/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "net/repo.h"

int bs_link_parse(const struct bs_json *v, const char *what, struct bs_link *ret,
		  struct bs_error *err)
{
	const struct bs_json *digest = bs_json_get(v, "digest");
	struct bs_link l = { .media_type = bs_json_str(bs_json_get(v, "mediaType")),
			     .artifact_type = bs_json_str(bs_json_get(v, "artifactType")),
			     .platform = bs_json_get(v, "platform"),
			     .annotations = bs_json_get(v, "annotations") };

	if (!bs_json_is(v, BS_JSON_OBJECT))
		return bs_fail(err, -EBADMSG, "%s is missing or no object", what);
	if (!l.media_type)
		return bs_fail(err, -EBADMSG, "%s.mediaType is missing or no text", what);
	if (!bs_json_is(digest, BS_JSON_STRING) ||
	    bs_digest_parse(digest->text, digest->len, &l.d.digest) < 0)
		return bs_fail(err, -EBADMSG, "%s.digest is no sha256 digest", what);
	if (bs_json_u64(bs_json_get(v, "size"), &l.d.size) < 0 || l.d.size > INT64_MAX)
		return bs_fail(err, -EBADMSG, "%s.size is no size", what);
	*ret = l;
	return 0;
}

/* The constant for a media type, which the document may leave to the transport. */
static const char *known_type(const char *text)
{
	static const char *const types[] = { BS_MEDIA_OCI_MANIFEST, BS_MEDIA_OCI_INDEX,
					     BS_MEDIA_DOCKER_MANIFEST, BS_MEDIA_DOCKER_LIST };

	for (size_t i = 0; text && i < BS_ARRAY_LEN(types); i++)
		if (bs_streq(text, types[i]))
			return types[i];
	return NULL;
}

static int find_type(const struct bs_manifest *m, struct bs_document *d, struct bs_error *err)
{
	const struct bs_json *said = bs_json_get(d->json, "mediaType");
	const char *said_text = bs_json_str(said);
	bool lists = bs_json_is(bs_json_get(d->json, "manifests"), BS_JSON_ARRAY);
	bool layers = bs_json_is(bs_json_get(d->json, "layers"), BS_JSON_ARRAY);
	const char *shown = said_text ? said_text : m->media_type;

	/* one document must not be read as two different things (CVE-2021-41190) */
	if (lists && layers)
		return bs_fail(err, -EBADMSG, "it is both an index and a manifest");
	if (said)
		d->media_type = known_type(said_text);
	else if (known_type(m->media_type))
		d->media_type = known_type(m->media_type);
	else if (lists)
		d->media_type = BS_MEDIA_OCI_INDEX;
	else if (layers)
		d->media_type = BS_MEDIA_OCI_MANIFEST;
	if (!d->media_type)
		return bs_fail(
			err, -EOPNOTSUPP,
			"media type '%.100s' is not known; OCI and docker schema 2 images are",
			shown);
	d->is_index = bs_streq(d->media_type, BS_MEDIA_OCI_INDEX) ||
		      bs_streq(d->media_type, BS_MEDIA_DOCKER_LIST);
	if (d->is_index ? !lists : !layers)
		return bs_fail(err, -EBADMSG, "%s is missing",
			       d->is_index ? "manifests" : "layers");
	return 0;
}

static int parse_links(struct bs_document *d, struct bs_error *err)
{
	const char *member = d->is_index ? "manifests" : "layers";
	const struct bs_json *list = bs_json_get(d->json, member);
	unsigned int max = d->is_index ? BS_INDEX_MAX : BS_LAYERS_MAX;

	if (bs_json_n(list) > max)
		return bs_fail(err, -EFBIG, "%zu %s, the most is %u", bs_json_n(list), member, max);
	d->links = calloc(bs_json_n(list) + 1, sizeof(*d->links));
	if (!d->links)
		return bs_fail_errno(err, -ENOMEM, "manifest");
	for (d->n = 0; d->n < bs_json_n(list); d->n++) {
		char what[32];
		int r;

		(void)snprintf(what, sizeof(what), "%s[%zu]", member, d->n);
		r = bs_link_parse(bs_json_at(list, d->n), what, &d->links[d->n], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse(const struct bs_manifest *m, struct bs_document *d, struct bs_error *err)
{
	int r = bs_json_parse("manifest", m->bytes, m->len, BS_MANIFEST_MAX, &d->json, err);
	uint64_t version;

	if (r == -EINVAL)
		r = err->code = -EBADMSG;
	if (r < 0)
		return r;
	if (bs_json_u64(bs_json_get(d->json, "schemaVersion"), &version) < 0)
		return bs_fail(err, -EBADMSG, "manifest: schemaVersion is missing");
	if (version != 2)
		return bs_fail(err, -EOPNOTSUPP,
			       "manifest: schemaVersion %llu is not known; docker's old schema 1 "
			       "has to be pushed again as schema 2",
			       (unsigned long long)version);
	d->artifact_type = bs_json_str(bs_json_get(d->json, "artifactType"));
	r = find_type(m, d, err);
	if (r == 0)
		r = parse_links(d, err);
	if (r == 0 && !d->is_index)
		r = bs_link_parse(bs_json_get(d->json, "config"), "config", &d->config, err);
	return r < 0 ? bs_error_context(err, "manifest") : 0;
}

int bs_document_parse(const struct bs_manifest *m, struct bs_document *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	struct bs_document d = { 0 };
	int r;

	err = err ? err : &own;
	r = parse(m, &d, err);
	if (r < 0) {
		bs_document_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void bs_document_done(struct bs_document *d)
{
	bs_json_free(d->json);
	free(d->links);
	*d = (struct bs_document){ 0 };
}

const char *bs_document_annotation(const struct bs_document *d, const char *key)
{
	return bs_json_str(bs_json_get(bs_json_get(d->json, "annotations"), key));
}

/* --- platforms ------------------------------------------------------------------------------- */

char *bs_link_platform(const struct bs_link *l)
{
	const char *os = bs_json_str(bs_json_get(l->platform, "os"));
	const char *arch = bs_json_str(bs_json_get(l->platform, "architecture"));
	const char *variant = bs_json_str(bs_json_get(l->platform, "variant"));

	/* attestations beside images are listed as unknown/unknown */
	if (!os || !arch || bs_streq(os, "unknown"))
		return NULL;
	return variant && variant[0] ? bs_strf("%s/%s/%s", os, arch, variant)
				     : bs_strf("%s/%s", os, arch);
}

const char *bs_platform_here(void)
{
	static const struct {
		const char *machine, *platform;
	} table[] = {
		{ "x86_64", "linux/amd64" },	{ "aarch64", "linux/arm64" },
		{ "ppc64le", "linux/ppc64le" }, { "s390x", "linux/s390x" },
		{ "riscv64", "linux/riscv64" }, { "loongarch64", "linux/loong64" },
		{ "armv7l", "linux/arm" },	{ "i686", "linux/386" },
	};
	struct utsname u;

	if (uname(&u) == 0)
		for (size_t i = 0; i < BS_ARRAY_LEN(table); i++)
			if (bs_streq(u.machine, table[i].machine))
				return table[i].platform;
	return "linux/unknown";
}

int bs_document_pick(const struct bs_document *index, const char *platform,
		     const struct bs_link **ret, struct bs_error *err)
{
	const struct bs_link *near = NULL;
	bs_autobuf there = BS_BUF_INIT(256);

	if (!platform)
		platform = bs_platform_here();
	for (size_t i = 0; i < index->n; i++) {
		bs_autofree char *p = bs_link_platform(&index->links[i]);
		const char *more;

		if (!p)
			continue;
		if (bs_streq(p, platform)) {
			*ret = &index->links[i];
			return 0;
		}
		more = bs_str_after(p, platform);
		if (!near && more && *more == '/')
			near = &index->links[i];
		/* when the text is full, the first ones are enough */
		(void)bs_buf_addf(&there, "%s%s", there.len ? ", " : "", p);
	}
	if (!near)
		return bs_fail(err, -ENOENT, "there is no image for platform '%s', only for: %s",
			       platform, there.len ? bs_buf_str(&there) : "none");
	*ret = near;
	return 0;
}
