/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Names and attributes. HDFS has no symbolic links that a client may make: ours are empty
 * files with a mode that nothing else gives to a file (01777) and their target in the
 * attribute user.bootseer.symlink.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "hdfs/fspriv.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"

#define LINK_MODE 01777u
#define LINK_XATTR "user.bootseer.symlink"
#define OWN_XATTR "user.bootseer." /* not shown, not to be changed */
#define XATTR_MAX 65536u

double bs_fs_timeout(const struct bs_fs *fs)
{
	return (double)fs->o.attr_ns / (double)BS_NS_PER_S;
}

static struct timespec ms_time(uint64_t ms)
{
	return (struct timespec){ .tv_sec = (time_t)(ms / 1000),
				  .tv_nsec = (long)(ms % 1000) * 1000000 };
}

void bs_fs_attr(struct bs_fs *fs, const struct bs_hdfs_status *s, bool is_link, uint64_t ino,
		struct stat *ret)
{
	bool dir = s->type == BS_HDFS_DIRECTORY;
	const char *owner = s->owner && *s->owner ? s->owner : fs->o.user;

	*ret = (struct stat){ .st_ino = ino,
			      .st_nlink = dir ? 2 : 1,
			      .st_uid = bs_fsowners_uid(fs->owners, owner),
			      .st_gid = bs_fsowners_gid(fs->owners, s->group),
			      .st_size = dir ? 4096 : (off_t)s->len,
			      .st_blksize = 4096 };
	ret->st_mode = dir ? S_IFDIR | s->mode : is_link ? S_IFLNK | 0777 : S_IFREG | s->mode;
	if (is_link || s->type == BS_HDFS_SYMLINK)
		ret->st_size = s->target ? (off_t)strlen(s->target) : 0;
	ret->st_blocks = (ret->st_size + 511) / 512;
	ret->st_mtim = ret->st_ctim = ms_time(s->mtime_ms);
	ret->st_atim = s->atime_ms ? ms_time(s->atime_ms) : ret->st_mtim;
}

/* --- symbolic links ---------------------------------------------------------------------------- */

bool bs_fs_maybe_link(const struct bs_hdfs_status *s)
{
	return s->type == BS_HDFS_FILE && s->len == 0 && s->mode == LINK_MODE;
}

static int link_target(struct bs_fs *fs, const char *path, char **ret)
{
	bs_autofree char *target = NULL;
	void *value = NULL;
	size_t len = 0;
	int r = bs_nn_get_xattr(fs->o.nn, path, LINK_XATTR, &value, &len, NULL);

	if (r < 0)
		return r;
	target = malloc(len + 1);
	if (target && len > 0) {
		memcpy(target, value, len);
		target[len] = '\0';
	}
	free(value);
	if (!target)
		return -ENOMEM;
	if (len == 0 || strlen(target) != len)
		return -ENODATA;
	*ret = bs_take(&target);
	return 0;
}

bool bs_fs_is_link(struct bs_fs *fs, const char *path, const struct bs_hdfs_status *s)
{
	bs_autofree char *target = NULL;

	return s->type == BS_HDFS_SYMLINK ||
	       (bs_fs_maybe_link(s) && link_target(fs, path, &target) == 0);
}

int bs_fs_status(struct bs_fs *fs, const char *path, struct bs_hdfs_status *ret, bool *ret_link)
{
	int r = bs_ckpt_stat(fs->o.ckpt, path, ret, NULL);

	*ret_link = false;
	if (r < 0)
		return r == -EINVAL ? -ENOENT : r; /* what cannot be a name is not there */
	*ret_link = ret->type == BS_HDFS_SYMLINK;
	if (bs_fs_maybe_link(ret)) {
		char *target = NULL;

		if (link_target(fs, path, &target) == 0) {
			free(ret->target);
			ret->target = target;
			*ret_link = true;
		}
	}
	return 0;
}

static void run_readlink(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL, *target = NULL;
	struct bs_hdfs_status s = { 0 };
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);
	bool is_link;

	if (r == 0)
		r = link_target(j->fs, path, &target);
	if (r == -ENODATA && bs_fs_status(j->fs, path, &s, &is_link) == 0 && s.target) {
		target = bs_take(&s.target); /* HDFS's own */
		r = 0;
	}
	bs_hdfs_status_done(&s);
	if (r < 0) {
		bs_fsjob_end(j, r == -ENODATA ? -EINVAL : r);
		return;
	}
	if (bs_fsjob_claim(j))
		(void)fuse_reply_readlink(j->req, target);
	bs_fsjob_free(j);
}

