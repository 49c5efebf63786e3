/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/human.h"

#include <stdio.h>

#include "base/mem.h"

static const char *put(double v, const char *per, char buf[BS_HUMAN_LEN])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t u = 0;

	/* what would be rounded to 1024 is 1.0 of the next */
	for (; v >= 1023.5 && u + 1 < BS_ARRAY_LEN(units); u++)
		v /= 1024;
	(void)snprintf(buf, BS_HUMAN_LEN, "%.*f %s%s", u > 0 && v < 99.95 ? 1 : 0, v, units[u],
		       per);
	return buf;
}

const char *bs_human_bytes(uint64_t bytes, char buf[BS_HUMAN_LEN])
{
	return put((double)bytes, "", buf);
}

const char *bs_human_rate(uint64_t bytes, uint64_t ns, char buf[BS_HUMAN_LEN])
{
	return put(ns ? (double)bytes * 1e9 / (double)ns : 0, "/s", buf);
}
