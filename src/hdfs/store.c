/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/latch.h"
#include "base/path.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/storepriv.h"

#define CLIENTS_MAX 16u
#define ASKERS_MAX 8u /* of a cluster that is silent: each lasts as long as its requests */
#define ASK_STACK ((size_t)256 << 10)

struct bs_stores {
	struct bs_stores_options o;
	char *options;
	pthread_mutex_t lock; /* guards clients; not held over the network */
	struct bs_list clients;
	unsigned int n_clients;
};

/* --- small things that all parts need -------------------------------------------------------- */

char *bs_store_blob_path(const struct bs_store *s, const struct bs_digest *d)
{
	char hex[BS_DIGEST_TEXT_LEN];

	return bs_strf("%s/blobs/sha256/%s", bs_streq(s->dir, "/") ? "" : s->dir,
		       bs_digest_hex(d, hex));
}

int bs_store_no_memory(const struct bs_store *s, struct bs_error *err)
{
	return bs_fail(err, -ENOMEM, "%s: out of memory", s->base.repo.name);
}

int bs_store_error(int r)
{
	switch (r) {
	case -EIO: /* no replica has right bytes, now */
	case -ESTALE:
	case -ENODATA:
		return -EREMOTEIO;
	case -EBUSY:
		return -EAGAIN;
	default:
		return r;
	}
}

/* --- clusters -------------------------------------------------------------------------------- */

static struct bs_store_client *client_free(struct bs_store_client *c)
{
	if (!c)
		return NULL;
	bs_store_stop(c);
	(void)bs_mounted_free(c->mounted);
	bs_mount_options_done(&c->o);
	(void)pthread_cond_destroy(&c->work);
	(void)pthread_mutex_destroy(&c->lock);
	(void)pthread_mutex_destroy(&c->writing);
	free(c->cluster);
	free(c);
	return NULL;
}
DEFINE_BS_AUTO(client, struct bs_store_client, client_free)

static int client_new(struct bs_stores *s, const char *cluster, size_t len,
		      struct bs_store_client **ret, struct bs_error *err)
{
	bs_auto(client) struct bs_store_client *c = calloc(1, sizeof(*c));
	bs_autofree char *url = bs_strf("%.*s/", (int)len, cluster);
	int r;

	if (!c || !url)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	bs_list_init(&c->link);
	(void)pthread_mutex_init(&c->writing, NULL);
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->work, NULL);
	for (size_t i = 0; i < BS_LANE_MAX; i++)
		bs_list_init(&c->queue[i]);
	c->hot_replication = s->o.hot_replication;
	c->background_rate = s->o.background_rate;
	c->loop = s->o.loop;
	c->cluster = strndup(cluster, len);
	if (!c->cluster)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = bs_mount_options_parse(s->options, false, &c->o, err);
	if (r < 0)
		return r;
	c->o.plain = true; /* whoever knows OCI layouts can read them */
	c->o.read_only = false;
	if (!c->o.deadline_ns)
		c->o.deadline_ns = s->o.deadline_ns;
	r = bs_mounted_connect(url, &c->o, &c->mounted, err);
	if (r < 0)
		return r;
	*ret = bs_take(&c);
	return 0;
}

static int client_for(struct bs_stores *s, const char *cluster, size_t len,
		      struct bs_store_client **ret, struct bs_error *err)
{
	struct bs_store_client *c = NULL;
	int r = 0;

	(void)pthread_mutex_lock(&s->lock);
	bs_list_for_each(it, &s->clients) {
		struct bs_store_client *i = bs_list_entry(it, struct bs_store_client, link);

		if (strlen(i->cluster) == len && memcmp(i->cluster, cluster, len) == 0)
			c = i;
	}
	if (!c && s->n_clients == CLIENTS_MAX)
		r = bs_fail(err, -EMFILE, "images lie on more than %u HDFS clusters", CLIENTS_MAX);
	else if (!c)
		r = client_new(s, cluster, len, &c, err);
	if (r == 0 && bs_list_empty(&c->link)) {
		bs_list_append(&s->clients, &c->link);
		s->n_clients++;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (r == 0)
		*ret = c;
	return r;
}

int bs_stores_new(const struct bs_stores_options *o, struct bs_stores **ret, struct bs_error *err)
{
	bs_auto(stores) struct bs_stores *s = calloc(1, sizeof(*s));
	struct bs_mount_options check;
	int r;

	if (!s)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	(void)pthread_mutex_init(&s->lock, NULL);
	bs_list_init(&s->clients);
	s->o = *o;
	s->options = bs_strf("%s", o->options ? o->options : "");
	if (!s->options)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = bs_mount_options_parse(s->options, false, &check, err);
	if (r < 0)
		return r;
	bs_mount_options_done(&check);
	*ret = bs_take(&s);
	return 0;
}

struct bs_stores *bs_stores_free(struct bs_stores *s)
{
	if (!s)
		return NULL;
	bs_list_for_each(it, &s->clients) {
		bs_list_remove(it);
		(void)client_free(bs_list_entry(it, struct bs_store_client, link));
	}
	(void)pthread_mutex_destroy(&s->lock);
	free(s->options);
	free(s);
	return NULL;
}

static void put_lanes(struct bs_store_client *c, struct bs_jsonw *w)
{
	static const char *const names[] = { "demand", "hot", "background" };

	_Static_assert(BS_ARRAY_LEN(names) == BS_LANE_MAX, "a name a lane");
	bs_jsonw_key(w, "lanes");
	bs_jsonw_object(w);
	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < BS_LANE_MAX; i++) {
		bs_jsonw_key(w, names[i]);
		bs_jsonw_object(w);
		bs_jsonw_ku64(w, "requests", c->requests[i]);
		bs_jsonw_ku64(w, "bytes", c->bytes[i]);
		bs_jsonw_ku64(w, "failures", c->failures[i]);
		bs_jsonw_ku64(w, "running", c->running[i]);
		bs_jsonw_end(w);
	}
	(void)pthread_mutex_unlock(&c->lock);
	bs_jsonw_end(w);
}