void bs_fsop_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct bs_fsjob *j = bs_fsjob_new(req, ino, NULL, NULL, NULL, run_readlink);

	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

/* --- answers with a node ------------------------------------------------------------------------ */

/* Looks at path, which is name in parent, and answers with its node. */
static void answer_entry(struct bs_fsjob *j, fuse_ino_t parent, const char *name, const char *path)
{
	struct bs_hdfs_status s = { 0 };
	struct fuse_entry_param e;
	bool is_link;
	int r = bs_fs_status(j->fs, path, &s, &is_link);

	if (r == 0)
		r = bs_nodes_enter(j->fs, parent, name, &s, is_link, &e);
	else if (r == -ENOENT)
		bs_nodes_unname(j->fs, parent, name);
	bs_hdfs_status_done(&s);
	if (r < 0) {
		bs_fsjob_end(j, r);
		return;
	}
	if (!bs_fsjob_claim(j) || fuse_reply_entry(j->req, &e) < 0)
		bs_nodes_forget(j->fs, e.ino, 1);
	bs_fsjob_free(j);
}

static void run_lookup(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r < 0)
		bs_fsjob_end(j, r);
	else
		answer_entry(j, j->ino, j->name, path);
}

/* Hidden, and what HDFS cannot have as a name, is not there. */
void bs_fsop_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct bs_fsjob *j;

	if (strlen(name) > BS_HDFS_NAME_MAX) {
		(void)fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	if (bs_streq(name, BS_CKPT_HIDDEN)) {
		(void)fuse_reply_err(req, ENOENT);
		return;
	}
	j = bs_fsjob_new(req, parent, name, NULL, NULL, run_lookup);
	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

/* --- attributes --------------------------------------------------------------------------------- */

static void answer_attr(struct bs_fsjob *j)
{
	struct bs_ckpt_file *f = j->has_fi ? bs_fs_file(&j->fi) : NULL;
	struct bs_node *n = bs_node_use(j->fs, j->ino);
	struct bs_hdfs_status s = { 0 };
	bs_autofree char *path = NULL;
	bool is_link = false;
	struct stat st;
	int r;

	if (!n) {
		bs_fsjob_end(j, -ESTALE);
		return;
	}
	if (f) {
		r = bs_fs_fstat(j->fs, &j->fi, &s);
	} else {
		r = bs_nodes_path(j->fs, j->ino, NULL, &path);
		if (r == 0)
			r = bs_fs_status(j->fs, path, &s, &is_link);
		if (r == 0 && n->is_dir != (s.type == BS_HDFS_DIRECTORY))
			r = -ESTALE; /* another thing by that name */
	}
	if (r == 0)
		bs_fs_attr(j->fs, &s, is_link, n->ino, &st);
	else if (r == -ESTALE)
		r = bs_fs_nameless(j->fs, n, &st);
	bs_node_unuse(j->fs, n);
	bs_hdfs_status_done(&s);
	if (r < 0) {
		bs_fsjob_end(j, r);
		return;
	}
	if (bs_fsjob_claim(j))
		(void)fuse_reply_attr(j->req, &st, bs_fs_timeout(j->fs));
	bs_fsjob_free(j);
}

void bs_fsop_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct bs_fsjob *j = bs_fsjob_new(req, ino, NULL, NULL, bs_fs_dead(fi) < 0 ? NULL : fi,
					  answer_attr);

	if (!j)
		return;
	bs_fs_hold(j);
	bs_fsjob_queue(&j->fs->meta, j);
}

static int set_size(struct bs_fsjob *j, const char *path)
{
	struct bs_ckpt_file *f = j->has_fi ? bs_fs_file(&j->fi) : NULL;
	uint64_t len = (uint64_t)j->attr.st_size;
	int r, q;

	if (f)
		return bs_ckpt_truncate(f, len, NULL);
	r = bs_ckpt_open(j->fs->o.ckpt, path, BS_CKPT_WRITE, 0, &f, NULL);
	if (r < 0)
		return r;
	r = bs_ckpt_truncate(f, len, NULL);
	q = bs_ckpt_close(f, NULL);
	return r < 0 ? r : q;
}

