/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Of a profile that the reader accepts, the writer makes the same ranges again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hot/profile.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct bs_digest digest;
	bs_auto(profile) struct bs_profile *p = NULL, *again = NULL;
	bs_autofree void *bytes = NULL;
	size_t len;

	if (bs_profile_read(data, size, &digest, 1000, &p, NULL) < 0)
		return 0;
	if (bs_profile_write(p, &bytes, &len, NULL) < 0 ||
	    bs_profile_read(bytes, len, &digest, 1000, &again, NULL) < 0)
		abort();
	if (again->n_ranges != p->n_ranges || again->n_runs != p->n_runs ||
	    memcmp(again->ranges, p->ranges, p->n_ranges * sizeof(*p->ranges)) != 0)
		abort();
	if (bs_profile_merge(again, p) < 0 ||
	    bs_profile_blocks(again, 1) != bs_profile_blocks(p, 1) ||
	    bs_profile_keep_runs(again, 1) < 0 || again->n_runs != 1)
		abort();
	return 0;
}
