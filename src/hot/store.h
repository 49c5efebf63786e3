/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The OCI artifact that holds profile and pack of an image and a workload, and the place
 * where it is found: a tag made of both. bootseer-hot(5) lists media types and
 * annotations.
 */
#ifndef BS_HOT_STORE_H
#define BS_HOT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "image/artifact.h"
#include "oci/workload.h"

struct bs_error;
struct bs_manifest;
struct bs_pack;
struct bs_repo;
struct bs_table;

#define BS_HOT_TYPE "application/vnd.bootseer.hot.v1"
#define BS_MEDIA_PROFILE "application/vnd.bootseer.hot.profile.v1+zstd"
#define BS_MEDIA_PACK "application/vnd.bootseer.hot.pack.v1"
#define BS_ANNOTATION_WORKLOAD "dev.bootseer.workload"
#define BS_ANNOTATION_HOT_HEAD "dev.bootseer.hot.head"
#define BS_ANNOTATION_HOT_HEAD_DIGEST "dev.bootseer.hot.head.digest"

#define BS_HOT_TAG_PREFIX "bootseer-hot-"
#define BS_HOT_TAG_LEN (sizeof(BS_HOT_TAG_PREFIX) + 40)
/* The tag of the pack of an image (its artifact's digest) and a workload; returns buf. */
const char *bs_hot_tag(const struct bs_digest *image, const char *workload,
		       char buf[BS_HOT_TAG_LEN]);

struct bs_hot {
	struct bs_digest digest; /* of the manifest */
	struct bs_descriptor image, profile, pack;
	char workload[BS_WORKLOAD_MAX + 1];
	uint64_t head_len; /* bytes of the pack before its first segment */
	bool head_proven;  /* head is known; of packs of old it is not */
	struct bs_digest head;
};

/* Reads the manifest; digest is set from m. -EBADMSG with the member that is wrong. */
int bs_hot_parse(const struct bs_manifest *m, struct bs_hot *ret, struct bs_error *err);

/* The manifest's bytes (malloc'ed); same artifact, same bytes. */
int bs_hot_write(const struct bs_hot *h, char **ret, size_t *ret_len, struct bs_error *err);

/*
 * With one request, behind those of readers: the pack of image and workload. -ENOENT: there is
 * none; -EBADMSG: what is under its tag came whole and is none, or that of another;
 * -ETIMEDOUT: no answer until deadline_ns (bs_clock_ns; 0: as long as a request may take).
 */
int bs_hot_find(struct bs_repo *repo, const struct bs_digest *image, const char *workload,
		uint64_t deadline_ns, struct bs_hot *ret, struct bs_error *err);

/* Sets profile, pack and head of h, whose head_len is set, from the bytes and the file. */
int bs_hot_describe(struct bs_hot *h, const void *profile, size_t profile_len, int pack_fd,
		    struct bs_error *err);

/* The pack's head, from repo (malloc'ed, h->head_len bytes). Blocks; never -EBADMSG. */
int bs_hot_read_head(struct bs_repo *repo, const struct bs_hot *h, char **ret,
		     struct bs_error *err);
/* Whether these head_len bytes are the pack's head, as far as the manifest says what that is. */
bool bs_hot_is_head(const struct bs_hot *h, const char *head);
/* Reads it as bs_pack_read does; -EBADMSG also when it is not what the manifest says. */
int bs_hot_use_head(const struct bs_hot *h, const char *head, const struct bs_table *table,
		    const struct bs_digest *table_digest, struct bs_pack **ret,
		    struct bs_error *err);

/*
 * Publishes: profile (its bytes) and pack (fd, from its begin) first, the manifest last.
 * h's profile and pack are set here, its digest too. Unless replace is set, one that is
 * there stays: -EEXIST; what is none is replaced. Of two that publish at once the first one
 * stays in an OCI layout; in a registry, which has no such request, the later one, whole.
 */
int bs_hot_publish(struct bs_repo *repo, struct bs_hot *h, const void *profile, size_t profile_len,
		   int pack_fd, bool replace, struct bs_error *err);

/*
 * The same in the place of a pack that was found wanting, known by the digest of its bytes: only
 * if it is still there, or none is. -EEXIST: another is. Two at once: as above.
 */
int bs_hot_publish_over(struct bs_repo *repo, struct bs_hot *h, const struct bs_digest *old_pack,
			const void *profile, size_t profile_len, int pack_fd, struct bs_error *err);

#endif
