/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Names of the checkpoint tree. What is being written here lies over what HDFS says; what keeps
 * stripes is not shown, and goes where its files go.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/stripe.h"
#include "hdfs/writerpriv.h"

int bs_ckpt_may_change(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	int r = bs_ckpt_path_check(path, err);

	if (r == -ENOENT)
		return bs_fail(err, -EPERM, "'%s' is where stripes are kept", path);
	return r < 0 ? r : bs_ckpt_may_write(c, path, err);
}

/* --- looking --------------------------------------------------------------------------------- */

/*
 * A manifest's entry tells what a reader sees. One that says its size needs no look into it, and
 * its block is the unit.
 */
static int correct(struct bs_ckpt *c, const char *path, struct bs_hdfs_status *s,
		   struct bs_error *err)
{
	bs_auto(view) struct bs_view *v = NULL;
	const struct bs_stripes *stripes;
	int r;

	if (s->type != BS_HDFS_FILE || s->len != BS_STRIPES_BYTES)
		return 0;
	if (bs_stripe_atime_size(s->atime_ms, &s->len)) {
		s->atime_ms = s->mtime_ms;
		return 0;
	}
	r = bs_view_open(c, path, &v, err);
	if (r == -EIO || r == -EPROTONOSUPPORT || r == -EACCES || r == -ENOENT)
		return 0; /* it is there; opening it tells what is wrong */
	if (r < 0)
		return r;
	stripes = bs_view_stripes(v);
	if (!stripes)
		return 0;
	s->len = stripes->size;
	s->block_size = stripes->unit;
	s->atime_ms = s->mtime_ms;
	return 0;
}

