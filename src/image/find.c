/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * From what a person names to the artifact:
 *
 *	index ─ platform ─▶ manifest ─▶ the artifact itself
 *	                             ├▶ a stub: the artifact that its annotation names
 *	                             └▶ an image: what refers to it
 */
#include "config.h"

#include "image/artifact.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "image/manifest.h"
#include "net/repo.h"

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

static bool is_ours(const char *artifact_type)
{
	return artifact_type && bs_streq(artifact_type, BS_ARTIFACT_TYPE);
}

static int get(struct bs_repo *repo, const struct bs_digest *d, struct bs_manifest *ret,
	       struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];

	return bs_repo_get_manifest(repo, bs_digest_text(d, text), ret, err);
}

static int from_digest(struct bs_repo *repo, const struct bs_digest *d, struct bs_artifact *ret,
		       struct bs_error *err)
{
	bs_automanifest m = { 0 };
	int r = get(repo, d, &m, err);

	return r < 0 ? r : bs_artifact_parse(&m, ret, err);
}

/* An index of artifacts, one for each platform. */
static int from_index(struct bs_repo *repo, const struct bs_digest *index, const char *platform,
		      struct bs_artifact *ret, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	const struct bs_link *link;
	int r = get(repo, index, &m, err);

	if (r == 0)
		r = bs_document_parse(&m, &d, err);
	if (r == 0 && !d.is_index)
		r = bs_fail(err, -EBADMSG, "it is listed as an index and is none");
	if (r == 0)
		r = bs_document_pick(&d, platform, &link, err);
	return r < 0 ? r : from_digest(repo, &link->d.digest, ret, err);
}

/* The artifact whose subject is the image; of several the one listed last, the newest. */
static int from_referrers(struct bs_repo *repo, const struct bs_digest *image, const char *platform,
			  struct bs_artifact *ret, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	char text[BS_DIGEST_TEXT_LEN];
	int r = bs_repo_get_referrers(repo, image, &m, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		r = bs_document_parse(&m, &d, err);
	if (r < 0 && r != -ENOENT)
		return r;
	for (size_t i = d.n; i-- > 0;) {
		if (!is_ours(d.links[i].artifact_type))
			continue;
		if (bs_streq(d.links[i].media_type, BS_MEDIA_OCI_INDEX))
			return from_index(repo, &d.links[i].d.digest, platform, ret, err);
		r = from_digest(repo, &d.links[i].d.digest, ret, err);
		if (r == 0 && ret->has_subject && bs_digest_eq(&ret->subject.digest, image))
			return 0;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return bs_fail(err, -ENOENT,
		       "image %s has no converted form in '%s'; make it with 'bootseerctl image "
		       "convert'",
		       bs_digest_text(image, text), repo->name);
}

static int from_manifest(struct bs_repo *repo, const struct bs_manifest *m,
			 const struct bs_document *d, const char *platform, struct bs_artifact *ret,
			 struct bs_error *err)
{
	const char *named = bs_document_annotation(d, BS_ANNOTATION_ARTIFACT);
	struct bs_digest digest;

	if (is_ours(d->artifact_type))
		return bs_artifact_parse(m, ret, err);
	if (!named)
		return from_referrers(repo, &m->digest, platform, ret, err);
	if (bs_digest_parse(named, strlen(named), &digest) < 0)
		return bs_fail(err, -EBADMSG, "its annotation %s is no sha256 digest",
			       BS_ANNOTATION_ARTIFACT);
	return from_digest(repo, &digest, ret, err);
}

static int from_document(struct bs_repo *repo, const struct bs_manifest *m, const char *platform,
			 struct bs_artifact *ret, struct bs_error *err)
{
	bs_autodocument d = { 0 }, image = { 0 };
	bs_automanifest one = { 0 };
	const struct bs_link *link;
	int r = bs_document_parse(m, &d, err);

	if (r < 0)
		return r;
	if (!d.is_index)
		return from_manifest(repo, m, &d, platform, ret, err);
	r = bs_document_pick(&d, platform, &link, err);
	if (r == 0)
		r = get(repo, &link->d.digest, &one, err);
	if (r == 0)
		r = bs_document_parse(&one, &image, err);
	if (r == 0 && image.is_index)
		r = bs_fail(err, -EOPNOTSUPP, "it is an index of indexes");
	return r < 0 ? r : from_manifest(repo, &one, &image, platform, ret, err);
}

int bs_artifact_find(struct bs_repo *repo, const char *ref, const char *platform,
		     struct bs_artifact *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_automanifest m = { 0 };
	struct bs_error first = BS_ERROR_INIT, unused;
	struct bs_digest digest;
	struct bs_artifact a;
	int r = bs_repo_get_manifest(repo, ref, &m, &first);

	err = err ? err : &own;
	/* where only the converted form is, the original's tag or digest still means it */
	if (r == -ENOENT && bs_digest_parse(ref, strlen(ref), &digest) == 0 &&
	    from_referrers(repo, &digest, platform, ret, &unused) == 0)
		return 0;
	if (r == -ENOENT && !strchr(ref, ':')) {
		bs_autofree char *stub = bs_strf("%s" BS_STUB_TAG_SUFFIX, ref);

		if (stub && bs_repo_get_manifest(repo, stub, &m, &unused) == 0)
			r = 0;
	}
	if (r < 0) {
		*err = first;
		return r;
	}
	r = from_document(repo, &m, platform, &a, err);
	if (r < 0)
		return bs_error_context(err, "'%s' of '%s'", ref, repo->name);
	*ret = a;
	return 0;
}
