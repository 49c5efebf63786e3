/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Of a table that the reader accepts, the writer must make the same bytes again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "image/format.h"
#include "image/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_auto(table) struct bs_table *t = NULL;
	bs_autofree void *again = NULL;
	struct bs_disk_table h;
	size_t len;

	if (bs_table_read(data, size, &t, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct bs_frame *f = &t->frames[i];

		if (bs_table_find(t, f->first_block) != i ||
		    bs_table_find(t, f->first_block + f->n_blocks - 1) != i)
			abort();
	}
	memcpy(&h, data, sizeof(h));
	if (bs_table_write(t->frames, t->n_frames, &again, &len, NULL) < 0)
		abort();
	if (!h.may && (len != size || memcmp(again, data, len) != 0))
		abort();
	return 0;
}
