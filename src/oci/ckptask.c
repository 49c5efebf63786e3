/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/ckptask.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"

#define MIB (UINT64_C(1) << 20)

enum kind { SOURCE, TARGET, USER, LAYOUT, UNIT, FILES, RO, RW, REQUIRED, KIND_MAX };

static const struct {
	const char *name;
	bool has_value;
	const char *right; /* as an error ends */
} words[] = {
	{ "source", true,
	  "hdfs://NAMESERVICE/PATH, webhdfs://HOST:PORT/PATH or swebhdfs://HOST:PORT/PATH with a "
	  "PATH without '..', '//' or '/' at its end" },
	{ "target", true,
	  "an absolute path without '..', '//' or '/' at its end, and not '/' nor in /proc, /sys "
	  "or /dev" },
	{ "user", true, "a name of at most 64 of A-Z a-z 0-9 _ . -, a letter or '_' first" },
	{ "layout", true, "striped or plain" },
	{ "unit", true, "a size that is a multiple of 1M, up to 1G" },
	{ "files", true, "a number from 1 to 64" },
	{ "ro", false, NULL },
	{ "rw", false, NULL },
	{ "required", true, "yes or no" },
};
_Static_assert(BS_ARRAY_LEN(words) == KIND_MAX, "a row each");

void bs_ckptask_done(struct bs_ckptask *a)
{
	free(a->text);
	*a = (struct bs_ckptask){ 0 };
}

void bs_ckptasks_done(struct bs_ckptasks *l)
{
	for (size_t i = 0; i < l->n; i++)
		bs_ckptask_done(&l->v[i]);
	l->n = 0;
}

/* --- values ------------------------------------------------------------------------------- */

static bool source_ok(const char *s)
{
	static const char *const schemes[] = { "hdfs://", "webhdfs://", "swebhdfs://" };
	const char *rest = NULL, *path;

	for (size_t i = 0; !rest && i < BS_ARRAY_LEN(schemes); i++)
		rest = bs_str_after(s, schemes[i]);
	path = rest ? strchr(rest, '/') : NULL;
	if (!path || !bs_path_is_clean(path))
		return false;
	for (const char *p = rest; p < path; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("._-:[]", *p))
			return false;
	}
	return path > rest || bs_str_after(s, "hdfs://");
}

static bool target_ok(const char *s)
{
	return bs_path_is_clean(s) && s[1] && !bs_path_is_below(s, "/proc") &&
	       !bs_path_is_below(s, "/sys") && !bs_path_is_below(s, "/dev");
}

static bool user_ok(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (const char *p = s; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("_.-", *p))
			return false;
	}
	return strlen(s) <= BS_CKPTASK_USER_MAX;
}

static bool set(struct bs_ckptask *a, enum kind kind, const char *value)
{
	bool yes;

	switch (kind) {
	case SOURCE:
		a->source = value;
		return source_ok(value);
	case TARGET:
		a->target = value;
		return target_ok(value);
	case USER:
		a->user = value;
		return user_ok(value);
	case LAYOUT:
		a->layout = value;
		return bs_streq(value, "striped") || bs_streq(value, "plain");
	case UNIT:
		return bs_parse_size(value, &a->unit) == 0 && a->unit > 0 && a->unit % MIB == 0 &&
		       a->unit <= BS_CKPTASK_UNIT_MAX;
	case FILES:
		return bs_parse_u64(value, &a->files) == 0 && a->files > 0 &&
		       a->files <= BS_CKPTASK_FILES_MAX;
	case RO:
	case RW:
		a->writable = kind == RW;
		return true;
	case REQUIRED:
		if (bs_parse_bool(value, &yes) < 0)
			return false;
		a->need = yes ? BS_CKPTASK_REQUIRED : BS_CKPTASK_OPTIONAL;
		return true;
	case KIND_MAX:
	default:
		return false;
	}
}

static int one(char *word, struct bs_ckptask *a, unsigned int *seen, struct bs_error *err)
{
	/* ro and rw are two words for one thing */
	const unsigned int both = 1u << RO | 1u << RW;
	char *value = strchr(word, '=');
	unsigned int bit, kind = 0;

	if (value)
		*value++ = '\0';
	while (kind < KIND_MAX && !bs_streq(words[kind].name, word))
		kind++;
	if (kind == KIND_MAX)
		return bs_fail(err, -EINVAL,
			       "'%.40s' is unknown; it may have source, target, ro, rw, user, "
			       "layout, unit, files, required",
			       word);
	bit = 1u << kind & both ? both : 1u << kind;
	if (*seen & bit)
		return bs_fail(err, -EINVAL, "'%s' is given twice", word);
	*seen |= bit;
	if (!words[kind].has_value && value)
		return bs_fail(err, -EINVAL, "'%s' takes no value", word);
	if (words[kind].has_value && (!value || !*value))
		return bs_fail(err, -EINVAL, "'%s' needs a value: %s", word, words[kind].right);
	if (!set(a, (enum kind)kind, value ? value : ""))
		return bs_fail(err, -EINVAL, "%s '%.80s%s' must be %s", word, value,
			       strlen(value) > 80 ? "…" : "", words[kind].right);
	return 0;
}

