/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cmd/options.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"

#define HELP_COLUMN 26

void bs_options_help(const struct bs_usage *u, FILE *f)
{
	fprintf(f, "usage: %s\n%s", u->synopsis, u->text);
	fprintf(f, "options:\n");
	for (size_t i = 0; i < u->n_options; i++) {
		const struct bs_option *o = &u->options[i];
		char left[64];
		int n;

		n = snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
			     o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
			     o->value ? (o->kind == BS_OPTION_BOOL ? "=" : " ") : "",
			     o->value ? o->value : "");
		if (n < HELP_COLUMN)
			fprintf(f, "%-*s%s\n", HELP_COLUMN, left, o->help);
		else
			fprintf(f, "%s\n%*s%s\n", left, HELP_COLUMN, "", o->help);
	}
	fprintf(f, "%-*s%s\n", HELP_COLUMN, "  -h, --help", "show this text");
}

static const struct bs_option *find(const struct bs_usage *u, const char *name, size_t len,
				    char letter)
{
	for (size_t i = 0; i < u->n_options; i++) {
		const struct bs_option *o = &u->options[i];

		if (letter ? o->letter == letter
			   : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	}
	return NULL;
}

static int set(const struct bs_option *o, const char *value, struct bs_error *err)
{
	int r = 0;

	switch (o->kind) {
	case BS_OPTION_FLAG:
		*(bool *)o->to = true;
		break;
	case BS_OPTION_BOOL:
		r = bs_parse_bool(value, o->to);
		break;
	case BS_OPTION_TEXT:
		*(const char **)o->to = value;
		break;
	case BS_OPTION_U32:
		r = bs_parse_u32(value, o->to);
		break;
	case BS_OPTION_LIST:
		r = bs_strv_add(o->to, value);
		break;
	case BS_OPTION_KIND_MAX:
	default:
		r = -EINVAL;
	}
	return r < 0 ? bs_fail(err, -EINVAL, "--%s: '%s' is no %s", o->name, value,
			       o->value ? o->value : "value")
		     : 0;
}

/* One option at argv[*i], and its value when that is the next word. */
static int option(const struct bs_usage *u, int argc, char **argv, int *i, struct bs_error *err)
{
	const char *word = argv[*i], *value = NULL;
	const struct bs_option *o;

	if (word[1] == '-') {
		const char *equals = strchr(word, '=');
		size_t len = equals ? (size_t)(equals - word - 2) : strlen(word + 2);

		o = find(u, word + 2, len, 0);
		value = equals ? equals + 1 : NULL;
	} else {
		o = find(u, NULL, 0, word[1]);
		value = word[2] ? word + 2 : NULL;
	}
	if (!o)
		return bs_fail(err, -EINVAL, "unknown option '%s'", word);
	if (o->kind == BS_OPTION_FLAG && value)
		return bs_fail(err, -EINVAL, "option '--%s' takes no value", o->name);
	if (o->kind == BS_OPTION_BOOL && !value)
		value = "true";
	if (o->kind != BS_OPTION_FLAG && !value) {
		if (*i + 1 >= argc)
			return bs_fail(err, -EINVAL, "option '--%s' needs a value", o->name);
		value = argv[++*i];
	}
	return set(o, value, err);
}

int bs_options_parse(const struct bs_usage *u, int argc, char **argv, const char **args,
		     unsigned int *ret_n, struct bs_error *err)
{
	unsigned int n = 0;
	bool only_args = false;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		int r;

		if (!only_args && (bs_streq(word, "--help") || bs_streq(word, "-h"))) {
			bs_options_help(u, stdout);
			return 1;
		}
		if (!only_args && bs_streq(word, "--")) {
			only_args = true;
			continue;
		}
		if (!only_args && word[0] == '-' && word[1]) {
			r = option(u, argc, argv, &i, err);
			if (r < 0)
				return r;
			continue;
		}
		if (n == u->max_args)
			return bs_fail(err, -EINVAL, "one argument too many: '%s'", word);
		args[n++] = word;
	}
	if (n < u->min_args)
		return bs_fail(err, -EINVAL, "%u argument%s missing", u->min_args - n,
			       u->min_args - n == 1 ? " is" : "s are");
	*ret_n = n;
	return 0;
}
