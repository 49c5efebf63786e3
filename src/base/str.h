/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Small string helpers. None of them changes its input. */
#ifndef BS_BASE_STR_H
#define BS_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool bs_streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* What stands behind prefix in s, or NULL when s does not begin with it. */
const char *bs_str_after(const char *s, const char *prefix);

bool bs_str_ends(const char *s, const char *suffix);

/* malloc'ed text, or NULL when out of memory. */
char *bs_strf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Valid UTF-8 (RFC 3629: no surrogates, no overlong forms), NUL bytes allowed. */
bool bs_utf8_valid(const char *s, size_t len);

/*
 * A foreign name for a terminal (malloc'ed, NULL: out of memory): bytes that are no UTF-8,
 * control characters and those that reorder or hide text are "\ooo", a backslash is two.
 */
char *bs_str_shown(const char *s, size_t len);

/* A NULL-terminated list of strings that owns its strings. */
struct bs_strv {
	char **v; /* NULL while empty */
	size_t n;
	size_t cap;
};

void bs_strv_done(struct bs_strv *l);
#define bs_autostrv __attribute__((cleanup(bs_strv_done))) struct bs_strv

/* Appends a copy (or takes s, also when it fails, -ENOMEM). */
int bs_strv_add(struct bs_strv *l, const char *s);
int bs_strv_take(struct bs_strv *l, char *s);
int bs_strv_addf(struct bs_strv *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool bs_strv_has(const struct bs_strv *l, const char *s);

/* Adds the pieces of s between runs of white space or commas; empty pieces are skipped. */
int bs_strv_split(struct bs_strv *l, const char *s, const char *separators);

/* Of a list as "a,b=c,d": whether word is in it, and no opposite behind the last one. */
bool bs_str_option(const char *list, const char *word, const char *opposite);

#endif
