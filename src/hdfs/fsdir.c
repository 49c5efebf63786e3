/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Directories that are read: one walk over HDFS when reading begins, or begins again, which
 * gives names and attributes of all.
 */
#include "config.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "hdfs/fskeep.h"
#include "hdfs/fspriv.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"

#define BATCH_MAX (1u << 20) /* bytes of an answer */
#define PER_ENTRY_S 2e-4     /* to be looked at by who lists */
#define LISTED_MAX_S 10.0

struct dir {
	unsigned int refs;    /* atomic; the handle, and jobs */
	uint32_t slot;	      /* of fskeep.h */
	pthread_mutex_t lock; /* guards what follows */
	bool is_read;
	uint64_t changes; /* of the mount, before it was read */
	struct bs_hdfs_list list;
	bool *links; /* of the list */
};

static struct dir *dir_of(const struct fuse_file_info *fi)
{
	return bs_fskeep_pointer(fi->fh);
}

static void dir_put(void *held)
{
	struct dir *d = held;

	if (__atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	bs_hdfs_list_done(&d->list);
	free(d->links);
	(void)pthread_mutex_destroy(&d->lock);
	free(d);
}

static struct dir *dir_new(void)
{
	struct dir *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	(void)pthread_mutex_init(&d->lock, NULL);
	d->refs = 1;
	return d;
}

/* What it had read is read again when it is asked for. */
int bs_fs_adopt_dir(struct bs_fs *fs, const struct bs_fskeep_handle *h, uint32_t slot)
{
	struct dir *d = dir_new();

	if (!d)
		return -ENOMEM;
	d->slot = slot;
	return bs_fskeep_adopt(h->fh, d);
}

/* Whether it may be read shows when it is: that spares the NameNode a question. */
void bs_fsop_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct dir *d = dir_new();

	if (!d) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = bs_fskeep_fh(d);
	d->slot = bs_fskeep_add_handle(bs_fs_of(req)->nodes.keep,
				       &(struct bs_fskeep_handle){
					       .kind = BS_FSKEEP_DIR, .fh = fi->fh, .node = ino });
	if (fuse_reply_open(req, fi) < 0) {
		bs_fskeep_drop_handle(bs_fs_of(req)->nodes.keep, d->slot);
		dir_put(d);
	}
}

void bs_fsop_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct dir *d = dir_of(fi);

	if (d) {
		bs_fskeep_drop_handle(bs_fs_of(req)->nodes.keep, d->slot);
		dir_put(d);
	}
	(void)fuse_reply_err(req, 0);
}

/* Names on HDFS are there when the call that made them has returned. */
void bs_fsop_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)fuse_reply_err(req, 0);
}

/* --- reading ------------------------------------------------------------------------------------ */

static int read_links(struct bs_fs *fs, const char *path, struct bs_hdfs_list *list, bool *links)
{
	for (size_t i = 0; i < list->n; i++) {
		bs_autofree char *child = NULL;
		struct bs_hdfs_status full = { 0 };

		links[i] = list->v[i].type == BS_HDFS_SYMLINK;
		if (!bs_fs_maybe_link(&list->v[i]))
			continue;
		child = bs_hdfs_path_child(path, list->v[i].name);
		if (!child)
			return -ENOMEM;
		if (bs_fs_status(fs, child, &full, &links[i]) == 0) {
			free(list->v[i].target);
			list->v[i].target = bs_take(&full.target);
			bs_hdfs_status_done(&full);
		}
	}
	return 0;
}

static int read_all(struct bs_fsjob *j, struct dir *d)
{
	bs_autofree char *path = NULL;
	bs_autofree bool *links = NULL;
	struct bs_hdfs_list list = { 0 }, old;
	uint64_t changes = atomic_load(&j->fs->changes);
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_ckpt_list(j->fs->o.ckpt, path, &list, NULL);
	if (r < 0)
		return r == -ESTALE ? -ENOENT : r;
	links = calloc(list.n + 1, sizeof(*links));
	r = links ? read_links(j->fs, path, &list, links) : -ENOMEM;
	if (r < 0) {
		bs_hdfs_list_done(&list);
		return r;
	}
	(void)pthread_mutex_lock(&d->lock);
	old = d->list;
	d->list = list;
	free(d->links);
	d->links = bs_take(&links);
	d->is_read = true;
	d->changes = changes;
	(void)pthread_mutex_unlock(&d->lock);
	bs_hdfs_list_done(&old);
	return 0;
}

/* "." and "..": whose numbers do not matter. */
static size_t add_dots(struct bs_fsjob *j, char *buf, size_t size, size_t at, bool plus)
{
	const char *name = at == 0 ? "." : "..";
	struct fuse_entry_param e = { .attr = { .st_mode = S_IFDIR, .st_ino = j->ino } };

	return plus ? fuse_add_direntry_plus(j->req, buf, size, name, &e, (off_t)at + 1)
		    : fuse_add_direntry(j->req, buf, size, name, &e.attr, (off_t)at + 1);
}

