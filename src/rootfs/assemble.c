/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/assemble.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/rmtree.h"
#include "kern/mountfd.h"
#include "kern/mountinfo.h"
#include "kern/overlay.h"
#include "rootfs/layers.h"
#include "rootfs/teardown.h"

#define NO_LAYER ((struct bs_layer){ .fd = -EBADF })

struct bs_rootfs {
	enum bs_state_kind kind;
	bool in_place; /* an overlay of ours is there already */
	char *path, *run_dir;
	struct bs_mountinfo mount; /* the mount that the rootfs is, or lies on */
	struct bs_overlay old;	   /* OVERLAY: the engine's */
	struct bs_layers
		layers;		/* OVERLAY: the engine's; OVER: one lower, upper and work of ours */
	size_t stub;		/* index in layers of the first that goes below the image */
	struct bs_strv options; /* of the new overlay */
	char *beside;		/* OVER: the directory of upper and work; NULL: none */
	bool readonly;		/* OVER: it can be done without */
	char *source;		/* of the new overlay */
	bool swapped;
};

struct bs_rootfs *bs_rootfs_free(struct bs_rootfs *r)
{
	if (!r)
		return NULL;
	free(r->path);
	free(r->run_dir);
	free(r->beside);
	free(r->source);
	bs_mountinfo_done(&r->mount);
	bs_overlay_done(&r->old);
	bs_layers_done(&r->layers);
	bs_strv_done(&r->options);
	free(r);
	return NULL;
}

/* --- planning ----------------------------------------------------------------------------- */

static bool is_settable(const char *option)
{
	/* ours are set below; export needs an index; seclabel only tells that labels are there */
	return !bs_str_after(option, "index=") && !bs_str_after(option, "nfs_export=") &&
	       !bs_streq(option, "seclabel");
}

static int plan_options(struct bs_rootfs *r)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < r->old.options.n; i++) {
		if (is_settable(r->old.options.v[i]))
			result = bs_strv_add(&r->options, r->old.options.v[i]);
	}
	/* an index ties the upper layer to the lowers that it was first mounted with */
	return result == 0 ? bs_strv_add(&r->options, "index=off") : result;
}

static int plan_overlay(struct bs_rootfs *r, const struct bs_rootfs_request *q,
			struct bs_error *err)
{
	int result = bs_overlay_parse(r->mount.super, &r->old, err);
	int stub;

	r->kind = BS_STATE_OVERLAY;
	if (result == 0)
		result = bs_layers_open(&r->old, r->path, &r->layers, err);
	if (result < 0)
		return bs_error_context(err, "overlay at '%s'", r->path);
	if (plan_options(r) < 0)
		return bs_fail(err, -ENOMEM, "overlay at '%s': out of memory", r->path);
	if (!q->marker) {
		r->stub = r->layers.n - 1;
		return 0;
	}
	stub = bs_layers_find_stub(&r->layers, q->marker, q->marker_len);
	if (stub < 0)
		return bs_fail(err, -EBADMSG,
			       "the marker in '%s' is in none of the image's layers: the container "
			       "has written it itself",
			       r->path);
	r->stub = (size_t)stub;
	return 0;
}

static int plan_over(struct bs_rootfs *r, const struct bs_rootfs_request *q, struct bs_error *err)
{
	int result;

	r->kind = BS_STATE_OVER;
	r->layers.lowers = calloc(1, sizeof(*r->layers.lowers));
	if (!r->layers.lowers || bs_strv_add(&r->options, "index=off") < 0)
		return bs_fail(err, -ENOMEM, "plan '%s': out of memory", r->path);
	r->layers.lowers[0] = NO_LAYER;
	r->layers.n = 1;
	result = bs_layer_open(AT_FDCWD, r->path, &r->layers.lowers[0]);
	if (result < 0)
		return bs_fail_errno(err, result, "open '%s'", r->path);
	if (bs_mountinfo_attrs(r->mount.options) & MOUNT_ATTR_RDONLY)
		return 0;
	r->beside = bs_strf("%s.bootseer", r->path);
	r->layers.upper.path = bs_strf("%s.bootseer/upper", r->path);
	r->layers.work.path = bs_strf("%s.bootseer/work", r->path);
	if (!r->beside || !r->layers.upper.path || !r->layers.work.path)
		return bs_fail(err, -ENOMEM, "plan '%s': out of memory", r->path);
	r->readonly = q->readonly;
	return 0;
}

