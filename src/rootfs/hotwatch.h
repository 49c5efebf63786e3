/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Watches what starts do with their hot packs: for as long as a recording would take, the
 * reads of the image are held against the pack (hot/use.h says what can be known of that).
 * At the end the files are found whose blocks were missed, and the pack is judged: one that
 * lacked too much is stale, and the next start of the workload is to be recorded.
 *
 * The reads of an image are those of all containers that share its mount: where another
 * workload of it was started meanwhile, nothing is judged.
 *
 * At most 16 starts are watched at once; others are as if they were not.
 *
 * Threads: any.
 */
#ifndef BS_ROOTFS_HOTWATCH_H
#define BS_ROOTFS_HOTWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "hot/store.h"
#include "hot/use.h"

struct bs_cached;
struct bs_hotwatch;
struct bs_jsonw;
struct bs_pack;

#define BS_HOTWATCH_FILES_MAX 10u /* those that were missed most */

struct bs_hotwatch_options {
	uint64_t window_ns;
	unsigned int stale_percent; /* blocks missed, of those of the pack; 0: none is stale */
	void (*event)(void *cookie, enum bs_log_level level, const char *text);
	void *cookie;
};

/* NULL: out of memory. */
struct bs_hotwatch *bs_hotwatch_new(const struct bs_hotwatch_options *o);
struct bs_hotwatch *bs_hotwatch_free(struct bs_hotwatch *w); /* nobody uses it any more */

struct bs_hotwatch_start {
	struct bs_cached *image;
	const struct bs_hot *hot;
	const struct bs_pack *pack;
	bool kept;    /* the pack was made here: nothing is streamed */
	int timeline; /* duplicated; -EBADF */
};
/* A start begins to use the pack; one that is watched already goes on. */
void bs_hotwatch_open(struct bs_hotwatch *w, const struct bs_hotwatch_start *s);
/* A start of the image, of which the reads go through the same mount. */
void bs_hotwatch_other(struct bs_hotwatch *w, const struct bs_digest *image, const char *workload);
/* Packs of the image stream, so that the kernel reads nothing ahead; or none does. */
void bs_hotwatch_streams(struct bs_hotwatch *w, const struct bs_digest *image, bool on);
/* The image's warmer, as the FUSE connection numbers processes. */
void bs_hotwatch_warmer(struct bs_hotwatch *w, const struct bs_digest *image, pid_t pid);

/* A read, before it is answered. */
void bs_hotwatch_note(struct bs_hotwatch *w, const struct bs_cached *image, uint64_t off,
		      uint64_t len, pid_t pid);

/* What was counted so far; false: it was not watched. */
bool bs_hotwatch_counts(struct bs_hotwatch *w, const struct bs_digest *image, const char *workload,
			struct bs_use_counts *ret);

bool bs_hotwatch_running(struct bs_hotwatch *w); /* any is */
/* Ends one whose time is over, which takes a while; false: there is none. For one thread. */
bool bs_hotwatch_end_one(struct bs_hotwatch *w);

/* The member "use" of the object of an image and a workload, if it was watched. */
void bs_hotwatch_put(struct bs_hotwatch *w, struct bs_jsonw *j, const struct bs_digest *image,
		     const char *workload);
/* An object for each start whose pack was made here. */
void bs_hotwatch_put_kept(struct bs_hotwatch *w, struct bs_jsonw *j);

/* What is known of a pack on this node, kept in the image's entry. */
enum bs_verdict {
	BS_VERDICT_NONE,
	BS_VERDICT_STALE, /* a start missed too much */
	BS_VERDICT_RIGHT, /* it seemed stale, and a recording found that it was not */
};
enum bs_verdict bs_hotwatch_verdict(const struct bs_cached *image, const struct bs_hot *hot);
void bs_hotwatch_judge(const struct bs_cached *image, const struct bs_hot *hot, enum bs_verdict v);

#endif
