/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/passthrough.h"

#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "shim/args.h"
#include "shim/report.h"
#include "shim/runc.h"

#define OUTPUT_MAX (1u << 20)

int bs_passthrough(const struct bs_runc *r, const struct bs_args *a)
{
	struct bs_error err = BS_ERROR_INIT;

	(void)bs_runc_exec(r, a, &err);
	return bs_report_failure(&err);
}

static bool ended_well(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int bs_passthrough_version(const struct bs_runc *r, const struct bs_args *a)
{
	static const char line[] = "bootseer: " PACKAGE_VERSION "\n";
	struct bs_error err = BS_ERROR_INIT;
	int status;

	if (bs_runc_run(r, a, &status, &err) < 0)
		return bs_report_failure(&err);
	if (ended_well(status) && bs_write_full(STDOUT_FILENO, line, sizeof(line) - 1) < 0)
		return 1;
	bs_runc_end_as(status);
}

/* Adds the annotation in which a runtime may say what it likes (features.md). */
static int annotate(const char *text, size_t len, struct bs_buf *out)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_json *annotations;
	int r = bs_json_parse("features", text, len, OUTPUT_MAX, &v, NULL);

	if (r < 0)
		return r;
	annotations = bs_json_make(v, "annotations", BS_JSON_OBJECT);
	if (!annotations)
		return -EINVAL;
	r = bs_json_set(annotations, "dev.bootseer.version", bs_json_new_str(PACKAGE_VERSION));
	if (r == 0)
		r = bs_json_write_pretty(v, out);
	return r == 0 ? bs_buf_adds(out, "\n") : r;
}

int bs_passthrough_features(const struct bs_runc *r, const struct bs_args *a)
{
	bs_autobuf out = BS_BUF_INIT(2 * OUTPUT_MAX);
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *text = NULL;
	size_t len = 0;
	int status;

	if (bs_runc_capture(r, a, OUTPUT_MAX, &text, &len, &status, &err) < 0)
		return bs_report_failure(&err);
	/* help texts and whatever else is no JSON object go out as they came */
	if (!ended_well(status) || annotate(text, len, &out) < 0) {
		bs_buf_clear(&out);
		(void)bs_buf_add(&out, text, len);
	}
	if (bs_write_full(STDOUT_FILENO, bs_buf_str(&out), out.len) < 0)
		return 1;
	bs_runc_end_as(status);
}
