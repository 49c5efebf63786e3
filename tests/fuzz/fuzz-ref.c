/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A reference that is accepted must say the same after being written and read again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oci/ref.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = strndup((const char *)data, size), *once = NULL, *twice = NULL;
	struct bs_ref r;

	if (!text || bs_ref_parse(text, &r, NULL) < 0)
		return 0;
	once = bs_ref_text(&r, false);
	bs_ref_done(&r);
	if (!once || bs_ref_parse(once, &r, NULL) < 0)
		abort();
	twice = bs_ref_text(&r, false);
	bs_ref_done(&r);
	if (!twice || !bs_streq(once, twice))
		abort();
	return 0;
}
