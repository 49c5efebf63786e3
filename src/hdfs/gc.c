/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Segments that nobody refers to: marked first, removed at a later look. So one that only
 * seemed to be free, since its manifest was moved while the directory was listed, stays.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/writerpriv.h"

#define TRASH "trash"
#define LEASE_NS (3600 * BS_NS_PER_S)
#define DEPTH_MAX 64u
#define MOVES "moves"
#define MOVE_NS (7 * 24 * 3600 * BS_NS_PER_S)

static bool has_segment(const struct bs_stripes *s, const char *id)
{
	for (uint32_t i = 0; s && i < s->n_segments; i++) {
		if (bs_streq(s->segments[i].id, id))
			return true;
	}
	return false;
}

void bs_ckpt_trash(struct bs_ckpt *c, const char *dir, const struct bs_stripes *old,
		   const struct bs_stripes *kept)
{
	for (uint32_t i = 0; i < old->n_segments; i++) {
		bs_autofree char *mark = NULL;

		if (has_segment(kept, old->segments[i].id))
			continue;
		mark = bs_ckpt_hidden(dir, TRASH, old->segments[i].id);
		if (mark)
			(void)bs_nn_mkdirs(c->o.nn, mark, 0755, NULL);
	}
}

void bs_ckpt_beat(struct bs_ckpt *c, const char *segment)
{
	bs_autofree char *beat = bs_strf("%s/beat", segment);

	if (beat && bs_nn_mkdirs(c->o.nn, beat, 0700, NULL) == 0)
		(void)bs_nn_delete(c->o.nn, beat, false, NULL);
}

void bs_ckpt_note_move(struct bs_ckpt *c, const char *segment)
{
	bs_autofree char *note = bs_strf("%s/" MOVES, segment);
	struct bs_hdfs_status s = { 0 };

	/* MKDIRS would make the segment, too */
	if (note && bs_nn_status(c->o.nn, segment, &s, NULL) == 0)
		(void)bs_nn_mkdirs(c->o.nn, note, 0700, NULL);
	bs_hdfs_status_done(&s);
}

void bs_ckpt_moved(struct bs_ckpt *c, const char *segment)
{
	bs_autofree char *note = bs_strf("%s/" MOVES, segment);

	if (note)
		(void)bs_nn_delete(c->o.nn, note, false, NULL);
}

/* --- one directory --------------------------------------------------------------------------- */

struct look {
	struct bs_ckpt *c;
	struct bs_ckpt_gc *gc;
	const char *dir;
	struct bs_strv used; /* segments */
	struct bs_hdfs_list segments, marks;
	uint64_t now_ms; /* the NameNode's */
};

static bool is_id(const char *name)
{
	return strlen(name) == BS_STRIPES_ID_LEN &&
	       strspn(name, "0123456789abcdef") == BS_STRIPES_ID_LEN;
}

static int add_used(struct look *l, const char *path, struct bs_error *err)
{
	bs_auto(view) struct bs_view *v = NULL;
	const struct bs_stripes *s;
	int r = bs_view_open(l->c, path, &v, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0) /* it may refer to anything */
		return r;
	s = bs_view_stripes(v);
	for (uint32_t i = 0; r == 0 && s && i < s->n_segments; i++)
		r = bs_strv_add(&l->used, s->segments[i].id);
	return r < 0 ? bs_fail(err, r, "HDFS: out of memory") : 0;
}

static int find_used(struct look *l, const struct bs_hdfs_list *list, struct bs_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct bs_hdfs_status *s = &list->v[i];
		bs_autofree char *path = NULL;

		if (s->type != BS_HDFS_FILE || s->len != BS_STRIPES_BYTES)
			continue;
		path = bs_hdfs_path_child(l->dir, s->name);
		r = path ? add_used(l, path, err) : bs_ckpt_no_memory(err);
	}
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&l->c->lock);
	bs_list_for_each(it, &l->c->writers) {
		struct bs_writer *w = bs_list_entry(it, struct bs_writer, link);

		r = r < 0 ? r : bs_strv_add(&l->used, w->id);
	}
	(void)pthread_mutex_unlock(&l->c->lock);
	return r < 0 ? bs_fail(err, r, "HDFS: out of memory") : 0;
}