/* The mount that the rootfs is the root of, or lies on. */
static int look_up_mount(struct bs_rootfs *r, bool *ret_is_root, struct bs_error *err)
{
	/* closed again before the swap: an open one would keep the old overlay in use */
	bs_autofd int fd = open(r->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t id;
	int result;

	if (fd < 0)
		return bs_fail_errno(err, -errno, "open rootfs '%s'", r->path);
	result = bs_mountinfo_id(fd, &id, ret_is_root);
	if (result == 0)
		result = bs_mountinfo_find(id, &r->mount);
	if (result == -ENOENT ||
	    (result == 0 && *ret_is_root && !bs_streq(r->mount.point, r->path)))
		return bs_fail(err, -EXDEV,
			       "rootfs '%s' is a mount of another mount namespace, where it cannot "
			       "be replaced; run the engine and bootseer in one mount namespace",
			       r->path);
	return result < 0 ? bs_fail_errno(err, result, "find the mount at '%s'", r->path) : 0;
}

int bs_rootfs_plan(const struct bs_rootfs_request *q, struct bs_rootfs **ret, struct bs_error *err)
{
	bs_auto(rootfs) struct bs_rootfs *r = calloc(1, sizeof(*r));
	bool is_root = false;
	int result;

	if (!r)
		return bs_fail(err, -ENOMEM, "plan '%s': out of memory", q->path);
	r->layers.upper = r->layers.work = NO_LAYER;
	r->path = strdup(q->path);
	r->run_dir = strdup(q->run_dir);
	if (!r->path || !r->run_dir)
		return bs_fail(err, -ENOMEM, "plan '%s': out of memory", q->path);
	if (!bs_utf8_valid(q->path, strlen(q->path)))
		return bs_fail(err, -EINVAL, "the path of rootfs '%s' is no UTF-8", q->path);
	result = look_up_mount(r, &is_root, err);
	if (result < 0)
		return result;
	if (is_root && bs_streq(r->mount.fstype, "overlay")) {
		r->in_place = bs_rootfs_is_ours(&r->mount, &r->kind);
		if (!r->in_place)
			result = plan_overlay(r, q, err);
	} else {
		result = plan_over(r, q, err);
	}
	if (result < 0)
		return result;
	*ret = bs_take(&r);
	return 0;
}

const char *bs_rootfs_image(const struct bs_rootfs *r)
{
	const char *digest;

	if (!r->in_place)
		return NULL;
	digest = bs_str_after(r->mount.source, BS_ROOTFS_SOURCE);
	return digest ? digest : bs_str_after(r->mount.source, BS_ROOTFS_SOURCE_OVER);
}

static int copy_text(char **to, const char *from)
{
	if (!from)
		return 0;
	free(*to);
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

int bs_rootfs_describe(const struct bs_rootfs *r, const char *image, const char *deps,
		       struct bs_state *s, struct bs_error *err)
{
	int result = copy_text(&s->upper, r->layers.upper.path);

	s->kind = r->kind;
	if (result == 0)
		result = copy_text(&s->work, r->layers.work.path);
	for (size_t i = 0; result == 0 && i <= r->layers.n; i++) {
		if (i == r->stub && deps)
			result = bs_strv_add(&s->layers, deps);
		if (i == r->stub && result == 0)
			result = bs_strv_add(&s->layers, image);
		if (i < r->layers.n && result == 0)
			result = bs_strv_add(&s->layers, r->layers.lowers[i].path);
	}
	return result < 0 ? bs_fail(err, result, "describe '%s': out of memory", r->path) : 0;
}

/* --- changing -------------------------------------------------------------------------------- */

/* A volatile overlay leaves this directory behind, and no overlay takes the upper then. */
static int forget_volatile(const struct bs_layers *l, struct bs_error *err)
{
	bs_autofd int work = -EBADF;
	int r;

	if (l->work.fd < 0)
		return 0;
	work = openat(l->work.fd, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (work < 0 && errno == ENOENT)
		return 0;
	r = work < 0 ? -errno : bs_rmtree(work, "incompat");
	if (r < 0)
		return bs_fail_errno(err, r, "clear '%s/work/incompat' of a volatile overlay",
				     l->work.path);
	return 0;
}

/* The engine's own again, from the same parts. */
static int mount_old(struct bs_rootfs *r, struct bs_error *err)
{
	const struct bs_overlay_spec spec = {
		.source = r->mount.source,
		.lowers = r->layers.lowers,
		.n_lowers = r->layers.n,
		.upper = r->layers.upper,
		.work = r->layers.work,
		.ro = r->old.ro,
		.is_volatile = r->old.is_volatile,
		.options = &r->old.options,
		.attrs = bs_mountinfo_attrs(r->mount.options),
		.scratch = r->run_dir,
	};
	bs_autobuild b = { .fs = -EBADF };
	bs_autofd int mnt = -EBADF;
	int result = r->old.is_volatile ? forget_volatile(&r->layers, err) : 0;

	if (result == 0)
		result = bs_overlay_prepare(&spec, &b, err);
	if (result < 0)
		return result;
	mnt = bs_overlay_create(&b, err);
	result = mnt < 0 ? mnt : bs_mountfd_attach(mnt, AT_FDCWD, r->path, err);
	if (result == 0 && !r->mount.shared)
		(void)bs_mountfd_make_private(mnt); /* as well as may be */
	return result;
}

static int put_back(struct bs_rootfs *r, struct bs_error *err)
{
	struct bs_error again = BS_ERROR_INIT;

	if (mount_old(r, &again) == 0)
		return err ? err->code : -EIO;
	return bs_error_context(err, "(the engine's own mount at '%s' could not be put back: %s)",
				r->path, bs_error_text(&again));
}

/* The layers of the new overlay, in order; borrowed. */
static struct bs_layer *arrange(const struct bs_rootfs *r, int image, int deps, size_t *ret_n)
{
	struct bs_layer *l = calloc(r->layers.n + 2, sizeof(*l));
	size_t n = 0;

	for (size_t i = 0; l && i <= r->layers.n; i++) {
		if (i == r->stub && deps >= 0)
			l[n++] = (struct bs_layer){ .fd = deps };
		if (i == r->stub)
			l[n++] = (struct bs_layer){ .fd = image };
		if (i < r->layers.n)
			l[n++] = r->layers.lowers[i];
	}
	*ret_n = n;
	return l;
}

/* The root directory of an upper layer of ours is to look like the image's. */
static int dress_upper(const struct bs_rootfs *r, int image, struct bs_error *err)
{
	bs_autofd int upper = bs_path_reopen(r->layers.upper.fd, O_RDONLY | O_DIRECTORY);
	struct timespec times[2];
	struct stat st;

	if (upper < 0 || fstat(image, &st) < 0)
		return bs_fail_errno(err, upper < 0 ? upper : -errno, "look at the image's root");
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (fchown(upper, st.st_uid, st.st_gid) < 0 || fchmod(upper, st.st_mode & 07777) < 0 ||
	    futimens(upper, times) < 0)
		return bs_fail_errno(err, -errno, "set mode and owner of '%s'",
				     r->layers.upper.path);
	return 0;
}

static int open_dir(int dirfd, const char *name, mode_t mode, bool *ret_new, int *ret_fd)
{
	*ret_new = mkdirat(dirfd, name, mode) == 0;
	if (!*ret_new && errno != EEXIST)
		return -errno;
	*ret_fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* Makes upper and work beside the rootfs, or takes those of an earlier start. */
static int open_beside(struct bs_rootfs *r, int image, struct bs_error *err)
{
	const char *name = strrchr(r->beside, '/') + 1;
	bs_autofree char *parent_path = strndup(r->beside, (size_t)(name - r->beside));
	bs_autofd int parent = -EBADF, dir = -EBADF;
	bool is_new = false, unused;
	int result = -ENOMEM;

	/* what lies beside a rootfs may be anybody's: a link there is not followed */
	if (parent_path)
		parent = open(parent_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent_path)
		result = parent < 0 ? -errno : open_dir(parent, name, 0700, &unused, &dir);
	if (result == 0)
		result = open_dir(dir, "upper", 0755, &is_new, &r->layers.upper.fd);
	if (result == 0)
		result = open_dir(dir, "work", 0700, &unused, &r->layers.work.fd);
	if (result == 0)
		return is_new ? dress_upper(r, image, err) : 0;
	bs_layer_done(&r->layers.upper);
	bs_layer_done(&r->layers.work);
	/* nobody needs it but the runtime, for mountpoints that the image may have */
	if (r->readonly)
		return 0;
	if (result == -ENOTDIR || result == -ELOOP)
		return bs_fail(err, result,
			       "'%s', for what the container writes, is there already and is no "
			       "directory, or holds something else; remove it",
			       r->beside);
	return bs_fail_errno(err, result, "make '%s' for what the container writes", r->beside);
}

/* Removes them again when nothing was written. */
static void drop_beside(const struct bs_rootfs *r)
{
	bs_autofd int dir = r->beside ? open(r->beside,
					     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				      : -EBADF;

	if (dir < 0 || unlinkat(dir, "upper", AT_REMOVEDIR) < 0)
		return;
	(void)bs_rmtree(dir, "work");
	(void)rmdir(r->beside);
}

static int attach_new(struct bs_rootfs *r, struct bs_overlay_build *b, struct bs_error *err)
{
	bs_autofd int mnt = bs_overlay_create(b, err);
	int result = mnt < 0 ? mnt : bs_mountfd_attach(mnt, AT_FDCWD, r->path, err);

	if (result == 0 && !r->mount.shared && r->kind == BS_STATE_OVERLAY)
		(void)bs_mountfd_make_private(mnt); /* as well as may be */
	return result;
}

static int exchange(struct bs_rootfs *r, struct bs_overlay_build *b, struct bs_error *err)
{
	int result;

	if (r->kind == BS_STATE_OVER)
		return attach_new(r, b, err);
	result = bs_mountfd_detach(r->path);
	if (result < 0)
		return bs_fail_errno(err, result, "unmount the engine's overlay at '%s'", r->path);
	/* upper and work are out of use from here on */
	result = r->old.is_volatile ? forget_volatile(&r->layers, err) : 0;
	if (result == 0)
		result = attach_new(r, b, err);
	return result < 0 ? put_back(r, err) : 0;
}

static int build_and_exchange(struct bs_rootfs *r, const int *ours, struct bs_error *err)
{
	size_t n;
	bs_autofree struct bs_layer *lowers = arrange(r, ours[0], ours[1], &n);
	int result = r->beside ? open_beside(r, ours[0], err) : 0;
	const struct bs_overlay_spec spec = {
		.source = r->source,
		.lowers = lowers,
		.n_lowers = n,
		.upper = r->layers.upper,
		.work = r->layers.work,
		.ro = r->old.ro,
		.is_volatile = r->old.is_volatile,
		.options = &r->options,
		.attrs = bs_mountinfo_attrs(r->mount.options),
		.scratch = r->run_dir,
	};
	bs_autobuild b = { .fs = -EBADF };

	if (!lowers)
		return bs_fail(err, -ENOMEM, "assemble '%s': out of memory", r->path);
	if (result == 0)
		result = bs_overlay_prepare(&spec, &b, err);
	return result < 0 ? result : exchange(r, &b, err);
}

/*
 * Some kernels take only mounts with a place in our namespace as layers, and none takes
 * a detached one that was made in another namespace: gives a copy of the mount (or, of
 * another namespace's, itself) a place at a directory made for it. Its descriptor.
 */
static int place(const struct bs_rootfs *r, int mount, char **ret_dir, struct bs_error *err)
{
	bs_autofree char *dir = bs_strf("%s/layer-XXXXXX", r->run_dir);
	bs_autofd int copy = -EBADF;
	int result;

	if (!dir || !mkdtemp(dir))
		return bs_fail_errno(err, dir ? -errno : -ENOMEM, "make a directory in '%s'",
				     r->run_dir);
	copy = bs_mountfd_clone(mount, "", err);
	if (copy == -EINVAL)
		copy = bs_dup(mount);
	result = copy < 0 ? copy : bs_mountfd_attach(copy, AT_FDCWD, dir, err);
	if (result < 0) {
		(void)rmdir(dir);
		return result;
	}
	(void)bs_mountfd_make_private(copy);
	*ret_dir = bs_take(&dir);
	return bs_take_fd(&copy);
}

static void unplace(char *dir)
{
	if (!dir)
		return;
	(void)bs_mountfd_detach(dir); /* the overlay has its own hold on it */
	(void)rmdir(dir);
	free(dir);
}

int bs_rootfs_swap(struct bs_rootfs *r, const char *digest, int image, int deps,
		   struct bs_error *err)
{
	int ours[2] = { image, deps }, copies[2] = { -EBADF, -EBADF };
	char *dirs[2] = { NULL, NULL };
	int result = 0;

	if (r->in_place)
		return 0;
	r->source = bs_strf("%s%s",
			    r->kind == BS_STATE_OVER ? BS_ROOTFS_SOURCE_OVER : BS_ROOTFS_SOURCE,
			    digest);
	if (!r->source)
		return bs_fail(err, -ENOMEM, "assemble '%s': out of memory", r->path);
	for (int i = 0; result == 0 && i < 2; i++) {
		if (ours[i] < 0 || bs_overlay_takes(ours[i], r->layers.lowers[r->stub].fd))
			continue;
		copies[i] = place(r, ours[i], &dirs[i], err);
		if (copies[i] < 0)
			result = copies[i];
		ours[i] = copies[i];
	}
	if (result == 0)
		result = build_and_exchange(r, ours, err);
	for (int i = 0; i < 2; i++) {
		(void)bs_close(copies[i]);
		unplace(dirs[i]);
	}
	r->swapped = result == 0;
	if (result < 0)
		drop_beside(r);
	return result < 0 ? bs_error_context(err, "put the image into '%s'", r->path) : 0;
}

int bs_rootfs_undo(struct bs_rootfs *r, struct bs_error *err)
{
	int result;

	if (!r->swapped)
		return 0;
	r->swapped = false;
	result = bs_mountfd_detach(r->path);
	if (result < 0)
		return bs_fail_errno(err, result, "unmount '%s'", r->path);
	drop_beside(r);
	if (r->kind == BS_STATE_OVERLAY && mount_old(r, err) < 0)
		return bs_error_context(err, "put the engine's own mount back at '%s'", r->path);
	return 0;
}
