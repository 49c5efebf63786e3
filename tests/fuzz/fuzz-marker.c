/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A marker that is accepted must survive being written and read again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "image/artifact.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct bs_marker m, again;
	bs_autofree char *text = NULL;
	size_t len;

	if (bs_marker_parse((const char *)data, size, &m, NULL) < 0)
		return 0;
	if (bs_marker_write(&m, &text, &len, NULL) < 0 ||
	    bs_marker_parse(text, len, &again, NULL) < 0 ||
	    strcmp(m.repository, again.repository) != 0 ||
	    !bs_digest_eq(&m.artifact, &again.artifact))
		abort();
	bs_marker_done(&m);
	bs_marker_done(&again);
	return 0;
}
