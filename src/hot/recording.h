/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A recording in progress: which blocks one start reads, in order, written to a file as
 * they come, so that a worker that is killed loses nothing and the next one goes on.
 *
 * The file: 64 bytes of head ("bs-rec2\n", start by CLOCK_BOOTTIME in ns, window in ms,
 * blocks of the blob, epoch, all le64), then 12 bytes an event (block, count, ms; le32). An
 * event that was cut off is not there.
 *
 * Threads: any, but for open and free.
 */
#ifndef BS_HOT_RECORDING_H
#define BS_HOT_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_error;
struct bs_profile_event;
struct bs_recording;

#define BS_RECORDING_EVENTS_MAX (4u << 20)

/*
 * Opens or makes name in dirfd. A file that is there is gone on with when it is of this
 * blob and epoch (its window may be over), else begun anew. An epoch is as long as somebody
 * lives who knows it: what was begun in another one was broken off. window_ns 0: only one that is there; what
 * cannot be gone on with is removed, -ENODATA.
 */
int bs_recording_open(int dirfd, const char *name, uint64_t blob_blocks, uint64_t epoch,
		      uint64_t window_ns, struct bs_recording **ret, struct bs_error *err);
struct bs_recording *bs_recording_free(struct bs_recording *r);
DEFINE_BS_AUTO(recording, struct bs_recording, bs_recording_free)

/*
 * The bytes were read now. Only blocks that were not before cost more than a look;
 * nothing is written after the window.
 */
void bs_recording_note(struct bs_recording *r, uint64_t off, uint64_t len);

/* Whether the window is over, or bs_recording_stop was called; then it can be read. */
bool bs_recording_over(struct bs_recording *r);
void bs_recording_stop(struct bs_recording *r);

/* What was recorded so far (malloc'ed). -EIO: some of it could not be written: worth nothing. */
int bs_recording_events(struct bs_recording *r, struct bs_profile_event **ret, size_t *ret_n,
			uint32_t *ret_window_ms, struct bs_error *err);

#endif
