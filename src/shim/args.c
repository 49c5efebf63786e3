/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/args.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum kind { VALUE, FLAG };

struct option {
	const char *name; /* without dashes */
	enum kind kind;
	uint16_t to;	 /* offset in struct bs_args; 0: known, of no use to us */
	uint8_t command; /* only there; 0: all */
};

#define TO(member) ((uint16_t)offsetof(struct bs_args, member))

/* Before the command; runc's, and those that only crun has. */
static const struct option globals[] = {
	{ "log", VALUE, TO(log), 0 },	 { "log-format", VALUE, TO(log_json), 0 },
	{ "root", VALUE, TO(root), 0 },	 { "criu", VALUE, 0, 0 },
	{ "rootless", VALUE, 0, 0 },	 { "cgroup-manager", VALUE, 0, 0 },
	{ "debug", FLAG, TO(debug), 0 }, { "systemd-cgroup", FLAG, 0, 0 },
};

static const struct option locals[] = {
	{ "bundle", VALUE, TO(bundle), 0 },
	{ "b", VALUE, TO(bundle), 0 },
	{ "force", FLAG, TO(force), BS_COMMAND_DELETE },
	{ "f", FLAG, TO(force), BS_COMMAND_DELETE },
	{ "regex", FLAG, TO(regex), BS_COMMAND_DELETE },
	{ "r", FLAG, TO(regex), BS_COMMAND_DELETE },
	{ "config", VALUE, TO(config), 0 },
	{ "f", VALUE, TO(config), 0 },
	{ "detach", FLAG, TO(detach), 0 },
	{ "d", FLAG, TO(detach), 0 },
	{ "keep", FLAG, TO(keep), 0 },
	{ "help", FLAG, TO(help), 0 },
	{ "h", FLAG, TO(help), 0 },
	{ "?", FLAG, TO(help), 0 },
	{ "usage", FLAG, TO(help), 0 },
	{ "console-socket", VALUE, 0, 0 },
	{ "pid-file", VALUE, 0, 0 },
	{ "pidfd-socket", VALUE, 0, 0 },
	{ "preserve-fds", VALUE, 0, 0 },
	{ "image-path", VALUE, 0, 0 },
	{ "work-path", VALUE, 0, 0 },
	{ "manage-cgroups-mode", VALUE, 0, 0 },
	{ "empty-ns", VALUE, 0, 0 },
	{ "lsm-profile", VALUE, 0, 0 },
	{ "lsm-mount-context", VALUE, 0, 0 },
	{ "no-subreaper", FLAG, 0, 0 },
	{ "no-pivot", FLAG, 0, 0 },
	{ "no-new-keyring", FLAG, 0, 0 },
	{ "tcp-established", FLAG, 0, 0 },
	{ "ext-unix-sk", FLAG, 0, 0 },
	{ "shell-job", FLAG, 0, 0 },
	{ "file-locks", FLAG, 0, 0 },
	{ "auto-dedup", FLAG, 0, 0 },
	{ "lazy-pages", FLAG, 0, 0 },
};

/* Commands that we look into. */
static const struct {
	const char *name;
	enum bs_command command;
} ours[] = {
	{ "create", BS_COMMAND_CREATE },     { "run", BS_COMMAND_RUN },
	{ "restore", BS_COMMAND_RESTORE },   { "delete", BS_COMMAND_DELETE },
	{ "features", BS_COMMAND_FEATURES },
};

/* The others, so that a word behind an unknown option can be told from its value. */
static const char *const others[] = {
	"checkpoint", "events", "exec",	 "kill",  "list",   "mounts", "pause", "ps",
	"resume",     "spec",	"start", "state", "update", "help",   "h",
};

static bool find_command(const char *word, enum bs_command *ret)
{
	for (size_t i = 0; i < BS_ARRAY_LEN(ours); i++) {
		if (bs_streq(ours[i].name, word)) {
			*ret = ours[i].command;
			return true;
		}
	}
	for (size_t i = 0; i < BS_ARRAY_LEN(others); i++) {
		if (bs_streq(others[i], word)) {
			*ret = BS_COMMAND_OTHER;
			return true;
		}
	}
	return false;
}

static const struct option *find_option(const struct option *table, size_t n, const char *name,
					size_t len, enum bs_command command)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0 &&
		    (table[i].command == 0 || table[i].command == command))
			return &table[i];
	}
	return NULL;
}

