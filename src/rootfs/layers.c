/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "image/artifact.h"

#define MARKER_DIR ".bootseer"
#define MARKER_NAME "image.json"
_Static_assert(sizeof(BS_MARKER_PATH) == sizeof(MARKER_DIR "/" MARKER_NAME), "the same");

#define NO_LAYER ((struct bs_layer){ .fd = -EBADF })

void bs_layer_done(struct bs_layer *l)
{
	l->fd = bs_close(l->fd);
	free((void *)(uintptr_t)l->path);
	l->path = NULL;
}

int bs_layer_open(int dirfd, const char *path, struct bs_layer *ret)
{
	char link[32], real[PATH_MAX];
	bs_autofd int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = readlink(bs_path_of_fd(fd, link), real, sizeof(real) - 1);
	if (n < 0)
		return -errno;
	real[n] = '\0';
	ret->path = strdup(real);
	if (!ret->path)
		return -ENOMEM;
	ret->fd = bs_take_fd(&fd);
	return 0;
}

void bs_layers_done(struct bs_layers *l)
{
	for (size_t i = 0; i < l->n; i++)
		bs_layer_done(&l->lowers[i]);
	free(bs_take(&l->lowers));
	l->n = 0;
	bs_layer_done(&l->upper);
	bs_layer_done(&l->work);
}

/* --- where relative names begin ------------------------------------------------------- */

static bool is_dir_at(int dirfd, const char *path)
{
	struct stat st;

	return fstatat(dirfd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* NULL, or the relative name that is no directory when looked up from dirfd. */
static const char *not_from(const struct bs_overlay *o, int dirfd)
{
	for (size_t i = 0; i < o->lowers.n; i++) {
		const char *p = o->lowers.v[i];

		if (p[0] != '/' && !is_dir_at(dirfd, p))
			return p;
	}
	if (o->upper && o->upper[0] != '/' && !is_dir_at(dirfd, o->upper))
		return o->upper;
	if (o->work && o->work[0] != '/' && !is_dir_at(dirfd, o->work))
		return o->work;
	return NULL;
}

/* Tries the directories above path, nearest first; the fd of the first that fits. */
static int base_above(const struct bs_overlay *o, const char *path)
{
	bs_autofree char *dir = strdup(path);
	char *slash;

	while (dir && (slash = strrchr(dir, '/'))) {
		bs_autofd int fd = -EBADF;

		*slash = '\0';
		fd = open(dir[0] ? dir : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !not_from(o, fd))
			return bs_take_fd(&fd);
	}
	return dir ? -ENOENT : -ENOMEM;
}

static int find_base(const struct bs_overlay *o, const char *mountpoint, struct bs_error *err)
{
	const char *missing = not_from(o, -EBADF);
	int fd = -ENOENT;

	if (!missing)
		return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); /* all are absolute */
	/* never the upper layer itself: its content is the container's */
	if (o->upper && o->upper[0] == '/')
		fd = base_above(o, o->upper);
	if (fd < 0)
		fd = base_above(o, mountpoint);
	if (fd < 0)
		return bs_fail(err, -ENOENT,
			       "the engine mounted '%s' with layers relative to a directory that "
			       "cannot be told (one is '%s')",
			       mountpoint, missing);
	return fd;
}

/* --- opening ------------------------------------------------------------------------------ */

static int open_one(int base, const char *path, const char *what, struct bs_layer *ret,
		    struct bs_error *err)
{
	int r = bs_layer_open(base, path, ret);

	return r < 0 ? bs_fail_errno(err, r, "open %s layer '%s'", what, path) : 0;
}

int bs_layers_open(const struct bs_overlay *o, const char *mountpoint, struct bs_layers *ret,
		   struct bs_error *err)
{
	struct bs_layers l = { .upper = NO_LAYER, .work = NO_LAYER };
	bs_autofd int base = find_base(o, mountpoint, err);
	int r = 0;

	if (base < 0)
		return base;
	l.lowers = calloc(o->lowers.n, sizeof(*l.lowers));
	if (!l.lowers)
		return bs_fail(err, -ENOMEM, "open layers: out of memory");
	for (; r == 0 && l.n < o->lowers.n; l.n++) {
		l.lowers[l.n] = NO_LAYER;
		r = open_one(base, o->lowers.v[l.n], "lower", &l.lowers[l.n], err);
	}
	if (r == 0 && o->upper)
		r = open_one(base, o->upper, "upper", &l.upper, err);
	if (r == 0 && o->work)
		r = open_one(base, o->work, "work", &l.work, err);
	if (r < 0)
		bs_layers_done(&l);
	else
		*ret = l;
	return r;
}

/* --- the marker ------------------------------------------------------------------------------ */

/* Two steps that follow nothing are the same as openat2, which seccomp filters may lack. */
static int open_marker(int dirfd)
{
	int r = bs_path_open_beneath(dirfd, BS_MARKER_PATH, O_RDONLY | O_NONBLOCK, 0);
	bs_autofd int dir = -EBADF;

	if (r != -ENOSYS && r != -EPERM)
		return r;
	dir = openat(dirfd, MARKER_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0) {
		struct stat st;

		if (errno == ENOTDIR && fstatat(dirfd, MARKER_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode))
			return -ELOOP;
		return -errno;
	}
	r = openat(dir, MARKER_NAME, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int bs_layer_marker(int dirfd, char **ret, size_t *ret_len, struct bs_error *err)
{
	bs_autofd int fd = open_marker(dirfd);
	struct stat st;
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ENOENT;
	if (fd == -ELOOP || fd == -EXDEV)
		return bs_fail(err, -ELOOP,
			       "the image's marker '/" BS_MARKER_PATH
			       "' is a symlink or behind one, which is not followed");
	if (fd < 0)
		return bs_fail_errno(err, fd, "open the image's marker '/" BS_MARKER_PATH "'");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return bs_fail(err, -EBADMSG,
			       "the image's marker '/" BS_MARKER_PATH "' is no regular file");
	r = bs_read_file(fd, BS_MARKER_MAX, ret, ret_len);
	if (r == -EFBIG)
		return bs_fail(err, -EBADMSG,
			       "the image's marker '/" BS_MARKER_PATH "' is larger than %u bytes",
			       BS_MARKER_MAX);
	return r < 0 ? bs_fail_errno(err, r, "read the image's marker '/" BS_MARKER_PATH "'") : 0;
}

int bs_layers_find_stub(const struct bs_layers *l, const char *marker, size_t len)
{
	for (size_t i = l->n; i-- > 0;) {
		bs_autofree char *text = NULL;
		size_t n = 0;

		if (bs_layer_marker(l->lowers[i].fd, &text, &n, NULL) == 0 && n == len &&
		    memcmp(text, marker, len) == 0)
			return (int)i;
	}
	return -ENOENT;
}
