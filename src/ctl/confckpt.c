/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The policy of section [checkpoint], and what else concerns HDFS. */
#include "config.h"

#include "ctl/conf.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"

/* Behind "SCHEME://AUTHORITY", or NULL. */
static const char *path_of(const char *url)
{
	const char *rest = strstr(url, "://");

	return rest ? strchr(rest + 3, '/') : NULL;
}

/*
 * The same scheme and authority, to the letter, as Hadoop's configuration is searched for
 * them, and a path at or below the other's.
 */
static bool is_below(const char *url, const char *dir)
{
	const char *path = path_of(url), *top = path_of(dir);

	return path && top && path - url == top - dir &&
	       strncmp(url, dir, (size_t)(path - url)) == 0 && bs_path_is_clean(path) &&
	       bs_path_is_below(path, top);
}

bool bs_conf_is_below_any(const char *url, const struct bs_strv *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		if (is_below(url, dirs->v[i]))
			return true;
	}
	return false;
}

static bool has_target(const struct bs_conf *c, const char *target)
{
	for (size_t i = 0; i < c->ckpt_allow_targets.n; i++) {
		if (bs_path_is_below(target, c->ckpt_allow_targets.v[i]))
			return true;
	}
	return false;
}

static bool has_user(const struct bs_conf *c, const char *user)
{
	return !user || bs_streq(user, c->ckpt_user) || bs_strv_has(&c->ckpt_allow_users, user) ||
	       bs_strv_has(&c->ckpt_allow_users, "*");
}

static int refuse(const struct bs_conf *c, const char *what, const char *which, const char *remedy,
		  struct bs_error *err)
{
	return bs_fail(err, -EPERM,
		       "%s '%.200s' is not allowed here: %s in section [checkpoint] of '%s'", what,
		       which, remedy, c->file);
}

int bs_conf_allows_ckpt(const struct bs_conf *c, const struct bs_conf_ckpt *q, struct bs_error *err)
{
	if (!bs_conf_is_below_any(q->source, &c->ckpt_allow_sources))
		return refuse(c, "source", q->source,
			      "add a directory that it is below to 'allow_sources'", err);
	if (!has_target(c, q->target))
		return refuse(c, "target", q->target,
			      "add a directory that it is below to 'allow_targets'", err);
	if (!has_user(c, q->user))
		return refuse(c, "user", q->user, "add it to 'allow_users'", err);
	if (q->writable && !c->ckpt_allow_writes)
		return refuse(c, "writing to", q->source,
			      "ask for 'ro', or set 'allow_writes = yes'", err);
	return 0;
}

char *bs_conf_hdfs_options(const struct bs_conf *c)
{
	bs_autobuf b = BS_BUF_INIT(65536);

	for (size_t i = 0; i < c->hdfs_options.n; i++)
		(void)bs_buf_addf(&b, "%s%s", i ? "," : "", c->hdfs_options.v[i]);
	return b.error ? NULL : strdup(bs_buf_str(&b));
}
