/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/sources.h"

#include <fcntl.h>

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

int bs_sources_write(int dirfd, const char *name, const char *const *sources, size_t n)
{
	bs_autobuf text = BS_BUF_INIT(BS_SOURCES_MAX);

	for (size_t i = 0; i < n; i++)
		(void)bs_buf_addf(&text, "%s\n", sources[i]);
	return text.error
		       ? text.error
		       : bs_atomicfile_write(dirfd, name, bs_buf_str(&text), text.len, 0600, false);
}
