/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * From directory to directory by openat, and back by "..", checked by inode number:
 * one descriptor whatever the depth, and no path that could be too long.
 */
#include "config.h"

#include "image/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "image/nodes.h"
#include "image/spool.h"

#define PIECE (1u << 20)

/* A file with several names, found again by its number. */
struct linked {
	ino_t ino;
	struct bs_inode *inode;
};

struct level {
	struct bs_node *node;
	struct bs_strv names;
	size_t at;
	dev_t dev;
	ino_t ino;
};

struct reader {
	struct bs_nodes *t;
	struct bs_spool *spool;
	void (*progress)(void *cookie, uint64_t bytes);
	void *cookie;
	struct bs_map links; /* ino → struct linked */
	struct level *levels;
	size_t n, cap;
	int fd; /* of the innermost level */
	dev_t dev;
	char *buf;
};

static int changed(struct bs_error *err)
{
	return bs_fail(err, -ESTALE, "it changed while it was read");
}

/* --- extended attributes --------------------------------------------------------------------- */

static bool xattr_counts(const char *name)
{
	if (bs_str_after(name, "trusted.overlay.") || bs_str_after(name, "user.overlay."))
		return false;
	return bs_str_after(name, "user.") || bs_str_after(name, "security.") ||
	       bs_str_after(name, "trusted.") || bs_streq(name, "system.posix_acl_access") ||
	       bs_streq(name, "system.posix_acl_default");
}

/* path: by way of /proc/self/fd, so it is short, and the last component is not followed. */
static int read_xattrs(struct reader *rd, const char *path, struct bs_inode *i,
		       struct bs_error *err)
{
	bs_autofree char *names = NULL;
	ssize_t len = llistxattr(path, NULL, 0);

	if (len < 0 && errno != EOPNOTSUPP)
		return bs_fail_errno(err, -errno, "list extended attributes");
	if (len <= 0)
		return 0;
	names = malloc((size_t)len);
	if (!names)
		return bs_fail_errno(err, -ENOMEM, "extended attributes");
	len = llistxattr(path, names, (size_t)len);
	if (len < 0)
		return bs_fail_errno(err, -errno, "list extended attributes");
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t n;
		int r;

		if (!xattr_counts(name))
			continue;
		n = lgetxattr(path, name, rd->buf, PIECE);
		if (n < 0)
			return bs_fail_errno(err, -errno, "extended attribute '%s'", name);
		r = bs_xset_put(&i->xattrs, name, strlen(name), rd->buf, (size_t)n);
		if (r < 0)
			return bs_fail_errno(err, r, "extended attribute '%s'", name);
	}
	return 0;
}

/* --- files ----------------------------------------------------------------------------------- */

static bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int copy(struct reader *rd, int fd, const struct bs_inode *i, struct bs_error *err)
{
	uint64_t off = 0;

	while (off < i->size) {
		off_t data = lseek(fd, (off_t)off, SEEK_DATA);
		ssize_t n;
		int r;

		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (data > 0)
			off = (uint64_t)data;
		if (off >= i->size)
			break;
		n = bs_pread_full(fd, rd->buf, (size_t)BS_MIN(i->size - off, (uint64_t)PIECE), off);
		if (n < 0)
			return bs_fail_errno(err, (int)n, "read");
		if (n == 0)
			return changed(err);
		r = bs_spool_write(rd->spool, i->spool_off + off, rd->buf, (size_t)n, err);
		if (r < 0)
			return r;
		if (rd->progress)
			rd->progress(rd->cookie, (uint64_t)n);
		off += (uint64_t)n;
	}
	return 0;
}

static int read_file(struct reader *rd, const char *name, const struct stat *st, struct bs_inode *i,
		     struct bs_error *err)
{
	bs_autofd int fd = openat(rd->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat now;
	int r;

	if (fd < 0)
		return bs_fail_errno(err, -errno, "open");
	i->size = (uint64_t)st->st_size;
	if (i->size == 0)
		return 0;
	i->spool = rd->spool;
	r = bs_spool_reserve(rd->spool, i->size, &i->spool_off, err);
	if (r == 0)
		r = copy(rd, fd, i, err);
	if (r < 0)
		return r;
	if (fstat(fd, &now) < 0)
		return bs_fail_errno(err, -errno, "stat");
	return same_state(st, &now) ? 0 : changed(err);
}

static int read_target(struct reader *rd, const char *name, struct bs_inode *i,
		       struct bs_error *err)
{
	char target[BS_TREE_TARGET_MAX + 2];
	ssize_t n = readlinkat(rd->fd, name, target, sizeof(target));

