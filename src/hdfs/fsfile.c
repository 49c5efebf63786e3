/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Open files. A handle of the kernel's is a file of the tree's that is shared with the reads
 * that are under way for it. All reads of a node go by one handle, else an older one would put
 * bytes of an older generation where the kernel keeps those of all. While somebody writes a file
 * here its reads go to the tree as they are; else by way of units (units.h), which belong to the
 * node.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "hdfs/fskeep.h"
#include "hdfs/fspriv.h"

#define UNIT_MAX                                                                                   \
	(16u << 20) /* units that are larger are read in parts, without sums of the whole */
#define UNIT_OWN (4u << 20)
#define STREAMS_MAX 32u

struct handle {
	struct bs_units_handle units; /* the file, and who uses it */
	struct bs_fs *fs;
	struct bs_node *node;
	struct bs_list link; /* of the node's */
	struct bs_fsjob *close;
	bool writes, append;
	bool noted;    /* counted with the node */
	int dead;      /* of an earlier server, and lost: -errno; it has no file */
	uint32_t slot; /* of fskeep.h */
};

/* A read that is under way: by units, else by itself. */
struct fsread {
	struct bs_fsjob *j;
	struct handle *h;
	struct bs_units_read units;
	struct bs_ckpt_read direct;
	bool is_direct;
	char *buf; /* of direct */
};

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return bs_fskeep_pointer(fi->fh);
}

struct bs_ckpt_file *bs_fs_file(const struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	return h ? h->units.file : NULL;
}

static void put_handle(void *held)
{
	bs_units_handle_put(held);
}

static void hold(struct bs_fsjob *j, struct handle *h)
{
	(void)__atomic_add_fetch(&h->units.refs, 1, __ATOMIC_RELAXED);
	j->held = &h->units;
	j->put = put_handle;
}

void bs_fs_hold(struct bs_fsjob *j)
{
	if (handle_of(&j->fi))
		hold(j, handle_of(&j->fi));
}

/* --- opening and closing ------------------------------------------------------------------------- */

/* What went wrong was said at the flush. */
static void close_file(struct handle *h)
{
	struct bs_fs *fs = h->fs;

	(void)bs_ckpt_close(h->units.file, NULL);
	if (h->node)
		bs_node_unuse(fs, h->node);
	free(h);
	(void)pthread_mutex_lock(&fs->watch_lock);
	fs->n_files--;
	(void)pthread_cond_signal(&fs->closed);
	(void)pthread_mutex_unlock(&fs->watch_lock);
}

static void run_close(struct bs_fsjob *j)
{
	struct handle *h = j->data;

	j->data = NULL;
	bs_fsjob_free(j);
	close_file(h);
}

/* The last user of the file is gone: on a thread that may wait. */
static void on_closed(struct bs_units_handle *uh)
{
	struct handle *h = BS_CONTAINER_OF(uh, struct handle, units);

	bs_fsjob_queue(&h->fs->data, h->close);
}

/* Takes f over. */
static struct handle *handle_new(struct bs_fs *fs, struct bs_ckpt_file *f)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (h)
		h->close = bs_fsjob_inner(fs, run_close);
	if (!h || !h->close) {
		free(h);
		return NULL;
	}
	h->units = (struct bs_units_handle){ .file = f, .refs = 1, .closed = on_closed };
	h->close->data = h;
	h->fs = fs;
	bs_list_init(&h->link);
	(void)pthread_mutex_lock(&fs->watch_lock);
	fs->n_files++;
	(void)pthread_mutex_unlock(&fs->watch_lock);
	return h;
}

static uint64_t read_unit(const struct bs_ckpt_file *f)
{
	uint64_t unit = bs_ckpt_unit(f);

	return unit == 0 || unit > UNIT_MAX ? UNIT_OWN : unit;
}

/* Reads go by h, or NULL, from now on; the one before is to be put without the lock. */
static struct bs_units_handle *set_current(struct bs_node *n, struct handle *h)
{
	struct bs_units_handle *old = n->current;

	n->current = h ? &h->units : NULL;
	if (h)
		(void)__atomic_add_fetch(&h->units.refs, 1, __ATOMIC_RELAXED);
	return old;
}

