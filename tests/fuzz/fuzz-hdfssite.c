/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Hadoop's configuration files, and a URL that needs them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdfs/place.h"
#include "hdfs/site.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void resolve(const char *url, const struct bs_site *site)
{
	bs_autoplace p = { 0 };

	if (bs_hdfs_place(url, site, &p, NULL) < 0)
		return;
	if (p.path[0] != '/' || p.endpoints.n == 0)
		abort();
	for (size_t i = 0; i < p.endpoints.n; i++) {
		if (strpbrk(p.endpoints.v[i], "/?#@ %") || !strrchr(p.endpoints.v[i], ':'))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_auto(site) struct bs_site *site = bs_site_new();
	/* before a line break, a URL */
	const unsigned char *end = memchr(data, '\n', size);
	bs_autofree char *url = NULL;

	if (!site || !end)
		return 0;
	url = strndup((const char *)data, (size_t)(end - data));
	if (!url)
		return 0;
	(void)bs_site_add(site, "site", (const char *)end + 1, size - (size_t)(end + 1 - data),
			  NULL);
	resolve(url, site);
	resolve("hdfs://a/x", site);
	resolve("hdfs:///x", site);
	return 0;
}
