/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/caps.h"

#include <errno.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"

static const struct {
	enum bs_role role;
	cap_value_t cap;
} table[] = {
	/* fsopen, fsmount, move_mount, loop devices; entering pid 1's mount namespace */
	{ BS_ROLE_SUPERVISOR, CAP_SYS_ADMIN },
	{ BS_ROLE_SUPERVISOR, CAP_SYS_CHROOT }, /* setns of a mount namespace wants it too */
	/* the worker becomes another user, whose processes we must be able to end */
	{ BS_ROLE_SUPERVISOR, CAP_SETUID },
	{ BS_ROLE_SUPERVISOR, CAP_SETGID },
	{ BS_ROLE_SUPERVISOR, CAP_SETPCAP },
	{ BS_ROLE_SUPERVISOR, CAP_KILL },
	/* the cache is the worker's, layouts of policy's directories are anybody's */
	{ BS_ROLE_SUPERVISOR, CAP_CHOWN },
	{ BS_ROLE_SUPERVISOR, CAP_DAC_OVERRIDE },
	/* the warmer, a fork, keeps it; it is a part of the one before */
	{ BS_ROLE_SUPERVISOR, CAP_DAC_READ_SEARCH },
	/* the keeper starts supervisors: what they need must still be there */
	{ BS_ROLE_KEEPER, CAP_SYS_ADMIN },
	{ BS_ROLE_KEEPER, CAP_SYS_CHROOT },
	{ BS_ROLE_KEEPER, CAP_SETUID },
	{ BS_ROLE_KEEPER, CAP_SETGID },
	{ BS_ROLE_KEEPER, CAP_SETPCAP },
	{ BS_ROLE_KEEPER, CAP_KILL },
	{ BS_ROLE_KEEPER, CAP_CHOWN },
	{ BS_ROLE_KEEPER, CAP_DAC_OVERRIDE },
	{ BS_ROLE_KEEPER, CAP_DAC_READ_SEARCH },
	/* files of any owner, with set-user-ID bits and capabilities; devices */
	{ BS_ROLE_UNPACKER, CAP_CHOWN },
	{ BS_ROLE_UNPACKER, CAP_DAC_OVERRIDE },
	{ BS_ROLE_UNPACKER, CAP_FOWNER },
	{ BS_ROLE_UNPACKER, CAP_FSETID },
	{ BS_ROLE_UNPACKER, CAP_MKNOD },
	{ BS_ROLE_UNPACKER, CAP_SETFCAP },
	{ BS_ROLE_UNPACKER, CAP_SYS_ADMIN }, /* trusted.* attributes */
	/* files of any owner, whatever their mode, in the mount that is its root */
	{ BS_ROLE_WARMER, CAP_DAC_READ_SEARCH },
	/* the worker keeps none */
};

uint64_t bs_caps_of(enum bs_role role)
{
	uint64_t set = 0;

	for (size_t i = 0; i < BS_ARRAY_LEN(table); i++) {
		if (table[i].role == role)
			set |= UINT64_C(1) << table[i].cap;
	}
	return set;
}

int bs_caps_bound(enum bs_role role)
{
	uint64_t keep = bs_caps_of(role);

	if (role == BS_ROLE_SUPERVISOR)
		keep |= bs_caps_of(BS_ROLE_UNPACKER);
	for (cap_value_t c = 0; CAP_IS_SUPPORTED(c); c++) {
		if (!(keep >> c & 1) && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

int bs_caps_limit(enum bs_role role)
{
	const uint64_t keep = bs_caps_of(role);
	cap_t now = cap_get_proc(), want = cap_init();
	int r = 0;

	if (!now || !want)
		r = -ENOMEM;
	for (cap_value_t c = 0; r == 0 && CAP_IS_SUPPORTED(c); c++) {
		cap_flag_value_t have = CAP_CLEAR;

		(void)cap_get_flag(now, c, CAP_PERMITTED, &have);
		if (keep >> c & 1 && have == CAP_SET) {
			(void)cap_set_flag(want, CAP_PERMITTED, 1, &c, CAP_SET);
			(void)cap_set_flag(want, CAP_EFFECTIVE, 1, &c, CAP_SET);
		}
	}
	if (r == 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && cap_set_proc(want) < 0)
		r = -errno;
	(void)cap_free(now);
	(void)cap_free(want);
	return r;
}
