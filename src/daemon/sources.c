/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/sources.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "daemon/broker.h"
#include "hdfs/store.h"
#include "net/layout.h"
#include "net/repo.h"
#include "oci/ref.h"

/* of a request: then another source is tried, or the same again */
#define HDFS_DEADLINE_NS (20 * BS_NS_PER_S)
#define REPOS_MAX 1024u /* then the oldest is forgotten; its users keep it */

struct bs_sources {
	const struct bs_conf *conf;
	struct bs_loop *loop;
	struct bs_broker *broker;
	struct bs_stores *hdfs; /* NULL until there is a source on HDFS */
	pthread_mutex_t
		lock; /* guards hdfs, texts, repos, n; held over opening, not over the network */
	char *texts[REPOS_MAX];
	struct bs_repo *repos[REPOS_MAX];
	size_t n;
	size_t oldest;
};

int bs_sources_new(const struct bs_conf *conf, struct bs_loop *loop, struct bs_broker *broker,
		   struct bs_sources **ret, struct bs_error *err)
{
	struct bs_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return bs_fail(err, -ENOMEM, "out of memory");
	s->conf = conf;
	s->loop = loop;
	s->broker = broker;
	(void)pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

static int open_registry(struct bs_sources *s, const struct bs_ref *ref, struct bs_repo **ret,
			 struct bs_error *err)
{
	const struct bs_registry_options o = {
		.loop = s->loop,
		.tls_verify = !bs_strv_has(&s->conf->insecure, ref->host),
		.plain_http = bs_strv_has(&s->conf->plain_http, ref->host),
		.ca_file = s->conf->ca_file && *s->conf->ca_file ? s->conf->ca_file : NULL,
		.proxy = s->conf->proxy && *s->conf->proxy ? s->conf->proxy : NULL,
		.credentials = bs_broker_credentials,
		.credentials_cookie = s->broker,
		.impatient = true, /* images are prepared round by round */
	};

	return bs_registry_open(&o, ref->host, ref->name, ret, err);
}

struct followed { /* of a layout: how to open what its path names */
	struct bs_broker *broker;
	char source[];
};

static int reopen(void *cookie)
{
	const struct followed *f = cookie;

	return bs_broker_open_layout(f->broker, f->source, NULL);
}

static int open_layout(struct bs_sources *s, const char *source, const char *dir,
		       struct bs_repo **ret, struct bs_error *err)
{
	bs_autofd int dirfd = bs_broker_open_layout(s->broker, source, err);

	struct followed *f;
	int r;

	if (dirfd < 0)
		return dirfd;
	f = malloc(sizeof(*f) + strlen(source) + 1);
	if (!f)
		return bs_fail(err, -ENOMEM, "out of memory");
	f->broker = s->broker;
	memcpy(f->source, source, strlen(source) + 1);
	r = bs_layout_open(dirfd, dir, false, ret, err);
	if (r < 0) {
		free(f);
		return r;
	}
	bs_layout_follow(*ret, reopen, f, free);
	bs_layout_set_stall(*ret, s->conf->stall_timeout_ns);
	return 0;
}

static int get_hdfs(struct bs_sources *s, struct bs_stores **ret, struct bs_error *err)
{
	bs_autofree char *options = bs_conf_hdfs_options(s->conf);
	const struct bs_stores_options o = { .options = options,
					     .deadline_ns = HDFS_DEADLINE_NS,
					     .hot_replication = s->conf->hot_replication,
					     .background_rate = s->conf->background_rate.bytes,
					     .loop = s->loop };
	int r = options ? 0 : bs_fail(err, -ENOMEM, "out of memory");

	(void)pthread_mutex_lock(&s->lock);
	if (r == 0 && !s->hdfs)
		r = bs_stores_new(&o, &s->hdfs, err);
	*ret = s->hdfs;
	(void)pthread_mutex_unlock(&s->lock);
	return r < 0 ? bs_error_context(err, "'hdfs_options' in section [fetch]"), r : 0;
}

static int open_hdfs(struct bs_sources *s, const char *source, struct bs_repo **ret,
		     struct bs_error *err)
{
	struct bs_stores *hdfs;
	int r = get_hdfs(s, &hdfs, err);

	return r < 0 ? r : bs_stores_open(hdfs, source, false, ret, err);
}

static int open_new(struct bs_sources *s, const char *source, struct bs_repo **ret,
		    struct bs_error *err)
{
	struct bs_ref ref;
	int r = bs_conf_allows(s->conf, source, err);

	if (r < 0)
		return r;
	r = bs_ref_parse(source, &ref, err);
	if (r < 0)
		return r;
	if (ref.kind == BS_REF_REGISTRY)
		r = open_registry(s, &ref, ret, err);
	else if (ref.kind == BS_REF_LAYOUT)
		r = open_layout(s, source, ref.dir, ret, err);
	else if (ref.kind == BS_REF_HDFS)
		r = open_hdfs(s, ref.dir, ret, err);
	else
		r = bs_fail(err, -EINVAL, "'%s' is no place for converted images", source);
	bs_ref_done(&ref);
	return r;
}

static struct bs_repo *find(struct bs_sources *s, const char *source)
{
	struct bs_repo *r = NULL;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n && !r; i++) {
		if (bs_streq(s->texts[i], source))
			r = bs_repo_ref(s->repos[i]);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

static void keep(struct bs_sources *s, const char *source, struct bs_repo *repo)
{
	char *text = strdup(source);
	size_t i;

	if (!text)
		return;
	(void)pthread_mutex_lock(&s->lock);
	i = s->n < REPOS_MAX ? s->n++ : s->oldest++ % REPOS_MAX;
	free(s->texts[i]);
	(void)bs_repo_unref(s->repos[i]);
	s->texts[i] = text;
	s->repos[i] = bs_repo_ref(repo);
	(void)pthread_mutex_unlock(&s->lock);
}

int bs_sources_open(struct bs_sources *s, const char *source, struct bs_repo **ret,
		    struct bs_error *err)
{
	struct bs_repo *r = find(s, source);
	int rc;

	if (!r) {
		rc = open_new(s, source, &r, err);
		if (rc < 0)
			return rc;
		keep(s, source, r);
	}
	*ret = r;
	return 0;
}

void bs_sources_hdfs_status(struct bs_sources *s, struct bs_jsonw *w)
{
	struct bs_stores *hdfs;

	(void)pthread_mutex_lock(&s->lock);
	hdfs = s->hdfs;
	(void)pthread_mutex_unlock(&s->lock);
	if (hdfs) {
		bs_stores_status(hdfs, w);
		return;
	}
	bs_jsonw_array(w);
	bs_jsonw_end(w);
}
