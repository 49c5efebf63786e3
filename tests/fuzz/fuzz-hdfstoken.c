/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Token files, and tokens as text. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "hdfs/token.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* What we write is what we read, and the text of what we read is the same again. */
static void round_trip(const char *text)
{
	bs_autofree char *one = NULL, *two = NULL;
	struct bs_token t, again;

	if (bs_token_decode(text, &t) < 0)
		return;
	one = bs_token_encode(t.identifier, t.password, t.kind, t.service);
	if (one && strlen(one) <= BS_TOKEN_TEXT_MAX) {
		if (bs_token_decode(one, &again) < 0)
			abort();
		two = bs_token_encode(again.identifier, again.password, again.kind, again.service);
		if (two && !bs_streq(one, two))
			abort();
		bs_token_done(&again);
	}
	bs_token_done(&t);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char *const services[] = { "ha-hdfs:ns", "10.0.0.1:8020", "" };
	bs_autofree char *text = strndup((const char *)data, size);
	bs_autofree char *found = NULL;

	if (text)
		round_trip(text);
	if (bs_token_from_file("file", data, size, services, BS_ARRAY_LEN(services), &found,
			       NULL) == 0)
		round_trip(found);
	return 0;
}
