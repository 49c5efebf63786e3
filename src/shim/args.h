/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The command line of runc (and crun), as far as we must understand it.
 *
 * Nothing is ever refused here: what we cannot make sense of is the wrapped
 * runtime's to judge, and it gets argv as it came. Options that we do not know are
 * skipped; a word behind one of them counts as its value only when that is the one
 * way to still find a command or an ID. All strings point into argv.
 */
#ifndef BS_SHIM_ARGS_H
#define BS_SHIM_ARGS_H

#include <stdbool.h>

enum bs_command {
	BS_COMMAND_OTHER, /* passed through, whatever it is */
	BS_COMMAND_CREATE,
	BS_COMMAND_RUN,
	BS_COMMAND_RESTORE,
	BS_COMMAND_DELETE,
	BS_COMMAND_FEATURES,
	BS_COMMAND_VERSION, /* --version */
	BS_COMMAND_MAX
};

struct bs_args {
	int argc;
	char **argv;
	enum bs_command command;
	/* globals; NULL or false when not given */
	const char *log;
	bool log_json;
	bool debug;
	const char *root;
	/* of create, run, restore, delete */
	const char *bundle; /* "." when not given */
	const char *config; /* crun's --config: a file in the place of config.json */
	const char *id;	    /* NULL: none found */
	bool detach;
	bool keep;
	bool force;
	bool regex; /* crun delete --regex */
	bool help;  /* the command's help was asked for */
};

void bs_args_parse(int argc, char **argv, struct bs_args *ret);

/* With ".json" and a root's mark behind it, still a file name. */
#define BS_ARGS_ID_MAX 220

/* Whether runc takes it for an ID; also good as a file name with a suffix behind. */
bool bs_args_id_ok(const char *id);

#endif
