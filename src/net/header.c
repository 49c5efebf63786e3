/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/header.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define RETRY_AFTER_MAX_S UINT64_C(86400)

static size_t token_len(const char *s)
{
	return strspn(s, "!#$%&'*+-.^_`|~0123456789"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
}

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

/* A token or a quoted string at *s; *s is moved behind it. -EBADMSG: it is neither. */
static int take_value(const char **s, char **ret)
{
	bs_autobuf b = BS_BUF_INIT(64 << 10);
	const char *at = *s;
	size_t len;

	if (*at != '"') {
		len = token_len(at);
		if (len == 0)
			return -EBADMSG;
		(void)bs_buf_add(&b, at, len);
		at += len;
	} else {
		for (at++; *at != '"'; at++) {
			if (*at == '\\')
				at++;
			if (*at == '\0')
				return -EBADMSG;
			(void)bs_buf_add(&b, at, 1);
		}
		at++;
	}
	*s = at;
	*ret = bs_buf_take(&b);
	return *ret ? 0 : -ENOMEM;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

/* --- WWW-Authenticate ------------------------------------------------------------------------ */

static char **challenge_field(struct bs_challenge *c, const char *name, size_t len)
{
	if (is_word(name, len, "realm"))
		return &c->realm;
	if (is_word(name, len, "service"))
		return &c->service;
	return is_word(name, len, "scope") ? &c->scope : NULL;
}

/* NAME = VALUE at s (behind the '='); kept when into is true. Returns where to go on. */
static const char *take_param(struct bs_challenge *c, bool into, const char *name, size_t len,
			      const char *s, int *ret_error)
{
	bs_autofree char *value = NULL;
	int r = take_value(&s, &value);
	char **field = into ? challenge_field(c, name, len) : NULL;

	if (r == -EBADMSG)
		return s + strcspn(s, ",");
	if (r < 0)
		*ret_error = r;
	else if (field && !*field)
		*field = bs_take(&value);
	return s;
}

int bs_header_challenge(const char *text, struct bs_challenge *ret)
{
	struct bs_challenge c = { 0 };
	bool into = false; /* the parameters that come belong to the Bearer we keep */
	const char *s = text;
	int r = 0;

	while (r == 0) {
		const char *name = s += strspn(s, " \t,");
		size_t len = token_len(s);

		if (*s == '\0')
			break;
		if (len == 0) { /* no list any more: look behind the next comma */
			s += strcspn(s, ",");
			continue;
		}
		s = skip_space(s + len);
		if (*s == '=') {
			s = take_param(&c, into, name, len, skip_space(s + 1), &r);
			continue;
		}
		into = !c.bearer && is_word(name, len, "Bearer");
		c.bearer |= into;
		c.basic |= is_word(name, len, "Basic");
	}
	if (r < 0)
		bs_challenge_done(&c);
	else
		*ret = c;
	return r;
}

void bs_challenge_done(struct bs_challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	*c = (struct bs_challenge){ 0 };
}

/* --- the others ------------------------------------------------------------------------------ */

/* Digits at *s up to a character of ends. */
static int take_number(const char **s, char end, uint64_t *ret)
{
	size_t len = strspn(*s, "0123456789");
	char text[24];

	if (len == 0 || len >= sizeof(text) || (*s)[len] != end)
		return -EBADMSG;
	memcpy(text, *s, len);
	text[len] = '\0';
	*s += len + (end != '\0');
	return bs_parse_u64(text, ret) < 0 ? -EBADMSG : 0;
}

int bs_header_content_range(const char *text, uint64_t *ret_first, uint64_t *ret_last,
			    uint64_t *ret_total)
{
	uint64_t first, last, total = UINT64_MAX;
	const char *s = text;

	if (strncasecmp(s, "bytes ", 6) != 0)
		return -EBADMSG;
	s = skip_space(s + 6);
	if (take_number(&s, '-', &first) < 0 || take_number(&s, '/', &last) < 0)
		return -EBADMSG;
	if (!bs_streq(s, "*") && take_number(&s, '\0', &total) < 0)
		return -EBADMSG;
	if (last < first || last == UINT64_MAX || total <= last)
		return -EBADMSG;
	*ret_first = first;
	*ret_last = last;
	*ret_total = total;
	return 0;
}

uint64_t bs_header_retry_after(const char *text, uint64_t wall_now_ns)
{
	uint64_t s = 0, now_s = wall_now_ns / BS_NS_PER_S;
	time_t date;

	/* several of them were joined: the first counts */
	if (text[strspn(text, "0123456789")] == '\0' || text[strspn(text, "0123456789")] == ',') {
		const char *at = text;
		int r = take_number(&at, text[strspn(text, "0123456789")], &s);

		if (r < 0)
			s = strspn(text, "0123456789") ? RETRY_AFTER_MAX_S : 0;
	} else {
		date = curl_getdate(text, NULL);
		/* a date of this very second still means: not at once */
		if (date > 0)
			s = (uint64_t)date > now_s ? (uint64_t)date - now_s : 1;
	}
	return BS_MIN(s, RETRY_AFTER_MAX_S) * BS_NS_PER_S;
}

/* Does one of the parameters at *s say rel=next? *s is moved behind them all. */
static bool rel_is_next(const char **s)
{
	bool next = false;

	for (;;) {
		bs_autofree char *value = NULL;
		const char *name;
		size_t len;

		*s = skip_space(*s);
		if (**s != ';')
			return next;
		name = *s = skip_space(*s + 1);
		len = token_len(name);
		*s = skip_space(name + len);
		if (**s != '=')
			continue;
		*s = skip_space(*s + 1);
		if (take_value(s, &value) < 0)
			return false;
		if (is_word(name, len, "rel")) {
			bs_autostrv rels = { 0 };

			next = bs_strv_split(&rels, value, " \t") == 0 &&
			       bs_strv_has(&rels, "next");
		}
	}
}

int bs_header_link_next(const char *text, char **ret_url)
{
	const char *s = text;

	while ((s = strchr(s, '<'))) {
		const char *end = strchr(s, '>'), *url = s + 1;

		if (!end)
			return -ENOENT;
		s = end + 1;
		if (rel_is_next(&s)) {
			*ret_url = bs_strf("%.*s", (int)(end - url), url);
			return *ret_url ? 0 : -ENOMEM;
		}
	}
	return -ENOENT;
}

char *bs_header_media_type(const char *text)
{
	char *type = bs_strf("%.*s", (int)strcspn(text, "; \t,"), text);

	for (char *c = type; c && *c; c++) {
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c + ('a' - 'A'));
	}
	return type;
}
