/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Names of images as people write them:
 *   docker://HOST[:PORT]/NAME[:TAG][@DIGEST]   a registry
 *   oci:DIR[:TAG][@DIGEST]                     an OCI layout directory
 *   hdfs://HOST/DIR[:TAG][@DIGEST]             an OCI layout directory on HDFS, also webhdfs://
 *                                              and swebhdfs://; DIR is absolute and clean
 *   rootfs:DIR                                 a plain directory (as a conversion's source)
 * Without a scheme a text with a '/' is taken as docker://. Docker's short forms
 * ("python:3.11") stand for docker.io/library/python:3.11.
 */
#ifndef BS_OCI_REF_H
#define BS_OCI_REF_H

#include <stdbool.h>

#include "base/digest.h"

struct bs_error;

enum bs_ref_kind { BS_REF_REGISTRY, BS_REF_LAYOUT, BS_REF_HDFS, BS_REF_ROOTFS, BS_REF_KIND_MAX };

struct bs_ref {
	enum bs_ref_kind kind;
	char *host; /* registry: "HOST[:PORT]" */
	char *name; /* registry: "a/b", checked against distribution-spec's grammar */
	char *dir;  /* layout, rootfs: as written; hdfs: "hdfs://HOST/DIR" */
	char *tag;  /* NULL: none given (users take "latest" where they need one) */
	bool has_digest;
	struct bs_digest digest;
};

/* -EINVAL with what is wrong and where. All strings owned by ret. */
int bs_ref_parse(const char *text, struct bs_ref *ret, struct bs_error *err);
void bs_ref_done(struct bs_ref *r);

/*
 * Whether text says itself where the image is: oci:, rootfs: or hdfs:// with a directory, or HOST/NAME,
 * also with docker:// before. Docker's short forms do not; bs_ref_parse takes docker.io then.
 */
bool bs_ref_is_full(const char *text);

/* Whether it begins with hdfs://, webhdfs:// or swebhdfs://. */
bool bs_ref_is_hdfs(const char *text);

bool bs_ref_tag_ok(const char *s);

/* The reference to ask a repository for: "sha256:…", the tag, or "latest"; malloc'ed. */
char *bs_ref_reference(const struct bs_ref *r);

/* The whole as text that parses to the same (malloc'ed); without_tag: only the repository. */
char *bs_ref_text(const struct bs_ref *r, bool without_tag);

#endif
