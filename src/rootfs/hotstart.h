/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Hot starts, worker's side: for each start of a workload from an image that is not
 * complete, find its hot pack and stream it into the cache; when there is none, record
 * what the start reads and make one.
 *
 *   find ──there is one──▶ stream: head fetched, image prepared, segments come
 *     │ none (a pack of another image with equal frames is streamed beside)
 *     ▼
 *   record: the start gets a mount of its own, of the FUSE file HEX.ID, whose reads
 *           are noted until the window is over; then, on the builder's thread:
 *           profile and pack are made from the cache, kept in the image's entry and
 *           published where the image came from
 *
 * Files in an image's entry, ID being the 40 digits of bs_hot_tag:
 *   hot-ID.json       the manifest of the artifact that was found or made
 *   hot-ID.head       the head of the pack that was found
 *   hot-ID.bad        the digest of an artifact whose pack was found to be bad: the next
 *                     start here is as if there were none, and what is made replaces it
 *   hot-ID.workload   the name of the workload that is, or was, recorded
 *   hot-ID.sources    where its container said that the image's data is
 *   hot-ID.rec        the recording in progress, and until its pack is published: a worker
 *                     that comes after one that died goes on with it
 *   hot-ID.pack, hot-ID.profile   what was made of it
 *
 *   hot-ID.proofs     hashes of the pack that was streamed while its workload was recorded anew,
 *                     until the new one is made
 *   hot-ID.judged     what is thought of the pack (hotwatch.h)
 *
 * At most BS_HOT_RECORDINGS_MAX starts are recorded at once, and BS_HOT_WORKLOADS_MAX
 * workloads of an image: whose arguments are others each time could go on for ever.
 *
 * Nothing here fails a start: what goes wrong is said once and the start is as if
 * there were no hot packs.
 */
#ifndef BS_ROOTFS_HOTSTART_H
#define BS_ROOTFS_HOTSTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/str.h"
#include "hot/store.h"
#include "obs/timeline.h"
#include "rootfs/images.h"
#include "rootfs/rounds.h"

struct bs_error;
struct bs_fill;
struct bs_hotstart;
struct bs_jsonw;

#define BS_HOT_RECORDINGS_MAX 64u
#define BS_HOT_WORKLOADS_MAX 64u

struct bs_hotstart_options {
	struct bs_images *images;
	struct bs_fill *fill;
	bs_open_source_fn *open_source;
	uint64_t epoch; /* see hot/recording.h */
	bool publish;
	uint64_t window_ns;	   /* of a recording */
	unsigned int parallel_max; /* ranges of one pack at once */
	unsigned int rerecord;	   /* percent of a pack's blocks missed: it is stale; 0: never */
	/* A line for the log. */
	void (*event)(void *cookie, enum bs_log_level level, const char *text);
	/* The pack of image and workload begins to arrive, or does no more. Any thread. */
	void (*streaming)(void *cookie, const struct bs_digest *image, const char *workload,
			  bool on);
	void *cookie;
};

int bs_hotstart_new(const struct bs_hotstart_options *o, struct bs_hotstart **ret,
		    struct bs_error *err);

/* One start. The caller owns everything; it is used only during the calls. */
struct bs_hotstart_request {
	const struct bs_digest *image;
	const char *workload; /* bs_workload_ok */
	const char *const *sources;
	size_t n_sources;
	uint64_t since_ns; /* that it was asked for (bs_clock_ns) */
	uint64_t wait_ns;  /* from then on, for the image */
	bool may_record;
	int timeline; /* descriptor, stays the caller's; -EBADF */
};

/* What was found, to go on with. */
struct bs_hotstart_plan {
	bool stream; /* call bs_hotstart_stream */
	bool record; /* call bs_hotstart_record; with stream: its pack is stale, but still of use */
	struct bs_hot hot;
	struct streamed *streamed; /* it is in the list of streams from now on */
	struct bs_cached
		*donor;		/* the image that the pack is of, when it is another (hotdonor.h) */
	struct bs_strv sources; /* where the donor's data is */
};

/* Looks for the pack; blocks for one request to each source. */
void bs_hotstart_find(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		      struct bs_hotstart_plan *ret);
void bs_hotstart_plan_done(struct bs_hotstart_plan *p);

/* The start is not recorded: it reads through the mount that all share. */
void bs_hotstart_shares(struct bs_hotstart *hs, const struct bs_hotstart_request *rq);

/*
 * Starts the stream; blocks for its head and until somebody has fetched the image's table.
 * Its end is told of (streaming) in any case. Of a start that is recorded, nobody is warmed
 * for, and nothing watched: its reads do not go through the mount that all share.
 */
int bs_hotstart_stream(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_hotstart_plan *p, struct bs_error *err);

/*
 * Tells a warmer (daemon/warm.h) at the other end of the SOCK_SEQPACKET socket fd (taken over)
 * which files' runs have come with the pack of the image that streams now; returns when it
 * has ended, or when the warmer has. pid: the warmer's, as the FUSE connection has it; 0.
 */
void bs_hotstart_warm(struct bs_hotstart *hs, const struct bs_digest *image, int fd, pid_t pid);

/* A read of the image through the mount that its containers share, before it is answered. */
void bs_hotstart_read(struct bs_hotstart *hs, const struct bs_cached *image, uint64_t off,
		      uint64_t len, pid_t pid);

/*
 * Begins a recording; blocks until somebody has prepared the image. *ret_file: the name of the
 * FUSE file to mount (BS_HOTSTART_FILE_LEN bytes).
 */
#define BS_HOTSTART_FILE_LEN (64 + 1 + 40 + 1)
int bs_hotstart_record(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_cached **ret, char ret_file[BS_HOTSTART_FILE_LEN],
		       struct bs_error *err);

/*
 * Whoever was recorded is gone: the recording is over before its time. nobody: it never was any
 * one's, and is forgotten.
 */
void bs_hotstart_stop(struct bs_hotstart *hs, const struct bs_digest *image, const char *workload,
		      bool nobody);

/* What a FUSE file or node of a recording stands for; false: there is none. */
struct bs_recorded {
	struct bs_cached *image;
	bool recorded; /* tell bs_hotstart_note of its reads */
	uint64_t node;
};
bool bs_hotstart_known(struct bs_hotstart *hs, uint64_t node,
		       struct bs_recorded *ret); /* quickly */
bool bs_hotstart_by_name(struct bs_hotstart *hs, const char *name, struct bs_recorded *ret);
bool bs_hotstart_by_node(struct bs_hotstart *hs, uint64_t node, struct bs_recorded *ret);
/* A read through the node of a recording. */
void bs_hotstart_note(struct bs_hotstart *hs, uint64_t node, uint64_t off, uint64_t len);

/* An array with one object for each pack and recording of this process. */
void bs_hotstart_status(struct bs_hotstart *hs, struct bs_jsonw *w);

#endif
