/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/parse.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* Digits at the start of s; *ret_end is what follows them. */
static int digits(const char *s, uint64_t *ret, const char **ret_end)
{
	uint64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (!bs_mul_u64(v, 10, &v) || !bs_add_u64(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	}
	if (p == s)
		return -EINVAL;
	*ret = v;
	*ret_end = p;
	return 0;
}

int bs_parse_u64(const char *s, uint64_t *ret)
{
	const char *end;
	uint64_t v;
	int r = digits(s, &v, &end);

	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret = v;
	return 0;
}

int bs_parse_u32(const char *s, uint32_t *ret)
{
	uint64_t v;
	int r = bs_parse_u64(s, &v);

	if (r < 0)
		return r;
	if (v > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)v;
	return 0;
}

int bs_parse_i64(const char *s, int64_t *ret)
{
	bool negative = s[0] == '-';
	uint64_t v;
	int r = bs_parse_u64(s + negative, &v);

	if (r < 0)
		return r;
	if (v > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

static int with_unit(const char *s, const struct unit *units, uint64_t *ret)
{
	const char *end;
	uint64_t v;
	int r = digits(s, &v, &end);

	if (r < 0)
		return r;
	for (; units->name; units++) {
		if (!bs_streq(end, units->name))
			continue;
		if (!bs_mul_u64(v, units->factor, &v))
			return -ERANGE;
		*ret = v;
		return 0;
	}
	return -EINVAL;
}

int bs_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", 1ull << 10 },
		{ "M", 1ull << 20 },
		{ "G", 1ull << 30 },
		{ "T", 1ull << 40 },
		{ "KiB", 1ull << 10 },
		{ "MiB", 1ull << 20 },
		{ "GiB", 1ull << 30 },
		{ "TiB", 1ull << 40 },
		{ NULL, 0 },
	};

	return with_unit(s, units, ret_bytes);
}

int bs_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", 1000000000 },	{ "ns", 1 },	     { "us", 1000 },
		{ "ms", 1000000 },	{ "s", 1000000000 }, { "m", 60000000000 },
		{ "h", 3600000000000 }, { NULL, 0 },
	};

	return with_unit(s, units, ret_ns);
}

int bs_parse_bool(const char *s, bool *ret)
{
	static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

	for (size_t i = 0; i < BS_ARRAY_LEN(words); i++) {
		if (bs_streq(s, words[i])) {
			*ret = i % 2;
			return 0;
		}
	}
	return -EINVAL;
}
