/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/jobs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "kern/erofs.h"
#include "net/auth.h"

#define SOCKET_FD 3
#define METADATA_FD 4
#define CONTENT_FD 5

static int send_failure(enum bs_msg_type type, int result, const struct bs_error *err)
{
	bs_automsg m;

	bs_msg_init(&m, type, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, (uint64_t)-result);
	(void)bs_msg_add_text(&m, BS_TAG_TEXT, bs_error_text(err));
	(void)bs_msg_send(SOCKET_FD, &m);
	return 1;
}

static int mount_image(const char *name, bool lazy)
{
	struct bs_error err = BS_ERROR_INIT;
	char meta[32], base[32], content[32 + 72];
	bs_autofd int mnt = -EBADF;
	bs_automsg m;

	if (!bs_path_name_ok(name, strlen(name)) || strlen(name) > 64)
		return send_failure(BS_MSG_MOUNTED, bs_fail(&err, -EINVAL, "bad image name"), &err);
	(void)bs_path_of_fd(CONTENT_FD, base);
	(void)snprintf(content, sizeof(content), "%s%s%s", base, lazy ? "/" : "",
		       lazy ? name : "");
	mnt = bs_erofs_mount(bs_path_of_fd(METADATA_FD, meta), content, lazy, &err);
	if (mnt < 0) {
		(void)bs_error_context(&err, "mount image %.12s", name);
		return send_failure(BS_MSG_MOUNTED, mnt, &err);
	}
	bs_msg_init(&m, BS_MSG_MOUNTED, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_fd(&m, mnt);
	return bs_msg_send(SOCKET_FD, &m) < 0;
}

int bs_job_mount_lazy(void *name)
{
	return mount_image(name, true);
}

int bs_job_mount_whole(void *name)
{
	return mount_image(name, false);
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