static int set_owner(struct bs_fsjob *j, const char *path)
{
	bs_autofree char *user = NULL, *group = NULL;

	if (j->flags & FUSE_SET_ATTR_UID) {
		user = bs_fsowners_user(j->attr.st_uid);
		if (!user)
			return -EINVAL; /* HDFS has names only */
	}
	if (j->flags & FUSE_SET_ATTR_GID) {
		group = bs_fsowners_group(j->attr.st_gid);
		if (!group)
			return -EINVAL;
	}
	return bs_ckpt_set_owner(j->fs->o.ckpt, path, user, group, NULL);
}

static uint64_t time_ms(const struct timespec *ts)
{
	return ts->tv_sec < 0 ? 0 : (uint64_t)ts->tv_sec * 1000 + (uint64_t)ts->tv_nsec / 1000000;
}

static void run_setattr(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	struct bs_ckpt *c = j->fs->o.ckpt;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	/* a file without a name can be cut, and what else is set of it is of no use to anybody */
	if (r == -ESTALE && j->has_fi && bs_fs_file(&j->fi))
		r = 0;
	if (r == 0 && j->flags & FUSE_SET_ATTR_SIZE)
		r = set_size(j, path);
	if (r == 0 && path && j->flags & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		r = set_owner(j, path);
	if (r == 0 && path && j->flags & FUSE_SET_ATTR_MODE)
		r = bs_ckpt_set_mode(c, path, j->attr.st_mode & 01777, NULL);
	if (r == 0 && path && j->flags & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME))
		r = bs_ckpt_set_times(c, path,
				      j->flags & FUSE_SET_ATTR_MTIME ? time_ms(&j->attr.st_mtim)
								     : UINT64_MAX,
				      j->flags & FUSE_SET_ATTR_ATIME ? time_ms(&j->attr.st_atim)
								     : UINT64_MAX,
				      NULL);
	atomic_fetch_add(&j->fs->changes, 1);
	if (r < 0)
		bs_fsjob_end(j, r);
	else
		answer_attr(j);
}

void bs_fsop_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		     struct fuse_file_info *fi)
{
	struct bs_fsjob *j = NULL;

	if (bs_fs_dead(fi) < 0 && to_set & FUSE_SET_ATTR_SIZE)
		(void)fuse_reply_err(req, EIO);
	else
		j = bs_fsjob_new(req, ino, NULL, NULL, bs_fs_dead(fi) < 0 ? NULL : fi, run_setattr);
	if (!j)
		return;
	j->attr = *attr;
	j->flags = (unsigned int)to_set;
	bs_fs_hold(j);
	bs_fsjob_queue(to_set & FUSE_SET_ATTR_SIZE ? &j->fs->data : &j->fs->meta, j);
}

/* --- making and removing ------------------------------------------------------------------------ */

static void run_mkdir(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r == 0)
		r = bs_ckpt_mkdir(j->fs->o.ckpt, path, j->mode & 01777, NULL);
	if (r < 0)
		bs_fsjob_end(j, r);
	else
		answer_entry(j, j->ino, j->name, path);
}

void bs_fsop_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct bs_fsjob *j = bs_fsjob_new(req, parent, name, NULL, NULL, run_mkdir);

	if (!j)
		return;
	j->mode = mode;
	bs_fsjob_queue(&j->fs->meta, j);
}

static void run_unlink(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r == 0) {
		bs_fs_keep(j->fs, j->ino, j->name, path);
		r = bs_ckpt_unlink(j->fs->o.ckpt, path, NULL);
	}
	if (r == 0 || r == -ENOENT)
		bs_nodes_unname(j->fs, j->ino, j->name);
	atomic_fetch_add(&j->fs->changes, 1);
	bs_fsjob_end(j, r);
}

void bs_fsop_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct bs_fsjob *j = bs_fsjob_new(req, parent, name, NULL, NULL, run_unlink);

	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

static void run_rmdir(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r == 0)
		r = bs_ckpt_rmdir(j->fs->o.ckpt, path, NULL);
	if (r == 0 || r == -ENOENT)
		bs_nodes_unname(j->fs, j->ino, j->name);
	atomic_fetch_add(&j->fs->changes, 1);
	bs_fsjob_end(j, r);
}

void bs_fsop_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct bs_fsjob *j = bs_fsjob_new(req, parent, name, NULL, NULL, run_rmdir);

	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

static void run_symlink(struct bs_fsjob *j)
{
	const struct bs_ckpt_mark mark = { LINK_MODE, LINK_XATTR, j->name2 };
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &path);

	if (r == 0)
		r = bs_ckpt_make_marked(j->fs->o.ckpt, path, &mark, NULL);
	if (r < 0)
		bs_fsjob_end(j, r);
	else
		answer_entry(j, j->ino, j->name, path);
}