/*
 * Who lists a large directory looks at each entry then: what the listing said has to hold so
 * long, or the NameNode is asked for every one again.
 */
static double timeout_of(const struct bs_fs *fs, size_t n)
{
	double each = bs_fs_timeout(fs), all = (double)n * PER_ENTRY_S;

	if (each == 0 || all < each)
		return each;
	return all < LISTED_MAX_S ? all : each < LISTED_MAX_S ? LISTED_MAX_S : each;
}

/* One entry, whose number is at: its bytes, more than size when it does not fit, 0 out of memory. */
static size_t add_entry(struct bs_fsjob *j, const struct dir *d, char *buf, size_t size, size_t at,
			bool plus)
{
	const struct bs_hdfs_status *s = &d->list.v[at];
	struct fuse_entry_param e = { 0 };

	if (!plus) {
		bs_fs_attr(j->fs, s, d->links[at], s->file_id ? s->file_id : 1, &e.attr);
		return fuse_add_direntry(j->req, buf, size, s->name, &e.attr, (off_t)at + 3);
	}
	if (fuse_add_direntry_plus(j->req, NULL, 0, s->name, NULL, 0) > size)
		return size + 1;
	/* what this mount changed since would be undone: only the name is told, and looked up */
	if (d->changes != atomic_load(&j->fs->changes)) {
		bs_fs_attr(j->fs, s, d->links[at], s->file_id ? s->file_id : 1, &e.attr);
		return fuse_add_direntry_plus(j->req, buf, size, s->name, &e, (off_t)at + 3);
	}
	if (bs_nodes_enter(j->fs, j->ino, s->name, s, d->links[at], &e) < 0)
		return 0;
	e.attr_timeout = e.entry_timeout = timeout_of(j->fs, d->list.n);
	return fuse_add_direntry_plus(j->req, buf, size, s->name, &e, (off_t)at + 3);
}

static size_t fill(struct bs_fsjob *j, struct dir *d, char *buf, size_t size, bool plus)
{
	size_t len = 0, at = (size_t)j->off;

	for (; at < 2; at++) {
		size_t n = add_dots(j, buf + len, size - len, at, plus);

		if (n > size - len)
			return len;
		len += n;
	}
	for (; at - 2 < d->list.n; at++) {
		size_t n = add_entry(j, d, buf + len, size - len, at - 2, plus);

		if (n == 0 || n > size - len)
			break;
		len += n;
	}
	return len;
}

/* The kernel did not get an answer with look-ups in it. */
static void take_back(struct bs_fsjob *j, const char *buf, size_t len)
{
	size_t at = 0;

	while (at + sizeof(struct fuse_entry_out) < len) {
		const struct fuse_direntplus *e = (const void *)(buf + at);

		if (e->entry_out.nodeid)
			bs_nodes_forget(j->fs, e->entry_out.nodeid, 1);
		at += FUSE_DIRENTPLUS_SIZE(e);
	}
}

static void run(struct bs_fsjob *j, bool plus)
{
	struct dir *d = dir_of(&j->fi);
	size_t size = BS_MIN(j->size, (size_t)BATCH_MAX), len;
	bs_autofree char *buf = malloc(size);
	bool read;
	int r = buf ? 0 : -ENOMEM;

	(void)pthread_mutex_lock(&d->lock);
	read = d->is_read;
	(void)pthread_mutex_unlock(&d->lock);
	if (r == 0 && (j->off == 0 || !read))
		r = read_all(j, d);
	if (r < 0 || j->off < 0) {
		bs_fsjob_end(j, r < 0 ? r : -EINVAL);
		return;
	}
	(void)pthread_mutex_lock(&d->lock);
	len = fill(j, d, buf, size, plus);
	(void)pthread_mutex_unlock(&d->lock);
	if ((!bs_fsjob_claim(j) || fuse_reply_buf(j->req, buf, len) < 0) && plus)
		take_back(j, buf, len);
	bs_fsjob_free(j);
}

static void run_readdir(struct bs_fsjob *j)
{
	run(j, false);
}

static void run_readdirplus(struct bs_fsjob *j)
{
	run(j, true);
}

static void start(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi,
		  void (*fn)(struct bs_fsjob *j))
{
	struct bs_fsjob *j = NULL;

	if (dir_of(fi))
		j = bs_fsjob_new(req, ino, NULL, NULL, fi, fn);
	else
		(void)fuse_reply_err(req, EIO);
	if (!j)
		return;
	j->size = size;
	j->off = off;
	j->held = dir_of(fi);
	j->put = dir_put;
	(void)__atomic_add_fetch(&dir_of(fi)->refs, 1, __ATOMIC_RELAXED);
	bs_fsjob_queue(&j->fs->meta, j);
}

void bs_fsop_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	start(req, ino, size, off, fi, run_readdir);
}

void bs_fsop_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	start(req, ino, size, off, fi, run_readdirplus);
}