/* Whether the kernel's pages and our units are of what was opened now; else both are dropped. */
static bool note_open(struct bs_fs *fs, struct handle *h, const struct bs_hdfs_status *s)
{
	struct bs_units_handle *before = NULL;
	struct bs_node *n = h->node;
	struct bs_units *old = NULL;
	bool same;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	same = n->cached && n->file_id == s->file_id && n->len == s->len &&
	       n->mtime_ms == s->mtime_ms && n->writers == 0;
	if (!same || h->writes)
		old = bs_take(&n->units);
	n->file_id = s->file_id;
	n->len = s->len;
	n->mtime_ms = s->mtime_ms;
	n->cached = true;
	n->writers += h->writes;
	n->unsynced |= h->writes;
	n->opens++;
	h->noted = true;
	bs_list_append(&n->handles, &h->link);
	if (h->writes || n->writers == 0 || !n->current)
		before = set_current(n, h);
	if (n->writers == 0 && !n->units && fs->unitpool)
		n->units = bs_units_new(fs->unitpool, s->len, read_unit(h->units.file),
					BS_MIN(bs_ckpt_streams(h->units.file), STREAMS_MAX));
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	bs_units_handle_put(before);
	(void)bs_units_free(old);
	return same;
}

/* It was the last that wrote, and others have the file open: they read what is on HDFS now. */
static void run_settle(struct bs_fsjob *j)
{
	struct handle *h = BS_CONTAINER_OF((struct bs_units_handle *)j->held, struct handle, units);
	struct bs_units_handle *before = NULL;
	struct bs_ckpt_file *f = NULL;
	struct bs_node *n = h->node;
	struct handle *next = NULL;

	(void)bs_ckpt_sync(h->units.file, NULL); /* what there is to say was said at the flush */
	if (bs_ckpt_reopen(h->units.file, &f) == 0) {
		next = handle_new(j->fs, f);
		if (next)
			next->node = bs_node_use(j->fs, n->id);
		else
			(void)bs_ckpt_close(f, NULL);
	}
	(void)pthread_mutex_lock(&j->fs->nodes.lock);
	if (n->current == &h->units)
		before = set_current(n, n->opens ? next : NULL);
	(void)pthread_mutex_unlock(&j->fs->nodes.lock);
	bs_units_handle_put(before);
	if (next)
		bs_units_handle_put(&next->units);
	bs_fsjob_free(j);
}

static struct handle *other_writer(const struct bs_node *n)
{
	bs_list_for_each(it, &n->handles) {
		struct handle *h = bs_list_entry(it, struct handle, link);

		if (h->writes)
			return h;
	}
	return NULL;
}

static void note_release(struct bs_fs *fs, struct handle *h)
{
	struct bs_units_handle *before = NULL;
	struct bs_fsjob *settle = NULL;
	struct bs_node *n = h->node;

	if (h->writes)
		settle = bs_fsjob_inner(fs, run_settle);
	(void)pthread_mutex_lock(&fs->nodes.lock);
	n->opens--;
	bs_list_remove(&h->link);
	if (n->current == &h->units &&
	    (n->opens == 0 || (h->writes && (n->writers > 1 || !settle))))
		before = set_current(n, n->opens ? other_writer(n) : NULL);
	if (h->writes) {
		n->writers--;
		if (n->unsynced) { /* whatever is on HDFS now */
			n->file_id = 0;
			n->cached = false;
		}
	}
	if (n->opens == 0) {
		bs_units_idle(n->units);
		if (!before)
			before = set_current(n, NULL);
	}
	if (settle && n->current != &h->units) {
		free(settle);
		settle = NULL;
	}
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	bs_units_handle_put(before);
	if (!settle)
		return;
	hold(settle, h);
	bs_fsjob_queue(&fs->data, settle);
}

static unsigned int flags_of(int flags)
{
	unsigned int f = 0;

	if ((flags & O_ACCMODE) != O_RDONLY)
		f |= BS_CKPT_WRITE;
	if (flags & O_TRUNC)
		f |= BS_CKPT_TRUNC | BS_CKPT_WRITE;
	return f;
}

/* The handle is of the kernel's from here on. */
static int handle_open(struct bs_fsjob *j, struct bs_ckpt_file *f, struct handle **ret)
{
	struct handle *h = handle_new(j->fs, f);

	if (!h)
		return -ENOMEM;
	h->writes = (j->fi.flags & O_ACCMODE) != O_RDONLY || j->fi.flags & O_TRUNC;
	h->append = j->fi.flags & O_APPEND;
	atomic_fetch_add(&j->fs->n_open, 1);
	*ret = h;
	return 0;
}

