/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotkept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/fd.h"
#include "base/str.h"
#include "hot/pack.h"
#include "hot/store.h"
#include "image/artifact.h"
#include "net/repo.h"
#include "rootfs/images.h"

const char *bs_hot_id(const struct bs_digest *image, const char *workload, char id[HOT_ID_LEN + 1])
{
	char tag[BS_HOT_TAG_LEN];

	(void)snprintf(id, HOT_ID_LEN + 1, "%s",
		       bs_hot_tag(image, workload, tag) + strlen(BS_HOT_TAG_PREFIX));
	return id;
}

/* --- files ------------------------------------------------------------------------------------ */

char *bs_hot_file(const char *id, const char *what)
{
	return bs_strf("hot-%s.%s", id, what);
}

bool bs_hot_has_file(const struct bs_cached *image, const char *id, const char *what)
{
	bs_autofree char *name = bs_hot_file(id, what);

	return name && faccessat(bs_cached_dirfd(image), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int bs_hot_read_file(const struct bs_cached *image, const char *id, const char *what, size_t max,
		     char **ret, size_t *ret_len)
{
	bs_autofree char *name = bs_hot_file(id, what);

	return name ? bs_read_regular_at(bs_cached_dirfd(image), name, max, ret, ret_len) : -ENOMEM;
}

int bs_hot_write_file(const struct bs_cached *image, const char *id, const char *what,
		      const void *data, size_t len)
{
	bs_autofree char *name = bs_hot_file(id, what);

	return name ? bs_atomicfile_write(bs_cached_dirfd(image), name, data, len, 0600, false)
		    : -ENOMEM;
}

void bs_hot_remove_file(const struct bs_cached *image, const char *id, const char *what)
{
	bs_autofree char *name = bs_hot_file(id, what);

	if (name)
		(void)unlinkat(bs_cached_dirfd(image), name, 0);
}

/* --- packs ------------------------------------------------------------------------------------ */

int bs_hot_find_kept(const struct bs_cached *image, const char *workload, struct bs_hot *ret)
{
	char id[HOT_ID_LEN + 1], type[] = BS_MEDIA_OCI_MANIFEST;
	bs_autofree char *bytes = NULL;
	struct bs_manifest m = { .media_type = type };
	int r = bs_hot_read_file(image, bs_hot_id(&image->digest, workload, id), "json",
				 BS_MANIFEST_MAX, &bytes, &m.len);

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

/* Whether another head may be kept in the image's entry. */
static bool has_room(const struct bs_cached *image, uint64_t bytes)
{
	DIR *d = bs_opendir_at(bs_cached_dirfd(image), ".");
	unsigned int n = 0;
	struct dirent *de;
	struct stat st;

	if (!d)
		return false;
	while ((de = readdir(d))) {
		if (!bs_str_after(de->d_name, "hot-") || !bs_str_ends(de->d_name, ".head") ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)st.st_size;
		n++;
	}
	(void)closedir(d);
	return n < HOT_HEADS_MAX && bytes <= HOT_HEADS_BYTES_MAX;
}

void bs_hot_keep(const struct bs_cached *image, const char *id, const struct bs_hot *hot,
		 const char *head)
{
	bs_autofree char *text = NULL;
	size_t len;

	if (bs_hot_has_file(image, id, "json") || !has_room(image, hot->head_len) ||
	    bs_hot_write(hot, &text, &len, NULL) < 0 ||
	    bs_hot_write_file(image, id, "head", head, hot->head_len) < 0)
		return;
	/* last: it says that there is a head */
	(void)bs_hot_write_file(image, id, "json", text, len);
}

void bs_hot_forget(const struct bs_cached *image, const char *id)
{
	bs_hot_remove_file(image, id, "json");
	/* it is known by its length alone: the one that comes next may be as long */
	bs_hot_remove_file(image, id, "head");
}

char *bs_hot_kept_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *bytes = NULL;
	size_t len;

	if (bs_hot_read_file(image, id, "head", BS_PACK_HEAD_MAX, &bytes, &len) < 0 ||
	    len != hot->head_len)
		return bs_hot_made_head(image, id, hot);
	return bs_take(&bytes);
}

char *bs_hot_made_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *name = bs_hot_file(id, "pack"), *head = malloc(hot->head_len + 1);
	bs_autofd int fd = -EBADF;

	if (!name || !head)
		return NULL;
	fd = bs_open_regular_at(bs_cached_dirfd(image), name);
	if (fd < 0 || bs_pread_full(fd, head, hot->head_len, 0) != (ssize_t)hot->head_len)
		return NULL;
	return bs_take(&head);
}

bool bs_hot_has_pack(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *name = bs_hot_file(id, "pack");
	struct stat st;

	return name && fstatat(bs_cached_dirfd(image), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_size == hot->pack.size;
}

/* --- packs that are bad ----------------------------------------------------------------------- */

bool bs_hot_is_bad(const struct bs_cached *image, const char *id, const struct bs_digest *d)
{
	char text[BS_DIGEST_TEXT_LEN];
	bs_autofree char *bad = NULL;

	return bs_hot_read_file(image, id, "bad", sizeof(text), &bad, NULL) == 0 &&
	       bs_streq(bad, bs_digest_text(d, text));
}

void bs_hot_note_bad(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	char text[BS_DIGEST_TEXT_LEN];

	(void)bs_digest_text(&hot->digest, text);
	/* unwritten, it is only found out once more */
	(void)bs_hot_write_file(image, id, "bad", text, strlen(text));
}
