/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotagain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "hot/profile.h"
#include "image/manifest.h"
#include "net/repo.h"
#include "rootfs/hotpriv.h"

#define SOURCES_MAX 65536u

int bs_hot_sources(const struct bs_cached *image, struct bs_strv *ret)
{
	bs_autofree char *text = NULL;
	int r = bs_read_file_at(bs_cached_dirfd(image), "sources", O_NOFOLLOW, SOURCES_MAX, &text,
				NULL);

	return r < 0 ? r : bs_strv_split(ret, text, "\n");
}

int bs_hot_find_kept(const struct bs_cached *image, const char *workload, struct bs_hot *ret)
{
	char id[HOT_ID_LEN + 1], type[] = BS_MEDIA_OCI_MANIFEST;
	bs_autofree char *name = bs_strf("hot-%s.json", bs_hot_id(&image->digest, workload, id));
	bs_autofree char *bytes = NULL;
	struct bs_manifest m = { .media_type = type };
	int r;

	if (!name)
		return -ENOMEM;
	r = bs_read_file_at(bs_cached_dirfd(image), name, O_NOFOLLOW, BS_MANIFEST_MAX, &bytes,
			    &m.len);
	if (r < 0)
		return r;
	m.bytes = bytes;
	bs_digest_of(bytes, m.len, &m.digest);
	r = bs_hot_parse(&m, ret, NULL);
	if (r == 0 && (!bs_digest_eq(&ret->image.digest, &image->digest) ||
		       !bs_streq(ret->workload, workload)))
		r = -EBADMSG;
	return r;
}

bool bs_hot_has_pack(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *name = bs_strf("hot-%s.pack", id);
	struct stat st;

	return name && fstatat(bs_cached_dirfd(image), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_size == hot->pack.size;
}

char *bs_hot_made_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *name = bs_strf("hot-%s.pack", id), *head = malloc(hot->head_len + 1);
	bs_autofd int fd = -EBADF;

	if (!name || !head)
		return NULL;
	fd = openat(bs_cached_dirfd(image), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || bs_pread_full(fd, head, hot->head_len, 0) != (ssize_t)hot->head_len)
		return NULL;
	return bs_take(&head);
}

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
	bs_autofree char *name = bs_strf("hot-%s.profile",
					 bs_hot_id(&image->digest, a->hot.workload, id));
	bs_autofree char *bytes = NULL;
	struct bs_digest is;
	size_t len;
	int r = name ? bs_read_file_at(bs_cached_dirfd(image), name, O_NOFOLLOW,
				       BS_PROFILE_DATA_MAX, &bytes, &len)
		     : -ENOMEM;

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
	(void)bs_hot_sources(image, &sources);
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