/* What the NameNode's clock says: the time of a directory that is made now. */
static int ask_time(struct look *l, struct bs_error *err)
{
	char id[BS_STRIPES_ID_LEN + 1];
	struct bs_hdfs_status s = { 0 };
	bs_autofree char *path = NULL;
	bs_autofree char *name = NULL;
	int r = bs_ckpt_new_id(id);

	name = bs_strf("now-%s", id);
	path = r == 0 && name ? bs_ckpt_hidden(l->dir, TRASH, name) : NULL;
	if (!path)
		return bs_fail(err, r < 0 ? r : -ENOMEM, "HDFS: out of memory");
	r = bs_nn_mkdirs(l->c->o.nn, path, 0755, err);
	if (r == 0)
		r = bs_nn_status(l->c->o.nn, path, &s, err);
	if (r < 0)
		return r;
	l->now_ms = s.mtime_ms;
	bs_hdfs_status_done(&s);
	return bs_nn_delete(l->c->o.nn, path, false, err);
}

static const struct bs_hdfs_status *mark_of(const struct look *l, const char *id)
{
	for (size_t i = 0; i < l->marks.n; i++) {
		if (bs_streq(l->marks.v[i].name, id))
			return &l->marks.v[i];
	}
	return NULL;
}

static bool older(const struct look *l, const struct bs_hdfs_status *s, uint64_t ns)
{
	return s->mtime_ms <= l->now_ms && l->now_ms - s->mtime_ms >= ns / BS_NS_PER_MS;
}

static int remove_hidden(struct look *l, const char *id, const char *name, struct bs_error *err)
{
	bs_autofree char *path = bs_ckpt_hidden(l->dir, id, name);
	int r = path ? bs_nn_delete(l->c->o.nn, path, true, err) : bs_ckpt_no_memory(err);

	return r == -ENOENT ? 0 : r;
}

static int remove_segment(struct look *l, const struct bs_hdfs_status *s, struct bs_error *err)
{
	bs_autofree char *path = bs_ckpt_hidden(l->dir, s->name, NULL);
	struct bs_hdfs_summary sum = { 0 };
	int r = path ? bs_nn_summary(l->c->o.nn, path, &sum, err) : bs_ckpt_no_memory(err);

	if (r == 0)
		r = remove_hidden(l, s->name, NULL, err);
	if (r == 0 || r == -ENOENT)
		r = remove_hidden(l, TRASH, s->name, err);
	if (r < 0)
		return r;
	l->gc->segments++;
	l->gc->bytes += sum.len;
	return 0;
}

/* Its manifest is to follow it here, and that stopped not long ago. */
static int moves(struct look *l, const char *id, bool *ret, struct bs_error *err)
{
	bs_autofree char *path = bs_ckpt_hidden(l->dir, id, MOVES);
	struct bs_hdfs_status s = { 0 };
	int r = path ? bs_nn_status(l->c->o.nn, path, &s, err) : bs_ckpt_no_memory(err);

	*ret = r == 0 && !older(l, &s, MOVE_NS);
	bs_hdfs_status_done(&s);
	return r == -ENOENT ? 0 : r;
}

static int judge(struct look *l, const struct bs_hdfs_status *s, struct bs_error *err)
{
	const struct bs_hdfs_status *mark = mark_of(l, s->name);
	bs_autofree char *path = NULL;
	bool is_used = bs_strv_has(&l->used, s->name);
	int r = is_used ? 0 : moves(l, s->name, &is_used, err);

	if (r < 0)
		return r;
	if (is_used) {
		l->gc->kept++;
		return mark ? remove_hidden(l, TRASH, s->name, err) : 0;
	}
	if (mark && older(l, mark, l->c->o.grace_ns))
		return remove_segment(l, s, err);
	l->gc->kept++;
	if (mark || !older(l, s, l->gc->lease_ns))
		return 0;
	path = bs_ckpt_hidden(l->dir, TRASH, s->name);
	return path ? bs_nn_mkdirs(l->c->o.nn, path, 0755, err) : bs_ckpt_no_memory(err);
}

/* Who removed it died: it goes when it is empty, else where it came from. */
static int settle_directory(struct look *l, const char *place, const char *name,
			    struct bs_error *err)
{
	bs_autofree char *from = bs_strf("%s/%s", place, name);
	bs_autofree char *to = bs_hdfs_path_child(l->dir, name);
	struct bs_hdfs_list list = { 0 };
	bool empty;
	int r = from && to ? bs_nn_list(l->c->o.nn, from, &list, err) : bs_ckpt_no_memory(err);

	empty = list.n == 0 || (list.n == 1 && bs_streq(list.v[0].name, BS_CKPT_HIDDEN));
	bs_hdfs_list_done(&list);
	if (r < 0)
		return r;
	r = empty ? bs_nn_delete(l->c->o.nn, from, true, err)
		  : bs_nn_rename(l->c->o.nn, from, to, false, err);
	return r == -ENOENT || r == -EEXIST ? 0 : r;
}