/* The kernel's number of h. */
static void show_handle(struct bs_fs *fs, struct handle *h, const struct bs_hdfs_status *s,
			struct fuse_file_info *fi)
{
	const struct bs_fskeep_handle k = { .kind = h->writes ? BS_FSKEEP_WRITES : BS_FSKEEP_READS,
					    .fh = bs_fskeep_fh(h),
					    .node = h->node ? h->node->id : 0,
					    .file_id = s->file_id,
					    .len = s->len,
					    .mtime_ms = s->mtime_ms };

	fi->fh = k.fh;
	h->slot = bs_fskeep_add_handle(fs->nodes.keep, &k);
}

static void handle_release(struct handle *h)
{
	struct bs_fs *fs = h->fs;

	bs_fskeep_drop_handle(fs->nodes.keep, h->slot);

	if (h->noted)
		note_release(fs, h);
	atomic_fetch_sub(&fs->n_open, 1);
	bs_units_handle_put(&h->units);
}

static void fail_open(struct bs_fsjob *j, struct bs_ckpt_file *f, struct handle *h, int r)
{
	if (h)
		handle_release(h);
	else if (f)
		(void)bs_ckpt_close(f, NULL);
	bs_fsjob_end(j, r);
}

static void run_open(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	struct bs_ckpt_file *f = NULL;
	struct bs_hdfs_status s = { 0 };
	struct handle *h = NULL;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_ckpt_open(j->fs->o.ckpt, path, flags_of(j->fi.flags), 0, &f, NULL);
	if (r == -ENOENT)
		r = -ESTALE; /* the kernel looks the name up again */
	if (r == 0)
		r = bs_ckpt_fstat(f, &s, NULL);
	if (r == 0)
		r = handle_open(j, f, &h);
	if (r == 0) {
		h->node = bs_node_use(j->fs, j->ino);
		r = h->node ? 0 : -ESTALE;
	}
	if (r == 0) {
		(void)pthread_mutex_lock(&j->fs->nodes.lock);
		if (h->node->writers == 0 && h->node->file_id && s.file_id &&
		    h->node->file_id != s.file_id)
			r = -ESTALE; /* another client replaced it meanwhile: another node */
		(void)pthread_mutex_unlock(&j->fs->nodes.lock);
		if (r < 0)
			bs_node_unuse(j->fs, bs_take(&h->node));
	}
	if (r < 0) {
		bs_hdfs_status_done(&s);
		fail_open(j, f, h, r);
		return;
	}
	j->fi.keep_cache = note_open(j->fs, h, &s);
	show_handle(j->fs, h, &s, &j->fi);
	bs_hdfs_status_done(&s);
	if (!bs_fsjob_claim(j) || fuse_reply_open(j->req, &j->fi) < 0)
		handle_release(h);
	bs_fsjob_free(j);
}

void bs_fsop_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct bs_fsjob *j;

	if (bs_fs_of(req)->o.read_only && flags_of(fi->flags) & BS_CKPT_WRITE) {
		(void)fuse_reply_err(req, EROFS);
		return;
	}
	j = bs_fsjob_new(req, ino, NULL, NULL, fi, run_open);
	if (j)
		bs_fsjob_queue(&j->fs->data, j);
}

static void run_create(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	unsigned int flags = flags_of(j->fi.flags) | BS_CKPT_CREATE | BS_CKPT_WRITE;
	struct bs_ckpt_file *f = NULL;
	struct bs_hdfs_status s = { 0 };
	struct fuse_entry_param e;
	struct handle *h = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r == 0)
		r = bs_ckpt_open(j->fs->o.ckpt, path,
				 flags | (j->fi.flags & O_EXCL ? BS_CKPT_EXCL : 0), j->mode & 01777,
				 &f, NULL);
	if (r == 0)
		r = bs_ckpt_fstat(f, &s, NULL);
	if (r == 0)
		r = handle_open(j, f, &h);
	if (r == 0) {
		h->writes = true;
		r = bs_nodes_enter(j->fs, j->ino, j->name, &s, false, &e);
	}
	if (r < 0) {
		bs_hdfs_status_done(&s);
		fail_open(j, f, h, r);
		return;
	}
	h->node = bs_node_use(j->fs, e.ino);
	j->fi.keep_cache = h->node ? note_open(j->fs, h, &s) : false;
	show_handle(j->fs, h, &s, &j->fi);
	atomic_fetch_add(&j->fs->changes, 1);
	bs_hdfs_status_done(&s);
	if (!bs_fsjob_claim(j) || fuse_reply_create(j->req, &e, &j->fi) < 0) {
		handle_release(h);
		bs_nodes_forget(j->fs, e.ino, 1);
	}
	bs_fsjob_free(j);
}

