/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/report.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "shim/args.h"

static const struct {
	const char *word;
	const char *instead; /* not longer */
} words[] = {
	{ "no such file or directory", "it does not exist" },
	{ "no such file", "not there" },
	{ "permission denied", "access refused" },
	{ "executable file not found", "program is missing" },
	{ "operation not permitted", "not allowed" },
};

void bs_report_neutral(char *text)
{
	for (size_t i = 0; i < BS_ARRAY_LEN(words); i++) {
		const size_t n = strlen(words[i].word), m = strlen(words[i].instead);

		for (char *p; (p = strcasestr(text, words[i].word));) {
			memcpy(p, words[i].instead, m);
			memmove(p + m, p + n, strlen(p + n) + 1);
		}
	}
}

void bs_report_init(const struct bs_args *a)
{
	bs_log_init("bootseer", a->debug ? BS_LOG_DEBUG : BS_LOG_INFO);
	/* with a log, standard error is for what went wrong: an engine may show all of it */
	if (a->log && a->log[0] && !bs_streq(a->log, "/dev/stderr")) {
		int fd = open(a->log, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0644);

		if (fd >= 0)
			bs_log_to(fd, a->log_json);
	}
	bs_log_stderr_max(BS_LOG_WARNING);
}

int bs_report_failure(const struct bs_error *err)
{
	char text[BS_ERROR_MSG_MAX];

	(void)strncpy(text, bs_error_text(err), sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	bs_report_neutral(text);
	bs_log_error("%s", text);
	return 1;
}
