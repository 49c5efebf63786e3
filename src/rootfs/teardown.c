/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/teardown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "kern/mountfd.h"
#include "kern/mountinfo.h"

bool bs_rootfs_is_ours(const struct bs_mountinfo *m, enum bs_state_kind *ret)
{
	if (!bs_streq(m->fstype, "overlay"))
		return false;
	if (bs_str_after(m->source, BS_ROOTFS_SOURCE))
		*ret = BS_STATE_KEPT;
	else if (bs_str_after(m->source, BS_ROOTFS_SOURCE_OVER))
		*ret = BS_STATE_OVER;
	else
		return false;
	return true;
}

static bool is_there(const char *path)
{
	bs_autofd int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bs_automountinfo m = { 0 };
	enum bs_state_kind kind;
	bool is_root;
	uint64_t id;

	return fd >= 0 && bs_mountinfo_id(fd, &id, &is_root) == 0 && is_root &&
	       bs_mountinfo_find(id, &m) == 0 && bs_streq(m.point, path) &&
	       bs_rootfs_is_ours(&m, &kind) && kind == BS_STATE_OVER;
}

int bs_rootfs_teardown(const struct bs_state *s, struct bs_error *err)
{
	int r;

	if (s->kind != BS_STATE_OVER || !is_there(s->rootfs))
		return 0;
	r = bs_mountfd_detach(s->rootfs);
	return r < 0 ? bs_fail_errno(err, r, "unmount '%s'", s->rootfs) : 0;
}
