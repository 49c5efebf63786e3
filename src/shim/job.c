/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctl/conf.h"
#include "oci/state.h"
#include "rootfs/teardown.h"
#include "shim/acquire.h"
#include "shim/args.h"
#include "shim/runc.h"

int bs_job_open(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a,
		int make, struct bs_job *ret, struct bs_error *err)
{
	bs_autojob j = { .run_fd = -EBADF, .state_fd = -EBADF };

	j.run_fd = make ? bs_mkdir_open(AT_FDCWD, conf->run_dir, 0700)
			: open(conf->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j.run_fd < 0 && !make)
		return -ENOENT;
	if (j.run_fd < 0)
		return bs_fail_errno(err, j.run_fd, "make run directory '%s'", conf->run_dir);
	j.state_fd = make ? bs_mkdir_open(j.run_fd, "state", 0700)
			  : openat(j.run_fd, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j.state_fd < 0 && !make)
		return -ENOENT;
	if (j.state_fd < 0)
		return bs_fail_errno(err, j.state_fd, "make '%s/state'", conf->run_dir);
	j.key = bs_state_key(a->id, bs_runc_root(r, a));
	if (!j.key)
		return bs_fail(err, -ENOMEM, "container '%s': out of memory", a->id);
	*ret = j;
	j = (struct bs_job){ .run_fd = -EBADF, .state_fd = -EBADF };
	return 0;
}

void bs_job_done(struct bs_job *j)
{
	j->run_fd = bs_close(j->run_fd);
	j->state_fd = bs_close(j->state_fd);
	free(bs_take(&j->key));
}

void bs_job_clean(const struct bs_job *j, const struct bs_conf *conf, const struct bs_state *s)
{
	struct bs_error err = BS_ERROR_INIT;
	int r = bs_rootfs_teardown(s, &err);

	if (r < 0) {
		bs_log_warning("container '%s': %s; delete it again to retry", s->id,
			       bs_error_text(&err));
		return;
	}
	if (s->lease && s->lease[0]) {
		r = bs_release(conf, s->lease, &err);
		/* a bootseerd that is not there holds nothing for us */
		if (r < 0 && r != -ENOTCONN)
			bs_log_warning("container '%s': release its image: %s, continuing", s->id,
				       bs_error_text(&err));
	}
	r = bs_state_remove(j->state_fd, j->key);
	if (r < 0)
		bs_log_warning("container '%s': remove its state file: errno %d, continuing", s->id,
			       -r);
}
