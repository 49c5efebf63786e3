/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * An image's /etc/passwd and /etc/group, to find out who "User" of its config is, as
 * runc's libcontainer/user does: "name", "uid", "name:group", "uid:gid", "".
 */
#ifndef BS_IMAGE_USERDB_H
#define BS_IMAGE_USERDB_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_error;

#define BS_USERDB_MAX (1u << 20) /* bytes of either file that are looked at */
#define BS_USERDB_GROUPS_MAX 1024u

struct bs_user {
	uint32_t uid, gid;
	uint32_t *groups; /* additional ones, ascending; owned */
	size_t n_groups;
	char *home; /* "/" when none is known; owned */
};

void bs_user_done(struct bs_user *u);

/* passwd and group are texts with a NUL behind, "" when absent. -ENOENT names who is not there. */
int bs_userdb_find(const char *passwd, const char *group, const char *spec, struct bs_user *ret,
		   struct bs_error *err);

#endif
