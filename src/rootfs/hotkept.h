/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the cache has of a workload's hot pack: the files hot-ID.WHAT of an image's entry,
 * which hotstart.h lists. Any thread.
 */
#ifndef BS_ROOTFS_HOTKEPT_H
#define BS_ROOTFS_HOTKEPT_H

#include <stdbool.h>
#include <stddef.h>

struct bs_cached;
struct bs_digest;
struct bs_hot;

#define HOT_ID_LEN 40u

/* Heads that are kept in an image's entry; those beyond are fetched for each start. */
#define HOT_HEADS_MAX 64u
#define HOT_HEADS_BYTES_MAX (UINT64_C(64) << 20)

/* The id of an image's workload in the names of files; returns id. */
const char *bs_hot_id(const struct bs_digest *image, const char *workload, char id[HOT_ID_LEN + 1]);

/* The name of a file (malloc'ed); NULL: out of memory. */
char *bs_hot_file(const char *id, const char *what);
bool bs_hot_has_file(const struct bs_cached *image, const char *id, const char *what);
/* ret, ret_len: as bs_read_file_at. */
int bs_hot_read_file(const struct bs_cached *image, const char *id, const char *what, size_t max,
		     char **ret, size_t *ret_len);
int bs_hot_write_file(const struct bs_cached *image, const char *id, const char *what,
		      const void *data, size_t len);
void bs_hot_remove_file(const struct bs_cached *image, const char *id, const char *what);

/* What an earlier start found or made; -ENOENT: nothing; -EBADMSG. */
int bs_hot_find_kept(const struct bs_cached *image, const char *workload, struct bs_hot *ret);
/* So that the next start here asks for nothing. */
void bs_hot_keep(const struct bs_cached *image, const char *id, const struct bs_hot *hot,
		 const char *head);
/* It is not what it should be, or not there any more: the next start asks anew. */
void bs_hot_forget(const struct bs_cached *image, const char *id);

/* Its head (malloc'ed), as it was found or made here; NULL: there is none. */
char *bs_hot_kept_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot);
/* As it was made here. */
char *bs_hot_made_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot);
/* Whether the entry has the pack itself: it was made here, and its frames are here too. */
bool bs_hot_has_pack(const struct bs_cached *image, const char *id, const struct bs_hot *hot);

/* Whether the pack that an artifact with that digest describes was found to be bad. */
bool bs_hot_is_bad(const struct bs_cached *image, const char *id, const struct bs_digest *d);
void bs_hot_note_bad(const struct bs_cached *image, const char *id, const struct bs_hot *hot);

#endif