/* Go's flag package: "=0", "=f", "=false" and so on unset a flag. */
static bool flag_truth(const char *value)
{
	return !value || !strchr("0fF", value[0]);
}

static void store(struct bs_args *a, const struct option *o, const char *value)
{
	char *at = (char *)a + o->to;

	if (o->to == 0)
		return;
	if (o->kind == FLAG)
		*(bool *)(void *)at = flag_truth(value);
	else if (o->to == TO(log_json))
		a->log_json = value && bs_streq(value, "json");
	else
		*(const char **)(void *)at = value;
}

enum word { WORD_PLAIN, WORD_END, WORD_KNOWN, WORD_UNKNOWN };

/*
 * Takes the option at argv[*i] with its value, leaving *i at its last word. UNKNOWN
 * says that the next word may be its value; one with "=" inside is KNOWN in that sense.
 */
static enum word take_option(struct bs_args *a, const struct option *table, size_t n, int *i)
{
	const char *word = a->argv[*i], *name, *value;
	const struct option *o;
	size_t len;

	if (word[0] != '-' || word[1] == '\0')
		return WORD_PLAIN;
	if (bs_streq(word, "--"))
		return WORD_END;
	name = word + (word[1] == '-' ? 2 : 1); /* Go takes "-root" as "--root" */
	len = strcspn(name, "=");
	value = name[len] ? name + len + 1 : NULL;
	o = find_option(table, n, name, len, a->command);
	if (!o && word[1] != '-') {
		/* crun's "-bDIR" */
		o = find_option(table, n, name, 1, a->command);
		if (o && o->kind == VALUE)
			value = name + 1;
		else
			o = NULL;
	}
	if (!o)
		return value ? WORD_KNOWN : WORD_UNKNOWN;
	if (o->kind == VALUE && !value) {
		if (*i + 1 >= a->argc)
			return WORD_KNOWN;
		value = a->argv[++*i];
	}
	store(a, o, value);
	return WORD_KNOWN;
}

/* Runs over the global options; the index of the command's word, argc when there is none. */
static int parse_globals(struct bs_args *a)
{
	bool maybe_value = false;

	for (int i = 1; i < a->argc; i++) {
		const char *word = a->argv[i];
		enum word w;

		if (bs_streq(word, "--version") || bs_streq(word, "-v") ||
		    bs_streq(word, "-version") || bs_streq(word, "-V")) {
			a->command = BS_COMMAND_VERSION;
			return a->argc;
		}
		w = take_option(a, globals, BS_ARRAY_LEN(globals), &i);
		if (w == WORD_END)
			return i + 1;
		if (w == WORD_PLAIN) {
			enum bs_command unused;

			if (!maybe_value || find_command(word, &unused))
				return i;
		}
		maybe_value = w == WORD_UNKNOWN;
	}
	return a->argc;
}

/* The options of one command may stand before and behind the ID. */
static void parse_locals(struct bs_args *a, int first)
{
	const char *certain = NULL, *maybe = NULL;
	bool maybe_value = false;

	for (int i = first; i < a->argc; i++) {
		enum word w = take_option(a, locals, BS_ARRAY_LEN(locals), &i);

		if (w == WORD_END) {
			if (i + 1 < a->argc)
				certain = a->argv[a->argc - 1];
			break;
		}
		if (w == WORD_PLAIN) {
			if (maybe_value)
				maybe = a->argv[i];
			else
				certain = a->argv[i];
		}
		maybe_value = w == WORD_UNKNOWN;
	}
	a->id = certain ?: maybe;
}

void bs_args_parse(int argc, char **argv, struct bs_args *ret)
{
	int at;

	*ret = (struct bs_args){ .argc = argc, .argv = argv };
	at = parse_globals(ret);
	if (at >= argc)
		return;
	if (!find_command(argv[at], &ret->command) || ret->command == BS_COMMAND_OTHER)
		return;
	parse_locals(ret, at + 1);
	if (!ret->bundle)
		ret->bundle = ".";
}

bool bs_args_id_ok(const char *id)
{
	size_t n = strlen(id);

	if (n == 0 || n > BS_ARGS_ID_MAX || bs_streq(id, ".") || bs_streq(id, ".."))
		return false;
	/* runc: ^[\w+-\.]+$ */
	return strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+,-.") ==
	       n;
}
