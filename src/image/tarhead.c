/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/tarhead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/nodes.h"

#define NS UINT32_C(1000000000)

/* Where the members of a header lie (ustar; the GNU and star forms agree on these). */
#define OFF_SIZE 124
#define OFF_TYPE 156

int bs_tarhead_time(const char *text, size_t len, int64_t *ret_s, uint32_t *ret_ns)
{
	bool negative = len > 0 && text[0] == '-';
	size_t i = negative ? 1 : 0, first = i, digits = 0;
	int64_t s = 0;
	uint32_t ns = 0;
	bool more = false;

	for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(s, 10, &s) ||
		    __builtin_add_overflow(s, text[i] - '0', &s))
			return -ERANGE;
	if (i == first)
		return -EINVAL;
	if (i < len && text[i] == '.') {
		for (i++; i < len && text[i] >= '0' && text[i] <= '9'; i++, digits++) {
			if (digits < 9)
				ns = ns * 10 + (uint32_t)(text[i] - '0');
			else
				more = more || text[i] != '0';
		}
		for (; digits < 9; digits++)
			ns *= 10;
	}
	if (i != len)
		return -EINVAL;
	if (negative) {
		/* -1.5 is the second -2 and half a second */
		s = -s;
		if (more)
			ns++;
		if (ns > 0 && ns <= NS) {
			s--;
			ns = NS - ns;
		}
	}
	*ret_s = s;
	*ret_ns = ns;
	return 0;
}

/* An octal or base-256 number; false when it is none or does not fit. */
static bool number(const uint8_t *p, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] & 0x80) {
		if (p[0] != 0x80)
			return false; /* negative, or above 2^64 */
		for (i = 1; i < len; i++) {
			if (v >> 56)
				return false;
			v = v << 8 | p[i];
		}
		*ret = v;
		return true;
	}
	while (i < len && (p[i] == ' ' || p[i] == 0))
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 61)
			return false;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return i == len || p[i] == ' ' || p[i] == 0;
}

static bool key_is(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(key, name, len) == 0;
}

static int record(struct bs_tarhead *h, struct bs_xset *xattrs, const char *key, size_t key_len,
		  const char *value, size_t len, struct bs_error *err)
{
	static const char schily[] = "SCHILY.xattr.";
	const size_t n = sizeof(schily) - 1;
	int r;

	if ((key_is(key, key_len, "path") || key_is(key, key_len, "linkpath") ||
	     key_is(key, key_len, "GNU.sparse.name")) &&
	    memchr(value, 0, len))
		return bs_fail(err, -EINVAL, "a NUL byte in the name");
	if (key_is(key, key_len, "mtime")) {
		if (bs_tarhead_time(value, len, &h->mtime_s, &h->mtime_ns) < 0)
			return bs_fail(err, -EINVAL, "bad mtime '%.*s'", (int)BS_MIN(len, 40u),
				       value);
		h->has_mtime = true;
	}
	if (key_len <= n || memcmp(key, schily, n) != 0)
		return 0;
	r = bs_xset_put(xattrs, key + n, key_len - n, value, len);
	if (r < 0)
		return bs_fail_errno(err, r, "extended attribute '%.*s'",
				     (int)BS_MIN(key_len - n, 64u), key + n);
	return 0;
}

/* "LEN KEY=VALUE\n" again and again. */
static int records(struct bs_tarhead *h, struct bs_xset *xattrs, const char *p, size_t len,
		   struct bs_error *err)
{
	while (len > 0) {
		size_t n = 0, i = 0, key_at;
		const char *eq;
		int r;

		for (; i < len && p[i] >= '0' && p[i] <= '9' && n <= len; i++)
			n = n * 10 + (size_t)(p[i] - '0');
		if (i == 0 || n > len || i >= len || p[i] != ' ' || n < i + 3 || p[n - 1] != '\n')
			return bs_fail(err, -EINVAL, "bad pax records");
		key_at = i + 1;
		eq = memchr(p + key_at, '=', n - 1 - key_at);
		if (!eq || eq == p + key_at)
			return bs_fail(err, -EINVAL, "bad pax records");
		r = record(h, xattrs, p + key_at, (size_t)(eq - p) - key_at, eq + 1,
			   (size_t)(p + n - 1 - (eq + 1)), err);
		if (r < 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}

int bs_tarhead_read(const uint8_t *data, size_t len, struct bs_tarhead *ret, struct bs_xset *xattrs,
		    struct bs_error *err)
{
	struct bs_tarhead h = { 0 };
	size_t at = 0;

	for (;;) {
		const uint8_t *block = data + at;
		uint64_t size;
		char type;
		int r;

		if (len - at < BS_TAR_BLOCK)
			return bs_fail(err, -EFBIG, "more extension headers than can be kept");
		type = (char)block[OFF_TYPE];
		if (!type || !strchr("xXgLKVA", type)) {
			h.type = type ? type : '0';
			*ret = h;
			return 0;
		}
		at += BS_TAR_BLOCK;
		if (!number(block + OFF_SIZE, 12, &size) ||
		    size > (len - at) / BS_TAR_BLOCK * BS_TAR_BLOCK)
			return bs_fail(err, -EFBIG, "more extension headers than can be kept");
		if (type == 'x' || type == 'X') {
			r = records(&h, xattrs, (const char *)data + at, (size_t)size, err);
			if (r < 0)
				return r;
		}
		at += (size_t)bs_div_up(size, BS_TAR_BLOCK) * BS_TAR_BLOCK;
	}
}
