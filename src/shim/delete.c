/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/delete.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "obs/timeline.h"
#include "oci/state.h"
#include "shim/args.h"
#include "shim/job.h"
#include "shim/passthrough.h"
#include "shim/report.h"
#include "shim/runc.h"

#define LOCK_WAIT_NS (5 * BS_NS_PER_S)

static void clean(const struct bs_job *j, const struct bs_conf *conf, const char *id)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autostate s = { 0 };
	int r = bs_state_read(j->state_fd, j->key, &s, &err);

	if (r == 0)
		bs_job_clean(j, conf, &s);
	else if (r != -ENOENT) {
		/* of no use to anybody, and in the way of the next container of that name */
		bs_log_warning("container '%s': %s; removing it", id, bs_error_text(&err));
		(void)bs_state_remove(j->state_fd, j->key);
	}
}

/* "ID@HHHHHHHH.json" with the mark of key: the ID, malloc'ed; else NULL. */
static char *id_of(const char *name, const char *key)
{
	bs_autofree char *suffix = bs_strf("%s.json", strrchr(key, '@'));
	size_t n = strlen(name), m = suffix ? strlen(suffix) : 0;

	if (m == 0 || n <= m || !bs_str_ends(name, suffix))
		return NULL;
	return strndup(name, n - m);
}

/* After crun's delete --regex: all containers of this runtime that are gone. */
static void clean_gone(const struct bs_job *j, const struct bs_conf *conf, const struct bs_runc *r,
		       const struct bs_args *a)
{
	DIR *dir = bs_opendir_at(j->state_fd, ".");
	const struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		bs_autofree char *id = id_of(e->d_name, j->key);
		struct bs_job one = { j->run_fd, j->state_fd, -EBADF, NULL };

		if (!id || bs_runc_knows(r, a, id))
			continue;
		one.key = bs_strf("%s%s", id, strrchr(j->key, '@'));
		if (one.key && bs_job_lock(&one, 0) == 0 && !bs_runc_knows(r, a, id))
			clean(&one, conf, id);
		bs_job_unlock(&one);
		free(one.key);
	}
	(void)closedir(dir);
}

static bool has_state(const struct bs_job *j)
{
	bs_autofree char *name = bs_strf("%s.json", j->key);

	/* when in doubt, yes: it costs little */
	return !name || faccessat(j->state_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

/*
 * The runtime does not know it, and nobody is at it: what a create that still goes on has
 * put in place is for that one to take back, or its container's.
 */
static bool is_ours_to_clean(struct bs_job *j, const struct bs_runc *r, const struct bs_args *a)
{
	int e;

	if (bs_runc_knows(r, a, a->id))
		return false;
	e = bs_job_lock(j, LOCK_WAIT_NS);
	if (e == -ETIMEDOUT) {
		bs_log_warning("container '%s' is being created by another process: what that has "
			       "put in place is left to it",
			       a->id);
		return false;
	}
	/* a full or read-only run directory must not keep mounts in place */
	return !bs_runc_knows(r, a, a->id);
}

int bs_delete(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a)
{
	struct bs_timeline t = BS_TIMELINE_NONE;
	struct bs_error err = BS_ERROR_INIT;
	bs_autojob j = BS_JOB_INIT;
	const uint64_t start = bs_clock_ns();
	int status;

	if (!a->id || a->help || (!a->regex && !bs_args_id_ok(a->id)) ||
	    bs_job_open(conf, r, a, false, &j, &err) < 0)
		return bs_passthrough(r, a);
	if (!a->regex && !has_state(&j))
		return bs_passthrough(r, a);
	if (bs_runc_run(r, a, &status, &err) < 0)
		return bs_report_failure(&err);
	if (a->regex) {
		clean_gone(&j, conf, r, a);
	} else if (is_ours_to_clean(&j, r, a)) {
		bs_timeline_open(&t, j.run_fd, a->id, "bootseer");
		clean(&j, conf, a->id);
		bs_timeline_span(&t, BS_SPAN_DELETE, start, 0, NULL);
		bs_timeline_done(&t);
	}
	bs_runc_end_as(status);
}
