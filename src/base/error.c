/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put_text(struct bs_error *err, int code, const char *fmt, va_list ap)
{
	err->code = code;
	if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0)
		err->msg[0] = '\0';
}

static void append(struct bs_error *err, const char *text)
{
	size_t n = strlen(err->msg);

	(void)snprintf(err->msg + n, sizeof(err->msg) - n, "%s", text);
}

int bs_fail(struct bs_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	put_text(err, code, fmt, ap);
	va_end(ap);
	return code;
}

int bs_fail_errno(struct bs_error *err, int code, const char *fmt, ...)
{
	char buf[96];
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	put_text(err, code, fmt, ap);
	va_end(ap);
	append(err, ": ");
	append(err, strerror_r(-code, buf, sizeof(buf)));
	return code;
}

int bs_error_context(struct bs_error *err, const char *fmt, ...)
{
	struct bs_error old;
	va_list ap;

	if (!err)
		return -EIO;
	old = *err;
	va_start(ap, fmt);
	put_text(err, old.code, fmt, ap);
	va_end(ap);
	append(err, ": ");
	append(err, bs_error_text(&old));
	return err->code;
}

const char *bs_error_text(const struct bs_error *err)
{
	if (!err)
		return "unknown error";
	if (err->msg[0])
		return err->msg;
	return err->code ? strerrordesc_np(-err->code) ?: "unknown error" : "no error";
}
