/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The first byte is the number of blocks that the table states, the rest the frame. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/frames.h"
#include "image/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct bs_framer *f;
	bs_autofree uint8_t *out = NULL;
	struct bs_frame fr = { 0 };

	if (!f)
		f = bs_framer_new(1);
	if (size < 2 || size - 1 > BS_FRAME_DATA_MAX)
		return 0;
	fr.n_blocks = data[0] % BS_FRAME_BLOCKS_MAX + 1u;
	fr.len = (uint32_t)(size - 1);
	out = calloc(fr.n_blocks, 4096); /* of this size: one byte more is a report */
	if (bs_frame_decode(f, &fr, data + 1, out) != -EBADMSG)
		abort(); /* nothing has a root of zeros */
	bs_frame_root(f, out, fr.n_blocks, &fr.root);
	if (bs_frame_verify(f, &fr, out) != 0)
		abort();
	return 0;
}
