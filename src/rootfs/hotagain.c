/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotagain.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/str.h"
#include "hot/profile.h"
#include "net/repo.h"
#include "rootfs/hotkept.h"
#include "rootfs/hotwatch.h"
#include "rootfs/images.h"
#include "rootfs/sources.h"

static int read_profile(const struct bs_cached *image, const char *bytes, size_t len,
			struct bs_hotagain *a)
{
	return bs_profile_read(bytes, len, &bs_cached_artifact(image)->table.digest,
			       image->blob_bytes / BS_BLOCK_BYTES, &a->profile, NULL);
}

/* As it was made here; what is in the cache is proven by its digest alone. */
static int kept_profile(const struct bs_cached *image, struct bs_hotagain *a)
{
	char id[HOT_ID_LEN + 1];
	bs_autofree char *bytes = NULL;
	struct bs_digest is;
	size_t len;
	int r = bs_hot_read_file(image, bs_hot_id(&image->digest, a->hot.workload, id), "profile",
				 BS_PROFILE_DATA_MAX, &bytes, &len);

	if (r < 0)
		return r;
	bs_digest_of(bytes, len, &is);
	if (!bs_digest_eq(&is, &a->hot.profile.digest))
		return -EBADMSG;
	return read_profile(image, bytes, len, a);
}

static int fetch_profile(const struct bs_cached *image, const char *source,
			 bs_open_source_fn *open_source, void *cookie, struct bs_hotagain *a)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	bs_autofree char *bytes = NULL;
	struct bs_error err = BS_ERROR_INIT;
	int r = open_source(cookie, source, &repo, &err);

	if (r == 0)
		r = bs_repo_get_blob_mem(repo, &a->hot.profile.digest, a->hot.profile.size,
					 BS_PROFILE_DATA_MAX, &bytes, &err);
	return r < 0 ? r : read_profile(image, bytes, (size_t)a->hot.profile.size, a);
}

int bs_hotagain_load(const struct bs_cached *image, const char *workload,
		     bs_open_source_fn *open_source, void *cookie, struct bs_hotagain *ret)
{
	bs_autostrv sources = { 0 };
	int r = bs_hot_find_kept(image, workload, &ret->hot);

	ret->profile = NULL;
	if (r < 0 || bs_hotwatch_verdict(image, &ret->hot) != BS_VERDICT_STALE)
		return -ENOENT;
	if (kept_profile(image, ret) == 0)
		return 0;
	(void)bs_sources_read(bs_cached_dirfd(image), BS_SOURCES_FILE, &sources);
	for (size_t i = 0; i < sources.n; i++) {
		if (fetch_profile(image, sources.v[i], open_source, cookie, ret) == 0)
			return 0;
	}
	return 0; /* the new recording does alone, too */
}

void bs_hotagain_done(struct bs_hotagain *a)
{
	a->profile = bs_profile_free(a->profile);
}

int bs_hotagain_merge(struct bs_hotagain *a, unsigned int percent, struct bs_profile **p,
		      struct bs_error *err)
{
	int64_t beside;
	uint64_t had;
	int r;

	if (!a->profile)
		return 0;
	beside = bs_profile_beside(*p, a->profile);
	if (beside < 0)
		return bs_fail_errno(err, (int)beside, "profile");
	had = bs_profile_blocks(a->profile, 1);
	if ((uint64_t)beside < bs_div_up(had * percent, 100)) {
		if ((bs_profile_blocks(*p, 1) - (uint64_t)beside) * 2 < had)
			return bs_fail(err, -ECANCELED, "it broke off");
		return bs_fail(err, -EALREADY, "the one that is there has what it needs");
	}
	r = bs_profile_keep_runs(a->profile, BS_PROFILE_RUNS_KEPT - 1);
	if (r == 0)
		r = bs_profile_merge(a->profile, *p);
	if (r < 0)
		return bs_fail_errno(err, r, "profile");
	(void)bs_profile_free(*p);
	*p = bs_take(&a->profile);
	return 0;
}
