/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How what was written becomes a generation of the file: the steps of bootseer-stripe(5), each
 * named for tests that end there. A failure sticks to the writer, since what it had sent is
 * then of no use to a second try.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/stripe.h"
#include "hdfs/targets.h"
#include "hdfs/writerpriv.h"

#define OWN_XATTR "user.bootseer."
#define XATTR OWN_XATTR "stripe"
#define CONCAT_BYTES (24u << 10) /* of names in one request, at most */
#define CONCAT_SOURCES 64u

static struct bs_nn *nn_of(const struct bs_writer *w)
{
	return w->c->o.nn;
}

static char *in_segment(const struct bs_writer *w, const char *name)
{
	return bs_ckpt_hidden(w->segment_dir, w->id, name);
}

/* --- where it is made ------------------------------------------------------------------------- */

/*
 * Where the segment is made: beside the file. CONCAT has no way to write a comma, so where one is
 * in a name, it is made further up, and moved when it is whole. malloc'ed.
 */
static char *building_site(const struct bs_writer *w)
{
	char *dir = bs_ckpt_parent(w->path);

	while (dir && strchr(dir, ',')) {
		char *up = bs_ckpt_parent(dir);

		free(dir);
		dir = up;
	}
	return dir;
}

int bs_writer_prepare(struct bs_writer *w, struct bs_error *err)
{
	bs_autofree char *dir = building_site(w);
	bs_autofree char *segment = dir ? bs_ckpt_hidden(dir, w->id, NULL) : NULL;
	uint32_t mode = 0700 | w->mode | (w->mode & 0444) >> 2;
	int r;

	if (!segment)
		return bs_ckpt_no_memory(err);
	r = bs_targets_learn(bs_putter_targets(w->c->putter), segment, err);
	if (r < 0)
		return r;
	if (w->segment_dir)
		return 0;
	if (w->files == 0)
		w->files = w->c->o.files ? w->c->o.files : bs_stripe_files((uint64_t)r);
	r = bs_ckpt_replication(w->c, &w->replication, err);
	if (r < 0)
		return r;
	bs_ckpt_step(w->c, "mkdir");
	r = bs_ckpt_make_hidden(w->c, dir, err);
	if (r == 0)
		r = bs_nn_mkdirs(nn_of(w), segment, mode & 01777, err);
	if (r == 0)
		w->segment_dir = bs_take(&dir);
	return r;
}

/* --- everything is sent ---------------------------------------------------------------------- */

/* Units that nobody wrote become part of the segment, too; holes if they have to. */
static int touch_all(struct bs_writer *w, bool holes, struct bs_error *err)
{
	uint64_t n = bs_stripe_units(w->size, w->unit);
	uint64_t had = bs_stripe_units(w->base_size, w->unit);
	int r = 0;

	for (uint64_t u = 0; r == 0 && u < (holes ? n : BS_MIN(n, had)); u++) {
		struct bs_wrec *rec;

		if (bs_writer_rec(w, u, false))
			continue;
		rec = bs_writer_rec(w, u, true);
		r = rec ? bs_writer_submit(w, rec, err) : bs_ckpt_no_memory(err);
	}
	return r;
}

/* When the file became longer than what counts of the base, the rest of that unit is zeros. */
static int touch_end(struct bs_writer *w, struct bs_error *err)
{
	uint64_t u = w->base_size / w->unit;
	struct bs_wrec *rec;

	if (w->base_size % w->unit == 0 || w->base_size >= w->size || bs_writer_rec(w, u, false))
		return 0;
	rec = bs_writer_rec(w, u, true);
	return rec ? bs_writer_submit(w, rec, err) : bs_ckpt_no_memory(err);
}

static bool has_to_be_sent(struct bs_writer *w, struct bs_wrec *rec)
{
	uint32_t want = bs_stripe_unit_len(w->size, w->unit, rec->u), len;

	if (rec->page.dirty)
		return true;
	(void)pthread_mutex_lock(&w->lock);
	len = rec->sent ? (uint32_t)rec->sent->put.len : rec->there ? rec->len : 0;
	(void)pthread_mutex_unlock(&w->lock);
	return len != want;
}

static int send_all(struct bs_writer *w, struct bs_error *err)
{
	int r = bs_writer_prepare(w, err);

	for (size_t i = 0; r == 0 && i < w->n_recs; i++) {
		if (has_to_be_sent(w, w->recs[i]))
			r = bs_writer_submit(w, w->recs[i], err);
	}
	return r;
}

