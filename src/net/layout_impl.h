/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What all OCI layouts have in common, wherever their files lie: which manifests a layout has,
 * by name, digest and subject. An implementation brings the files; its operations on manifests
 * are those below.
 *
 * A tag is the annotation org.opencontainers.image.ref.name of an entry of index.json.
 * Manifests that are put by digest alone are listed only when they have a subject: a
 * platform's manifest is found through its index, and tools that look for "the one image" of a
 * layout must not see it.
 */
#ifndef BS_NET_LAYOUT_IMPL_H
#define BS_NET_LAYOUT_IMPL_H

#include <stdbool.h>

#include "net/repo.h"

struct bs_json;

struct bs_layout_ops {
	/*
	 * The bytes of a blob that is a manifest (malloc'ed, NUL behind), not checked. often: of
	 * many, each of which may be missing.
	 */
	int (*read_manifest)(struct bs_repo *r, const struct bs_digest *d, bool often, char **ret,
			     size_t *ret_len, struct bs_error *err);
	/* May be NULL. An index is about to be read: is the directory still the same? */
	void (*follow)(struct bs_repo *r);
	/* net/layout_index.h's; -ENOENT */
	int (*read_index)(struct bs_repo *r, struct bs_json **ret, struct bs_error *err);
	/*
	 * Puts another index in its place, as one step, unless fn has nothing to change. fn may
	 * be called again with another index. What fn returned, or -errno.
	 */
	int (*change_index)(struct bs_repo *r, int (*fn)(struct bs_json *index, void *cookie),
			    void *cookie, struct bs_error *err);
};

/* What implementations embed as their first member. */
struct bs_layout {
	struct bs_repo repo;
	const struct bs_layout_ops *ops;
};

#define BS_LAYOUT_NEW_INDEX                                                                        \
	"{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\","          \
	"\"manifests\":[]}"
#define BS_LAYOUT_VERSION "{\"imageLayoutVersion\":\"1.0.0\"}"
#define BS_LAYOUT_VERSION_MAX 4096u

/* Whether the bytes of oci-layout are of a version that we know; -EPROTONOSUPPORT. */
int bs_layout_check_version(const char *shown, const char *bytes, size_t len, struct bs_error *err);

int bs_layout_get_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			   struct bs_manifest *ret, struct bs_error *err);
int bs_layout_put_manifest_over(struct bs_repo *r, const char *tag, const struct bs_digest *was,
				const char *media_type, const char *bytes, size_t len,
				struct bs_error *err);
int bs_layout_put_manifest(struct bs_repo *r, const char *tag, const char *media_type,
			   const char *bytes, size_t len, struct bs_error *err);
int bs_layout_list_tags(struct bs_repo *r, void (*each)(void *cookie, const char *tag),
			void *cookie, struct bs_error *err);
int bs_layout_get_referrers(struct bs_repo *r, const struct bs_digest *subject,
			    struct bs_manifest *ret, struct bs_error *err);
int bs_layout_delete_manifest(struct bs_repo *r, const struct bs_digest *d,
			      const struct bs_digest *subject, struct bs_error *err);

#endif
