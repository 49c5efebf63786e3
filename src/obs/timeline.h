/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The timeline of one container start: named spans and instants, one JSON object a
 * line, appended with one write(2) to RUN_DIR/timeline/ID.jsonl by every program that
 * takes part. All times are CLOCK_BOOTTIME nanoseconds, so lines of different
 * processes compare; the line "clock" ties them to wall time once.
 *
 *   {"event":"clock","boot_ns":…,"wall_ns":…,"id":"…"}
 *   {"event":"span","name":"…","start_ns":…,"end_ns":…,"pid":…,"program":"…"[,"bytes":…][,"text":"…"]}
 *   {"event":"mark","name":"…","at_ns":…,"pid":…,"program":"…"[,…]}
 *
 * A timeline never fails its caller: what cannot be written is lost.
 */
#ifndef BS_OBS_TIMELINE_H
#define BS_OBS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Every name there is; bs_timeline_names has its text, unit of bytes and meaning. */
enum bs_span {
	BS_SPAN_CREATE,	      /* the shim's whole create, until runc is exec'ed */
	BS_SPAN_CONFIG,	      /* reading and judging config.json and the marker */
	BS_SPAN_DAEMON_START, /* starting bootseerd */
	BS_SPAN_RESOLVE,      /* a tag asked for; text: the digest that it means */
	BS_SPAN_ACQUIRE,      /* until the image's mount was handed over */
	BS_SPAN_PREPARE,      /* worker: manifest, tree and table there, metadata written */
	BS_SPAN_MANIFEST,
	BS_SPAN_TREE, /* bytes: compressed */
	BS_SPAN_TABLE,
	BS_SPAN_METADATA,  /* EROFS metadata image written; bytes: its size */
	BS_SPAN_MOUNT,	   /* erofs mount */
	BS_SPAN_SWAP,	   /* overlay put in place of the engine's */
	BS_SPAN_HOT,	   /* hot pack streamed; bytes: that came */
	BS_SPAN_HOT_USE,   /* what a start did with its pack; bytes: fetched else */
	BS_SPAN_UNPACK,	   /* whole image unpacked, the fallback */
	BS_SPAN_CKPT,	   /* a mount of a checkpoint asked for and attached; text: its target */
	BS_SPAN_CKPT_LOAD, /* a checkpoint read, from the first read to the last */
	BS_SPAN_RUNTIME,   /* runc create, where we wait for it */
	BS_SPAN_DELETE,
	BS_MARK_RECORDING,  /* what the start reads is recorded; text: the workload, and how long */
	BS_MARK_FIRST_READ, /* the first block that the kernel asked for */
	BS_MARK_CKPT_READ,  /* the first read of a checkpoint */
	BS_MARK_FIRST_FRAME, /* the first frame that came from a source */
	BS_MARK_LAST_FRAME,  /* the image is complete on this node */
	BS_MARK_FALLBACK,    /* text: why the start is not lazy */
	BS_SPAN_MAX
};

struct bs_span_name {
	const char *name;
	const char *meaning;
};
extern const struct bs_span_name bs_timeline_names[BS_SPAN_MAX];

struct bs_timeline {
	int fd; /* -EBADF: lines go nowhere */
	const char *program;
};

#define BS_TIMELINE_NONE ((struct bs_timeline){ .fd = -EBADF })

/*
 * Opens (makes, with its clock line) the timeline id in run_dirfd/timeline. id is
 * checked as one path component. The program's text is kept by pointer.
 */
void bs_timeline_open(struct bs_timeline *t, int run_dirfd, const char *id, const char *program);
/* The same for whoever begins a start: a timeline of an earlier one of that id goes. */
void bs_timeline_begin(struct bs_timeline *t, int run_dirfd, const char *id, const char *program);
void bs_timeline_done(struct bs_timeline *t);

/* Removes the oldest timelines when there are more than BS_TIMELINES_MAX, down to half of them. */
#define BS_TIMELINES_MAX 4096u
void bs_timeline_prune(int run_dirfd);

/* A span from start_ns (bs_clock_ns) until now; bytes 0 and text NULL are left out. */
void bs_timeline_span(struct bs_timeline *t, enum bs_span name, uint64_t start_ns, uint64_t bytes,
		      const char *text);
/* The same of one that is over. */
void bs_timeline_past(struct bs_timeline *t, enum bs_span name, uint64_t start_ns, uint64_t end_ns,
		      uint64_t bytes, const char *text);
void bs_timeline_mark(struct bs_timeline *t, enum bs_span name, uint64_t at_ns, const char *text);

#endif
