/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * One generation of a file, to read: a plain file, or a manifest and its segments. Data files
 * and sums are opened when they are needed first and stay open as long as the view. They never
 * change, so what cannot be found any more was removed: -ESTALE.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/ckptpriv.h"
#include "hdfs/stripe.h"

struct segment {
	struct bs_file **files; /* NULL: not opened yet */
	uint32_t *sums;
};

struct bs_view {
	unsigned int refs; /* atomic */
	struct bs_ckpt *c;
	char *path, *dir;
	bool striped;
	struct bs_file *file; /* the plain file, or the manifest */
	struct bs_stripes stripes;

	pthread_mutex_t lock; /* guards what is opened of segments */
	struct segment segments[BS_STRIPES_SEGMENTS_MAX];
};

static int open_file(struct bs_ckpt *c, const char *path, struct bs_file **ret,
		     struct bs_error *err)
{
	struct bs_file_options o = { .nn = c->o.nn,
				     .reader = c->o.reader,
				     .deadline_ns = c->o.deadline_ns };

	return bs_file_open(&o, path, ret, err);
}

/* --- opening --------------------------------------------------------------------------------- */

static int read_manifest(struct bs_view *v, struct bs_error *err)
{
	char bytes[BS_STRIPES_BYTES];
	ssize_t n = bs_file_pread(v->file, bytes, sizeof(bytes), 0, err);
	int r;

	if (n < 0)
		return (int)n;
	if (!bs_stripes_is(bytes, (size_t)n))
		return 0;
	r = bs_stripes_read(bytes, (size_t)n, &v->stripes, err);
	if (r < 0) {
		(void)bs_error_context(err, "'%s'", v->path);
		return r == -EBADMSG ? -EIO : r;
	}
	v->striped = true;
	return 0;
}

int bs_view_open(struct bs_ckpt *c, const char *path, struct bs_view **ret, struct bs_error *err)
{
	bs_auto(view) struct bs_view *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	(void)pthread_mutex_init(&v->lock, NULL);
	v->refs = 1;
	v->c = c;
	v->path = bs_strf("%s", path);
	v->dir = bs_ckpt_parent(path);
	if (!v->path || !v->dir)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = open_file(c, path, &v->file, err);
	if (r == 0 && bs_file_status(v->file)->len == BS_STRIPES_BYTES)
		r = read_manifest(v, err);
	if (r < 0)
		return r;
	*ret = bs_take(&v);
	return 0;
}

struct bs_view *bs_view_ref(struct bs_view *v)
{
	if (v)
		(void)__atomic_add_fetch(&v->refs, 1, __ATOMIC_RELAXED);
	return v;
}

