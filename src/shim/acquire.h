/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * From what a container asks for to a tree that can be a layer: which image, from
 * where, with whose leave; then bootseerd's mount of it, or what policy has instead.
 */
#ifndef BS_SHIM_ACQUIRE_H
#define BS_SHIM_ACQUIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "ctl/conf.h"
#include "oci/workload.h"

struct bs_error;
struct bs_json;
struct bs_timeline;

struct bs_want {
	const char *lease;	/* our name to bootseerd */
	const char *timeline;	/* id of the start */
	char *digest;		/* "sha256:…", NULL while only a tag is known */
	struct bs_strv sources; /* allowed ones, in order of preference */
	char *tag;		/* NULL: a digest was given */
	struct bs_strv named;	/* the sources in which the tag means the image */
	enum bs_fallback fallback;
	bool has_marker;
	char workload[BS_WORKLOAD_MAX + 1]; /* "": nothing is to be hot about the start */
	bool record;			    /* when there is no hot pack yet */
	bool hot_only; /* the rest of the image is not fetched for this start */
};

/*
 * Fills sources, and digest or tag, from the marker's bytes (NULL: none), the image annotation
 * (NULL: none; it wins) and the engine's names for the image. -EPERM: policy forbids
 * them all.
 */
int bs_want_resolve(const struct bs_conf *conf, const char *marker, size_t marker_len,
		    const char *image, const struct bs_json *annotations, struct bs_want *ret,
		    struct bs_error *err);
void bs_want_done(struct bs_want *w);

/* Has bootseerd find out which digest the tag means now. name: the annotation, for errors. */
int bs_want_find(const struct bs_conf *conf, struct bs_want *w, const char *name,
		 struct bs_timeline *t, struct bs_error *err);

/* Connects to bootseerd, starting it when it does not run; that is a span of its own. */
int bs_connect(const struct bs_conf *conf, struct bs_timeline *t, struct bs_error *err);

/*
 * Gets the image's mount (or, by policy, the directory it was unpacked to, said once
 * as a warning): a descriptor.
 */
int bs_acquire(const struct bs_conf *conf, const struct bs_want *w, struct bs_timeline *t,
	       struct bs_error *err);

/* Lets go of it; never waits long and never starts bootseerd. */
int bs_release(const struct bs_conf *conf, const char *lease, struct bs_error *err);

#endif
