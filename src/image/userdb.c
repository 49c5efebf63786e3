/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/userdb.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"

#define FIELDS_MAX 7u

struct field {
	const char *p;
	size_t len;
};

/* The fields of the line at *p, which moves to the next one; 0 at the end. */
static size_t next_line(const char **p, struct field f[FIELDS_MAX])
{
	const char *at = *p, *end = at + strcspn(at, "\n");
	size_t n = 0;

	if (!*at)
		return 0;
	while (n < FIELDS_MAX) {
		const char *colon = memchr(at, ':', (size_t)(end - at));

		f[n].p = at;
		f[n].len = (size_t)((colon ? colon : end) - at);
		n++;
		if (!colon)
			break;
		at = colon + 1;
	}
	*p = *end ? end + 1 : end;
	return n;
}

static bool number(const struct field *f, uint32_t *ret)
{
	char text[16];

	if (f->len == 0 || f->len >= sizeof(text))
		return false;
	memcpy(text, f->p, f->len);
	text[f->len] = 0;
	return bs_parse_u32(text, ret) == 0 && *ret != UINT32_MAX;
}

static bool is(const struct field *f, const struct field *name)
{
	return f->len == name->len && memcmp(f->p, name->p, f->len) == 0;
}

static struct field text_field(const char *s, size_t len)
{
	return (struct field){ s, len };
}

struct passwd_line {
	struct field name, home;
	uint32_t uid, gid;
};

/* The first line that the name, or else the number, is in. */
static bool find_user(const char *passwd, const struct field *who, struct passwd_line *ret)
{
	struct field f[FIELDS_MAX];
	uint32_t wanted = 0;
	bool numeric = number(who, &wanted);
	size_t n;

	while ((n = next_line(&passwd, f)) > 0) {
		struct passwd_line l = { .name = f[0] };

		if (n < 4 || !number(&f[2], &l.uid) || !number(&f[3], &l.gid))
			continue;
		if (n > 5)
			l.home = f[5];
		if (is(&f[0], who) || (numeric && l.uid == wanted)) {
			*ret = l;
			return true;
		}
	}
	return false;
}

static bool find_group(const char *group, const struct field *who, uint32_t *ret)
{
	struct field f[FIELDS_MAX];
	size_t n;

	while ((n = next_line(&group, f)) > 0)
		if (n >= 3 && is(&f[0], who) && number(&f[2], ret))
			return true;
	return number(who, ret);
}

static bool has_member(const struct field *members, const struct field *name)
{
	const char *p = members->p, *end = p + members->len;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		struct field one = { p, (size_t)((comma ? comma : end) - p) };

		if (is(&one, name))
			return true;
		p += one.len + 1;
	}
	return false;
}

static int add_group(struct bs_user *u, size_t *cap, uint32_t gid)
{
	size_t at = 0;

	while (at < u->n_groups && u->groups[at] < gid)
		at++;
	if ((at < u->n_groups && u->groups[at] == gid) || u->n_groups >= BS_USERDB_GROUPS_MAX)
		return 0;
	if (bs_grow(&u->groups, cap, u->n_groups + 1, sizeof(*u->groups)) < 0)
		return -ENOMEM;
	memmove(u->groups + at + 1, u->groups + at, (u->n_groups - at) * sizeof(*u->groups));
	u->groups[at] = gid;
	u->n_groups++;
	return 0;
}

static int find_groups(const char *group, const struct field *name, struct bs_user *u)
{
	struct field f[FIELDS_MAX];
	size_t n, cap = 0;
	uint32_t gid;

	while ((n = next_line(&group, f)) > 0)
		if (n >= 4 && number(&f[2], &gid) && has_member(&f[3], name) &&
		    add_group(u, &cap, gid) < 0)
			return -ENOMEM;
	return 0;
}

static int find(const char *passwd, const char *group, const char *spec, struct bs_user *u,
		struct bs_error *err)
{
	const char *colon = strchr(spec, ':');
	struct field who = text_field(spec, colon ? (size_t)(colon - spec) : strlen(spec));
	struct field which = text_field(colon ? colon + 1 : "", colon ? strlen(colon + 1) : 0);
	struct passwd_line line = { 0 };
	bool found;

	if (who.len == 0)
		who = text_field("0", 1);
	found = find_user(passwd, &who, &line);
	if (found) {
		u->uid = line.uid;
		u->gid = line.gid;
	} else if (!number(&who, &u->uid)) {
		return bs_fail(err, -ENOENT, "user '%.*s' is not in the image's /etc/passwd",
			       (int)BS_MIN(who.len, 100u), who.p);
	}
	u->home = line.home.len ? strndup(line.home.p, line.home.len) : strdup("/");
	if (!u->home)
		return bs_fail_errno(err, -ENOMEM, "user");
	if (which.len && !find_group(group, &which, &u->gid))
		return bs_fail(err, -ENOENT, "group '%.100s' is not in the image's /etc/group",
			       which.p);
	/* a group that was asked for by name is the only one */
	if (found && !which.len && find_groups(group, &line.name, u) < 0)
		return bs_fail_errno(err, -ENOMEM, "groups");
	return 0;
}

void bs_user_done(struct bs_user *u)
{
	free(u->groups);
	free(u->home);
	*u = (struct bs_user){ 0 };
}

int bs_userdb_find(const char *passwd, const char *group, const char *spec, struct bs_user *ret,
		   struct bs_error *err)
{
	struct bs_user u = { 0 };
	int r = find(passwd, group, spec, &u, err);

	if (r < 0) {
		bs_user_done(&u);
		return r;
	}
	*ret = u;
	return 0;
}
