/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Whom the worker becomes, and to whom its part of the cache belongs. */
#ifndef BS_DAEMON_USER_H
#define BS_DAEMON_USER_H

#include <sys/types.h>

struct bs_conf;
struct bs_error;

/* [node] user; when that is empty "bootseer" if there is one, else "nobody". -ENOENT. */
int bs_worker_user(const struct bs_conf *conf, uid_t *ret_uid, gid_t *ret_gid,
		   struct bs_error *err);

#endif