void bs_stores_status(struct bs_stores *s, struct bs_jsonw *w)
{
	bs_jsonw_array(w);
	(void)pthread_mutex_lock(&s->lock);
	bs_list_for_each(it, &s->clients) {
		struct bs_store_client *c = bs_list_entry(it, struct bs_store_client, link);

		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "cluster", c->cluster);
		put_lanes(c, w);
		bs_mounted_client_stats(c->mounted, w);
		bs_jsonw_end(w);
	}
	(void)pthread_mutex_unlock(&s->lock);
	bs_jsonw_end(w);
}

/* --- layouts --------------------------------------------------------------------------------- */

static int check(struct bs_store *s, struct bs_error *err)
{
	bs_autofree char *path = bs_hdfs_path_child(s->dir, "oci-layout"), *bytes = NULL;
	size_t len;
	int r;

	if (__atomic_load_n(&s->checked, __ATOMIC_RELAXED))
		return 0;
	if (!path)
		return bs_store_no_memory(s, err);
	r = bs_store_read_file(s, path, BS_LAYOUT_VERSION_MAX, &bytes, &len, err);
	if (r == -ENOENT)
		return bs_fail(err, r, "%s is no OCI layout: it has no file 'oci-layout'",
			       s->base.repo.name);
	if (r == 0)
		r = bs_layout_check_version(s->base.repo.name, bytes, len, err);
	if (r == 0)
		__atomic_store_n(&s->checked, true, __ATOMIC_RELAXED);
	return r;
}

static int store_read_index(struct bs_repo *r, struct bs_json **ret, struct bs_error *err)
{
	int rc = check(bs_store_of(r), err);

	return rc < 0 ? rc : bs_store_read_index(r, ret, err);
}

static int store_read_manifest(struct bs_repo *r, const struct bs_digest *d, bool often, char **ret,
			       size_t *ret_len, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_store_blob_path(s, d);

	return path ? bs_store_read_file(s, path, BS_MANIFEST_MAX, ret, ret_len, err)
		    : bs_store_no_memory(s, err);
}

/* Somebody waits for a manifest for so long only; whoever asks goes on without him. */
struct asking {
	unsigned int refs; /* atomic */
	struct bs_repo *repo;
	char *ref;
	struct bs_latch over;
	struct bs_manifest found;
	struct bs_error err;
	int result;
};

static void asking_unref(struct asking *a)
{
	if (__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	bs_manifest_done(&a->found);
	bs_latch_done(&a->over);
	(void)bs_repo_unref(a->repo);
	free(a->ref);
	free(a);
}

static bool begin_asking(struct bs_store_client *c)
{
	bool may;

	(void)pthread_mutex_lock(&c->lock);
	may = c->askers < ASKERS_MAX;
	c->askers += may;
	(void)pthread_mutex_unlock(&c->lock);
	return may;
}

static void end_asking(struct bs_store_client *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->askers--;
	(void)pthread_mutex_unlock(&c->lock);
}

static void *ask_main(void *cookie)
{
	struct asking *a = cookie;

	a->result = bs_layout_get_manifest(a->repo, a->ref, &BS_LOOK_NEEDED, &a->found, &a->err);
	bs_latch_open(&a->over);
	end_asking(bs_store_of(a->repo)->client);
	asking_unref(a);
	return NULL;
}

static int ask(struct asking *a, uint64_t wait_ns, struct bs_manifest *ret, struct bs_error *err)
{
	struct bs_store_client *c = bs_store_of(a->repo)->client;
	pthread_attr_t attr;
	pthread_t t;
	int r;

	if (!begin_asking(c))
		return bs_fail(err, -ETIMEDOUT, "%s: no answer to %u others yet", a->repo->name,
			       ASKERS_MAX);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, ASK_STACK);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	a->refs = 2;
	r = -pthread_create(&t, &attr, ask_main, a);
	(void)pthread_attr_destroy(&attr);
	if (r < 0) {
		a->refs = 1;
		end_asking(c);
		return bs_fail_errno(err, r, "%s: start a thread", a->repo->name);
	}
	if (!bs_latch_wait_for(&a->over, wait_ns))
		return bs_fail(err, -ETIMEDOUT, "%s: no answer in time", a->repo->name);
	if (a->result == 0)
		*ret = a->found, a->found = (struct bs_manifest){ 0 };
	else if (err)
		*err = a->err;
	return a->result;
}

