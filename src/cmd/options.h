/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Command lines by table: "--name VALUE", "--name=VALUE", "-n VALUE", and help text
 * made from the same table. Options may stand between arguments; "--" ends them.
 */
#ifndef BS_CMD_OPTIONS_H
#define BS_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct bs_error;

enum bs_option_kind {
	BS_OPTION_FLAG, /* bool, becomes true */
	BS_OPTION_BOOL, /* bool, with a value, as --name=false */
	BS_OPTION_TEXT, /* const char * */
	BS_OPTION_U32,	/* uint32_t */
	BS_OPTION_LIST, /* struct bs_strv, each time one more */
	BS_OPTION_KIND_MAX
};

struct bs_option {
	const char *name;
	char letter; /* 0: none */
	enum bs_option_kind kind;
	void *to;
	const char *value; /* its name in the help; NULL with BS_OPTION_FLAG */
	const char *help;
};

struct bs_usage {
	const char *synopsis; /* "bootseerctl image convert SRC DST [OPTION]..." */
	const char *text;     /* what it does; lines of at most 80 columns */
	const struct bs_option *options;
	size_t n_options;
	unsigned int min_args, max_args;
};

/*
 * Reads argv from [1] on. args gets the arguments (the caller's array of max_args).
 * 0; 1 after --help was shown; -EINVAL with what is wrong.
 */
int bs_options_parse(const struct bs_usage *u, int argc, char **argv, const char **args,
		     unsigned int *ret_n, struct bs_error *err);

void bs_options_help(const struct bs_usage *u, FILE *f);

#endif
