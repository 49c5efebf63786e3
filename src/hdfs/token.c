/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int value_of(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	if (at)
		return (int)(at - digits);
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place of text's length three quarters of it; -EINVAL. */
static int decode64(const char *text, size_t len, uint8_t *to, size_t *ret_len)
{
	uint32_t bits = 0;
	unsigned int n_bits = 0;
	size_t n = 0;

	while (len && text[len - 1] == '=')
		len--;
	if (len % 4 == 1)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		int v = value_of(text[i]);

		if (v < 0)
			return -EINVAL;
		bits = (bits << 6 | (uint32_t)v) & 0xffffff;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			to[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	*ret_len = n;
	return 0;
}

static char *encode64(const uint8_t *p, size_t len)
{
	char *text = malloc(len / 3 * 4 + 5);
	size_t n = 0;

	for (size_t i = 0; text && i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < len ? p[i + 2] : 0;
		text[n++] = digits[v >> 18];
		text[n++] = digits[v >> 12 & 63];
		if (i + 1 < len)
			text[n++] = digits[v >> 6 & 63];
		if (i + 2 < len)
			text[n++] = digits[v & 63];
	}
	if (text)
		text[n] = '\0';
	return text;
}

void bs_token_done(struct bs_token *t)
{
	free(t->bytes);
	*t = (struct bs_token){ 0 };
}

bool bs_token_is_empty(const struct bs_token *t)
{
	return t->identifier.len == 0 && t->password.len == 0;
}

/* The four parts of a Writable token. */
static int read_token(struct bs_wire *w, struct bs_token *ret)
{
	struct bs_span *parts[] = { &ret->identifier, &ret->password, &ret->kind, &ret->service };

	for (size_t i = 0; i < BS_ARRAY_LEN(parts); i++) {
		if (bs_wire_vbytes(w, parts[i]) < 0)
			return -EINVAL;
	}
	return 0;
}

int bs_token_decode(const char *text, struct bs_token *ret)
{
	struct bs_token t = { 0 };
	size_t len = strlen(text);
	struct bs_wire w;
	int r;

	if (len > BS_TOKEN_TEXT_MAX)
		return -EINVAL;
	t.bytes = malloc(len + 1);
	if (!t.bytes)
		return -ENOMEM;
	r = decode64(text, len, t.bytes, &len);
	if (r == 0) {
		w = bs_wire(t.bytes, len);
		r = read_token(&w, &t);
	}
	if (r < 0) {
		bs_token_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

static void put_part(struct bs_buf *b, struct bs_span s)
{
	bs_wire_put_vint(b, (int64_t)s.len);
	(void)bs_buf_add(b, s.p, s.len);
}

char *bs_token_encode(struct bs_span identifier, struct bs_span password, struct bs_span kind,
		      struct bs_span service)
{
	bs_autobuf b = BS_BUF_INIT(BS_TOKEN_FILE_MAX);

	put_part(&b, identifier);
	put_part(&b, password);
	put_part(&b, kind);
	put_part(&b, service);
	return b.error ? NULL : encode64((const uint8_t *)bs_buf_str(&b), b.len);
}

/* --- files ----------------------------------------------------------------------------------- */

struct search {
	const char *const *services;
	size_t n_services;
	struct bs_token found; /* bytes stay NULL: the file's */
	bool any;
};

static bool span_is(struct bs_span s, const char *text)
{
	return s.len == strlen(text) && (s.len == 0 || memcmp(s.p, text, s.len) == 0);
}

static void look_at(struct search *s, const struct bs_token *t)
{
	bool kind = span_is(t->kind, "HDFS_DELEGATION_TOKEN") ||
		    span_is(t->kind, "WEBHDFS delegation") ||
		    span_is(t->kind, "SWEBHDFS delegation");

	for (size_t i = 0; kind && !s->any && i < s->n_services; i++) {
		if (!span_is(t->service, s->services[i]))
			continue;
		s->found = *t;
		s->any = true;
	}
}

static int read_writable(struct bs_wire *w, struct search *s)
{
	int64_t n;

	if (bs_wire_vint(w, &n) < 0 || n < 0 || n > (int64_t)BS_TOKEN_FILE_TOKENS_MAX)
		return -EINVAL;
	for (; n > 0; n--) {
		struct bs_token t = { 0 };
		struct bs_span alias;

		if (bs_wire_vbytes(w, &alias) < 0 || read_token(w, &t) < 0)
			return -EINVAL;
		look_at(s, &t);
	}
	return 0; /* secret keys follow; none of them is ours */
}

static int read_token_message(struct bs_span message, struct bs_token *ret)
{
	struct bs_wire w = bs_wire(message.p, message.len);
	struct bs_span *parts[] = { &ret->identifier, &ret->password, &ret->kind, &ret->service };
	struct bs_wire_field f;
	int r;

	while ((r = bs_wire_next(&w, &f)) > 0) {
		if (f.number < 1 || f.number > BS_ARRAY_LEN(parts))
			continue;
		if (f.type != BS_WIRE_BYTES)
			return -EINVAL;
		*parts[f.number - 1] = f.bytes;
	}
	return r < 0 ? -EINVAL : 0;
}

/* CredentialsKVProto: alias, token, secret. */
static int read_pair(struct bs_span message, struct search *s)
{
	struct bs_wire w = bs_wire(message.p, message.len);
	struct bs_wire_field f;
	int r;

	while ((r = bs_wire_next(&w, &f)) > 0) {
		struct bs_token t = { 0 };

		if (f.number != 2)
			continue;
		if (f.type != BS_WIRE_BYTES || read_token_message(f.bytes, &t) < 0)
			return -EINVAL;
		look_at(s, &t);
	}
	return r < 0 ? -EINVAL : 0;
}

static int read_protobuf(struct bs_wire *w, struct search *s)
{
	struct bs_wire_field f;
	uint64_t len;
	int r;

	if (bs_wire_varint(w, &len) < 0 || len > (uint64_t)(w->end - w->p))
		return -EINVAL;
	w->end = w->p + len;
	for (unsigned int n = 0; (r = bs_wire_next(w, &f)) > 0; n++) {
		if (f.number != 1)
			continue;
		if (f.type != BS_WIRE_BYTES || n > BS_TOKEN_FILE_TOKENS_MAX)
			return -EINVAL;
		r = read_pair(f.bytes, s);
		if (r < 0)
			return r;
	}
	return r < 0 ? -EINVAL : 0;
}

int bs_token_from_file(const char *what, const void *bytes, size_t len, const char *const *services,
		       size_t n_services, char **ret, struct bs_error *err)
{
	struct search s = { .services = services, .n_services = n_services };
	const uint8_t *p = bytes;
	struct bs_wire w;
	int r;

	if (len > BS_TOKEN_FILE_MAX)
		return bs_fail(err, -EFBIG, "%s: too big for a token file", what);
	if (len < 5 || memcmp(p, "HDTS", 4) != 0)
		return bs_fail(err, -EINVAL, "%s: no Hadoop token file", what);
	w = bs_wire(p + 5, len - 5);
	if (p[4] > 1)
		return bs_fail(err, -EINVAL, "%s: a token file of unknown format %u", what, p[4]);
	r = p[4] == 0 ? read_writable(&w, &s) : read_protobuf(&w, &s);
	if (r < 0)
		return bs_fail(err, r, "%s: a broken token file", what);
	if (!s.any)
		return bs_fail(err, -ENOENT, "%s: holds no delegation token for %s", what,
			       n_services ? services[0] : "this service");
	*ret = bs_token_encode(s.found.identifier, s.found.password, s.found.kind, s.found.service);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "%s: out of memory", what);
}
