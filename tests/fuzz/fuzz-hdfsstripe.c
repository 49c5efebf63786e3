/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The manifest of a striped file, which is filled up to its size, and a sums file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "hdfs/manifest.h"
#include "hdfs/stripe.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(const struct bs_stripes *s)
{
	uint64_t units = bs_stripe_units(s->size, s->unit);

	for (uint32_t i = 0; i < s->n_map; i++) {
		uint64_t slot = 0, n = 0, last = s->map[i].first + s->map[i].n - 1;
		const struct bs_segment *seg = bs_stripes_find(s, last, &slot, &n);
		struct bs_stripe_at at;

		if (!seg || n != 1 || last >= units)
			abort();
		at = bs_stripe_slot(slot, seg->files, s->unit);
		if (at.off >= bs_stripe_file_len(seg->len, seg->files, s->unit, at.file))
			abort();
		if (strlen(seg->id) != BS_STRIPES_ID_LEN || strpbrk(seg->id, "./"))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char bytes[BS_STRIPES_BYTES], again[BS_STRIPES_BYTES];
	struct bs_segment seg = { "0123456789abcdef0123456789abcdef", 1, 1, 0 };
	struct bs_stripes_run run = { .first = 1, .n = 1 };
	uint64_t slots = size > 16 ? (size - 16) / 4 : 0;
	bs_autofree uint32_t *sums = calloc(slots + 1, sizeof(*sums));
	struct bs_stripes s, back;

	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	if (sums)
		(void)bs_sums_read(data, size, bs_crc32c(0, data, size), 1u << 20, slots, sums,
				   NULL);
	if (bs_stripes_read(bytes, sizeof(bytes), &s, NULL) < 0)
		return 0;
	check(&s);
	if (bs_stripes_write(&s, again) < 0 ||
	    bs_stripes_read(again, sizeof(again), &back, NULL) < 0 || back.size != s.size ||
	    back.n_map != s.n_map)
		abort();
	if (s.size < BS_STRIPE_SIZE_MAX / 2) {
		s.size += 2 * (uint64_t)s.unit;
		if (bs_stripes_add(&s, &seg, &run, 1) == 0) {
			bs_stripes_cut(&s);
			check(&s);
		}
	}
	return 0;
}