void bs_fsop_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi)
{
	struct bs_fsjob *j = bs_fsjob_new(req, parent, name, NULL, fi, run_create);

	if (!j)
		return;
	j->mode = mode;
	bs_fsjob_queue(&j->fs->data, j);
}

int bs_fs_dead(const struct fuse_file_info *fi)
{
	const struct handle *h = fi ? handle_of(fi) : NULL;

	/* one that was never recorded was opened by a server that could not say so any more */
	return h ? h->dead : fi ? -EIO : 0;
}

int bs_fs_adopt_file(struct bs_fs *fs, const struct bs_fskeep_handle *k, uint32_t slot)
{
	struct bs_hdfs_status s = { 0 };
	struct bs_ckpt_file *f = NULL;
	int r = bs_fs_open_again(fs, k, &f, &s);
	const bool away = bs_fs_is_away(fs, r);
	struct handle *h = away ? NULL : handle_new(fs, f);

	if (away) /* which loses nothing: who takes over later finds it as it was */
		return r;
	if (!h) {
		(void)bs_ckpt_close(f, NULL);
		bs_hdfs_status_done(&s);
		return -ENOMEM;
	}
	atomic_fetch_add(&fs->n_open, 1);
	h->dead = r;
	h->writes = k->kind == BS_FSKEEP_WRITES;
	h->slot = slot;
	h->node = bs_node_use(fs, k->node);
	if (r == 0 && h->node)
		(void)note_open(fs, h, &s);
	else if (r == 0)
		h->dead = -ESTALE;
	bs_hdfs_status_done(&s);
	return bs_fskeep_adopt(k->fh, h);
}

void bs_fsop_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (handle_of(fi))
		handle_release(handle_of(fi));
	(void)fuse_reply_err(req, 0);
}

/* --- reading -------------------------------------------------------------------------------------- */

static void read_free(struct fsread *r)
{
	bs_units_handle_put(&r->h->units);
	free(r->buf);
	free(r);
}

/* On a thread that answers. */
static void run_answer(struct bs_fsjob *j)
{
	struct fsread *r = j->data;
	ssize_t n = r->is_direct ? r->direct.result : (ssize_t)r->units.len;

	j->data = NULL;
	if (bs_fsjob_claim(j)) {
		if (n < 0)
			(void)fuse_reply_err(j->req, (int)-n);
		else if (r->is_direct)
			(void)fuse_reply_buf(j->req, r->buf, (size_t)n);
		else
			(void)fuse_reply_iov(j->req, r->units.iov, (int)r->units.n_iov);
		atomic_fetch_add(&j->fs->n_read_bytes, n < 0 ? 0 : (uint64_t)n);
		atomic_fetch_add(&j->fs->n_failures, n < 0);
	}
	if (!r->is_direct)
		bs_units_done(&r->units);
	read_free(r);
	bs_fsjob_free(j);
}

static void on_direct(struct bs_ckpt_read *d)
{
	struct fsread *r = d->cookie;

	r->j->run = run_answer;
	bs_fsjob_queue(&r->j->fs->answer, r->j);
}

static void read_direct(struct fsread *r)
{
	r->is_direct = true;
	r->buf = malloc(r->units.len);
	if (!r->buf) {
		r->direct.result = -ENOMEM;
		on_direct(&r->direct);
		return;
	}
	r->direct.buf = r->buf;
	r->direct.len = r->units.len;
	r->direct.off = r->units.off;
	bs_ckpt_read_start(r->h->units.file, &r->direct);
}

static void on_units(struct bs_units_read *u)
{
	struct fsread *r = BS_CONTAINER_OF(u, struct fsread, units);

	if (u->failed && u->timed_out) {
		r->is_direct = true;
		r->direct.result = -ETIMEDOUT;
	} else if (u->failed) {
		read_direct(r);
		return;
	}
	r->j->run = run_answer;
	bs_fsjob_queue(&r->j->fs->answer, r->j);
}

