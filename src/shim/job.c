/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctl/conf.h"
#include "oci/state.h"
#include "rootfs/ckptdir.h"
#include "rootfs/teardown.h"
#include "shim/acquire.h"
#include "shim/args.h"
#include "shim/runc.h"

#define LOCK_NAME "containers.lock"

int bs_job_open(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a,
		int make, struct bs_job *ret, struct bs_error *err)
{
	bs_autojob j = BS_JOB_INIT;

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
	j = (struct bs_job)BS_JOB_INIT;
	return 0;
}

int bs_job_lock(struct bs_job *j, uint64_t wait_ns)
{
	struct bs_digest d;
	uint64_t at;
	int fd;

	if (j->lock_fd >= 0)
		return 0;
	/* two names with one number would only wait for each other */
	bs_digest_of(j->key, strlen(j->key), &d);
	memcpy(&at, d.b, sizeof(at));
	fd = bs_lock_byte(j->run_fd, LOCK_NAME, at, wait_ns);
	if (fd < 0)
		return fd;
	j->lock_fd = fd;
	return 0;
}

void bs_job_unlock(struct bs_job *j)
{
	j->lock_fd = bs_close(j->lock_fd);
}

void bs_job_done(struct bs_job *j)
{
	bs_job_unlock(j);
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
	r = bs_ckptdir_detach(j->run_fd, j->key, &err);
	if (r < 0) {
		bs_log_warning("container '%s': %s; delete it again to retry", s->id,
			       bs_error_text(&err));
		return;
	}
	if (s->lease && s->lease[0]) {
		r = bs_release(conf, s->lease, &err);
		/* a bootseerd that is not there holds nothing for us */
		if (r < 0 && r != -ENOTCONN)
			bs_log_warning("container '%s': release what it had: %s, continuing", s->id,
				       bs_error_text(&err));
	}
	r = bs_state_remove(j->state_fd, j->key);
	if (r < 0)
		bs_log_warning("container '%s': remove its state file: errno %d, continuing", s->id,
			       -r);
}