struct bs_view *bs_view_unref(struct bs_view *v)
{
	if (!v || __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (uint32_t i = 0; i < v->stripes.n_segments; i++) {
		struct segment *g = &v->segments[i];

		for (uint32_t k = 0; g->files && k < v->stripes.segments[i].files; k++)
			(void)bs_file_free(g->files[k]);
		free(g->files);
		free(g->sums);
	}
	(void)bs_file_free(v->file);
	(void)pthread_mutex_destroy(&v->lock);
	free(v->path);
	free(v->dir);
	free(v);
	return NULL;
}

const struct bs_stripes *bs_view_stripes(const struct bs_view *v)
{
	return v->striped ? &v->stripes : NULL;
}

const struct bs_hdfs_status *bs_view_status(const struct bs_view *v)
{
	return bs_file_status(v->file);
}

uint64_t bs_view_size(const struct bs_view *v)
{
	return v->striped ? v->stripes.size : bs_file_status(v->file)->len;
}

int bs_ckpt_copy_status(const struct bs_hdfs_status *s, struct bs_hdfs_status *ret)
{
	struct bs_hdfs_status copy = *s;

	copy.target = NULL;
	copy.name = bs_strf("%s", s->name ? s->name : "");
	copy.owner = bs_strf("%s", s->owner ? s->owner : "");
	copy.group = bs_strf("%s", s->group ? s->group : "");
	if (s->target)
		copy.target = bs_strf("%s", s->target);
	if (!copy.name || !copy.owner || !copy.group || (s->target && !copy.target)) {
		bs_hdfs_status_done(&copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
}

int bs_view_tell(const struct bs_view *v, struct bs_hdfs_status *ret)
{
	int r = bs_ckpt_copy_status(bs_view_status(v), ret);

	if (r == 0 && v->striped) {
		ret->len = v->stripes.size;
		ret->block_size = v->stripes.unit;
		ret->atime_ms = ret->mtime_ms;
	}
	return r;
}

/* --- data files and sums --------------------------------------------------------------------- */

static int stale(struct bs_view *v, int r, struct bs_error *err)
{
	if (r != -ENOENT)
		return r;
	return bs_fail(err, -ESTALE, "HDFS '%s': the file was replaced or removed", v->path);
}

static int open_data(struct bs_view *v, uint32_t i, uint32_t k, struct bs_file **ret,
		     struct bs_error *err)
{
	const struct bs_segment *seg = &v->stripes.segments[i];
	bs_autofree char *name = bs_strf("%05u-of-%05u", k, seg->files);
	bs_autofree char *path = name ? bs_ckpt_hidden(v->dir, seg->id, name) : NULL;
	bs_auto(file) struct bs_file *f = NULL;
	uint64_t want = bs_stripe_file_len(seg->len, seg->files, v->stripes.unit, k);
	int r;

	if (!path)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = open_file(v->c, path, &f, err);
	if (r < 0)
		return stale(v, r, err);
	if (bs_file_status(f)->len != want)
		return bs_fail(err, -EIO, "HDFS '%s': %" PRIu64 " bytes, and not %" PRIu64, path,
			       bs_file_status(f)->len, want);
	*ret = bs_take(&f);
	return 0;
}

static int data_of(struct bs_view *v, uint32_t i, uint32_t k, struct bs_file **ret,
		   struct bs_error *err)
{
	struct segment *g = &v->segments[i];
	struct bs_file *f = NULL, *mine = NULL;
	int r;

	(void)pthread_mutex_lock(&v->lock);
	f = g->files ? g->files[k] : NULL;
	(void)pthread_mutex_unlock(&v->lock);
	if (!f) {
		r = open_data(v, i, k, &mine, err);
		if (r < 0)
			return r;
		(void)pthread_mutex_lock(&v->lock);
		if (!g->files)
			g->files = calloc(v->stripes.segments[i].files, sizeof(struct bs_file *));
		if (g->files && !g->files[k])
			g->files[k] = bs_take(&mine);
		f = g->files ? g->files[k] : NULL;
		(void)pthread_mutex_unlock(&v->lock);
		(void)bs_file_free(mine);
	}
	*ret = f;
	return f ? 0 : bs_fail(err, -ENOMEM, "HDFS: out of memory");
}

static int load_sums(struct bs_view *v, uint32_t i, uint32_t **ret, struct bs_error *err)
{
	const struct bs_segment *seg = &v->stripes.segments[i];
	uint64_t n = bs_stripe_units(seg->len, v->stripes.unit);
	size_t len = bs_sums_bytes(n);
	bs_autofree char *path = bs_ckpt_hidden(v->dir, seg->id, "sums");
	bs_autofree uint32_t *sums = calloc(n, sizeof(*sums));
	bs_autofree char *bytes = malloc(len + 1);
	bs_auto(file) struct bs_file *f = NULL;
	ssize_t got;
	int r;

	if (!path || !sums || !bytes)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = open_file(v->c, path, &f, err);
	if (r < 0)
		return stale(v, r, err);
	got = bs_file_pread(f, bytes, len + 1, 0, err);
	if (got < 0)
		return (int)got;
	r = bs_sums_read(bytes, (size_t)got, seg->sums, v->stripes.unit, n, sums, err);
	if (r < 0) {
		(void)bs_error_context(err, "HDFS '%s'", path);
		return -EIO;
	}
	*ret = bs_take(&sums);
	return 0;
}

static int sum_of(struct bs_view *v, uint32_t i, uint64_t slot, uint32_t *ret, struct bs_error *err)
{
	struct segment *g = &v->segments[i];
	bs_autofree uint32_t *mine = NULL;
	const uint32_t *sums;
	int r;

	(void)pthread_mutex_lock(&v->lock);
	sums = g->sums;
	(void)pthread_mutex_unlock(&v->lock);
	if (!sums) {
		r = load_sums(v, i, &mine, err);
		if (r < 0)
			return r;
		(void)pthread_mutex_lock(&v->lock);
		if (!g->sums)
			g->sums = bs_take(&mine);
		sums = g->sums;
		(void)pthread_mutex_unlock(&v->lock);
	}
	*ret = sums[slot];
	return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A whole slot has its sum: 0, -EBADMSG. */
static int check_sum(struct bs_view *v, uint32_t i, uint64_t slot, const void *buf, size_t len,
		     struct bs_error *err)
{
	uint32_t want = 0;
	int r = sum_of(v, i, slot, &want, err);

	if (r < 0)
		return r;
	bs_ckpt_count(&v->c->stats.sums_checked, 1);
	if (bs_crc32c(0, buf, len) == want)
		return 0;
	bs_ckpt_count(&v->c->stats.sums_wrong, 1);
	return -EBADMSG;
}

/* Bytes of slot from at on; what is behind its end is zeros. */
static int read_slot(struct bs_view *v, uint32_t i, uint64_t slot, char *buf, size_t len,
		     uint32_t at, struct bs_error *err)
{
	const struct bs_segment *seg = &v->stripes.segments[i];
	uint32_t unit = v->stripes.unit, there = bs_stripe_unit_len(seg->len, unit, slot);
	struct bs_stripe_at where = bs_stripe_slot(slot, seg->files, unit);
	size_t want = at < there ? BS_MIN(len, (size_t)(there - at)) : 0;
	struct bs_file *f = NULL;
	int r = want ? data_of(v, i, where.file, &f, err) : 0;

	for (int round = 0; r == 0 && want; round++) {
		ssize_t n = bs_file_pread(f, buf, want, where.off + at, err);

		if (n < 0)
			return (int)n;
		if ((size_t)n != want)
			return bs_fail(err, -EIO, "HDFS '%s': a data file is too short", v->path);
		if (at || want != there)
			break;
		r = check_sum(v, i, slot, buf, want, err);
		if (r != -EBADMSG)
			break;
		r = round == 0 ? 0
			       : bs_fail(err, -EIO,
					 "HDFS '%s': wrong bytes in slot %" PRIu64 " of segment %s",
					 v->path, slot, seg->id);
	}
	if (r == 0)
		memset(buf + want, 0, len - want);
	return r;
}

static int read_unit(struct bs_view *v, uint64_t u, char *buf, size_t len, uint32_t at,
		     struct bs_error *err)
{
	uint64_t slot = 0, n;
	const struct bs_segment *seg = bs_stripes_find(&v->stripes, u, &slot, &n);

	if (!seg) {
		memset(buf, 0, len);
		return 0;
	}
	return read_slot(v, (uint32_t)(seg - v->stripes.segments), slot, buf, len, at, err);
}

ssize_t bs_view_pread(struct bs_view *v, void *buf, size_t len, uint64_t off, struct bs_error *err)
{
	uint64_t size = bs_view_size(v);
	size_t done = 0;

	if (!v->striped)
		return bs_file_pread(v->file, buf, len, off, err);
	if (off >= size)
		return 0;
	len = (size_t)BS_MIN((uint64_t)len, size - off);
	while (done < len) {
		uint32_t unit = v->stripes.unit, at = (uint32_t)((off + done) % unit);
		size_t part = BS_MIN(len - done, (size_t)(unit - at));
		int r = read_unit(v, (off + done) / unit, (char *)buf + done, part, at, err);

		if (r < 0)
			return r;
		done += part;
	}
	return (ssize_t)done;
}

int bs_ckpt_manifest(struct bs_ckpt *c, const char *path, struct bs_stripes *ret,
		     struct bs_error *err)
{
	bs_auto(view) struct bs_view *v = NULL;
	int r = bs_ckpt_path_check(path, err);

	if (r == 0)
		r = bs_view_open(c, path, &v, err);
	if (r == 0 && v->striped) {
		*ret = v->stripes;
		r = 1;
	}
	return r;
}