/* What h reads by: a reference. *ret_units: what it may be read from, held, or NULL. */
static struct handle *current_of(struct bs_fs *fs, struct handle *h, struct bs_units **ret_units)
{
	struct bs_node *n = h->node;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	if (n->current)
		h = BS_CONTAINER_OF(n->current, struct handle, units);
	(void)__atomic_add_fetch(&h->units.refs, 1, __ATOMIC_RELAXED);
	if (ret_units)
		*ret_units = n->current && n->writers == 0 && n->units ? bs_units_hold(n->units)
								       : NULL;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	return h;
}

static void start_read(struct bs_fs *fs, struct fsread *r, struct bs_units *u)
{
	enum bs_units_answer a = BS_UNITS_DIRECT;

	if (u)
		a = bs_units_read(u, &r->h->units, &r->units);
	/* r may be gone, but with BS_UNITS_DIRECT */
	atomic_fetch_add(a == BS_UNITS_HIT    ? &fs->n_hits
			 : a == BS_UNITS_WAIT ? &fs->n_waits
					      : &fs->n_direct,
			 1);
	if (a == BS_UNITS_DIRECT)
		read_direct(r);
	if (u)
		bs_units_unhold(u);
}

int bs_fs_fstat(struct bs_fs *fs, const struct fuse_file_info *fi, struct bs_hdfs_status *ret)
{
	struct handle *h = current_of(fs, handle_of(fi), NULL);
	int r = bs_ckpt_fstat(h->units.file, ret, NULL);

	bs_units_handle_put(&h->units);
	return r;
}

int bs_fs_nameless(struct bs_fs *fs, struct bs_node *n, struct stat *ret)
{
	struct bs_hdfs_status s = { 0 };
	struct handle *h = NULL;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	if (!bs_list_empty(&n->handles)) {
		h = bs_list_entry(n->handles.prev, struct handle, link);
		if (n->current)
			h = BS_CONTAINER_OF(n->current, struct handle, units);
		(void)__atomic_add_fetch(&h->units.refs, 1, __ATOMIC_RELAXED);
	}
	*ret = n->last;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	if (!h)
		return -ESTALE;
	if (bs_ckpt_fstat(h->units.file, &s, NULL) == 0)
		bs_fs_attr(fs, &s, false, n->ino, ret);
	ret->st_nlink = 0;
	bs_hdfs_status_done(&s);
	bs_units_handle_put(&h->units);
	return 0;
}

/* Whether the read was answered from there. */
static bool read_kept(struct bs_fs *fs, const struct bs_node *n, fuse_req_t req, size_t size,
		      off_t off)
{
	const char *kept;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	kept = n->kept; /* stays as long as the node, which the handle uses */
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	if (!kept)
		return false;
	size = (uint64_t)off < n->kept_len ? BS_MIN(size, n->kept_len - (size_t)off) : 0;
	(void)fuse_reply_buf(req, size ? kept + off : NULL, size);
	return true;
}

/* On a listener's thread, which never waits. Takes h and u over. */
static void read_by(struct handle *h, struct bs_units *u, fuse_req_t req, fuse_ino_t ino,
		    const struct bs_units_read *what)
{
	struct fsread *r = calloc(1, sizeof(*r));

	if (r)
		r->j = bs_fsjob_new(req, ino, NULL, NULL, NULL, run_answer);
	else
		(void)fuse_reply_err(req, ENOMEM);
	if (!r || !r->j) {
		free(r);
		bs_units_handle_put(&h->units);
		if (u)
			bs_units_unhold(u);
		return;
	}
	r->j->data = r;
	r->h = h;
	r->units = *what;
	r->direct.done = on_direct;
	r->direct.cookie = r;
	start_read(h->fs, r, u);
}

