/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/dispatch.h"

#include "base/error.h"
#include "base/log.h"
#include "ctl/conf.h"
#include "shim/args.h"
#include "shim/create.h"
#include "shim/delete.h"
#include "shim/passthrough.h"
#include "shim/report.h"
#include "shim/runc.h"

static int carry_out(const struct bs_conf *c, const struct bs_runc *r, const struct bs_args *a)
{
	switch (a->command) {
	case BS_COMMAND_VERSION:
		return bs_passthrough_version(r, a);
	case BS_COMMAND_FEATURES:
		return bs_passthrough_features(r, a);
	case BS_COMMAND_CREATE:
	case BS_COMMAND_RUN:
	case BS_COMMAND_RESTORE:
		return bs_create(c, r, a);
	case BS_COMMAND_DELETE:
		return bs_delete(c, r, a);
	case BS_COMMAND_OTHER:
	case BS_COMMAND_MAX:
		break;
	}
	return bs_passthrough(r, a);
}

/* Whether a container is made: then nothing may be guessed. All else must work in spite of us. */
static bool makes_container(const struct bs_args *a)
{
	return a->command == BS_COMMAND_CREATE || a->command == BS_COMMAND_RUN ||
	       a->command == BS_COMMAND_RESTORE;
}

int bs_dispatch(int argc, char **argv)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_runc runc = { 0 };
	struct bs_conf conf;
	struct bs_args args;
	int r;

	bs_args_parse(argc, argv, &args);
	bs_report_init(&args);
	r = bs_conf_read(NULL, &conf, &err);
	if (r < 0 && (makes_container(&args) || !conf.runtime)) {
		r = bs_report_failure(&err);
	} else {
		if (r < 0)
			bs_log_warning("%s; continuing with the rest", bs_error_text(&err));
		r = bs_runc_find(&conf, &runc, &err);
		r = r < 0 ? bs_report_failure(&err) : carry_out(&conf, &runc, &args);
	}
	bs_runc_done(&runc);
	bs_conf_done(&conf);
	return r;
}
