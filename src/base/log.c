/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define LINE_MAX_BYTES 8192

static const char *const level_names[] = { "error", "warning", "info", "debug" };
_Static_assert(sizeof(level_names) / sizeof(level_names[0]) == BS_LOG_LEVEL_MAX, "a name each");

static struct {
	const char *program;
	enum bs_log_level max;
	enum bs_log_level stderr_max;
	int fd;
	bool json;
} sink = { "bootseer", BS_LOG_INFO, BS_LOG_INFO, -1, false };

void bs_log_init(const char *program, enum bs_log_level max)
{
	sink.program = program;
	sink.max = sink.stderr_max = max;
}

void bs_log_to(int fd, bool json)
{
	sink.fd = fd;
	sink.json = json;
}

void bs_log_stderr_max(enum bs_log_level max)
{
	sink.stderr_max = max;
}

static void to_file(enum bs_log_level level, const char *text)
{
	bs_autobuf line = BS_BUF_INIT(2 * LINE_MAX_BYTES + 256);
	char when[BS_CLOCK_RFC3339_LEN];
	struct bs_jsonw *w;

	(void)bs_clock_rfc3339(bs_clock_wall_ns(), when);
	if (sink.json) {
		w = bs_jsonw_new(false);
		if (!w)
			return;
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "level", level_names[level]);
		bs_jsonw_key(w, "msg");
		bs_jsonw_bytes(w, text, strlen(text));
		bs_jsonw_kstr(w, "time", when);
		bs_jsonw_end(w);
		if (bs_jsonw_finish(w, &line) < 0)
			return;
	} else {
		(void)bs_buf_addf(&line, "time=\"%s\" level=%s msg=\"%s\"", when,
				  level_names[level], text);
	}
	(void)bs_buf_adds(&line, "\n");
	(void)bs_write_full(sink.fd, bs_buf_str(&line), line.len); /* nowhere to report it */
}

void bs_log(enum bs_log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	va_list ap;
	int n;

	if (level > sink.max)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' '; /* foreign text cannot forge lines or drive a terminal */
	}
	if (sink.fd >= 0)
		to_file(level, text);
	if (level > sink.stderr_max)
		return;
	n = snprintf(line, sizeof(line), "%s: %s%s\n", sink.program,
		     level == BS_LOG_WARNING ? "warning: " : "", text);
	if (n > 0)
		(void)bs_write_full(STDERR_FILENO, line, BS_MIN((size_t)n, sizeof(line) - 1));
}