/* What no option's value has, and no log should show. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	}
	return true;
}

int bs_ckptask_parse(const char *value, struct bs_ckptask *ret, struct bs_error *err)
{
	struct bs_ckptask a = { 0 };
	/* engines there are which take an annotation with a comma for two */
	const char *between = strchr(value, ',') ? "," : ";";
	unsigned int seen = 0;
	char *at, *word;
	int r = 0;

	if (strlen(value) > BS_CKPTASK_VALUE_MAX)
		return bs_fail(err, -EINVAL, "it is longer than %u bytes", BS_CKPTASK_VALUE_MAX);
	if (!is_plain(value) || !bs_utf8_valid(value, strlen(value)))
		return bs_fail(err, -EINVAL, "it has control characters, or is no UTF-8");
	at = a.text = strdup(value);
	if (!at)
		return bs_fail(err, -ENOMEM, "out of memory");
	while (r == 0 && (word = strsep(&at, between)))
		r = one(word, &a, &seen, err);
	if (r == 0 && !a.source)
		r = bs_fail(err, -EINVAL, "'source' is missing: %s", words[SOURCE].right);
	if (r == 0 && !a.target)
		r = bs_fail(err, -EINVAL, "'target' is missing: %s%s", words[TARGET].right,
			    strpbrk(value, ",;") ? ""
						 : "; where the engine cuts at commas, write ';' "
						   "between the words");
	if (r < 0)
		bs_ckptask_done(&a);
	else
		*ret = a;
	return r;
}

/* --- all of them ---------------------------------------------------------------------------- */

/* The name that a key gives the mount, or NULL: it is another key. */
static const char *name_of(const char *key)
{
	const char *rest = bs_str_after(key, BS_CKPTASK_KEY);

	if (!rest || (*rest && *rest != '.'))
		return NULL;
	return *rest ? rest + 1 : rest;
}

bool bs_ckptask_is_key(const char *key)
{
	return name_of(key) != NULL;
}

static bool name_ok(const char *name)
{
	for (const char *p = name; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("_-", *p))
			return false;
	}
	return *name && strlen(name) <= BS_CKPTASK_NAME_MAX;
}

static int add(struct bs_ckptasks *l, const char *key, const struct bs_json *value,
	       struct bs_error *err)
{
	const char *name = name_of(key), *text = bs_json_str(value);
	struct bs_ckptask *a = &l->v[l->n];
	int r;

	if (!text)
		return bs_fail(err, -EINVAL, "it is no string");
	if (key[strlen(BS_CKPTASK_KEY)] && !name_ok(name))
		return bs_fail(err, -EINVAL,
			       "the name behind the '.' may have 1 to %u of A-Z a-z 0-9 _ -",
			       BS_CKPTASK_NAME_MAX);
	if (l->n == BS_CKPTASKS_MAX)
		return bs_fail(err, -EINVAL, "there may be %u at most", BS_CKPTASKS_MAX);
	r = bs_ckptask_parse(text, a, err);
	if (r < 0)
		return r;
	(void)strncpy(a->name, name, sizeof(a->name) - 1);
	a->name[sizeof(a->name) - 1] = '\0';
	l->n++;
	for (size_t i = 0; i + 1 < l->n; i++) {
		/* one would cover the other, or make a directory in it */
		if (bs_path_is_below(l->v[i].target, a->target) ||
		    bs_path_is_below(a->target, l->v[i].target))
			return bs_fail(err, -EINVAL,
				       "target '%.80s' and another's, '%.80s', are the same or lie "
				       "one in the other",
				       a->target, l->v[i].target);
	}
	return 0;
}

int bs_ckptasks_read(const struct bs_json *annotations, struct bs_ckptasks *ret,
		     struct bs_error *err)
{
	ret->n = 0;
	for (size_t i = 0; i < bs_json_n(annotations); i++) {
		const char *key = annotations->keys[i];
		int r;

		if (!bs_ckptask_is_key(key))
			continue;
		r = add(ret, key, annotations->items[i], err);
		if (r < 0)
			return bs_error_context(err, "annotation '%.80s'", key), r;
	}
	return 0;
}