/* --- small files of our own ------------------------------------------------------------------ */

/* One on its way to the segment's directory. */
struct small {
	struct bs_put_job job;
	bool begun;
	char *path; /* its name has the attempt's number behind once it is there */
};

/* bytes stay until small_end. */
static int small_begin(struct bs_writer *w, const char *name, const void *bytes, size_t len,
		       struct small *s, struct bs_error *err)
{
	struct bs_put *put = &s->job.put;

	bs_ckpt_step(w->c, name);
	s->path = in_segment(w, name);
	if (!s->path)
		return bs_ckpt_no_memory(err);
	*put = (struct bs_put){ .path = s->path,
				.body = bytes,
				.len = len,
				.block_size = w->unit,
				.replication = w->replication,
				.mode = w->mode,
				.first = w->first,
				.patience_ns = w->c->o.deadline_ns };
	while (put->block_size < len)
		put->block_size += w->unit;
	bs_put_begin(w->c->putter, &s->job);
	s->begun = true;
	return 0;
}

/* One that was not begun is there. */
static int small_end(struct small *s, struct bs_error *err)
{
	int r = s->begun ? bs_put_end(&s->job, err) : 0;
	char *path;

	if (r < 0 || !s->begun)
		return r;
	path = bs_strf("%s.%d", s->path, r);
	if (!path)
		return bs_ckpt_no_memory(err);
	free(s->path);
	s->path = path;
	return 0;
}

static bool is_at(const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && bs_streq(slash + 1, name);
}

/* What a striped file has beside its units. */
struct beside {
	struct bs_segment seg;
	struct bs_stripes stripes;
	struct small sums, manifest;
	char *sums_bytes;
	char bytes[BS_STRIPES_BYTES];
};

static bool is_beside(const struct beside *b, const char *name)
{
	return b && (is_at(b->sums.path, name) || is_at(b->manifest.path, name));
}

/* --- it is all there ------------------------------------------------------------------------- */

static int list_segment(struct bs_writer *w, struct bs_hdfs_list *ret, struct bs_error *err)
{
	bs_autofree char *dir = in_segment(w, NULL);

	return dir ? bs_nn_list(nn_of(w), dir, ret, err) : bs_ckpt_no_memory(err);
}

static void remove_extra(struct bs_writer *w, const char *name)
{
	bs_autofree char *path = in_segment(w, name);

	if (path)
		(void)bs_nn_delete(nn_of(w), path, true, NULL);
}

/* names: of the parts, one a unit. b: or NULL. */
static int compare_parts(struct bs_writer *w, const struct bs_strv *names, const struct beside *b,
			 const struct bs_hdfs_list *list, struct bs_error *err)
{
	struct bs_map map;
	size_t found = 0;
	int r = 0;

	bs_map_init(&map);
	for (size_t i = 0; r == 0 && i < names->n; i++)
		r = bs_map_put(&map, names->v[i], strlen(names->v[i]), w->recs[i]);
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const char *name = list->v[i].name;
		const struct bs_wrec *rec = bs_map_get(&map, name, strlen(name));

		if (is_beside(b, name))
			continue;
		if (!rec)
			remove_extra(w, name);
		else if (list->v[i].len != rec->len)
			r = bs_fail(err, -EIO, "HDFS '%s': %s has %" PRIu64 " bytes, and not %u",
				    w->path, name, list->v[i].len, rec->len);
		else
			found++;
	}
	bs_map_done(&map);
	if (r == 0 && found != names->n)
		r = bs_fail(err, -EIO, "HDFS '%s': a unit that was written is not there", w->path);
	return r;
}

static int check_parts(struct bs_writer *w, const struct beside *b, struct bs_strv *names,
		       struct bs_error *err)
{
	struct bs_hdfs_list list = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->n_recs; i++)
		r = bs_strv_take(names, bs_writer_part_name(w->recs[i]));
	if (r < 0)
		return bs_ckpt_no_memory(err);
	bs_ckpt_step(w->c, "list");
	r = list_segment(w, &list, err);
	if (r == 0)
		r = compare_parts(w, names, b, &list, err);
	bs_hdfs_list_done(&list);
	return r;
}

/* --- joining --------------------------------------------------------------------------------- */

