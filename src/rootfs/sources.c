/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

int bs_sources_read(int dirfd, const char *name, struct bs_strv *ret)
{
	bs_autofree char *text = NULL;
	int r = bs_read_regular_at(dirfd, name, BS_SOURCES_MAX, &text, NULL);

	return r < 0 ? r : bs_strv_split(ret, text, "\n");
}

const char *bs_sources_push_remedy(const char *source, unsigned int uid,
				   char buf[BS_SOURCES_REMEDY_LEN])
{
	const char *dir = bs_str_after(source, "oci:");

	if (dir) /* a directory knows no credentials */
		(void)snprintf(
			buf, BS_SOURCES_REMEDY_LEN,
			"let user %u, as which bootseerd's worker runs, write in '%.250s' and "
			"below, as by chown -R",
			uid, dir);
	else if (strstr(source, "hdfs://"))
		(void)snprintf(buf, BS_SOURCES_REMEDY_LEN,
			       "let who bootseerd is on HDFS ('hdfs_options' in section [fetch] of "
			       "bootseer.conf) write in '%.250s' and below",
			       source);
	else
		(void)snprintf(buf, BS_SOURCES_REMEDY_LEN,
			       "give the node's credentials the right to push");
	return buf;
}

int bs_sources_write(int dirfd, const char *name, const char *const *sources, size_t n)
{
	bs_autobuf text = BS_BUF_INIT(BS_SOURCES_MAX);

	for (size_t i = 0; i < n; i++)
		(void)bs_buf_addf(&text, "%s\n", sources[i]);
	return text.error
		       ? text.error
		       : bs_atomicfile_write(dirfd, name, bs_buf_str(&text), text.len, 0600, false);
}
