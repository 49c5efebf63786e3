/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/jsonw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/buf.h"
#include "base/str.h"

#define BS_UTF8_MAX 4 /* bytes of the longest UTF-8 character */
#define DEPTH_MAX 127 /* yajl_gen fails at 128 (YAJL_MAX_DEPTH) */

struct bs_jsonw {
	yajl_gen gen;
	bool object[DEPTH_MAX]; /* what is open, for bs_jsonw_end */
	size_t depth;
	int error;
};

struct bs_jsonw *bs_jsonw_new(bool pretty)
{
	struct bs_jsonw *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->gen = yajl_gen_alloc(NULL);
	if (!w->gen)
		return bs_jsonw_free(w);
	(void)yajl_gen_config(w->gen, yajl_gen_validate_utf8, 1);
	if (pretty) {
		(void)yajl_gen_config(w->gen, yajl_gen_beautify, 1);
		(void)yajl_gen_config(w->gen, yajl_gen_indent_string, "  ");
	}
	return w;
}

struct bs_jsonw *bs_jsonw_free(struct bs_jsonw *w)
{
	if (w && w->gen)
		yajl_gen_free(w->gen);
	free(w);
	return NULL;
}

static void check(struct bs_jsonw *w, yajl_gen_status st)
{
	if (st != yajl_gen_status_ok && !w->error)
		w->error = -EINVAL;
}

static bool push(struct bs_jsonw *w, bool object)
{
	if (w->depth == DEPTH_MAX) {
		w->error = -EINVAL;
		return false;
	}
	w->object[w->depth++] = object;
	return true;
}

void bs_jsonw_object(struct bs_jsonw *w)
{
	if (!w->error && push(w, true))
		check(w, yajl_gen_map_open(w->gen));
}

void bs_jsonw_array(struct bs_jsonw *w)
{
	if (!w->error && push(w, false))
		check(w, yajl_gen_array_open(w->gen));
}

void bs_jsonw_end(struct bs_jsonw *w)
{
	if (w->error)
		return;
	if (w->depth == 0) {
		w->error = -EINVAL;
		return;
	}
	check(w, w->object[--w->depth] ? yajl_gen_map_close(w->gen) : yajl_gen_array_close(w->gen));
}

void bs_jsonw_strn(struct bs_jsonw *w, const char *text, size_t len)
{
	if (!w->error)
		check(w, yajl_gen_string(w->gen, (const unsigned char *)text, len));
}

void bs_jsonw_str(struct bs_jsonw *w, const char *text)
{
	bs_jsonw_strn(w, text, strlen(text));
}

void bs_jsonw_key(struct bs_jsonw *w, const char *key)
{
	bs_jsonw_str(w, key);
}

void bs_jsonw_bytes(struct bs_jsonw *w, const char *bytes, size_t len)
{
	bs_autobuf clean = BS_BUF_INIT(SIZE_MAX - 1);

	if (bs_utf8_valid(bytes, len)) {
		bs_jsonw_strn(w, bytes, len);
		return;
	}
	while (len > 0) {
		size_t n = BS_UTF8_MAX;

		/* the longest valid character that starts here, or one bad byte */
		while (n > 0 && (n > len || !bs_utf8_valid(bytes, n)))
			n--;
		if (n == 0)
			(void)bs_buf_adds(&clean, "\xef\xbf\xbd");
		else
			(void)bs_buf_add(&clean, bytes, n);
		bytes += n ? n : 1;
		len -= n ? n : 1;
	}
	if (clean.error && !w->error)
		w->error = clean.error;
	bs_jsonw_strn(w, bs_buf_str(&clean), clean.len);
}

void bs_jsonw_number_text(struct bs_jsonw *w, const char *text, size_t len)
{
	if (!w->error)
		check(w, yajl_gen_number(w->gen, text, len));
}

void bs_jsonw_u64(struct bs_jsonw *w, uint64_t v)
{
	char buf[24];

	bs_jsonw_number_text(w, buf, (size_t)snprintf(buf, sizeof(buf), "%" PRIu64, v));
}

void bs_jsonw_i64(struct bs_jsonw *w, int64_t v)
{
	char buf[24];

	bs_jsonw_number_text(w, buf, (size_t)snprintf(buf, sizeof(buf), "%" PRId64, v));
}

void bs_jsonw_bool(struct bs_jsonw *w, bool v)
{
	if (!w->error)
		check(w, yajl_gen_bool(w->gen, v));
}

void bs_jsonw_null(struct bs_jsonw *w)
{
	if (!w->error)
		check(w, yajl_gen_null(w->gen));
}

void bs_jsonw_kstr(struct bs_jsonw *w, const char *key, const char *text)
{
	bs_jsonw_key(w, key);
	bs_jsonw_str(w, text);
}

void bs_jsonw_ku64(struct bs_jsonw *w, const char *key, uint64_t v)
{
	bs_jsonw_key(w, key);
	bs_jsonw_u64(w, v);
}

void bs_jsonw_kbool(struct bs_jsonw *w, const char *key, bool v)
{
	bs_jsonw_key(w, key);
	bs_jsonw_bool(w, v);
}

int bs_jsonw_finish(struct bs_jsonw *w, struct bs_buf *out)
{
	const unsigned char *text = NULL;
	size_t len = 0;
	int r = w->error;

	if (!r && (w->depth > 0 || yajl_gen_get_buf(w->gen, &text, &len) != yajl_gen_status_ok ||
		   len == 0))
		r = -EINVAL;
	if (!r)
		r = bs_buf_add(out, text, len);
	(void)bs_jsonw_free(w);
	return r;
}
