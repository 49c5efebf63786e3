/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

const char *bs_str_after(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

bool bs_str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static char *vstrf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
static char *vstrf(const char *fmt, va_list ap)
{
	char *text = NULL;

	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

char *bs_strf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = vstrf(fmt, ap);
	va_end(ap);
	return text;
}

/* The length of the valid sequence at s, 0 when there is none. */
static size_t utf8_sequence(const uint8_t *s, size_t left)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		n = 2;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		n = 3;
		if (s[0] == 0xe0)
			low = 0xa0;
		if (s[0] == 0xed)
			high = 0x9f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		n = 4;
		if (s[0] == 0xf0)
			low = 0x90;
		if (s[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (left < n || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

bool bs_utf8_valid(const char *s, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;

	while (len > 0) {
		size_t n = utf8_sequence(p, len);

		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

static uint32_t code_point(const uint8_t *s, size_t n)
{
	static const uint8_t first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = s[0] & first[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Characters that drive a terminal, reorder text, or are not seen. */
static bool is_shy(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} shy[] = {
		{ 0, 0x1f },	    { '\\', '\\' },	{ 0x7f, 0x9f },	    { 0xad, 0xad },
		{ 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(shy); i++)
		if (c >= shy[i].from && c <= shy[i].to)
			return true;
	return false;
}

char *bs_str_shown(const char *s, size_t len)
{
	char *text = len < SIZE_MAX / 4 ? malloc(4 * len + 1) : NULL, *to = text;

	for (size_t i = 0; text && i < len;) {
		const uint8_t *at = (const uint8_t *)s + i;
		const size_t valid = utf8_sequence(at, len - i), n = valid ? valid : 1;
		const bool plain = valid && !is_shy(code_point(at, n));

		for (size_t k = 0; k < n; k++) {
			if (plain) {
				*to++ = (char)at[k];
			} else if (at[k] == '\\') {
				*to++ = '\\';
				*to++ = '\\';
			} else {
				*to++ = '\\';
				*to++ = (char)('0' + (at[k] >> 6));
				*to++ = (char)('0' + (at[k] >> 3 & 7));
				*to++ = (char)('0' + (at[k] & 7));
			}
		}
		i += n;
	}
	if (text)
		*to = '\0';
	return text;
}

void bs_strv_done(struct bs_strv *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct bs_strv){ 0 };
}

int bs_strv_take(struct bs_strv *l, char *s)
{
	if (!s || bs_grow(&l->v, &l->cap, l->n + 2, sizeof(*l->v)) < 0) {
		free(s);
		return -ENOMEM;
	}
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
	return 0;
}

int bs_strv_add(struct bs_strv *l, const char *s)
{
	return bs_strv_take(l, strdup(s));
}

int bs_strv_addf(struct bs_strv *l, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = vstrf(fmt, ap);
	va_end(ap);
	return bs_strv_take(l, text);
}

bool bs_strv_has(const struct bs_strv *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++) {
		if (bs_streq(l->v[i], s))
			return true;
	}
	return false;
}

int bs_strv_split(struct bs_strv *l, const char *s, const char *separators)
{
	for (s += strspn(s, separators); *s; s += strspn(s, separators)) {
		size_t n = strcspn(s, separators);
		int r = bs_strv_take(l, strndup(s, n));

		if (r < 0)
			return r;
		s += n;
	}
	return 0;
}

bool bs_str_option(const char *list, const char *word, const char *opposite)
{
	bool on = false;

	while (*list) {
		const size_t len = strcspn(list, ",");

		if (len == strlen(word) && strncmp(list, word, len) == 0)
			on = true;
		else if (len == strlen(opposite) && strncmp(list, opposite, len) == 0)
			on = false;
		list += len + (list[len] == ',');
	}
	return on;
}
