/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A list that was read is written as the same bytes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hot/warmlist.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct bs_warmlist again;
	struct bs_warmlist_reader r;
	struct bs_warmlist_run run;

	if (bs_warmlist_open(&r, data, size) < 0)
		return 0;
	bs_warmlist_init(&again);
	while (bs_warmlist_next(&r, &run)) {
		if (bs_warmlist_add(&again, run.path, run.off, run.len) < 0)
			abort();
	}
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}
