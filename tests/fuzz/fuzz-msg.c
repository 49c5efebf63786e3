/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A control message that was decoded encodes to the same bytes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/msg.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct bs_msg m;
	const void *again;
	uint64_t n;
	size_t len;

	if (bs_msg_decode(data, size, &m) < 0)
		return 0;
	for (int tag = 0; tag < BS_TAG_MAX; tag++) {
		(void)bs_msg_text(&m, (enum bs_msg_tag)tag, 0);
		(void)bs_msg_u64(&m, (enum bs_msg_tag)tag, &n);
	}
	if (bs_msg_encode(&m, &again, &len) < 0 || len != size || memcmp(again, data, size) != 0)
		abort();
	bs_msg_done(&m);
	return 0;
}
