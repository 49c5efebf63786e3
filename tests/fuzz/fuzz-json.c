/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the reader accepts must survive being written and read again. */
#include "config.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_auto(json) struct bs_json *v = NULL, *again = NULL;
	bs_autobuf out = BS_BUF_INIT(16 << 20);

	if (bs_json_parse("input", (const char *)data, size, 1 << 20, &v, NULL) < 0)
		return 0;
	if (bs_json_write(v, &out) < 0 ||
	    bs_json_parse("output", bs_buf_str(&out), out.len, 16 << 20, &again, NULL) < 0 ||
	    !bs_json_equal(v, again))
		abort();
	return 0;
}
