/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "kern/caps.h"
#include "kern/seccomp.h"

static int become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/* Steps 4 to 7, after the role's capabilities are all that is left. */
static int shut(enum bs_role role, bool die_with_parent, pid_t parent, struct bs_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return bs_fail_errno(err, -errno, "set no_new_privs");
	if (die_with_parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
			return bs_fail_errno(err, -errno, "ask to die with the parent");
		if (parent && getppid() != parent)
			return bs_fail(err, -ESRCH, "the parent is gone");
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return bs_fail_errno(err, -errno, "make the process not dumpable");
	return bs_seccomp_apply(role, err);
}

int bs_sandbox_enter_worker(uid_t uid, gid_t gid, pid_t parent, struct bs_error *err)
{
	int r;

	r = bs_caps_bound(BS_ROLE_WORKER);
	if (r < 0)
		return bs_fail_errno(err, r, "empty the bounding set");
	r = become(uid, gid);
	if (r < 0)
		return bs_fail_errno(err, r, "become user %u, group %u", uid, gid);
	r = bs_caps_limit(BS_ROLE_WORKER);
	if (r < 0)
		return bs_fail_errno(err, r, "drop capabilities");
	return shut(BS_ROLE_WORKER, parent != 0, parent, err);
}

int bs_sandbox_enter_warmer(int root, struct bs_error *err)
{
	int r;

	if (fchdir(root) < 0 || chroot(".") < 0)
		return bs_fail_errno(err, -errno, "make the image's mount the root");
	r = bs_caps_bound(BS_ROLE_WARMER);
	if (r < 0)
		return bs_fail_errno(err, r, "empty the bounding set");
	if (setgroups(0, NULL) < 0)
		return bs_fail_errno(err, -errno, "drop the supplementary groups");
	r = bs_caps_limit(BS_ROLE_WARMER);
	if (r < 0)
		return bs_fail_errno(err, r, "drop capabilities");
	return shut(BS_ROLE_WARMER, true, 0, err);
}
