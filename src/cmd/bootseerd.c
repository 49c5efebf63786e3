/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerd(8): the node's daemon. Its own parts start it again in other roles. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "daemon/ckptworker.h"
#include "daemon/jobs.h"
#include "daemon/keeper.h"
#include "daemon/leave.h"
#include "daemon/supervisor.h"
#include "daemon/systemd.h"
#include "daemon/worker.h"

#define LINK_FD 3 /* where a part finds its socket */

static const char help[] =
	"usage: bootseerd [--config FILE] [--background]\n"
	"\n"
	"Serves the node's lazily loaded images. Usually started by bootseer or systemd.\n"
	"\n"
	"  --config FILE   configuration, see bootseer.conf(5)\n"
	"  --background    leave the caller behind; return when the socket listens\n"
	"  --debug         log more\n"
	"  --help          this text\n"
	"  --version       the version\n"
	"\n"
	"SIGTERM ends it, SIGHUP replaces the worker. See bootseerd(8).\n";

struct options {
	const char *config;
	const char *role; /* of a part; not for people */
	const char *arg;
	bool background;
	bool debug;
};

static int parse(int argc, char **argv, struct options *o)
{
	enum { CONFIG = 256, BACKGROUND, ROLE, ARG, DEBUG, HELP, SHOW_VERSION };
	static const struct option table[] = {
		{ "config", required_argument, NULL, CONFIG },
		{ "background", no_argument, NULL, BACKGROUND },
		{ "role", required_argument, NULL, ROLE },
		{ "arg", required_argument, NULL, ARG },
		{ "debug", no_argument, NULL, DEBUG },
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, SHOW_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		switch (c) {
		case CONFIG:
			o->config = optarg;
			break;
		case BACKGROUND:
			o->background = true;
			break;
		case ROLE:
			o->role = optarg;
			break;
		case ARG:
			o->arg = optarg;
			break;
		case DEBUG:
			o->debug = true;
			break;
		case HELP:
			(void)fputs(help, stdout);
			exit(0);
		case SHOW_VERSION:
			(void)puts("bootseerd " PACKAGE_VERSION);
			exit(0);
		default:
			return -EINVAL;
		}
	}
	return optind == argc ? 0 : -EINVAL;
}

static int run_supervisor(const struct options *o, const struct bs_conf *conf, int keeper_link)
{
	struct bs_supervisor_options so = { .conf = conf,
					    .config_file = o->config,
					    .keeper_link = keeper_link,
					    .started_fd = -EBADF };
	struct bs_error err = BS_ERROR_INIT;

	bs_systemd_begin(!o->background);
	if (o->background && bs_leave(conf->run_dir, &so.started_fd, &err) < 0) {
		bs_log_error("%s", bs_error_text(&err));
		return 1;
	}
	return bs_supervisor_main(&so);
}

static int run_role(const struct options *o, const struct bs_conf *conf)
{
	const char *arg = o->arg ? o->arg : "";

	if (bs_streq(o->role, "supervisor"))
		return run_supervisor(o, conf, LINK_FD);
	if (bs_streq(o->role, "keeper"))
		return bs_keeper_main(o->config, LINK_FD);
	if (bs_streq(o->role, "worker"))
		return bs_worker_main(conf, LINK_FD);
	if (bs_streq(o->role, "ckpt"))
		return bs_ckptworker_main(conf, LINK_FD);
	if (bs_streq(o->role, "unpack"))
		return bs_job_unpack(arg);
	if (bs_streq(o->role, "credential"))
		return bs_job_credential(conf, arg);
	bs_log_error("no role '%s'", o->role);
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *config = NULL;
	static struct bs_conf conf; /* the worker's threads read it to the very end */

	bs_log_init("bootseerd", BS_LOG_INFO);
	if (parse(argc, argv, &o) < 0) {
		bs_log_error("bad arguments; see bootseerd --help");
		return 2;
	}
	if (o.debug)
		bs_log_init("bootseerd", BS_LOG_DEBUG);
	if (o.config) {
		config = realpath(o.config, NULL); /* "/" will be the working directory */
		if (!config) {
			bs_log_error("configuration '%s': %s", o.config, strerror(errno));
			return 1;
		}
		o.config = config;
	}
	if (bs_conf_read(o.config, &conf, &err) < 0) {
		bs_log_error("%s", bs_error_text(&err));
		return 1;
	}
	return o.role ? run_role(&o, &conf) : run_supervisor(&o, &conf, -EBADF);
}
