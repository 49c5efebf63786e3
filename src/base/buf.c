/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void bs_buf_done(struct bs_buf *b)
{
	free(b->data);
	*b = BS_BUF_INIT(b->max);
}

void *bs_buf_reserve(struct bs_buf *b, size_t len)
{
	size_t want;

	if (b->error)
		return NULL;
	if (__builtin_add_overflow(b->len, len, &want) || want > b->max || want == SIZE_MAX) {
		b->error = -E2BIG;
		return NULL;
	}
	if (bs_grow(&b->data, &b->cap, want + 1, 1) < 0) {
		b->error = -ENOMEM;
		return NULL;
	}
	return b->data + b->len;
}

void bs_buf_commit(struct bs_buf *b, size_t len)
{
	b->len += len;
	b->data[b->len] = '\0';
}

int bs_buf_add(struct bs_buf *b, const void *bytes, size_t len)
{
	void *to = bs_buf_reserve(b, len);

	if (!to)
		return b->error;
	if (len)
		memcpy(to, bytes, len);
	bs_buf_commit(b, len);
	return 0;
}

int bs_buf_adds(struct bs_buf *b, const char *text)
{
	return bs_buf_add(b, text, strlen(text));
}

int bs_buf_addf(struct bs_buf *b, const char *fmt, ...)
{
	bs_autofree char *text = NULL;
	va_list ap;
	int n;

	if (b->error)
		return b->error;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return b->error = -ENOMEM;
	}
	return bs_buf_add(b, text, (size_t)n);
}

const char *bs_buf_str(const struct bs_buf *b)
{
	return b->data ? b->data : "";
}

char *bs_buf_take(struct bs_buf *b)
{
	char *data;

	if (!bs_buf_reserve(b, 0))
		return NULL;
	data = b->data;
	data[b->len] = '\0';
	*b = BS_BUF_INIT(b->max);
	return data;
}

void bs_buf_clear(struct bs_buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data)
		b->data[0] = '\0';
}
