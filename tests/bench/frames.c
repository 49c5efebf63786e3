/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* frames FILE [LEVEL...]: MB/s of one core for hashing, compressing, and decoding with proof. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "image/frames.h"
#include "image/table.h"

struct timing {
	uint64_t hash_ns, encode_ns, decode_ns, bytes, data;
};

static int one_frame(struct bs_framer *f, const char *blocks, struct timing *t)
{
	static char data[BS_FRAME_DATA_MAX], out[BS_FRAME_BYTES_MAX];
	struct bs_frame fr = { .n_blocks = BS_FRAME_BLOCKS_MAX };
	uint64_t at[4];
	int n;

	at[0] = bs_clock_ns();
	bs_frame_root(f, blocks, fr.n_blocks, &fr.root);
	at[1] = bs_clock_ns();
	n = bs_frame_encode(f, blocks, fr.n_blocks, data, sizeof(data));
	at[2] = bs_clock_ns();
	if (n < 0)
		return n;
	fr.len = (uint32_t)n;
	n = bs_frame_decode(f, &fr, data, out);
	at[3] = bs_clock_ns();
	t->hash_ns += at[1] - at[0];
	t->encode_ns += at[2] - at[1];
	t->decode_ns += at[3] - at[2];
	t->bytes += BS_FRAME_BYTES_MAX;
	t->data += fr.len;
	return n;
}

static double rate(uint64_t bytes, uint64_t ns)
{
	return (double)bytes * 1e3 / (double)BS_MAX(ns, UINT64_C(1));
}

int main(int argc, char **argv)
{
	bs_autofree char *file = NULL;
	size_t len;

	if (argc < 2 || bs_read_file_at(AT_FDCWD, argv[1], 0, 1 << 30, &file, &len) < 0) {
		fprintf(stderr, "usage: frames FILE [LEVEL...]\n");
		return 1;
	}
	for (int i = 2; i < BS_MAX(argc, 3); i++) {
		bs_auto(framer) struct bs_framer *f = NULL;
		struct timing t = { 0 };
		uint32_t level = 9;

		if (argc > 2 && bs_parse_u32(argv[i], &level) < 0)
			return 1;
		f = bs_framer_new((int)level);
		for (size_t off = 0; f && off + BS_FRAME_BYTES_MAX <= len;
		     off += BS_FRAME_BYTES_MAX) {
			if (one_frame(f, file + off, &t) < 0)
				return 1;
		}
		printf("level %u: hash %.0f, compress %.0f, decode and prove %.0f MB/s, ratio "
		       "%.2f\n",
		       level, rate(t.bytes, t.hash_ns), rate(t.bytes, t.encode_ns),
		       rate(t.bytes, t.decode_ns), (double)t.bytes / (double)BS_MAX(t.data, 1u));
	}
	return 0;
}
