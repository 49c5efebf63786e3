/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A pack of an image of 64 frames: whatever the head says, the segments that follow are
 * unpacked without harm, and what is accepted are the image's blocks (all zeros here).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hot/pack.h"
#include "image/frames.h"
#include "image/table.h"

#define N_FRAMES 64u

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct bs_frame frames[N_FRAMES];
static struct bs_table table = { .frames = frames, .n_frames = N_FRAMES };
static struct bs_framer *f;

static void make_image(void)
{
	static const uint8_t zeros[BS_FRAME_BYTES_MAX];

	f = bs_framer_new(1);
	if (!f)
		abort();
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		frames[i].first_block = table.blob_blocks;
		frames[i].n_blocks = 1 + i % BS_FRAME_BLOCKS_MAX;
		bs_frame_root(f, zeros, frames[i].n_blocks, &frames[i].root);
		table.blob_blocks += frames[i].n_blocks;
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct bs_digest digest; /* all zeros, so that the fuzzer hits it */
	static uint8_t out[BS_PACK_SEGMENT_BYTES_MAX];
	bs_auto(pack) struct bs_pack *p = NULL;

	if (!f)
		make_image();
	if (bs_pack_read(data, size, &table, &digest, &p, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < p->n_segments; i++) {
		const struct bs_pack_segment *s = &p->segments[i];

		if (s->off + s->len > size)
			break;
		if (bs_pack_decode(f, p, &table, i, data + s->off, out) < 0)
			continue;
		for (size_t k = 0; k < (size_t)s->n_blocks * 4096; k++) {
			if (out[k])
				abort();
		}
	}
	return 0;
}