/* The parts first, first + step, … become one file with that name. */
static int join(struct bs_writer *w, const struct bs_strv *names, size_t first, size_t step,
		const char *name, struct bs_error *err)
{
	bs_autofree char *to = in_segment(w, names->v[first]);
	bs_autofree char *final = in_segment(w, name);
	size_t i = first + step;
	int r = to && final ? 0 : -ENOMEM;

	while (r == 0 && i < names->n) {
		bs_autostrv sources = { 0 };
		size_t bytes = 0;

		for (; r == 0 && i < names->n && sources.n < CONCAT_SOURCES; i += step) {
			char *path = in_segment(w, names->v[i]);

			bytes += path ? 3 * strlen(path) : 0;
			if (path && sources.n && bytes > CONCAT_BYTES) {
				free(path);
				break;
			}
			r = path ? bs_strv_take(&sources, path) : -ENOMEM;
		}
		if (r == 0)
			r = bs_nn_concat(nn_of(w), to, (const char *const *)sources.v, sources.n,
					 err);
	}
	if (r == 0)
		r = bs_nn_rename(nn_of(w), to, final, false, err);
	return r == -ENOMEM ? bs_ckpt_no_memory(err) : r;
}

static int join_stripes(struct bs_writer *w, const struct bs_strv *names, struct bs_error *err)
{
	int r = 0;

	bs_ckpt_step(w->c, "concat");
	for (uint32_t k = 0; r == 0 && k < w->files && k < names->n; k++) {
		bs_autofree char *name = bs_strf("%05u-of-%05u", k, w->files);

		r = name ? join(w, names, k, w->files, name, err) : bs_ckpt_no_memory(err);
	}
	return r;
}

static int check_stripes(struct bs_writer *w, const struct beside *b, struct bs_error *err)
{
	const struct bs_segment *seg = &b->seg;
	uint32_t used = bs_stripe_files_used(seg->len, seg->files, w->unit), n = 0;
	struct bs_hdfs_list list = { 0 };
	int r;

	bs_ckpt_step(w->c, "check");
	r = list_segment(w, &list, err);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		/* in their order; what is behind them came too late to count */
		uint64_t want = bs_stripe_file_len(seg->len, seg->files, w->unit, n);

		if (is_beside(b, list.v[i].name))
			continue;
		if (++n > used)
			remove_extra(w, list.v[i].name);
		else if (list.v[i].len != want || strncmp(list.v[i].name, "part-", 5) == 0)
			r = bs_fail(err, -EIO, "HDFS '%s': %s has %" PRIu64 " bytes", w->path,
				    list.v[i].name, list.v[i].len);
	}
	if (r == 0 && n < used)
		r = bs_fail(err, -EIO, "HDFS '%s': a data file is not there", w->path);
	bs_hdfs_list_done(&list);
	return r;
}

/* --- the manifest ---------------------------------------------------------------------------- */

/* Runs of units that follow each other; -E2BIG. */
static int runs_of(const struct bs_writer *w, struct bs_stripes_run *runs, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->n_recs; i++) {
		uint64_t u = w->recs[i]->u;

		if (n && runs[n - 1].first + runs[n - 1].n == u) {
			runs[n - 1].n++;
			continue;
		}
		if (n == BS_STRIPES_MAP_MAX)
			return -E2BIG;
		runs[n] = (struct bs_stripes_run){ .first = u, .n = 1 };
		n++;
	}
	*ret_n = n;
	return 0;
}

static const struct bs_stripes *old_stripes(const struct bs_writer *w)
{
	return w->fresh || !w->base ? NULL : bs_view_stripes(w->base);
}

/* What the manifest will say, with a segment of the units that are known now. */
static int plan(const struct bs_writer *w, const struct bs_segment *seg, struct bs_stripes *ret)
{
	const struct bs_stripes *old = old_stripes(w);
	struct bs_stripes_run runs[BS_STRIPES_MAP_MAX];
	uint32_t n = 0;
	int r = runs_of(w, runs, &n);

	memset(ret, 0, sizeof(*ret));
	if (old)
		*ret = *old;
	ret->unit = w->unit;
	ret->generation++;
	memcpy(ret->writer, w->writer_id, sizeof(ret->writer));
	if (old) {
		ret->size = w->base_size;
		bs_stripes_cut(ret);
	}
	ret->size = w->size;
	if (r == 0 && n)
		r = bs_stripes_add(ret, seg, runs, n);
	return r;
}

