/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Entries come in path order, so one walk does it: a descriptor of the current
 * directory, moved down by openat and up by "..". Nobody else writes there.
 * A directory's mode and times are set when it is left, after its last child.
 */
#include "config.h"

#include "rootfs/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "image/tree.h"

struct unpack {
	const struct bs_tree *t;
	int blob;
	int root;
	int dir;     /* of the entry at */
	uint32_t at; /* index of the directory that dir is */
};

static int set_xattrs(struct unpack *u, const struct bs_tree_entry *e, int fd)
{
	char path[32];

	/* through /proc: an O_PATH descriptor names a symlink or device without opening it */
	(void)bs_path_of_fd(fd, path);
	for (uint32_t i = 0; i < e->n_xattrs; i++) {
		const struct bs_tree_xattr *x = &u->t->xattrs[e->first_xattr + i];

		if (setxattr(path, x->name, x->value, x->value_len, 0) < 0)
			return -errno;
	}
	return 0;
}

/* Owner, mode, xattrs (a capability goes when the owner changes: it comes after) and times. */
static int set_attributes(struct unpack *u, const struct bs_tree_entry *e, int dir,
			  const char *name)
{
	const struct timespec times[2] = { { .tv_sec = e->mtime_s, .tv_nsec = (long)e->mtime_ns },
					   { .tv_sec = e->mtime_s, .tv_nsec = (long)e->mtime_ns } };
	bs_autofd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	if (fchownat(fd, "", e->uid, e->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	if (!S_ISLNK(e->mode)) {
		char path[32];

		if (chmod(bs_path_of_fd(fd, path), e->mode & 07777) < 0)
			return -errno;
	}
	r = set_xattrs(u, e, fd);
	if (r < 0)
		return r;
	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_extent(struct unpack *u, const struct bs_tree_extent *x, uint64_t size, int fd)
{
	loff_t from = (loff_t)(x->blob_block * BS_BLOCK_SIZE);
	loff_t to = (loff_t)(x->file_block * BS_BLOCK_SIZE);
	uint64_t left = BS_MIN(x->n_blocks * BS_BLOCK_SIZE, size - (uint64_t)to);

	while (left > 0) {
		ssize_t n = copy_file_range(u->blob, &from, fd, &to,
					    BS_MIN(left, UINT64_C(1) << 30), 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO; /* the blob is cut */
		left -= n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

static int make_file(struct unpack *u, const struct bs_tree_entry *e)
{
	bs_autofd int fd = openat(u->dir, e->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)e->size) < 0)
		return -errno;
	for (uint32_t i = 0; i < e->n_extents; i++) {
		int r = copy_extent(u, &u->t->extents[e->first_extent + i], e->size, fd);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The directory that holds an earlier entry, found from the root. */
static int open_parent(struct unpack *u, uint32_t index, int *ret_fd)
{
	bs_autofree uint32_t *path = NULL;
	bs_autofd int fd = bs_dup(u->root);
	size_t n = 0, cap = 0;

	for (uint32_t d = u->t->entries[index].parent; d != 0; d = u->t->entries[d].parent) {
		if (bs_grow(&path, &cap, n + 1, sizeof(*path)) < 0)
			return -ENOMEM;
		path[n++] = d;
	}
	while (fd >= 0 && n > 0) {
		int next = openat(fd, u->t->entries[path[--n]].name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			return -errno;
		(void)bs_close(fd);
		fd = next;
	}
	if (fd < 0)
		return fd;
	*ret_fd = bs_take_fd(&fd);
	return 0;
}

static int make_link(struct unpack *u, const struct bs_tree_entry *e)
{
	bs_autofd int from = -EBADF;
	int r = open_parent(u, e->inode, &from);

	if (r < 0)
		return r;
	return linkat(from, u->t->entries[e->inode].name, u->dir, e->name, 0) < 0 ? -errno : 0;
}

static int make_entry(struct unpack *u, uint32_t i)
{
	const struct bs_tree_entry *e = &u->t->entries[i];
	int r = 0;

	if (e->inode != i)
		return make_link(u, e);
	if (S_ISDIR(e->mode))
		return mkdirat(u->dir, e->name, 0700) < 0 ? -errno : 0;
	if (S_ISREG(e->mode))
		r = make_file(u, e);
	else if (S_ISLNK(e->mode))
		r = symlinkat(e->target, u->dir, e->name) < 0 ? -errno : 0;
	else if (mknodat(u->dir, e->name, e->mode & S_IFMT, makedev(e->rdev_major, e->rdev_minor)) <
		 0)
		r = -errno;
	return r < 0 ? r : set_attributes(u, e, u->dir, e->name);
}

static int move_to(struct unpack *u, const char *name)
{
	int fd = openat(u->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)bs_close(u->dir);
	u->dir = fd;
	return 0;
}

/* Up from the current directory, whose attributes are now final. */
static int leave(struct unpack *u)
{
	const struct bs_tree_entry *e = &u->t->entries[u->at];
	int r = move_to(u, "..");

	if (r < 0)
		return r;
	u->at = e->parent;
	return set_attributes(u, e, u->dir, e->name);
}

static int fail_at(struct unpack *u, uint32_t i, int r, struct bs_error *err)
{
	const char *name = u->t->entries[i].name;

	return bs_fail_errno(err, r, "unpack entry %u ('%.200s')", i, *name ? name : "/");
}

static int unpack_all(struct unpack *u, struct bs_error *err)
{
	int r;

	for (uint32_t i = 1; i < u->t->n_entries; i++) {
		const struct bs_tree_entry *e = &u->t->entries[i];

		while (u->at != e->parent) {
			uint32_t left = u->at;

			r = leave(u);
			if (r < 0)
				return fail_at(u, left, r, err);
		}
		r = make_entry(u, i);
		if (r == 0 && e->inode == i && S_ISDIR(e->mode)) {
			r = move_to(u, e->name);
			u->at = i;
		}
		if (r < 0)
			return fail_at(u, i, r, err);
	}
	while (u->at != 0) {
		uint32_t left = u->at;

		r = leave(u);
		if (r < 0)
			return fail_at(u, left, r, err);
	}
	r = set_attributes(u, &u->t->entries[0], u->root, ".");
	return r < 0 ? fail_at(u, 0, r, err) : 0;
}

int bs_unpack(const struct bs_tree *t, int blob, int dirfd, struct bs_error *err)
{
	struct unpack u = { .t = t, .blob = blob, .root = dirfd, .dir = bs_dup(dirfd) };
	int r;

	if (u.dir < 0)
		return bs_fail_errno(err, u.dir, "unpack");
	r = unpack_all(&u, err);
	(void)bs_close(u.dir);
	return r;
}