void bs_fsop_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct bs_fsjob *j = bs_fsjob_new(req, parent, name, target, NULL, run_symlink);

	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

static void run_rename(struct bs_fsjob *j)
{
	bs_autofree char *from = NULL, *to = NULL;
	int r = bs_nodes_path(j->fs, j->ino, j->name, &from);

	if (r == 0)
		r = bs_nodes_path(j->fs, j->ino2, j->name2, &to);
	if (r == 0) {
		if (!(j->flags & RENAME_NOREPLACE))
			bs_fs_keep(j->fs, j->ino2, j->name2, to);
		r = bs_ckpt_rename(j->fs->o.ckpt, from, to, j->flags & RENAME_NOREPLACE, NULL);
	}
	if (r == 0)
		bs_nodes_rename(j->fs, j->ino, j->name, j->ino2, j->name2);
	atomic_fetch_add(&j->fs->changes, 1);
	bs_fsjob_end(j, r);
}

void bs_fsop_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		    const char *newname, unsigned int flags)
{
	struct bs_fsjob *j;

	if (flags & ~(unsigned int)RENAME_NOREPLACE) {
		(void)fuse_reply_err(req, EINVAL);
		return;
	}
	j = bs_fsjob_new(req, parent, name, newname, NULL, run_rename);
	if (!j)
		return;
	j->ino2 = newparent;
	j->flags = flags;
	bs_fsjob_queue(&j->fs->meta, j);
}

/* --- space ---------------------------------------------------------------------------------------- */

static void run_statfs(struct bs_fsjob *j)
{
	const uint64_t unit = 1u << 20;
	struct bs_hdfs_space space = { 0 };
	struct statvfs st = { .f_bsize = unit, .f_frsize = unit, .f_namemax = BS_HDFS_NAME_MAX };
	int r = bs_nn_space(j->fs->o.nn, &space, NULL);

	if (r < 0 && r != -EOPNOTSUPP) {
		bs_fsjob_end(j, r);
		return;
	}
	st.f_blocks = space.capacity / unit;
	st.f_bfree = st.f_bavail = space.remaining / unit;
	st.f_files = st.f_ffree = st.f_favail = UINT32_MAX; /* HDFS counts none */
	if (bs_fsjob_claim(j))
		(void)fuse_reply_statfs(j->req, &st);
	bs_fsjob_free(j);
}

void bs_fsop_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct bs_fsjob *j = bs_fsjob_new(req, ino, NULL, NULL, NULL, run_statfs);

	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}

/* --- extended attributes ------------------------------------------------------------------------- */

static bool is_user(const char *name)
{
	const char *rest = bs_str_after(name, "user.");

	return rest && *rest;
}

static bool is_own(const char *name)
{
	return bs_str_after(name, OWN_XATTR) != NULL;
}

static void answer_bytes(struct bs_fsjob *j, const void *bytes, size_t len)
{
	if (j->size == 0) {
		if (bs_fsjob_claim(j))
			(void)fuse_reply_xattr(j->req, len);
	} else if (len > j->size) {
		bs_fsjob_end(j, -ERANGE);
		return;
	} else if (bs_fsjob_claim(j)) {
		(void)fuse_reply_buf(j->req, bytes, len);
	}
	bs_fsjob_free(j);
}

static void run_getxattr(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	void *value = NULL;
	size_t len = 0;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_nn_get_xattr(j->fs->o.nn, path, j->name, &value, &len, NULL);
	if (r < 0)
		bs_fsjob_end(j, r);
	else
		answer_bytes(j, value, len);
	free(value);
}

int bs_fs_stats_text(struct bs_fs *fs, struct bs_buf *text)
{
	struct bs_jsonw *w = bs_jsonw_new(false);
	struct bs_fs_stats s;

	if (!w)
		return -ENOMEM;
	bs_fs_stats(fs, &s);
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "requests", s.requests);
	bs_jsonw_ku64(w, "failures", s.failures);
	bs_jsonw_ku64(w, "interrupted", s.interrupted);
	bs_jsonw_ku64(w, "reads", s.reads);
	bs_jsonw_ku64(w, "read_bytes", s.read_bytes);
	bs_jsonw_ku64(w, "reads_ahead_hit", s.unit_hits);
	bs_jsonw_ku64(w, "reads_ahead_waited", s.unit_waits);
	bs_jsonw_ku64(w, "reads_direct", s.direct_reads);
	bs_jsonw_ku64(w, "units_fetched", s.units_fetched);
	bs_jsonw_ku64(w, "units_ahead", s.units_ahead);
	bs_jsonw_ku64(w, "units_unread", s.units_unread);
	bs_jsonw_ku64(w, "writes", s.writes);
	bs_jsonw_ku64(w, "written_bytes", s.written_bytes);
	bs_jsonw_ku64(w, "memory_bytes", s.memory_bytes);
	bs_jsonw_ku64(w, "memory_peak_bytes", s.memory_peak_bytes);
	bs_jsonw_ku64(w, "nodes", s.nodes);
	bs_jsonw_ku64(w, "open_files", s.open_files);
	if (fs->o.stats)
		fs->o.stats(fs->o.cookie, w);
	bs_jsonw_end(w);
	return bs_jsonw_finish(w, text);
}

