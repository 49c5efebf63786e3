/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A Location of CREATE says whom the DataNode is to ask (namenoderpcaddress) and who we are
 * (user.name, or a token for it): that is copied, the rest of its parameters is ours.
 */
#include "config.h"

#include "hdfs/targets.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/nnpriv.h"
#include "hdfs/path.h"

#define FRESH_NS (60 * BS_NS_PER_S)
#define SUSPECT_NS (10 * BS_NS_PER_S)
#define STRIKES_MAX 6u
#define QUERY_MAX (64u << 10)
#define AUTHORITY_MAX 280u
#define KNOWN_MAX 256u /* of one mount */

struct bs_target {
	char *authority; /* "HOST:PORT" */
	bool https;
	unsigned int running, strikes;
	uint64_t suspect_until_ns;
};

struct bs_targets {
	struct bs_nn *nn;
	pthread_mutex_t lock; /* guards what follows, and the targets */
	struct bs_target *known[KNOWN_MAX];
	unsigned int n_known, next;	     /* next: to be forgotten */
	struct bs_target *v[BS_TARGETS_MAX]; /* of known */
	unsigned int n;
	char *query; /* "&NAME=VALUE…" of a Location, what is not ours */
	uint64_t learned_ns;
};

int bs_targets_new(struct bs_nn *nn, struct bs_targets **ret, struct bs_error *err)
{
	struct bs_targets *t = calloc(1, sizeof(*t));

	if (!t)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	t->nn = nn;
	(void)pthread_mutex_init(&t->lock, NULL);
	*ret = t;
	return 0;
}

struct bs_targets *bs_targets_free(struct bs_targets *t)
{
	if (!t)
		return NULL;
	for (unsigned int i = 0; i < t->n_known; i++) {
		free(t->known[i]->authority);
		free(t->known[i]);
	}
	free(t->query);
	(void)pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

/* --- learning -------------------------------------------------------------------------------- */

/* One Location: its authority is where a CREATE would go. */
static int ask(struct bs_targets *t, const char *path, const struct bs_strv *without, char **ret,
	       struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "CREATE", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "overwrite", "false");
	for (size_t i = 0; i < without->n; i++)
		(void)bs_buf_addf(&c.query, "%s%s", i ? "," : "&excludedatanodes=", without->v[i]);
	r = bs_nn_where(t->nn, &c, err);
	if (r < 0)
		return r;
	*ret = bs_take(&c.location);
	return 0;
}

/* "http://AUTHORITY/…" */
static char *authority_of(const char *location, bool *ret_https)
{
	const char *at = bs_str_after(location, "http://");
	size_t len;

	*ret_https = !at;
	if (!at)
		at = bs_str_after(location, "https://");
	len = at ? strcspn(at, "/?#") : 0;
	if (len == 0 || len > AUTHORITY_MAX || memchr(at, '@', len))
		return NULL;
	return strndup(at, len);
}

static bool is_in_use(const struct bs_targets *t, const struct bs_target *target)
{
	for (unsigned int i = 0; i < t->n; i++) {
		if (t->v[i] == target)
			return true;
	}
	return target->running > 0;
}

/* Where one more is to be known: of those that are not in use, the next one is forgotten. */
static struct bs_target **slot_for(struct bs_targets *t)
{
	if (t->n_known < KNOWN_MAX)
		return &t->known[t->n_known++];
	for (unsigned int i = 0; i < KNOWN_MAX; i++) {
		struct bs_target **slot = &t->known[t->next++ % KNOWN_MAX];

		if (is_in_use(t, *slot))
			continue;
		free((*slot)->authority);
		free(*slot);
		return slot;
	}
	return NULL;
}

static struct bs_target *know(struct bs_targets *t, const char *authority, bool https)
{
	struct bs_target *target, **slot;
	char *copy;

	for (unsigned int i = 0; i < t->n_known; i++) {
		if (bs_streq(t->known[i]->authority, authority) && t->known[i]->https == https)
			return t->known[i];
	}
	target = calloc(1, sizeof(*target));
	copy = bs_strf("%s", authority);
	slot = target && copy ? slot_for(t) : NULL;
	if (!slot) {
		free(target);
		free(copy);
		return NULL;
	}
	target->https = https;
	target->authority = copy;
	return *slot = target;
}

struct found {
	struct bs_strv excluded; /* as it is escaped in a query */
	struct bs_strv authorities;
	bool https;
	char *query;
};

static int add_found(struct found *f, const char *location)
{
	bs_autofree char *authority = authority_of(location, &f->https);
	const char *colon = authority ? strrchr(authority, ':') : NULL;

	if (!authority || !colon)
		return -EBADMSG;
	if (bs_strv_has(&f->authorities, authority))
		return 0; /* an older NameNode, which knows no exclusion */
	if (!f->query) {
		bs_autobuf b = BS_BUF_INIT(QUERY_MAX);

		bs_hdfs_location_params(&b, location);
		f->query = b.error ? NULL : bs_strf("%s", bs_buf_str(&b));
	}
	/* by its host, since the port is that of HTTP */
	if (!f->query ||
	    bs_strv_addf(&f->excluded, "%.*s", (int)(colon - authority), authority) < 0 ||
	    bs_strv_add(&f->authorities, authority) < 0)
		return -ENOMEM;
	return 1;
}

