/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

int bs_hdfs_path_check(const char *path)
{
	size_t len = strlen(path);
	const char *at = path;

	if (len > BS_HDFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (path[0] != '/' || strchr(path, ':') || !bs_utf8_valid(path, len))
		return -EINVAL;
	while (path[1] && *at) {
		size_t n = strcspn(++at, "/");

		if (!bs_path_name_ok(at, n))
			return -EINVAL;
		if (n > BS_HDFS_NAME_MAX)
			return -ENAMETOOLONG;
		at += n;
	}
	return 0;
}

char *bs_hdfs_path_child(const char *dir, const char *name)
{
	return bs_strf("%s/%s", bs_streq(dir, "/") ? "" : dir, name);
}

void bs_hdfs_path_escape(struct bs_buf *b, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";

	for (; *path; path++) {
		if (strchr(plain, *path))
			(void)bs_buf_add(b, path, 1);
		else
			(void)bs_buf_addf(b, "%%%02X", (unsigned char)*path);
	}
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int bs_hdfs_hex(const char *two)
{
	int high = digit(two[0]), low = high < 0 ? -1 : digit(two[1]);

	return low < 0 ? -EINVAL : high << 4 | low;
}

int bs_hdfs_path_unescape(const char *text, char **ret)
{
	bs_autofree char *path = malloc(strlen(text) + 1);
	size_t n = 0;

	if (!path)
		return -ENOMEM;
	for (; *text; text++) {
		int byte;

		if (*text != '%') {
			path[n++] = *text;
			continue;
		}
		byte = bs_hdfs_hex(text + 1);
		if (byte <= 0)
			return -EINVAL;
		path[n++] = (char)byte;
		text += 2;
	}
	path[n] = '\0';
	*ret = bs_take(&path);
	return 0;
}

static bool is_callers(const char *param)
{
	static const char *const names[] = {
		"op=",	       "offset=",	"length=",     "noredirect=",
		"blocksize=",  "replication=",	"permission=", "unmaskedpermission=",
		"overwrite=",  "createparent=", "createflag=", "excludedatanodes=",
		"buffersize=",
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++) {
		if (strncasecmp(param, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

void bs_hdfs_location_params(struct bs_buf *b, const char *location)
{
	const char *at = strchr(location, '?');

	while (at && *at && *at != '#') {
		size_t len = strcspn(++at, "&#");

		if (len && !is_callers(at)) {
			(void)bs_buf_adds(b, "&");
			(void)bs_buf_add(b, at, len);
		}
		at += len;
	}
}