static int settle_aside(struct look *l, const struct bs_hdfs_status *s, struct bs_error *err)
{
	bs_autofree char *place = bs_ckpt_hidden(l->dir, s->name, NULL);
	struct bs_hdfs_list list = { 0 };
	int r = 0;

	if (!older(l, s, l->gc->lease_ns))
		return 0;
	r = place ? bs_nn_list(l->c->o.nn, place, &list, err) : bs_ckpt_no_memory(err);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = settle_directory(l, place, list.v[i].name, err);
	bs_hdfs_list_done(&list);
	if (r == 0) /* when nothing is left in it */
		(void)bs_nn_delete(l->c->o.nn, place, false, NULL);
	return r == -ENOENT ? 0 : r;
}

static int list_or_nothing(struct look *l, const char *id, struct bs_hdfs_list *ret,
			   struct bs_error *err)
{
	bs_autofree char *path = bs_ckpt_hidden(l->dir, id, NULL);
	int r = path ? bs_nn_list(l->c->o.nn, path, ret, err) : bs_ckpt_no_memory(err);

	return r == -ENOENT ? 0 : r;
}

static int collect(struct look *l, struct bs_error *err)
{
	struct bs_hdfs_list list = { 0 };
	bs_autofree char *hidden = bs_ckpt_hidden(l->dir, NULL, NULL);
	bs_autofree char *trash = bs_ckpt_hidden(l->dir, TRASH, NULL);
	int r = hidden && trash ? 0 : bs_ckpt_no_memory(err);

	/* segments before manifests: what is made in between is used */
	if (r == 0)
		r = list_or_nothing(l, NULL, &l->segments, err);
	if (r == 0)
		r = list_or_nothing(l, TRASH, &l->marks, err);
	if (r == 0)
		r = ask_time(l, err);
	if (r == 0)
		r = bs_nn_list(l->c->o.nn, l->dir, &list, err);
	if (r == 0)
		r = find_used(l, &list, err);
	bs_hdfs_list_done(&list);
	for (size_t i = 0; r == 0 && i < l->segments.n; i++) {
		const struct bs_hdfs_status *s = &l->segments.v[i];

		if (s->type == BS_HDFS_DIRECTORY && is_id(s->name))
			r = judge(l, s, err);
		else if (s->type == BS_HDFS_DIRECTORY && bs_str_after(s->name, BS_CKPT_ASIDE))
			r = settle_aside(l, s, err);
	}
	if (r < 0)
		return r;
	/* when nothing is left; else they refuse */
	(void)bs_nn_delete(l->c->o.nn, trash, false, NULL);
	(void)bs_nn_delete(l->c->o.nn, hidden, false, NULL);
	return 0;
}

static int gc_dir(struct bs_ckpt *c, const char *dir, struct bs_ckpt_gc *gc, unsigned int depth,
		  struct bs_error *err)
{
	struct look l = { .c = c, .gc = gc, .dir = dir };
	struct bs_hdfs_list list = { 0 };
	bool hidden = false;
	int r = bs_nn_list(c->o.nn, dir, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		hidden = hidden || bs_streq(list.v[i].name, BS_CKPT_HIDDEN);
	if (r == 0 && hidden)
		r = collect(&l, err);
	for (size_t i = 0; r == 0 && gc->recursive && depth < DEPTH_MAX && i < list.n; i++) {
		bs_autofree char *path = NULL;

		if (list.v[i].type != BS_HDFS_DIRECTORY || bs_streq(list.v[i].name, BS_CKPT_HIDDEN))
			continue;
		path = bs_hdfs_path_child(dir, list.v[i].name);
		r = path ? gc_dir(c, path, gc, depth + 1, err) : bs_ckpt_no_memory(err);
	}
	bs_strv_done(&l.used);
	bs_hdfs_list_done(&l.segments);
	bs_hdfs_list_done(&l.marks);
	bs_hdfs_list_done(&list);
	return r;
}

int bs_ckpt_gc(struct bs_ckpt *c, const char *path, struct bs_ckpt_gc *gc, struct bs_error *err)
{
	int r = bs_ckpt_path_check(path, err);

	if (r == 0)
		r = bs_ckpt_may_write(c, path, err);
	gc->segments = gc->bytes = gc->kept = 0;
	if (!gc->lease_ns)
		gc->lease_ns = LEASE_NS;
	return r < 0 ? r : gc_dir(c, path, gc, 0, err);
}
