/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Annotations: ours (bootseer-annotations(7)), by one table that the man page is held
 * against, and those in which engines say where an image came from.
 * Ours are written by a pod's author: whether they count is the caller's policy.
 */
#ifndef BS_OCI_ANNOT_H
#define BS_OCI_ANNOT_H

#include <stdbool.h>

struct bs_error;
struct bs_json;
struct bs_strv;

#define BS_ANNOT_PREFIX "dev.bootseer."
#define BS_ANNOT_SERVED BS_ANNOT_PREFIX "served"

struct bs_annot_row {
	const char *key, *type, *def, *text;
};
/* Row i of the table, or false behind the last. */
bool bs_annot_row(unsigned int i, struct bs_annot_row *ret);

/* What a container's annotations ask for; strings point into the document. */
struct bs_annot {
	const char *image;	/* NULL: not given */
	const char *fallback;	/* "unpack", "fail" or NULL */
	const char *workload;	/* NULL: not given */
	const char *record;	/* "yes", "no" or NULL */
	const char *background; /* "complete", "hot-only" or NULL */
};

/*
 * annotations may be NULL. A key with our prefix that the table lacks is added to
 * ret_unknown; a value that is not what its key wants is -EINVAL.
 */
int bs_annot_read(const struct bs_json *annotations, struct bs_annot *ret,
		  struct bs_strv *ret_unknown, struct bs_error *err);

/*
 * Whether the container is a pod's sandbox, as containerd's and CRI-O's annotations say: it
 * has the pod's annotations, and an image of its own that they do not mean.
 */
bool bs_annot_is_sandbox(const struct bs_json *annotations);

/* Adds the names under which engines pulled the image, as they wrote them. */
int bs_annot_image_names(const struct bs_json *annotations, struct bs_strv *ret);

#endif
