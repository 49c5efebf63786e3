/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * HDFS has names, files here have numbers: asked of the system's user database, remembered
 * for a while.
 */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "hdfs/fspriv.h"

#define REMEMBER_NS (300 * BS_NS_PER_S)
#define NAMES_MAX 4096u /* remembered; then all are asked for again */
#define TEXT_MAX 65536u

struct entry {
	char *key; /* 'u' or 'g', then the name */
	uint32_t id;
};

struct bs_fsowners {
	uid_t uid;
	gid_t gid;
	bool one;
	pthread_mutex_t lock; /* guards what follows */
	struct bs_map known;
	uint64_t until_ns;
};

int bs_fsowners_new(uid_t uid, gid_t gid, bool one, struct bs_fsowners **ret)
{
	struct bs_fsowners *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->uid = uid;
	o->gid = gid;
	o->one = one;
	(void)pthread_mutex_init(&o->lock, NULL);
	bs_map_init(&o->known);
	*ret = o;
	return 0;
}

static void forget(struct bs_fsowners *o)
{
	size_t pos = 0;
	struct entry *e;

	while ((e = bs_map_next(&o->known, &pos))) {
		free(e->key);
		free(e);
	}
	bs_map_done(&o->known);
	bs_map_init(&o->known);
}

void bs_fsowners_free(struct bs_fsowners *o)
{
	if (!o)
		return;
	forget(o);
	bs_map_done(&o->known);
	(void)pthread_mutex_destroy(&o->lock);
	free(o);
}

static uint32_t ask(char kind, const char *name, uint32_t otherwise)
{
	bs_autofree char *text = malloc(TEXT_MAX);
	struct passwd pw, *is_user = NULL;
	struct group gr, *is_group = NULL;

	if (!text)
		return otherwise;
	if (kind == 'u' && getpwnam_r(name, &pw, text, TEXT_MAX, &is_user) == 0 && is_user)
		return pw.pw_uid;
	if (kind == 'g' && getgrnam_r(name, &gr, text, TEXT_MAX, &is_group) == 0 && is_group)
		return gr.gr_gid;
	return otherwise;
}

/* Not remembered when there is no memory for it. */
static void remember(struct bs_fsowners *o, char *key, uint32_t id)
{
	struct entry *e = malloc(sizeof(*e));

	if (e && o->known.n < NAMES_MAX && bs_map_get(&o->known, key, strlen(key)) == NULL) {
		*e = (struct entry){ key, id };
		if (bs_map_put(&o->known, key, strlen(key), e) == 0)
			return;
	}
	free(e);
	free(key);
}

static uint32_t look(struct bs_fsowners *o, char kind, const char *name, uint32_t otherwise)
{
	char *key = bs_strf("%c%s", kind, name ? name : "");
	const struct entry *e;
	uint32_t id = otherwise;
	bool found;

	if (!key)
		return otherwise;
	(void)pthread_mutex_lock(&o->lock);
	if (bs_clock_ns() > o->until_ns || o->known.n >= NAMES_MAX) {
		forget(o);
		o->until_ns = bs_clock_ns() + REMEMBER_NS;
	}
	e = bs_map_get(&o->known, key, strlen(key));
	found = e != NULL;
	if (e)
		id = e->id;
	(void)pthread_mutex_unlock(&o->lock);
	if (found) {
		free(key);
		return id;
	}
	id = ask(kind, key + 1, otherwise);
	(void)pthread_mutex_lock(&o->lock);
	remember(o, key, id);
	(void)pthread_mutex_unlock(&o->lock);
	return id;
}

uid_t bs_fsowners_uid(struct bs_fsowners *o, const char *name)
{
	return o->one ? o->uid : look(o, 'u', name, o->uid);
}

gid_t bs_fsowners_gid(struct bs_fsowners *o, const char *name)
{
	return o->one ? o->gid : look(o, 'g', name, o->gid);
}

char *bs_fsowners_user(uid_t uid)
{
	bs_autofree char *text = malloc(TEXT_MAX);
	struct passwd pw, *is = NULL;

	if (!text || getpwuid_r(uid, &pw, text, TEXT_MAX, &is) != 0 || !is)
		return NULL;
	return strdup(pw.pw_name);
}

char *bs_fsowners_group(gid_t gid)
{
	bs_autofree char *text = malloc(TEXT_MAX);
	struct group gr, *is = NULL;

	if (!text || getgrgid_r(gid, &gr, text, TEXT_MAX, &is) != 0 || !is)
		return NULL;
	return strdup(gr.gr_name);
}
