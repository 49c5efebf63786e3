/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "daemon/warm.h"
#include "image/tree.h"
#include "kern/bdi.h"
#include "kern/caps.h"
#include "kern/erofs.h"
#include "kern/pagecache.h"
#include "net/auth.h"
#include "rootfs/hotstart.h"
#include "rootfs/unpack.h"

#define SOCKET_FD 3
#define METADATA_FD 4
#define CONTENT_FD 5
#define TREE_FD 4
#define UNPACKED_FD 6
#define RECORDS_FD 4
#define WARM_MOUNT_FD 5
#define MOUNT_TRIES 5
#define META_BYTES (16u << 20) /* that are read at once; enough for 100,000 inodes */
#define TREE_DATA_MAX (1u << 30)

static int send_failure(enum bs_msg_type type, int result, const struct bs_error *err)
{
	bs_automsg m;

	bs_msg_init(&m, type, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, (uint64_t)-result);
	(void)bs_msg_add_text(&m, BS_TAG_TEXT, bs_error_text(err));
	(void)bs_msg_send(SOCKET_FD, &m);
	return 1;
}

/*
 * Mounts, and finds which bdi is the mount's: with others that mount at the same instant it
 * cannot be told, so it is mounted again; in the end it goes without.
 */
static int mount_known(const char *meta, const char *content, bool direct,
		       char bdi[BS_BDI_NAME_LEN], struct bs_error *err)
{
	bs_autofd int class = bs_bdi_open();

	for (int tries = 0;; tries++) {
		bs_autobdilist before = { 0 };
		bs_autofd int mnt = -EBADF;
		int r = bs_bdi_list(class, &before);

		mnt = bs_erofs_mount(meta, content, direct, err);
		if (mnt < 0)
			return mnt;
		if (r == 0)
			r = bs_bdi_find_new(class, &before, bdi);
		if (r < 0)
			bdi[0] = '\0';
		if (r != -EAGAIN || tries == MOUNT_TRIES)
			return bs_take_fd(&mnt);
		(void)poll(NULL, 0, 1 + (int)(getpid() % 7));
	}
}

/*
 * A blob that was just fetched is read from memory; any other is read faster past its page
 * cache, in which nothing of it would come twice and the disk's readahead go past its files.
 */
static bool is_in_memory(int blob)
{
	uint64_t cached = 0;
	struct stat st;

	return fstat(blob, &st) == 0 && bs_pagecache_bytes(blob, &cached) == 0 &&
	       cached >= (uint64_t)st.st_size / 2;
}

static void set_readahead(const char *bdi, uint32_t kib)
{
	bs_autofd int class = bs_bdi_open();

	if (bdi[0])
		(void)bs_bdi_set_readahead(class, bdi, kib);
}