/* The number of them. */
static int use(struct bs_targets *t, struct found *f)
{
	int n;

	(void)pthread_mutex_lock(&t->lock);
	t->n = 0;
	for (size_t i = 0; i < f->authorities.n && t->n < BS_TARGETS_MAX; i++) {
		struct bs_target *target = know(t, f->authorities.v[i], f->https);

		if (target)
			t->v[t->n++] = target;
	}
	free(t->query);
	t->query = bs_take(&f->query);
	t->learned_ns = bs_clock_ns();
	n = (int)t->n;
	(void)pthread_mutex_unlock(&t->lock);
	return n;
}

static bool fresh(struct bs_targets *t, int *ret_n)
{
	bool is;

	(void)pthread_mutex_lock(&t->lock);
	is = t->n && t->learned_ns && bs_clock_ns() - t->learned_ns < FRESH_NS;
	*ret_n = (int)t->n;
	(void)pthread_mutex_unlock(&t->lock);
	return is;
}

int bs_targets_learn(struct bs_targets *t, const char *path, struct bs_error *err)
{
	struct found f = { 0 };
	int r = 1, n;

	if (fresh(t, &n))
		return n;
	for (unsigned int i = 0; r > 0 && i < BS_TARGETS_MAX; i++) {
		bs_autofree char *location = NULL;

		r = ask(t, path, &f.excluded, &location, f.authorities.n ? NULL : err);
		if (r == 0)
			r = add_found(&f, location);
	}
	if (f.authorities.n) { /* the last answer was that there are no others */
		r = use(t, &f);
		if (r == 0)
			r = bs_fail(err, -ENOMEM, "HDFS: out of memory");
	} else if (r == -EBADMSG && err && !err->code) {
		r = bs_fail(err, r, "HDFS: the NameNode names no DataNode to write to");
	}
	bs_strv_done(&f.excluded);
	bs_strv_done(&f.authorities);
	free(f.query);
	return r;
}

void bs_targets_forget(struct bs_targets *t)
{
	(void)pthread_mutex_lock(&t->lock);
	t->learned_ns = 0;
	(void)pthread_mutex_unlock(&t->lock);
}

/* --- choosing -------------------------------------------------------------------------------- */

/* The smaller, the better. */
static uint64_t badness(const struct bs_target *x, bool was_tried, uint64_t now)
{
	return (uint64_t)(now < x->suspect_until_ns) << 41 | (uint64_t)was_tried << 40 | x->running;
}

struct bs_target *bs_targets_take(struct bs_targets *t, unsigned int first, uint32_t *tried)
{
	uint64_t now = bs_clock_ns(), least = UINT64_MAX;
	struct bs_target *best = NULL;
	unsigned int at = 0;

	(void)pthread_mutex_lock(&t->lock);
	for (unsigned int i = 0; i < t->n; i++) {
		unsigned int k = (first % t->n + i) % t->n;
		uint64_t b = badness(t->v[k], *tried >> k & 1, now);

		if (i == 0 && b < UINT64_C(1) << 40)
			b = 0;
		if (b >= least)
			continue;
		least = b;
		best = t->v[k];
		at = k;
	}
	if (best) {
		best->running++;
		*tried |= UINT32_C(1) << at;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return best;
}

static void strike(struct bs_target *target)
{
	if (target->strikes < STRIKES_MAX)
		target->strikes++;
	target->suspect_until_ns = bs_clock_ns() + target->strikes * SUSPECT_NS;
}

void bs_targets_give(struct bs_targets *t, struct bs_target *target, bool ok, bool failed)
{
	(void)pthread_mutex_lock(&t->lock);
	target->running--;
	if (ok) {
		target->strikes = 0;
		target->suspect_until_ns = 0;
	} else if (failed) {
		strike(target);
	}
	(void)pthread_mutex_unlock(&t->lock);
}

void bs_targets_suspect(struct bs_targets *t, struct bs_target *target)
{
	(void)pthread_mutex_lock(&t->lock);
	if (bs_clock_ns() >= target->suspect_until_ns)
		strike(target);
	(void)pthread_mutex_unlock(&t->lock);
}

const char *bs_target_name(const struct bs_target *target)
{
	return target->authority;
}

void bs_targets_url(struct bs_targets *t, const struct bs_target *target,
		    const struct bs_target_create *c, struct bs_buf *url)
{
	(void)bs_buf_addf(url, "%s://%s/webhdfs/v1", target->https ? "https" : "http",
			  target->authority);
	bs_hdfs_path_escape(url, c->path);
	(void)bs_buf_addf(url,
			  "?op=CREATE&overwrite=false&createparent=false&replication=%u"
			  "&blocksize=%llu&permission=%o",
			  c->replication, (unsigned long long)c->block_size, c->mode & 01777);
	(void)pthread_mutex_lock(&t->lock);
	(void)bs_buf_adds(url, t->query ? t->query : "");
	(void)pthread_mutex_unlock(&t->lock);
}