/* Checksums of all units, which are on their way or there. */
static int sums_of(struct bs_writer *w, struct beside *b, struct bs_error *err)
{
	bs_autofree uint32_t *crc = calloc(w->n_recs, sizeof(*crc));
	size_t len = bs_sums_bytes(w->n_recs);

	b->sums_bytes = malloc(len);
	if (!crc || !b->sums_bytes)
		return bs_ckpt_no_memory(err);
	(void)pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_recs; i++)
		crc[i] = w->recs[i]->sent ? w->recs[i]->sent->crc : w->recs[i]->crc;
	(void)pthread_mutex_unlock(&w->lock);
	bs_sums_write(w->unit, crc, (uint32_t)w->n_recs, b->sums_bytes);
	b->seg.sums = bs_crc32c(0, b->sums_bytes, len);
	return small_begin(w, "sums", b->sums_bytes, len, &b->sums, err);
}

/* With all units on their way, what is beside them goes with them. */
static int beside_begin(struct bs_writer *w, struct beside *b, struct bs_error *err)
{
	int r = 0;

	if (w->n_recs) {
		uint64_t before = w->n_recs - 1, last = w->recs[before]->u;

		b->seg.len = before * w->unit + bs_stripe_unit_len(w->size, w->unit, last);
		b->seg.files = w->files;
		r = sums_of(w, b, err);
	}
	if (r < 0)
		return r;
	r = plan(w, &b->seg, &b->stripes);
	if (r == 0)
		r = bs_stripes_write(&b->stripes, b->bytes);
	if (r < 0)
		return bs_fail(err, r, "HDFS '%s': cannot make a manifest", w->path);
	return small_begin(w, "manifest", b->bytes, sizeof(b->bytes), &b->manifest, err);
}

/* All that is on its way is there, or r, or what befell it. */
static int beside_end(struct bs_writer *w, struct beside *b, int r, struct bs_error *err)
{
	int q = bs_writer_drain(w, r < 0 ? NULL : err);

	r = r < 0 ? r : q;
	q = small_end(&b->sums, r < 0 ? NULL : err);
	r = r < 0 ? r : q;
	q = small_end(&b->manifest, r < 0 ? NULL : err);
	return r < 0 ? r : q;
}

static void mark(struct bs_writer *w, const struct beside *b)
{
	bs_autofree char *value = bs_strf("1 %" PRIu64, w->size);

	bs_ckpt_step(w->c, "mark");
	/* both are only hints, which a cluster may not have */
	(void)bs_nn_set_times(nn_of(w), b->manifest.path, UINT64_MAX, bs_stripe_atime(w->size),
			      NULL);
	if (value)
		(void)bs_nn_set_xattr(nn_of(w), b->manifest.path, XATTR, value, strlen(value),
				      false, false, NULL);
}

/* --- into place ------------------------------------------------------------------------------ */

/* The path is another directory's now: the segment has to be there before the manifest. */
static int follow(struct bs_writer *w, char **path, struct bs_error *err)
{
	bs_autofree char *dir = bs_ckpt_parent(w->path);
	bs_autofree char *from = in_segment(w, NULL);
	bs_autofree char *to = dir ? bs_ckpt_hidden(dir, w->id, NULL) : NULL;
	char *moved;
	int r;

	if (!from || !to)
		return bs_ckpt_no_memory(err);
	if (bs_streq(from, to))
		return 0;
	r = bs_ckpt_make_hidden(w->c, dir, err);
	if (r == 0)
		r = bs_nn_rename(nn_of(w), from, to, false, err);
	if (r < 0)
		return r;
	moved = bs_strf("%s%s", to, *path + strlen(from));
	if (!moved)
		return bs_ckpt_no_memory(err);
	free(*path);
	*path = moved;
	free(w->segment_dir);
	w->segment_dir = bs_take(&dir);
	return 0;
}

/* What is at the path now may be replaced. *ret: it, or NULL. */
static int look_at_old(struct bs_writer *w, struct bs_view **ret, struct bs_error *err)
{
	struct bs_view *old = NULL;
	int r = bs_view_open(w->c, w->path, &old, err);

	if (r == -EIO || r == -EPROTONOSUPPORT || r == -ENOENT)
		r = 0; /* what cannot be read can be replaced */
	if (r < 0)
		return r;
	if (w->base_id && (!old || bs_view_status(old)->file_id != w->base_id)) {
		(void)bs_view_unref(old);
		return bs_fail(err, -ESTALE,
			       "HDFS '%s': it was replaced or removed while it was changed here",
			       w->path);
	}
	*ret = old;
	return 0;
}

/*
 * There is a new generation: that is what later changes begin with. What goes wrong from here on
 * does not undo it: a base that cannot be opened now is opened when it is needed.
 */
