/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What hotstart.c (finding, streaming, status) and hotrecord.c (recording, making) share. */
#ifndef BS_ROOTFS_HOTPRIV_H
#define BS_ROOTFS_HOTPRIV_H

#include <pthread.h>

#include "base/list.h"
#include "cache/stream.h"
#include "rootfs/hotkept.h"
#include "rootfs/hotlook.h"
#include "rootfs/hotstart.h"
#include "rootfs/hotwatch.h"

struct bs_hotdonor;
struct bs_pack;
struct bs_recording;

/* A start's recording, from the first read until the pack is made. */
struct recorded {
	struct bs_list all;
	struct bs_recorded pub;
	struct bs_recording *recording; /* NULL: it is over */
	unsigned int users;		/* threads that note something in it */
	char id[HOT_ID_LEN + 1];
	char workload[BS_WORKLOAD_MAX + 1];
	bool nobody;	       /* reads through it, nor will: it is forgotten */
	bool built;	       /* its pack, or it was given up */
	unsigned int failures; /* to build it */
	uint64_t again_ns;     /* when it is tried again; 0: at once */
	char pack[512];	       /* what became of it, for status; "" not yet */
};

/* A pack that is, or was, streamed. */
struct streamed {
	struct bs_list all;
	struct bs_hotstart *of;
	struct bs_cached *image;
	struct bs_hot hot;
	struct bs_pack *pack;
	struct bs_hotdonor *donor; /* whose pack it is really; NULL: the image's own */
	uint64_t copied;	   /* blocks, from the donor's cache */
	struct bs_timeline tl;
	bool running;
	bool told;	 /* a warmer hears, or has heard, of it */
	bool warming;	 /* a thread tells a warmer of it */
	uint8_t *landed; /* one a segment */
	int proofs_fd;	 /* where the segments' hashes are kept; -EBADF: nowhere */
	struct bs_stream_result result;
};

struct bs_hotstart {
	struct bs_hotstart_options o;
	pthread_mutex_t lock;	/* guards the lists and what is in them */
	pthread_cond_t changed; /* recorded; a stream that ended */
	pthread_cond_t landed;	/* a segment of some stream, or its end */
	struct bs_list recorded, streamed;
	_Atomic unsigned int n_recorded;
	struct bs_hotwatch *watch;
	struct bs_hotlook looks; /* for packs: of a workload, and at a host */
	pthread_t builder;
};

/* A line for the log. */
void bs_hotstart_tell(struct bs_hotstart *hs, enum bs_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Frees what is kept of streams that ended for a warmer that did not come. True when there
 * are some that may still come. Lock held.
 */
bool bs_hotstart_drop_untold(struct bs_hotstart *hs);

/* hotrecord.c: whether the start with this id is being recorded, or made a pack of. */
bool bs_hotstart_is_recording(struct bs_hotstart *hs, const char *id);
/* The thread that makes packs. */
int bs_hotstart_start_builder(struct bs_hotstart *hs, struct bs_error *err);

#endif