static int store_get_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			      struct bs_manifest *ret, struct bs_error *err)
{
	const uint64_t now = bs_clock_ns();
	struct asking *a;
	int rc;

	if (!look->deadline_ns)
		return bs_layout_get_manifest(r, ref, look, ret, err);
	a = calloc(1, sizeof(*a));
	if (!a)
		return bs_store_no_memory(bs_store_of(r), err);
	a->refs = 1;
	a->repo = bs_repo_ref(r);
	a->over = BS_LATCH_INIT;
	a->ref = bs_strf("%s", ref);
	rc = a->ref ? ask(a, look->deadline_ns > now ? look->deadline_ns - now : 0, ret, err)
		    : bs_store_no_memory(bs_store_of(r), err);
	asking_unref(a);
	return rc;
}

static int store_has_blob(struct bs_repo *r, const struct bs_digest *d, struct bs_error *err)
{
	struct bs_store *s = bs_store_of(r);
	bs_autofree char *path = bs_store_blob_path(s, d);
	struct bs_hdfs_status st = { 0 };
	bool is_file;
	int rc = path ? bs_ckpt_stat(bs_store_tree(s), path, &st, err) : bs_store_no_memory(s, err);

	is_file = rc == 0 && st.type == BS_HDFS_FILE;
	bs_hdfs_status_done(&st);
	if (rc < 0 && rc != -ENOENT)
		return bs_error_context(err, "%s", r->name), bs_store_error(rc);
	return is_file;
}

static int store_mount_blob(struct bs_repo *r, const struct bs_digest *d, const char *from_name,
			    struct bs_error *err)
{
	return store_has_blob(r, d, err);
}

static void store_free(struct bs_repo *r)
{
	struct bs_store *s = bs_store_of(r);

	bs_store_close_files(s);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->base.repo.name);
	free(s->dir);
	free(s);
}

static const struct bs_repo_ops repo_ops = {
	.scheme = "hdfs",
	.get_manifest = store_get_manifest,
	.get_blob = bs_store_get_blob,
	.read = bs_store_read,
	.has_blob = store_has_blob,
	.put_blob = bs_store_put_blob,
	.try_push = bs_store_try_push,
	.mount_blob = store_mount_blob,
	.put_manifest = bs_layout_put_manifest,
	.put_manifest_over = bs_layout_put_manifest_over,
	.list_tags = bs_layout_list_tags,
	.get_referrers = bs_layout_get_referrers,
	.delete_manifest = bs_layout_delete_manifest,
	.favour = bs_store_favour,
	.free = store_free,
};

static const struct bs_layout_ops layout_ops = {
	.read_manifest = store_read_manifest,
	.read_index = store_read_index,
	.change_index = bs_store_change_index,
};

int bs_stores_open(struct bs_stores *s, const char *url, bool create, struct bs_repo **ret,
		   struct bs_error *err)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	const char *authority = strstr(url, "://");
	const char *path = authority ? strchr(authority + 3, '/') : NULL;
	struct bs_store *t;
	int r;

	if (!path || !bs_path_is_clean(path) || bs_hdfs_path_check(path) < 0)
		return bs_fail(
			err, -EINVAL,
			"'%s' is no directory of HDFS: SCHEME://HOST/DIR, without empty, '.' "
			"or '..' parts, and no ':' in it",
			url);
	t = calloc(1, sizeof(*t));
	if (!t)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	repo = &t->base.repo;
	*repo = (struct bs_repo){ .ops = &repo_ops, .refs = 1 };
	t->base.ops = &layout_ops;
	(void)pthread_mutex_init(&t->lock, NULL);
	repo->name = bs_strf("%s", url);
	t->dir = bs_strf("%s", path);
	if (!repo->name || !t->dir)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = client_for(s, url, (size_t)(path - url), &t->client, err);
	if (r == 0 && create)
		r = bs_store_create(t, err);
	if (r < 0)
		return r;
	*ret = bs_take(&repo);
	return 0;
}
