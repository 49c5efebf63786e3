/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Header values of a registry's answers. The input is one value. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/header.h"
#include "net/url.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = strndup((const char *)data, size), *next = NULL, *url = NULL,
			 *type = NULL;
	uint64_t first, last, total;
	struct bs_challenge c;

	if (!text)
		return 0;
	if (bs_header_challenge(text, &c) == 0)
		bs_challenge_done(&c);
	if (bs_header_content_range(text, &first, &last, &total) == 0 &&
	    (last < first || total <= last))
		abort();
	if (bs_header_retry_after(text, UINT64_C(1) << 60) > UINT64_C(86400000000000))
		abort();
	(void)bs_header_link_next(text, &next);
	type = bs_header_media_type(text);
	/* what was resolved can be resolved again, and has the origin that it shows */
	if (bs_url_resolve("https://a.example/v2/x?y=z", text, &url) == 0) {
		bs_autofree char *again = NULL;

		if (bs_url_resolve("https://a.example/", url, &again) < 0 ||
		    !bs_url_same_origin(url, again))
			abort();
	}
	return 0;
}