static int mount_image(const char *name, bool lazy, bool recorded)
{
	struct bs_error err = BS_ERROR_INIT;
	char meta[32], base[32], content[32 + 1 + BS_HOTSTART_FILE_LEN];
	char bdi[BS_BDI_NAME_LEN] = "";
	bs_autofd int mnt = -EBADF;
	bs_automsg m;

	if (!bs_path_name_ok(name, strlen(name)) || strlen(name) >= BS_HOTSTART_FILE_LEN)
		return send_failure(BS_MSG_MOUNTED, bs_fail(&err, -EINVAL, "bad image name"), &err);
	(void)bs_path_of_fd(CONTENT_FD, base);
	(void)snprintf(content, sizeof(content), "%s%s%s", base, lazy ? "/" : "", lazy ? name : "");
	(void)bs_path_of_fd(METADATA_FD, meta);
	/* EROFS reads it block by block: what is not in memory comes in one go before that */
	(void)posix_fadvise(METADATA_FD, 0, META_BYTES, POSIX_FADV_WILLNEED);
	mnt = mount_known(meta, content, lazy || !is_in_memory(CONTENT_FD), bdi, &err);
	if (mnt < 0) {
		(void)bs_error_context(&err, "mount image %.12s", name);
		return send_failure(BS_MSG_MOUNTED, mnt, &err);
	}
	if (!lazy)
		set_readahead(bdi, BS_BDI_WHOLE_KIB);
	if (recorded) /* so that the blocks that are asked for are those that are touched */
		set_readahead(bdi, BS_BDI_EXACT_KIB);
	bs_msg_init(&m, BS_MSG_MOUNTED, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	if (lazy && bdi[0])
		(void)bs_msg_add_text(&m, BS_TAG_NAME, bdi);
	(void)bs_msg_add_fd(&m, mnt);
	return bs_msg_send(SOCKET_FD, &m) < 0;
}

int bs_job_mount_lazy(void *name)
{
	return mount_image(name, true, false);
}

int bs_job_mount_recorded(void *name)
{
	return mount_image(name, true, true);
}

int bs_job_mount_whole(void *name)
{
	return mount_image(name, false, false);
}

int bs_job_warm(void *unused)
{
	(void)unused;
	return bs_warm_run(RECORDS_FD, WARM_MOUNT_FD);
}

static const char *or_null(const char *s)
{
	return s && *s ? s : NULL;
}

int bs_job_credential(const struct bs_conf *conf, const char *host)
{
	const struct bs_auth_options o = {
		.docker_config = or_null(conf->docker_config),
		.dockerconfig_dir = or_null(conf->dockerconfig_dir),
		.provider_config = or_null(conf->provider_config),
		.provider_bin_dir = or_null(conf->provider_bin_dir),
	};
	bs_autofree char *user = NULL, *secret = NULL;
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg m;
	int r = bs_auth_find(&o, host, host, &user, &secret, &err);

	if (r < 0)
		return send_failure(BS_MSG_REPLY, r, &err);
	bs_msg_init(&m, BS_MSG_REPLY, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_text(&m, BS_TAG_USER, user);
	(void)bs_msg_add_text(&m, BS_TAG_SECRET, secret);
	r = bs_msg_send(SOCKET_FD, &m);
	explicit_bzero(secret, strlen(secret));
	return r < 0;
}

/* Beside first, so that what has the name is whole. */
static int unpack_beside(const char *name, const char *beside, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofd int dir = -EBADF;
	size_t len;
	int r = bs_read_file(TREE_FD, TREE_DATA_MAX, &bytes, &len);

	if (r < 0)
		return bs_fail_errno(err, r, "read the tree");
	r = bs_tree_read(bytes, len, &t, err);
	if (r < 0)
		return r;
	r = bs_rmtree(UNPACKED_FD, beside); /* of an attempt that was killed */
	if (r < 0)
		return bs_fail_errno(err, r, "remove '%s'", beside);
	if (mkdirat(UNPACKED_FD, beside, 0700) < 0)
		return bs_fail_errno(err, -errno, "make '%s'", beside);
	dir = openat(UNPACKED_FD, beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return bs_fail_errno(err, -errno, "open '%s'", beside);
	r = bs_unpack(t, CONTENT_FD, dir, err);
	if (r < 0)
		return r;
	if (syncfs(dir) < 0 || renameat(UNPACKED_FD, beside, UNPACKED_FD, name) < 0)
		return bs_fail_errno(err, -errno, "publish '%s'", name);
	return 0;
}

int bs_job_unpack(const char *name)
{
	bs_autofree char *beside = bs_strf("%s.part", name);
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg m;
	int r = -ENOMEM;

	(void)bs_caps_limit(BS_ROLE_UNPACKER);
	if (!bs_path_name_ok(name, strlen(name)) || strlen(name) > 64)
		return send_failure(BS_MSG_MOUNTED, bs_fail(&err, -EINVAL, "bad image name"), &err);
	if (beside)
		r = unpack_beside(name, beside, &err);
	if (r < 0) {
		(void)bs_error_context(&err, "unpack image %.12s", name);
		if (beside)
			(void)bs_rmtree(UNPACKED_FD, beside);
		return send_failure(BS_MSG_MOUNTED, r, &err);
	}
	bs_msg_init(&m, BS_MSG_MOUNTED, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	return bs_msg_send(SOCKET_FD, &m) < 0;
}