static void begin_anew(struct bs_writer *w, uint64_t id, const char *next)
{
	struct bs_view *v = NULL;

	if (bs_view_open(w->c, w->path, &v, NULL) == 0 &&
	    (bs_view_status(v)->file_id != id || bs_view_size(v) != w->size))
		v = bs_view_unref(v); /* another writer's, at once */
	bs_writer_set_base(w, v);
	w->base_size = w->size;
	w->excl = false;
	bs_writer_drop_recs(w, 0);
	free(w->segment_dir);
	w->segment_dir = NULL;
	(void)pthread_mutex_lock(&w->c->lock);
	memcpy(w->id, next, sizeof(w->id));
	(void)pthread_mutex_unlock(&w->c->lock);
	(void)pthread_mutex_lock(&w->lock);
	w->base_id = id;
	w->dirty = w->fresh = false;
	(void)pthread_mutex_unlock(&w->lock);
	bs_ckpt_count(&w->c->stats.commits, 1);
}

int bs_writer_base(struct bs_writer *w, struct bs_error *err)
{
	struct bs_view *v = NULL;
	int r;

	if (w->base || w->fresh)
		return 0;
	r = bs_view_open(w->c, w->path, &v, err);
	if (r < 0 && r != -ENOENT && r != -EISDIR)
		return r;
	if (r < 0 || bs_view_status(v)->file_id != w->base_id || bs_view_size(v) != w->base_size) {
		(void)bs_view_unref(v);
		return bs_fail(err, -ESTALE,
			       "HDFS '%s': it was replaced or removed after it was saved here",
			       w->path);
	}
	bs_writer_set_base(w, v);
	return 0;
}

/* As setxattr(2) left it, but for those that are ours. */
static void carry_xattrs(struct bs_writer *w, const char *path)
{
	bs_autofree char *names = NULL;
	size_t len = 0;

	if (bs_nn_list_xattrs(nn_of(w), w->path, &names, &len, NULL) < 0)
		return;
	for (const char *name = names; len; name += strlen(name) + 1) {
		bs_autofree void *value = NULL;
		size_t value_len;

		len -= strlen(name) + 1;
		if (!bs_str_after(name, "user.") || bs_str_after(name, OWN_XATTR))
			continue;
		if (bs_nn_get_xattr(nn_of(w), w->path, name, &value, &value_len, NULL) == 0)
			(void)bs_nn_set_xattr(nn_of(w), path, name, value, value_len, false, false,
					      NULL);
	}
}

/*
 * The new file at path gets what the old one's users gave it beside bytes and mode. Best effort:
 * HDFS lets only some give a file to a group.
 */
static void carry_over(struct bs_writer *w, const struct bs_view *old, const char *path,
		       const char *group)
{
	bs_autofree char *segment = in_segment(w, NULL);
	const char *was = bs_view_status(old)->group;

	if (segment && was && *was && !bs_streq(was, group))
		(void)bs_ckpt_own_segment(w->c, segment, NULL, was, NULL);
	carry_xattrs(w, path);
}

/* path: in the segment's directory. s: what it says, NULL: it is a plain file. */
static int into_place(struct bs_writer *w, char **path, const struct bs_stripes *s,
		      struct bs_error *err)
{
	bs_auto(view) struct bs_view *old = NULL;
	bs_autofree char *segment = NULL;
	struct bs_hdfs_status status = { 0 };
	char next[BS_STRIPES_ID_LEN + 1];
	uint64_t id;
	int r = follow(w, path, err);

