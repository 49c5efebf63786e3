/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "ctl/program.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "dirs.h"

const char *bs_program_conf_file(void)
{
	return BS_SYSCONFDIR "/bootseer/bootseer.conf";
}

/* Adds DIR/MORE/NAME, once. */
static int add(struct bs_strv *places, const char *dir, const char *more, const char *name)
{
	bs_autofree char *raw = bs_strf("%s%s/%s", dir, more, name);
	bs_autofree char *path = raw ? bs_path_clean(raw) : NULL;

	if (!path)
		return -ENOMEM;
	return bs_strv_has(places, path) ? 0 : bs_strv_add(places, path);
}

static int list(struct bs_strv *places, const char *self, const char *name)
{
	static const char *const beside[] = { "", "/../sbin", "/../bin" };
	const char *const installed[] = { BS_SBINDIR, BS_BINDIR };
	const char *slash = strrchr(self, '/');
	bs_autofree char *dir = bs_strf("%.*s", slash ? (int)(slash - self) : 0, self);
	int r = dir ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && slash && i < BS_ARRAY_LEN(beside); i++)
		r = add(places, dir, beside[i], name);
	for (size_t i = 0; r == 0 && i < BS_ARRAY_LEN(installed); i++)
		r = add(places, installed[i], "", name);
	return r;
}

static int not_found(const struct bs_strv *places, const char *name, const struct bs_conf *conf,
		     struct bs_error *err)
{
	bs_autofree char *text = NULL;

	for (size_t i = 0; i < places->n; i++) {
		char *more = bs_strf("%s%s'%s'", text ? text : "", text ? ", " : "", places->v[i]);

		free(text);
		text = more;
	}
	if (!conf || !bs_streq(name, "bootseerd"))
		return bs_fail(err, -ENOENT, "no %s is installed: there is none of %s", name,
			       text ? text : "the usual");
	return bs_fail(err, -ENOENT,
		       "no bootseerd is installed: there is none of %s; 'daemon' in section [node] "
		       "of '%s' can name another",
		       text ? text : "the usual", conf->file);
}

int bs_program_find(const char *name, const struct bs_conf *conf, const char *self, char **ret,
		    struct bs_error *err)
{
	bs_autostrv places = { 0 };
	char own[PATH_MAX] = "";
	int r;

	if (conf && conf->daemon[0] && bs_streq(name, "bootseerd")) {
		if (access(conf->daemon, X_OK) < 0)
			return bs_fail_errno(
				err, -errno,
				"run '%s', which is 'daemon' in section [node] of '%s'",
				conf->daemon, conf->file);
		*ret = strdup(conf->daemon);
		return *ret ? 0 : bs_fail(err, -ENOMEM, "find bootseerd: out of memory");
	}
	if (!self && readlink("/proc/self/exe", own, sizeof(own) - 1) > 0)
		self = own;
	r = list(&places, self ? self : "", name);
	for (size_t i = 0; r == 0 && i < places.n; i++) {
		if (access(places.v[i], X_OK) < 0)
			continue;
		*ret = strdup(places.v[i]);
		return *ret ? 0 : bs_fail(err, -ENOMEM, "find %s: out of memory", name);
	}
	return r < 0 ? bs_fail(err, r, "find %s: out of memory", name)
		     : not_found(&places, name, conf, err);
}
