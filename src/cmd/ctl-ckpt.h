/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the commands `bootseerctl ckpt …` share; private to src/cmd. */
#ifndef BS_CMD_CTL_CKPT_H
#define BS_CMD_CTL_CKPT_H

#include <stdbool.h>

#include "cmd/options.h"
#include "hdfs/mount.h"

struct bs_error;

/* The options that all of them have. */
struct ctl_ckpt_how {
	const char *config, *options;
	bool json;
};
#define CTL_CKPT_OPTIONS(H)                                                                        \
	{ "options",	 'o',	 BS_OPTION_TEXT,                                                   \
	  &(H)->options, "LIST", "user=NAME, conf=DIR, …: see mount.bootseer-hdfs(8)" },           \
	{                                                                                          \
		"config", 'c', BS_OPTION_TEXT, &(H)->config, "FILE",                               \
			"configuration, see bootseer.conf(5)"                                      \
	}

bool ctl_ckpt_is_url(const char *text);
/* The host's options and those of the command line, in this order; malloc'ed. */
int ctl_ckpt_options(const struct ctl_ckpt_how *how, char **ret, struct bs_error *err);
/* The HDFS that url means, with options that are to live as long. extra: NULL, or the last ones. */
int ctl_ckpt_connect(const struct ctl_ckpt_how *how, const char *url, const char *extra,
		     struct bs_mount_options *o, struct bs_mounted **ret, struct bs_error *err);

/* Lists a directory of HDFS. */
int ctl_ckpt_ls_url(const struct ctl_ckpt_how *how, const char *url);

int ctl_ckpt_info(int argc, char **argv);
int ctl_ckpt_verify(int argc, char **argv);
int ctl_ckpt_gc(int argc, char **argv);
int ctl_ckpt_export(int argc, char **argv);
int ctl_ckpt_import(int argc, char **argv);

#endif