	if (r == 0)
		r = bs_ckpt_new_id(next);
	if (r == 0)
		r = look_at_old(w, &old, err);
	if (r == 0)
		r = bs_nn_status(nn_of(w), *path, &status, err);
	if (r < 0)
		return r;
	id = status.file_id;
	if (!s && status.len != w->size)
		r = bs_fail(err, -EIO,
			    "HDFS '%s': %" PRIu64 " bytes came together, and not %" PRIu64, w->path,
			    status.len, w->size);
	if (r == 0 && old)
		carry_over(w, old, *path, status.group);
	bs_hdfs_status_done(&status);
	bs_ckpt_step(w->c, "rename");
	if (r < 0)
		return r;
	r = bs_nn_rename(nn_of(w), *path, w->path, !w->excl, err);
	if (r < 0) {
		/* it may have been done, or may be yet: the stripes are garbage collection's */
		free(w->segment_dir);
		w->segment_dir = NULL;
		return r;
	}
	bs_ckpt_step(w->c, "trash");
	if (old && bs_view_stripes(old))
		bs_ckpt_trash(w->c, w->segment_dir, bs_view_stripes(old), s);
	segment = in_segment(w, NULL);
	if (segment && (!s || w->n_recs == 0))
		(void)bs_nn_delete(nn_of(w), segment, true, NULL);
	begin_anew(w, id, next);
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int commit_small(struct bs_writer *w, const char *bytes, struct bs_error *err)
{
	struct small plain = { .path = NULL };
	int r = bs_writer_drain(w, err);

	if (r == 0)
		r = bs_writer_prepare(w, err);
	if (r == 0)
		r = small_begin(w, "plain", bytes, w->size, &plain, err);
	if (r == 0)
		r = small_end(&plain, err);
	if (r == 0)
		r = into_place(w, &plain.path, NULL, err);
	free(plain.path);
	return r;
}

static int commit_plain(struct bs_writer *w, struct bs_error *err)
{
	bs_autofree char *path = NULL;
	bs_autostrv names = { 0 };
	int r = touch_all(w, true, err);

	if (r == 0)
		r = send_all(w, err);
	if (r == 0)
		r = bs_writer_drain(w, err);
	if (r == 0)
		r = check_parts(w, NULL, &names, err);
	bs_ckpt_step(w->c, "concat");
	if (r == 0)
		r = join(w, &names, 0, 1, "plain", err);
	if (r < 0)
		return r;
	path = in_segment(w, "plain");
	return path ? into_place(w, &path, NULL, err) : bs_ckpt_no_memory(err);
}

static int make_segment(struct bs_writer *w, struct beside *b, struct bs_error *err)
{
	bs_autofree char *sums = in_segment(w, "sums");
	bs_autostrv names = { 0 };
	int r = sums ? check_parts(w, b, &names, err) : bs_ckpt_no_memory(err);

	if (r == 0)
		r = join_stripes(w, &names, err);
	if (r == 0)
		r = check_stripes(w, b, err);
	return r < 0 ? r : bs_nn_rename(nn_of(w), b->sums.path, sums, false, err);
}

/* The units that have to be written, so that the manifest has room for what it is to say. */
static int touch(struct bs_writer *w, struct beside *b, struct bs_error *err)
{
	int r = touch_end(w, err);

	if (r == 0 && !w->fresh && w->base && !bs_view_stripes(w->base))
		r = touch_all(w, false, err);
	if (r == 0 && plan(w, &b->seg, &b->stripes) == -E2BIG)
		r = touch_all(w, false, err);
	if (r == 0 && plan(w, &b->seg, &b->stripes) == -E2BIG) /* holes are too many */
		r = touch_all(w, true, err);
	return r;
}

static int commit_striped(struct bs_writer *w, struct bs_error *err)
{
	struct beside *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return bs_ckpt_no_memory(err);
	b->seg.len = b->seg.files = 1;
	memcpy(b->seg.id, w->id, sizeof(b->seg.id));
	r = touch(w, b, err);
	if (r == 0)
		r = send_all(w, err);
	if (r == 0)
		r = beside_end(w, b, beside_begin(w, b, err), err);
	if (r == 0 && w->n_recs)
		r = make_segment(w, b, err);
	if (r == 0) {
		mark(w, b);
		r = into_place(w, &b->manifest.path, &b->stripes, err);
	}
	free(b->sums.path);
	free(b->manifest.path);
	free(b->sums_bytes);
	free(b);
	return r;
}

/* Its bytes, when it is shorter than a unit. */
static int small_bytes(struct bs_writer *w, char **ret, struct bs_error *err)
{
	char *bytes = malloc(w->size + 1);
	int r = bytes ? 0 : bs_ckpt_no_memory(err);

	if (r == 0 && w->size)
		r = bs_writer_copy(w, 0, bytes, (uint32_t)w->size, 0, err);
	if (r < 0) {
		free(bytes);
		return r;
	}
	*ret = bytes;
	return 0;
}

static int commit(struct bs_writer *w, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	int r;

	if (w->size >= w->unit)
		return w->c->o.layout == BS_CKPT_PLAIN ? commit_plain(w, err)
						       : commit_striped(w, err);
	r = small_bytes(w, &bytes, err);
	if (r < 0)
		return r;
	return bs_stripes_is(bytes, w->size) ? commit_striped(w, err) : commit_small(w, bytes, err);
}

int bs_writer_commit(struct bs_writer *w, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	int r = commit(w, &own);

	if (r == 0)
		return 0;
	(void)bs_fail(err, r, "%s", bs_error_text(&own));
	return bs_writer_fail(w, r, bs_error_text(&own));
}