void bs_fsop_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct bs_fs *fs = bs_fs_of(req);
	struct bs_units *u = NULL;
	struct handle *h;
	uint64_t len;

	if (bs_fs_dead(fi) < 0) {
		(void)fuse_reply_err(req, -bs_fs_dead(fi));
		return;
	}
	if (atomic_fetch_add(&fs->n_reads, 1) == 0)
		fs->first_read_ns = bs_clock_ns();
	fs->last_read_ns = bs_clock_ns();
	size = BS_MIN(size, (size_t)BS_FS_IO_MAX);
	if (off >= 0 && read_kept(fs, handle_of(fi)->node, req, size, off))
		return;
	h = current_of(fs, handle_of(fi), &u);
	len = bs_ckpt_size(h->units.file);
	if (off < 0 || (uint64_t)off >= len || size == 0) {
		(void)fuse_reply_buf(req, NULL, 0);
		bs_units_handle_put(&h->units);
		if (u)
			bs_units_unhold(u);
		return;
	}
	size = (size_t)BS_MIN((uint64_t)size, len - (uint64_t)off);
	read_by(h, u, req, ino,
		&(struct bs_units_read){ .off = (uint64_t)off, .len = size, .ready = on_units });
}

/* --- writing -------------------------------------------------------------------------------------- */

static void note_written(struct bs_fs *fs, struct bs_node *n)
{
	atomic_fetch_add(&fs->changes, 1);
	(void)pthread_mutex_lock(&fs->nodes.lock);
	n->unsynced = true;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
}

/* The generation that the node is of now; the kernel has the pages that were written. */
static void note_synced(struct bs_fs *fs, struct handle *h)
{
	struct bs_hdfs_status s = { 0 };
	struct bs_node *n = h->node;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n->unsynced = false;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	if (bs_ckpt_fstat(h->units.file, &s, NULL) < 0)
		s.file_id = 0;
	(void)pthread_mutex_lock(&fs->nodes.lock);
	n->file_id = s.file_id;
	n->len = s.len;
	n->mtime_ms = s.mtime_ms;
	if (s.file_id == 0)
		n->unsynced = true;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	bs_hdfs_status_done(&s);
}

static void run_write(struct bs_fsjob *j)
{
	struct handle *h = handle_of(&j->fi);
	int r;

	note_written(j->fs, h->node);
	/* the kernel writes pages of a mapping back by any handle that may write */
	r = bs_ckpt_write(h->units.file, j->data, j->size,
			  h->append && !j->fi.writepage ? BS_CKPT_END : (uint64_t)j->off, NULL);

	if (r < 0) {
		bs_fsjob_end(j, r);
		return;
	}
	atomic_fetch_add(&j->fs->n_writes, 1);
	atomic_fetch_add(&j->fs->n_written_bytes, j->size);
	if (bs_fsjob_claim(j))
		(void)fuse_reply_write(j->req, j->size);
	bs_fsjob_free(j);
}

void bs_fsop_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		   struct fuse_file_info *fi)
{
	struct bs_fsjob *j = NULL;

	if (bs_fs_dead(fi) < 0)
		(void)fuse_reply_err(req, EIO);
	else
		j = bs_fsjob_new(req, ino, NULL, NULL, fi, run_write);
	if (!j)
		return;
	j->off = off;
	j->size = size;
	j->data = malloc(size + 1);
	if (!j->data) {
		bs_fsjob_end(j, -ENOMEM);
		return;
	}
	memcpy(j->data, buf, size);
	bs_fs_hold(j);
	bs_fsjob_queue(&j->fs->data, j);
}

/* All that was written is on HDFS, or what is wrong with it is said. */
static void run_sync(struct bs_fsjob *j)
{
	struct handle *h = handle_of(&j->fi);
	int r = h->writes ? bs_ckpt_sync(h->units.file, NULL) : 0;

	if (r == 0 && h->writes)
		note_synced(j->fs, h);
	bs_fsjob_end(j, r);
}

void bs_fsop_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct bs_fsjob *j = NULL;

	if (bs_fs_dead(fi) < 0)
		(void)fuse_reply_err(req, EIO);
	else
		j = bs_fsjob_new(req, ino, NULL, NULL, fi, run_sync);
	if (!j)
		return;
	bs_fs_hold(j);
	bs_fsjob_queue(&j->fs->data, j);
}

void bs_fsop_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);
	struct bs_fsjob *j;

	if (!h || !h->writes || h->dead < 0) {
		(void)fuse_reply_err(req, h && h->writes ? EIO : 0);
		return;
	}
	j = bs_fsjob_new(req, ino, NULL, NULL, fi, run_sync);
	if (!j)
		return;
	bs_fs_hold(j);
	bs_fsjob_queue(&j->fs->data, j);
}