static void answer_stats(fuse_req_t req, size_t size)
{
	bs_autobuf text = BS_BUF_INIT(XATTR_MAX);
	int r = bs_fs_stats_text(bs_fs_of(req), &text);

	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (size == 0)
		(void)fuse_reply_xattr(req, text.len);
	else if (text.len > size)
		(void)fuse_reply_err(req, ERANGE);
	else
		(void)fuse_reply_buf(req, text.data, text.len);
}

void bs_fsop_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct bs_fsjob *j;

	if (ino == FUSE_ROOT_ID && bs_streq(name, BS_FS_STATS)) {
		answer_stats(req, size);
		return;
	}
	if (!is_user(name) || is_own(name)) { /* the kernel asks for some at every write */
		(void)fuse_reply_err(req, bs_str_after(name, "security.") || is_own(name)
						  ? ENODATA
						  : EOPNOTSUPP);
		return;
	}
	j = bs_fsjob_new(req, ino, name, NULL, NULL, run_getxattr);
	if (!j)
		return;
	j->size = size;
	bs_fsjob_queue(&j->fs->meta, j);
}

static void run_listxattr(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL, *names = NULL;
	size_t len = 0, kept = 0;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_nn_list_xattrs(j->fs->o.nn, path, &names, &len, NULL);
	if (r < 0) {
		bs_fsjob_end(j, r);
		return;
	}
	for (size_t at = 0; at < len;) {
		size_t n = strlen(names + at) + 1;

		if (is_user(names + at) && !is_own(names + at)) {
			memmove(names + kept, names + at, n);
			kept += n;
		}
		at += n;
	}
	answer_bytes(j, names, kept);
}

void bs_fsop_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct bs_fsjob *j = bs_fsjob_new(req, ino, NULL, NULL, NULL, run_listxattr);

	if (!j)
		return;
	j->size = size;
	bs_fsjob_queue(&j->fs->meta, j);
}

static void run_setxattr(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_nn_set_xattr(j->fs->o.nn, path, j->name, j->data, j->size,
				    j->flags & XATTR_CREATE, j->flags & XATTR_REPLACE, NULL);
	bs_fsjob_end(j, r);
}

void bs_fsop_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		      size_t size, int flags)
{
	struct bs_fsjob *j;

	if (!is_user(name) || is_own(name)) {
		(void)fuse_reply_err(req, is_own(name) ? EPERM : EOPNOTSUPP);
		return;
	}
	if (size > XATTR_MAX) {
		(void)fuse_reply_err(req, E2BIG);
		return;
	}
	j = bs_fsjob_new(req, ino, name, NULL, NULL, run_setxattr);
	if (!j)
		return;
	j->size = size;
	j->flags = (unsigned int)flags;
	j->data = malloc(size + 1);
	if (!j->data) {
		bs_fsjob_end(j, -ENOMEM);
		return;
	}
	memcpy(j->data, value, size);
	bs_fsjob_queue(&j->fs->meta, j);
}

static void run_removexattr(struct bs_fsjob *j)
{
	bs_autofree char *path = NULL;
	int r = bs_nodes_path(j->fs, j->ino, NULL, &path);

	if (r == 0)
		r = bs_nn_remove_xattr(j->fs->o.nn, path, j->name, NULL);
	bs_fsjob_end(j, r);
}

void bs_fsop_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct bs_fsjob *j;

	if (!is_user(name) || is_own(name)) {
		(void)fuse_reply_err(req, is_own(name) ? EPERM : EOPNOTSUPP);
		return;
	}
	j = bs_fsjob_new(req, ino, name, NULL, NULL, run_removexattr);
	if (j)
		bs_fsjob_queue(&j->fs->meta, j);
}
