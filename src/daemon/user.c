/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/user.h"

#include <errno.h>
#include <pwd.h>

#include "base/error.h"
#include "ctl/conf.h"

int bs_worker_user(const struct bs_conf *conf, uid_t *ret_uid, gid_t *ret_gid, struct bs_error *err)
{
	const char *name = conf->user && *conf->user ? conf->user : "bootseer";
	const struct passwd *pw = getpwnam(name);

	if (!pw && name != conf->user)
		pw = getpwnam("nobody");
	if (!pw)
		return bs_fail(err, -ENOENT, "user '%s' ([node] user) does not exist", name);
	if (pw->pw_uid == 0)
		return bs_fail(err, -EINVAL, "user '%s' ([node] user) is root", name);
	*ret_uid = pw->pw_uid;
	*ret_gid = pw->pw_gid;
	return 0;
}
