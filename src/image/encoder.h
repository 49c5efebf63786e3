/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Frames compressed in parallel and written in order. The caller fills a buffer and
 * pushes it; workers compress; the caller, when it needs a buffer, writes what is
 * done. So memory is bounded by the number of slots, and the bytes do not depend on
 * the number of workers. One caller's thread.
 */
#ifndef BS_IMAGE_ENCODER_H
#define BS_IMAGE_ENCODER_H

#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "image/table.h"

struct bs_encoder;
struct bs_error;

/* fd: where data goes, sequentially; dir names it in errors. */
int bs_encoder_new(unsigned int jobs, int level, int fd, const char *dir, struct bs_encoder **ret,
		   struct bs_error *err);
/* Ends the workers. */
struct bs_encoder *bs_encoder_free(struct bs_encoder *e);
DEFINE_BS_AUTO(encoder, struct bs_encoder, bs_encoder_free)

/* The buffer of the next frame, BS_FRAME_BYTES_MAX bytes, the same until it is pushed. */
int bs_encoder_buffer(struct bs_encoder *e, uint8_t **ret, struct bs_error *err);
/* Its first n_blocks blocks are the next frame. */
int bs_encoder_push(struct bs_encoder *e, uint32_t n_blocks, struct bs_error *err);

struct bs_encoded {
	struct bs_frame *frames; /* owned; n_blocks, len, root are set */
	uint32_t n_frames;
	uint64_t data_len;
	struct bs_digest data; /* of all data */
};

/* Waits for all; frames are the caller's then. */
int bs_encoder_finish(struct bs_encoder *e, struct bs_encoded *ret, struct bs_error *err);

#endif