int bs_ckpt_stat(struct bs_ckpt *c, const char *path, struct bs_hdfs_status *ret,
		 struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	struct bs_hdfs_status s = { 0 };
	int r = bs_ckpt_path_check(path, err);

	if (r < 0)
		return r;
	w = bs_ckpt_writer_of(c, path);
	if (w)
		return bs_writer_tell(w, ret) < 0 ? bs_ckpt_no_memory(err) : 0;
	r = bs_nn_status(c->o.nn, path, &s, err);
	if (r == 0)
		r = correct(c, path, &s, err);
	if (r < 0) {
		bs_hdfs_status_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

static size_t place_in(const struct bs_hdfs_list *l, const char *name)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(l->v[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* s is taken over. */
static int put_entry(struct bs_hdfs_list *l, const char *name, struct bs_hdfs_status s)
{
	size_t at = place_in(l, name);

	free(s.name);
	s.name = bs_strf("%s", name);
	if (!s.name || bs_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0) {
		bs_hdfs_status_done(&s);
		return -ENOMEM;
	}
	if (at < l->n && bs_streq(l->v[at].name, name)) {
		bs_hdfs_status_done(&l->v[at]);
	} else {
		memmove(&l->v[at + 1], &l->v[at], (l->n - at) * sizeof(*l->v));
		l->n++;
	}
	l->v[at] = s;
	return 0;
}

/* Paths of what is being written in dir. */
static int written_in(struct bs_ckpt *c, const char *dir, struct bs_strv *ret)
{
	size_t len = bs_streq(dir, "/") ? 0 : strlen(dir);
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	bs_list_for_each(it, &c->writers) {
		const char *path = bs_list_entry(it, struct bs_writer, link)->path;

		if (r == 0 && strncmp(path, dir, len) == 0 && path[len] == '/' &&
		    !strchr(path + len + 1, '/'))
			r = bs_strv_add(ret, path);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

static int add_written(struct bs_ckpt *c, const char *dir, struct bs_hdfs_list *l)
{
	bs_autostrv paths = { 0 };
	int r = written_in(c, dir, &paths);

	for (size_t i = 0; r == 0 && i < paths.n; i++) {
		bs_auto(writer) struct bs_writer *w = bs_ckpt_writer_of(c, paths.v[i]);
		struct bs_hdfs_status s = { 0 };

		if (!w)
			continue;
		r = bs_writer_tell(w, &s);
		if (r == 0)
			r = put_entry(l, strrchr(paths.v[i], '/') + 1, s);
	}
	return r;
}

static void hide(struct bs_hdfs_list *l)
{
	size_t at = place_in(l, BS_CKPT_HIDDEN);

	if (at == l->n || !bs_streq(l->v[at].name, BS_CKPT_HIDDEN))
		return;
	bs_hdfs_status_done(&l->v[at]);
	memmove(&l->v[at], &l->v[at + 1], (l->n - at - 1) * sizeof(*l->v));
	l->n--;
}

int bs_ckpt_list(struct bs_ckpt *c, const char *path, struct bs_hdfs_list *ret,
		 struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	int r = bs_ckpt_path_check(path, err);

	if (r == 0)
		r = bs_nn_list(c->o.nn, path, &l, err);
	if (r == 0 && l.n == 1 && !*l.v[0].name)
		r = bs_fail(err, -ENOTDIR, "HDFS '%s': no directory", path);
	if (r == 0)
		hide(&l);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		bs_autofree char *full = NULL;

		if (l.v[i].len != BS_STRIPES_BYTES)
			continue;
		full = bs_hdfs_path_child(path, l.v[i].name);
		r = full ? correct(c, full, &l.v[i], err) : bs_ckpt_no_memory(err);
	}
	if (r == 0 && add_written(c, path, &l) < 0)
		r = bs_ckpt_no_memory(err);
	if (r < 0) {
		bs_hdfs_list_done(&l);
		return r;
	}
	*ret = l;
	return 0;
}

/* --- directories ----------------------------------------------------------------------------- */

int bs_ckpt_mkdir(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	bs_autofree char *dir = bs_ckpt_parent(path);
	struct bs_hdfs_status s = { 0 };
	int r = dir ? bs_ckpt_may_change(c, path, err) : bs_ckpt_no_memory(err);

	if (r < 0)
		return r;
	w = bs_ckpt_writer_of(c, path);
	r = w ? 0 : bs_nn_status(c->o.nn, path, &s, err);
	bs_hdfs_status_done(&s);
	if (r == 0)
		return bs_fail(err, -EEXIST, "'%s' is there already", path);
	if (r != -ENOENT)
		return r;
	r = bs_nn_status(c->o.nn, dir, &s, err); /* else MKDIRS makes it */
	if (r == 0 && s.type != BS_HDFS_DIRECTORY)
		r = bs_fail(err, -ENOTDIR, "HDFS '%s': no directory", dir);
	bs_hdfs_status_done(&s);
	return r < 0 ? r : bs_nn_mkdirs(c->o.nn, path, mode, err);
}

/* Nobody sees anything in it. *ret_hidden: there is what is hidden. */
static int is_empty(struct bs_ckpt *c, const char *path, bool *ret_hidden, struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	bs_autostrv written = { 0 };
	int r = bs_nn_list(c->o.nn, path, &l, err);
	size_t n = l.n;

	if (r < 0)
		return r;
	if (n == 1 && !*l.v[0].name)
		r = bs_fail(err, -ENOTDIR, "HDFS '%s': no directory", path);
	hide(&l);
	*ret_hidden = l.n < n;
	if (r == 0 && written_in(c, path, &written) < 0)
		r = bs_ckpt_no_memory(err);
	if (r == 0 && (l.n || written.n))
		r = bs_fail(err, -ENOTEMPTY, "HDFS '%s': not empty", path);
	bs_hdfs_list_done(&l);
	return r;
}

int bs_ckpt_make_hidden(struct bs_ckpt *c, const char *dir, struct bs_error *err)
{
	bs_autofree char *hidden = bs_ckpt_hidden(dir, NULL, NULL);
	struct bs_hdfs_status s = { 0 };
	int r = hidden ? bs_nn_status(c->o.nn, dir, &s, err) : bs_ckpt_no_memory(err);

	if (r == 0)
		r = bs_nn_mkdirs(c->o.nn, hidden, s.mode, err);
	bs_hdfs_status_done(&s);
	return r;
}

/* Of a directory that is empty as far as anybody sees. */
static int remove_hidden(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	bs_autofree char *hidden = bs_ckpt_hidden(path, NULL, NULL);
	int r = hidden ? bs_nn_delete(c->o.nn, hidden, true, err) : bs_ckpt_no_memory(err);

	return r == -ENOENT ? 0 : r;
}

/* Whether .bootseer is gone: nothing was in it. */
static bool drop_hidden(struct bs_ckpt *c, const char *path)
{
	bs_autofree char *hidden = bs_ckpt_hidden(path, NULL, NULL);
	int r = hidden ? bs_nn_delete(c->o.nn, hidden, false, NULL) : -ENOMEM;

	return r == 0 || r == -ENOENT;
}

/* path is aside: what is in it shows whether it can go. */
static int remove_aside(struct bs_ckpt *c, const char *path, const char *aside,
			struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bool hidden;
	int r = is_empty(c, aside, &hidden, err), q;

	if (r == 0)
		r = bs_nn_delete(c->o.nn, aside, true, err);
	if (r == 0)
		return 0;
	q = bs_nn_rename(c->o.nn, aside, path, false, &own);
	if (q < 0)
		return bs_fail(err, -EIO, "HDFS '%s': it is '%s' now: %s", path, aside,
			       bs_error_text(&own));
	return r == -ENOTEMPTY ? bs_fail(err, r, "HDFS '%s': not empty", path) : r;
}

/*
 * Removes a directory that seems empty, with what is hidden in it. It goes aside first: what
 * another client commits in it comes before that, and is seen then, or finds no directory.
 */
static int remove_with_hidden(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	bs_autofree char *dir = bs_ckpt_parent(path);
	bs_autofree char *place = NULL, *aside = NULL, *hidden = NULL, *name = NULL;
	char id[BS_STRIPES_ID_LEN + 1];
	int r = bs_ckpt_new_id(id);

	name = bs_strf(BS_CKPT_ASIDE "%s", id);
	place = dir && name ? bs_ckpt_hidden(dir, name, NULL) : NULL;
	hidden = dir ? bs_ckpt_hidden(dir, NULL, NULL) : NULL;
	aside = place ? bs_strf("%s%s", place, strrchr(path, '/')) : NULL;
	if (r < 0 || !aside || !hidden)
		return bs_ckpt_no_memory(err);
	bs_ckpt_step(c, "rmdir");
	r = bs_ckpt_make_hidden(c, dir, err);
	if (r == 0)
		r = bs_nn_mkdirs(c->o.nn, place, 0700, err);
	if (r == 0)
		r = bs_nn_rename(c->o.nn, path, aside, false, err);
	bs_ckpt_step(c, "aside");
	if (r == 0) {
		r = remove_aside(c, path, aside, err);
	} else if (r == -EACCES || r == -EPERM || r == -EREMOTEIO) {
		/* not there, by rights or zones: then without the look */
		r = remove_hidden(c, path, err);
		if (r == 0)
			r = bs_nn_delete(c->o.nn, path, false, err);
	}
	(void)bs_nn_delete(c->o.nn, place, false, NULL);
	(void)bs_nn_delete(c->o.nn, hidden, false, NULL); /* when nothing is in it */
	return r;
}

int bs_ckpt_rmdir(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	bool hidden = false;
	int r = bs_ckpt_may_change(c, path, err);

	if (r == 0)
		r = is_empty(c, path, &hidden, err);
	if (r < 0)
		return r;
	return hidden && !drop_hidden(c, path) ? remove_with_hidden(c, path, err)
					       : bs_nn_delete(c->o.nn, path, false, err);
}

/* --- files ----------------------------------------------------------------------------------- */

int bs_ckpt_stripes_at(struct bs_ckpt *c, const char *path, const struct bs_hdfs_status *s,
		       struct bs_view **ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	struct bs_view *v = NULL;
	int r;

	if (s->type != BS_HDFS_FILE || s->len != BS_STRIPES_BYTES)
		return 0;
	r = bs_view_open(c, path, &v, &own);
	if (r == -EIO || r == -EPROTONOSUPPORT)
		return 0;
	if (r < 0)
		return bs_fail(err, r, "%s", bs_error_text(&own));
	*ret = bs_view_stripes(v) ? v : bs_view_unref(v);
	return 0;
}

int bs_ckpt_unlink(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	bs_auto(view) struct bs_view *v = NULL;
	bs_autofree char *dir = bs_ckpt_parent(path);
	struct bs_hdfs_status s = { 0 };
	int r = dir ? bs_ckpt_may_change(c, path, err) : bs_ckpt_no_memory(err);

	if (r < 0)
		return r;
	w = bs_ckpt_writer_of(c, path);
	if (w)
		(void)pthread_mutex_lock(&w->io);
	r = bs_nn_status(c->o.nn, path, &s, err);
	if (r == 0 && s.type == BS_HDFS_DIRECTORY)
		r = bs_fail(err, -EISDIR, "HDFS '%s': a directory", path);
	if (r == 0)
		(void)bs_ckpt_stripes_at(c, path, &s, &v,
					 NULL); /* else garbage collection finds them */
	bs_hdfs_status_done(&s);
	if (r == 0)
		r = bs_nn_delete(c->o.nn, path, false, err);
	if (r == 0 && v)
		bs_ckpt_trash(c, dir, bs_view_stripes(v), NULL);
	if (w && (r == 0 || r == -ENOENT)) {
		bs_writer_forget(w);
		r = 0;
	}
	if (w) /* nothing that it commits came in between */
		(void)pthread_mutex_unlock(&w->io);
	return r;
}

/*
 * Segments to another directory. What is there already was moved by a try before. Until their
 * manifest is there, too, a note keeps garbage collection away from them.
 */
static int move_segments(struct bs_ckpt *c, const struct bs_stripes *s, const char *from,
			 const char *to, struct bs_error *err)
{
	int r = bs_ckpt_make_hidden(c, to, err);

	for (uint32_t i = 0; r == 0 && i < s->n_segments; i++) {
		bs_autofree char *old = bs_ckpt_hidden(from, s->segments[i].id, NULL);
		bs_autofree char *new = bs_ckpt_hidden(to, s->segments[i].id, NULL);
		struct bs_hdfs_status st = { 0 };

		if (!old || !new)
			return bs_ckpt_no_memory(err);
		bs_ckpt_note_move(c, old);
		r = bs_nn_rename(c->o.nn, old, new, false, err);
		if (r == -ENOENT && bs_nn_status(c->o.nn, new, &st, NULL) == 0)
			r = 0;
		bs_hdfs_status_done(&st);
	}
	return r;
}

/* The manifest is where they are. Best effort. */
static void settle_segments(struct bs_ckpt *c, const struct bs_stripes *s, const char *dir)
{
	for (uint32_t i = 0; i < s->n_segments; i++) {
		bs_autofree char *segment = bs_ckpt_hidden(dir, s->segments[i].id, NULL);

		if (segment)
			bs_ckpt_moved(c, segment);
	}
}

struct renaming {
	const char *from, *to;
	char *from_dir, *to_dir;
	struct bs_hdfs_status s, target;
	bool has_target;
	struct bs_view *stripes, *target_stripes;
};

static void renaming_done(struct renaming *x)
{
	free(x->from_dir);
	free(x->to_dir);
	bs_hdfs_status_done(&x->s);
	bs_hdfs_status_done(&x->target);
	(void)bs_view_unref(x->stripes);
	(void)bs_view_unref(x->target_stripes);
}

static int look_at_both(struct bs_ckpt *c, struct renaming *x, bool no_replace,
			struct bs_error *err)
{
	int r = bs_nn_status(c->o.nn, x->from, &x->s, err);
	bool hidden = false;

	if (r == 0)
		r = bs_ckpt_stripes_at(c, x->from, &x->s, &x->stripes, err);
	if (r < 0)
		return r;
	r = bs_nn_status(c->o.nn, x->to, &x->target, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	x->has_target = true;
	if (no_replace)
		return bs_fail(err, -EEXIST, "'%s' is there already", x->to);
	if (x->s.type != BS_HDFS_DIRECTORY && x->target.type == BS_HDFS_DIRECTORY)
		return bs_fail(err, -EISDIR, "HDFS '%s': a directory", x->to);
	if (x->s.type == BS_HDFS_DIRECTORY && x->target.type != BS_HDFS_DIRECTORY)
		return bs_fail(err, -ENOTDIR, "HDFS '%s': no directory", x->to);
	(void)bs_ckpt_stripes_at(c, x->to, &x->target, &x->target_stripes, NULL);
	if (x->target.type != BS_HDFS_DIRECTORY)
		return 0;
	r = is_empty(c, x->to, &hidden, err);
	return r == 0 && hidden && !drop_hidden(c, x->to) ? remove_with_hidden(c, x->to, err) : r;
}

/* A rename that failed may have been done all the same, or be done yet. */
static bool is_still_there(struct bs_ckpt *c, const struct renaming *x)
{
	struct bs_hdfs_status s = { 0 };
	bool is = bs_nn_status(c->o.nn, x->from, &s, NULL) == 0 && s.file_id == x->s.file_id;

	bs_hdfs_status_done(&s);
	return is;
}

static int do_rename(struct bs_ckpt *c, struct renaming *x, bool no_replace, struct bs_error *err)
{
	const struct bs_stripes *moving = x->stripes && !bs_streq(x->from_dir, x->to_dir)
						  ? bs_view_stripes(x->stripes)
						  : NULL;
	int r = 0;

	if (moving)
		r = move_segments(c, moving, x->from_dir, x->to_dir, err);
	bs_ckpt_step(c, "move");
	if (r == 0)
		r = bs_nn_rename(c->o.nn, x->from, x->to, !no_replace, err);
	if (r == 0 && moving)
		settle_segments(c, moving, x->to_dir);
	if (r < 0 && moving && is_still_there(c, x) &&
	    move_segments(c, moving, x->to_dir, x->from_dir, NULL) == 0)
		settle_segments(c, moving, x->from_dir);
	if (r == 0 && x->target_stripes)
		bs_ckpt_trash(c, x->to_dir, bs_view_stripes(x->target_stripes),
			      x->stripes ? bs_view_stripes(x->stripes) : NULL);
	return r;
}

/* Those who write at or below from, and at to: their commits wait while names change. */
struct writers {
	struct bs_writer **v;
	size_t n, cap;
};

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t) * (struct bs_writer *const *)a;
	uintptr_t y = (uintptr_t) * (struct bs_writer *const *)b;

	return x < y ? -1 : x > y;
}

/* Only this holds more than one writer's io: in the order of their addresses. */
static int writers_lock(struct bs_ckpt *c, const char *from, const char *to, struct writers *ret)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	bs_list_for_each(it, &c->writers) {
		struct bs_writer *w = bs_list_entry(it, struct bs_writer, link);

		if (!bs_path_is_below(w->path, from) && !bs_streq(w->path, to))
			continue;
		r = bs_grow(&ret->v, &ret->cap, ret->n + 1, sizeof(struct bs_writer *));
		if (r < 0)
			break;
		ret->v[ret->n++] = bs_writer_ref(w);
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(struct bs_writer *), by_address);
	for (size_t i = 0; i < ret->n; i++)
		(void)pthread_mutex_lock(&ret->v[i]->io);
	return r;
}

static void writers_unlock(struct writers *l)
{
	for (size_t i = 0; i < l->n; i++) {
		(void)pthread_mutex_unlock(&l->v[i]->io);
		(void)bs_writer_unref(l->v[i]);
	}
	free(l->v);
}

/* What is renamed is on HDFS; what is on its way to where a directory is now arrives there. */
static int settle_writers(struct writers *l, const char *from, const char *to, bool no_replace,
			  struct bs_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		struct bs_writer *w = l->v[i];

		if (w->unlinked)
			continue;
		if (bs_streq(w->path, from))
			r = bs_writer_sync_locked(w, err);
		else if (bs_path_is_below(w->path, from))
			(void)bs_writer_drain(w, NULL); /* it tells its own errors */
		else if (no_replace)
			r = bs_fail(err, -EEXIST, "'%s' is there already", to);
	}
	return r;
}

static int follow_writers(struct writers *l, const char *from, const char *to, struct bs_error *err)
{
	int r = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct bs_writer *w = l->v[i];
		int q = 0;

		if (w->unlinked)
			continue;
		if (bs_path_is_below(w->path, from))
			q = bs_writer_renamed(w, from, to, r == 0 ? err : NULL);
		else
			bs_writer_forget(w);
		r = r < 0 ? r : q;
	}
	return r;
}

int bs_ckpt_rename(struct bs_ckpt *c, const char *from, const char *to, bool no_replace,
		   struct bs_error *err)
{
	struct renaming x = { .from = from, .to = to };
	struct writers l = { 0 };
	int r = bs_ckpt_may_change(c, from, err);

	if (r == 0)
		r = bs_ckpt_may_change(c, to, err);
	if (r < 0 || bs_streq(from, to))
		return r;
	if (bs_path_is_below(to, from))
		return bs_fail(err, -EINVAL, "'%s' cannot be moved into itself", from);
	x.from_dir = bs_ckpt_parent(from);
	x.to_dir = bs_ckpt_parent(to);
	r = writers_lock(c, from, to, &l);
	if (r < 0 || !x.from_dir || !x.to_dir)
		r = bs_ckpt_no_memory(err);
	if (r == 0)
		r = settle_writers(&l, from, to, no_replace, err);
	if (r == 0)
		r = look_at_both(c, &x, no_replace, err);
	if (r == 0)
		r = do_rename(c, &x, no_replace, err);
	if (r == 0)
		r = follow_writers(&l, from, to, err);
	writers_unlock(&l);
	renaming_done(&x);
	return r;
}
