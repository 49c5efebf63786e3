/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Mode, owner and times of what is in the checkpoint tree. A striped file's are its manifest's;
 * who may read or write its segments follows them.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/stripe.h"
#include "hdfs/writerpriv.h"

/* What is on HDFS of a file that is written here: all of it, by a sync. */
static int settle(struct bs_ckpt *c, const char *path, struct bs_writer **ret, struct bs_error *err)
{
	struct bs_writer *w;
	int r = bs_ckpt_may_change(c, path, err);

	if (r < 0)
		return r;
	w = bs_ckpt_writer_of(c, path);
	r = w ? bs_writer_sync(w, err) : 0;
	if (r < 0)
		w = bs_writer_unref(w);
	*ret = w;
	return r;
}

/* fn for the directories of its segments, too. */
static int for_segments(struct bs_ckpt *c, const char *path,
			int (*fn)(struct bs_ckpt *c, const char *dir, void *cookie,
				  struct bs_error *err),
			void *cookie, struct bs_error *err)
{
	bs_auto(view) struct bs_view *v = NULL;
	bs_autofree char *dir = bs_ckpt_parent(path);
	struct bs_hdfs_status s = { 0 };
	const struct bs_stripes *stripes;
	int r = dir ? bs_nn_status(c->o.nn, path, &s, err) : bs_ckpt_no_memory(err);

	if (r == 0)
		r = bs_ckpt_stripes_at(c, path, &s, &v, err);
	bs_hdfs_status_done(&s);
	stripes = v ? bs_view_stripes(v) : NULL;
	for (uint32_t i = 0; r == 0 && stripes && i < stripes->n_segments; i++) {
		bs_autofree char *segment = bs_ckpt_hidden(dir, stripes->segments[i].id, NULL);

		r = segment ? fn(c, segment, cookie, err) : bs_ckpt_no_memory(err);
	}
	return r;
}

/* Owner and times of what is written here were changed: what it tells is of before. Best effort. */
static void look_again(struct bs_ckpt *c, struct bs_writer *w)
{
	struct bs_view *v = NULL;

	if (!w)
		return;
	(void)pthread_mutex_lock(&w->io);
	if (!w->dirty && !w->fresh && !w->unlinked && bs_view_open(c, w->path, &v, NULL) == 0) {
		if (bs_view_status(v)->file_id == w->base_id)
			bs_writer_set_base(w, v);
		else
			(void)bs_view_unref(v);
	}
	(void)pthread_mutex_unlock(&w->io);
}

/* Of the files in a segment's directory, and of itself. */
static int for_data(struct bs_ckpt *c, const char *dir,
		    int (*fn)(struct bs_ckpt *c, const char *path, const void *cookie,
			      struct bs_error *err),
		    const void *cookie, struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	int r = bs_nn_list(c->o.nn, dir, &l, err);

	for (size_t i = 0; r == 0 && i < l.n; i++) {
		bs_autofree char *path = bs_hdfs_path_child(dir, l.v[i].name);

		if (l.v[i].type == BS_HDFS_FILE)
			r = path ? fn(c, path, cookie, err) : bs_ckpt_no_memory(err);
	}
	bs_hdfs_list_done(&l);
	return r;
}

static int set_data_mode(struct bs_ckpt *c, const char *path, const void *cookie,
			 struct bs_error *err)
{
	return bs_nn_set_mode(c->o.nn, path, *(const uint32_t *)cookie & 0777, err);
}

static int set_segment_mode(struct bs_ckpt *c, const char *dir, void *cookie, struct bs_error *err)
{
	uint32_t mode = *(const uint32_t *)cookie;
	int r = for_data(c, dir, set_data_mode, cookie, err);

	return r < 0 ? r
		     : bs_nn_set_mode(c->o.nn, dir, 0700 | (mode & 0777) | (mode & 0444) >> 2, err);
}

int bs_ckpt_set_mode(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	int r = settle(c, path, &w, err);

	if (r == 0)
		r = for_segments(c, path, set_segment_mode, &mode, err);
	if (r == 0)
		r = bs_nn_set_mode(c->o.nn, path, mode, err);
	if (r == 0 && w) {
		(void)pthread_mutex_lock(&w->io);
		(void)pthread_mutex_lock(&w->lock);
		w->mode = mode & 0777;
		(void)pthread_mutex_unlock(&w->lock);
		(void)pthread_mutex_unlock(&w->io);
	}
	return r;
}

struct owner {
	const char *owner, *group;
};

static int set_data_owner(struct bs_ckpt *c, const char *path, const void *cookie,
			  struct bs_error *err)
{
	const struct owner *o = cookie;

	return bs_nn_set_owner(c->o.nn, path, o->owner, o->group, err);
}

static int set_segment_owner(struct bs_ckpt *c, const char *dir, void *cookie, struct bs_error *err)
{
	int r = for_data(c, dir, set_data_owner, cookie, err);

	return r < 0 ? r : set_data_owner(c, dir, cookie, err);
}

int bs_ckpt_own_segment(struct bs_ckpt *c, const char *segment, const char *owner,
			const char *group, struct bs_error *err)
{
	struct owner o = { owner, group };

	return set_segment_owner(c, segment, &o, err);
}

int bs_ckpt_set_owner(struct bs_ckpt *c, const char *path, const char *owner, const char *group,
		      struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	struct owner o = { owner, group };
	int r = settle(c, path, &w, err);

	if (r == 0)
		r = for_segments(c, path, set_segment_owner, &o, err);
	if (r == 0)
		r = bs_nn_set_owner(c->o.nn, path, owner, group, err);
	if (r == 0)
		look_again(c, w);
	return r;
}

int bs_ckpt_set_times(struct bs_ckpt *c, const char *path, uint64_t mtime_ms, uint64_t atime_ms,
		      struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	struct bs_hdfs_status s = { 0 };
	uint64_t size;
	int r = settle(c, path, &w, err);

	if (r == 0)
		r = bs_nn_status(c->o.nn, path, &s, err);
	if (r < 0)
		return r;
	if (s.type == BS_HDFS_FILE && bs_stripe_atime_size(s.atime_ms, &size))
		atime_ms = UINT64_MAX; /* it says the size */
	bs_hdfs_status_done(&s);
	if (mtime_ms == UINT64_MAX && atime_ms == UINT64_MAX)
		return 0;
	r = bs_nn_set_times(c->o.nn, path, mtime_ms, atime_ms, err);
	if (r == 0)
		look_again(c, w);
	return r;
}
