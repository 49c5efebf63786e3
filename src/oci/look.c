/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/look.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oci/annot.h"

/*
 * The walk knows brackets and strings only. A string is a member's name when a ':'
 * follows it. in[1] and in[2] are what the last name at depth 1 and 2 meant; anything
 * deeper is skipped.
 */
enum member { OTHER, ROOT, ANNOTATIONS, PATH };

struct walk {
	const char *p, *end;
	size_t depth;
	enum member at1, at2;
	struct bs_look *look;
};

static int hex4(const char *p, const char *end, uint32_t *ret)
{
	uint32_t v = 0;

	if (end - p < 4)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef", *at;

		at = strchr(digits, p[i] >= 'A' && p[i] <= 'F' ? p[i] + 32 : p[i]);
		if (!at || !p[i])
			return -EINVAL;
		v = v * 16 + (uint32_t)(at - digits);
	}
	*ret = v;
	return 0;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Reads the escape behind a backslash at p into *to; what is behind it. */
static const char *take_escape(const char *p, const char *end, char **to)
{
	static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
	const char *at = *p ? strchr(from, *p) : NULL;
	uint32_t c, low;

	if (*p == 'u' && hex4(p + 1, end, &c) == 0) {
		p += 5;
		if ((c & 0xfc00) == 0xd800 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
		    hex4(p + 2, end, &low) == 0 && (low & 0xfc00) == 0xdc00) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			p += 6;
		}
		*to = put_utf8(*to, (c & 0xfffff800) == 0xd800 ? 0xfffd : c);
		return p;
	}
	*(*to)++ = at ? into[at - from] : *p;
	return p + 1;
}

/* The string that begins behind the quote at w->p, decoded, malloc'ed; w->p goes behind it. */
static char *take_string(struct walk *w, size_t *ret_len)
{
	const char *p = w->p + 1, *close = p;
	char *out, *to;

	while (close < w->end && *close != '"')
		close += *close == '\\' && close + 1 < w->end ? 2 : 1;
	/* an escape is never shorter than what it stands for */
	out = to = malloc((size_t)(close - p) + 1);
	if (!out)
		return NULL;
	while (p < close) {
		if (*p == '\\' && p + 1 < close)
			p = take_escape(p + 1, close, &to);
		else
			*to++ = *p++;
	}
	*to = '\0';
	*ret_len = (size_t)(to - out);
	w->p = close < w->end ? close + 1 : close;
	return out;
}

/* Equal for a reader that ignores case as Go's does: U+017F is an s, U+212A a k. */
static bool fold_equal(const char *text, size_t len, const char *name)
{
	const char *end = text + len;

	for (; *name && text < end; name++) {
		if (*name == 's' && end - text >= 2 && memcmp(text, "\xc5\xbf", 2) == 0)
			text += 2;
		else if (*name == 'k' && end - text >= 3 && memcmp(text, "\xe2\x84\xaa", 3) == 0)
			text += 3;
		else if (*text == *name || (*text >= 'A' && *text <= 'Z' && *text + 32 == *name))
			text++;
		else
			return false;
	}
	return !*name && text == end;
}

static void take_name(struct walk *w, const char *name, size_t len)
{
	if (w->depth == 1) {
		w->at1 = fold_equal(name, len, "root")		? ROOT
			 : fold_equal(name, len, "annotations") ? ANNOTATIONS
								: OTHER;
		w->at2 = OTHER;
	} else if (w->depth == 2) {
		w->at2 = w->at1 == ROOT && fold_equal(name, len, "path") ? PATH : OTHER;
		if (w->at1 == ANNOTATIONS && bs_str_after(name, BS_ANNOT_PREFIX))
			w->look->annotation = true;
	}
}

static int take_value(struct walk *w, const char *value)
{
	struct bs_strv *roots = &w->look->roots;

	if (w->depth != 2 || w->at2 != PATH || bs_strv_has(roots, value))
		return 0;
	if (roots->n >= BS_LOOK_ROOTS_MAX) {
		w->look->too_many = true;
		return 0;
	}
	return bs_strv_add(roots, value);
}

static int step_string(struct walk *w)
{
	size_t len = 0;
	bs_autofree char *s = take_string(w, &len);

	if (!s)
		return -ENOMEM;
	while (w->p < w->end && strchr(" \t\r\n", *w->p) && *w->p)
		w->p++;
	if (w->p < w->end && *w->p == ':')
		take_name(w, s, len);
	else
		return take_value(w, s);
	return 0;
}

int bs_look(const char *text, size_t len, struct bs_look *ret)
{
	struct walk w = { .p = text, .end = text + len, .look = ret };
	int r = 0;

	*ret = (struct bs_look){ 0 };
	while (r == 0 && w.p < w.end) {
		switch (*w.p) {
		case '"':
			r = step_string(&w);
			continue;
		case '{':
		case '[':
			w.depth++;
			break;
		case '}':
		case ']':
			w.depth -= w.depth > 0;
			break;
		default:
			break;
		}
		w.p++;
	}
	if (r < 0)
		bs_look_done(ret);
	return r;
}

void bs_look_done(struct bs_look *l)
{
	bs_strv_done(&l->roots);
	*l = (struct bs_look){ 0 };
}