	if (n < 0)
		return bs_fail_errno(err, -errno, "read the symlink");
	if (n == 0 || n > (ssize_t)BS_TREE_TARGET_MAX)
		return bs_fail(err, -EINVAL, "the symlink's target is too long");
	i->target = strndup(target, (size_t)n);
	return i->target ? 0 : bs_fail_errno(err, -ENOMEM, "symlink");
}

static int attributes(struct bs_inode *i, const struct stat *st, struct bs_error *err)
{
	if (st->st_uid == UINT32_MAX || st->st_gid == UINT32_MAX)
		return bs_fail(err, -EINVAL, "owner %u:%u is not possible", st->st_uid, st->st_gid);
	i->mode = st->st_mode;
	i->uid = st->st_uid;
	i->gid = st->st_gid;
	i->mtime_s = st->st_mtim.tv_sec;
	i->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		i->rdev_major = major(st->st_rdev);
		i->rdev_minor = minor(st->st_rdev);
	}
	return 0;
}

static int read_inode(struct reader *rd, const char *name, const struct stat *st,
		      struct bs_inode **ret, struct bs_error *err)
{
	bs_auto(inode) struct bs_inode *i = bs_inode_new();
	char path[32 + BS_TREE_NAME_MAX];
	int r;

	if (!i)
		return bs_fail_errno(err, -ENOMEM, "entry");
	r = attributes(i, st, err);
	if (r == 0 && S_ISREG(st->st_mode))
		r = read_file(rd, name, st, i, err);
	if (r == 0 && S_ISLNK(st->st_mode))
		r = read_target(rd, name, i, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", rd->fd, name);
	r = read_xattrs(rd, path, i, err);
	if (r < 0)
		return r;
	*ret = bs_take(&i);
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

static int remember(struct reader *rd, const struct stat *st, struct bs_inode *i)
{
	struct linked *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->ino = st->st_ino;
	l->inode = i;
	if (bs_map_put(&rd->links, &l->ino, sizeof(l->ino), l) < 0) {
		free(l);
		return -ENOMEM;
	}
	return 0;
}

static int list(struct reader *rd, struct bs_node *node, struct bs_error *err)
{
	struct level l = { .node = node };
	struct dirent *d;
	struct stat st;
	DIR *dir;
	int fd = openat(rd->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !(dir = fdopendir(fd))) {
		r = -errno;
		(void)bs_close(fd);
		return bs_fail_errno(err, r, "open the directory");
	}
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	while (r == 0 && (errno = 0, d = readdir(dir)))
		if (!bs_streq(d->d_name, ".") && !bs_streq(d->d_name, ".."))
			r = bs_strv_add(&l.names, d->d_name);
	if (r == 0 && errno)
		r = -errno;
	(void)closedir(dir);
	if (r == 0)
		r = bs_grow(&rd->levels, &rd->cap, rd->n + 1, sizeof(*rd->levels));
	if (r < 0) {
		bs_strv_done(&l.names);
		return bs_fail_errno(err, r, "read the directory");
	}
	rd->levels[rd->n++] = l;
	return 0;
}

static int descend(struct reader *rd, const char *name, const struct stat *st, struct bs_node *node,
		   struct bs_error *err)
{
	struct stat now;
	int fd;

	if (st->st_dev != rd->dev)
		return 0; /* a mount point */
	fd = openat(rd->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return bs_fail_errno(err, -errno, "open the directory");
	(void)bs_close(rd->fd);
	rd->fd = fd;
	if (fstat(fd, &now) < 0 || now.st_ino != st->st_ino)
		return changed(err);
	return list(rd, node, err);
}

static int ascend(struct reader *rd, struct bs_error *err)
{
	const struct level *up;
	struct stat st;
	int fd;

	bs_strv_done(&rd->levels[--rd->n].names);
	if (rd->n == 0)
		return 0;
	up = &rd->levels[rd->n - 1];
	fd = openat(rd->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return bs_fail_errno(err, -errno, "open the directory");
	(void)bs_close(rd->fd);
	rd->fd = fd;
	if (fstat(fd, &st) < 0 || st.st_ino != up->ino || st.st_dev != up->dev)
		return changed(err);
	return 0;
}

static int read_name(struct reader *rd, struct bs_node *dir, const char *name, struct bs_error *err)
{
	bs_auto(inode) struct bs_inode *i = NULL;
	bool several, fresh = true;
	struct linked *known;
	struct bs_node *node;
	struct stat st;
	int r = 0;

	if (fstatat(rd->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return bs_fail_errno(err, -errno, "stat");
	if (S_ISSOCK(st.st_mode))
		return 0;
	several = !S_ISDIR(st.st_mode) && st.st_nlink > 1;
	known = several ? bs_map_get(&rd->links, &st.st_ino, sizeof(st.st_ino)) : NULL;
	if (known) {
		i = known->inode;
		i->refs++;
		fresh = false;
	} else {
		r = read_inode(rd, name, &st, &i, err);
	}
	if (r < 0)
		return r;
	if (several && fresh && remember(rd, &st, i) < 0)
		return bs_fail_errno(err, -ENOMEM, "hard links");
	r = bs_node_add(rd->t, dir, name, strlen(name), bs_take(&i), &node);
	if (r < 0)
		return bs_fail_errno(err, r, "cannot be added");
	return S_ISDIR(st.st_mode) ? descend(rd, name, &st, node, err) : 0;
}

static int read_root(struct reader *rd, const char *dir, struct bs_error *err)
{
	struct bs_inode *root = rd->t->root->inode;
	char path[32];
	struct stat st;
	int r;

	rd->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rd->fd < 0 || fstat(rd->fd, &st) < 0)
		return bs_fail_errno(err, -errno, "open the directory");
	rd->dev = st.st_dev;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", rd->fd);
	r = attributes(root, &st, err);
	if (r == 0)
		r = read_xattrs(rd, path, root, err);
	return r < 0 ? r : list(rd, rd->t->root, err);
}

static int read_all(struct reader *rd, struct bs_error *err)
{
	while (rd->n > 0) {
		struct level *l = &rd->levels[rd->n - 1];
		struct bs_node *dir = l->node;
		char path[256];
		int r;

		if (l->at == l->names.n) {
			r = ascend(rd, err);
			if (r < 0)
				return bs_error_context(err, "'%s'",
							bs_node_path(dir, path, sizeof(path)));
			continue;
		}
		/* l may move when a level is added; the names do not */
		const char *name = l->names.v[l->at++];

		r = read_name(rd, dir, name, err);
		if (r < 0)
			return bs_error_context(err, "'%s/%s'",
						dir->parent ? bs_node_path(dir, path, sizeof(path))
							    : "",
						name);
	}
	return bs_spool_flush(rd->spool, err);
}

int bs_rootfs_read(const char *dir, struct bs_nodes *t, struct bs_spool *spool,
		   void (*progress)(void *cookie, uint64_t bytes), void *cookie,
		   struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	struct reader rd = {
		.t = t, .spool = spool, .progress = progress, .cookie = cookie, .fd = -EBADF
	};
	size_t pos = 0;
	void *l;
	int r;

	err = err ? err : &own;
	bs_map_init(&rd.links);
	rd.buf = malloc(PIECE);
	r = rd.buf ? read_root(&rd, dir, err) : bs_fail_errno(err, -ENOMEM, "buffer");
	if (r == 0)
		r = read_all(&rd, err);
	while (rd.n > 0)
		bs_strv_done(&rd.levels[--rd.n].names);
	while ((l = bs_map_next(&rd.links, &pos)))
		free(l);
	bs_map_done(&rd.links);
	free(rd.levels);
	free(rd.buf);
	(void)bs_close(rd.fd);
	return r < 0 ? bs_error_context(err, "'%s'", dir) : 0;
}
