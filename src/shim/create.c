/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/create.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "obs/timeline.h"
#include "oci/annot.h"
#include "oci/bundle.h"
#include "oci/ckptask.h"
#include "oci/config.h"
#include "oci/edit.h"
#include "oci/look.h"
#include "oci/state.h"
#include "oci/workload.h"
#include "rootfs/assemble.h"
#include "rootfs/layers.h"
#include "rootfs/teardown.h"
#include "shim/acquire.h"
#include "shim/args.h"
#include "shim/ckpts.h"
#include "shim/job.h"
#include "shim/passthrough.h"
#include "shim/report.h"
#include "shim/runc.h"

#define LOCK_WAIT_NS (10 * BS_NS_PER_S) /* for another that creates or deletes it */

struct create {
	const struct bs_conf *conf;
	const struct bs_runc *runc;
	const struct bs_args *args;
	uint64_t start_ns;
	struct bs_bundle bundle;
	char *text; /* config.json as it is */
	size_t len;
	struct bs_config config;
	struct bs_annot annot;
	struct bs_ckptasks ckpts;
	char *rootfs; /* resolved */
	char *marker; /* NULL: none */
	size_t marker_len;
	struct bs_job job;
	struct bs_want want;
	struct bs_rootfs *plan;
	struct bs_state state;
	struct bs_timeline timeline;
};

static void done(struct create *c)
{
	bs_bundle_done(&c->bundle);
	free(c->text);
	bs_config_done(&c->config);
	bs_ckptasks_done(&c->ckpts);
	free(c->rootfs);
	free(c->marker);
	bs_job_done(&c->job);
	bs_want_done(&c->want);
	(void)bs_rootfs_free(c->plan);
	bs_state_done(&c->state);
	bs_timeline_done(&c->timeline);
}

/* --- is there anything to do? ------------------------------------------------------------- */

/* The rootfs as the runtime will find it: relative to the bundle; NULL when it is not there. */
static char *resolve_root(const struct create *c, const char *path)
{
	bs_autofree char *joined = path[0] == '/' ? strdup(path)
						  : bs_strf("%s/%s", c->bundle.path, path);

	return joined ? realpath(joined, NULL) : NULL;
}

/* 1: the rootfs has a marker (in *ret), 0: not, or an error. */
static int read_marker(const char *rootfs, char **ret, size_t *ret_len, struct bs_error *err)
{
	bs_autofd int fd = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return 0;
	r = bs_layer_marker(fd, ret, ret_len, err);
	return r == -ENOENT ? 0 : r < 0 ? bs_error_context(err, "rootfs '%s'", rootfs), r : 1;
}

/* 1: something is there for us, 0: not, or an error. Whatever the runtime may read counts. */
static int look(const struct create *c, struct bs_error *err)
{
	struct bs_look l;
	int r = bs_look(c->text, c->len, &l);

	if (r < 0)
		return bs_fail(err, r, "look at config.json: out of memory");
	r = (l.annotation && c->conf->allow_annotations) || l.too_many;
	for (size_t i = 0; r == 0 && i < l.roots.n; i++) {
		bs_autofree char *rootfs = resolve_root(c, l.roots.v[i]), *marker = NULL;
		size_t len;

		r = rootfs ? read_marker(rootfs, &marker, &len, err) : 0;
	}
	bs_look_done(&l);
	return r;
}

static bool open_config(struct create *c)
{
	struct bs_error err = BS_ERROR_INIT;

	/* whatever is wrong with them, the runtime says it in its own words */
	return bs_bundle_open(c->args->bundle, c->args->config, &c->bundle, &err) == 0 &&
	       bs_bundle_read(&c->bundle, &c->text, &c->len, &err) == 0;
}

/* --- reading it properly ---------------------------------------------------------------------- */

static int read_annotations(struct create *c, struct bs_error *err)
{
	bs_autostrv unknown = { 0 };
	int r;

	c->want.fallback = c->conf->fallback;
	if (!c->conf->allow_annotations || bs_annot_is_sandbox(c->config.annotations))
		return 0;
	r = bs_annot_read(c->config.annotations, &c->annot, &unknown, err);
	for (size_t i = 0; r == 0 && i < unknown.n; i++)
		bs_log_warning("annotation '%s' is unknown, ignoring it; see "
			       "bootseer-annotations(7)",
			       unknown.v[i]);
	if (r == 0)
		r = bs_ckptasks_read(c->config.annotations, &c->ckpts, err);
	if (r == 0 && c->annot.fallback)
		(void)bs_fallback_parse(c->annot.fallback, &c->want.fallback);
	/* a pod may be stricter than its host, not laxer */
	if (c->conf->fallback == BS_FALLBACK_FAIL)
		c->want.fallback = BS_FALLBACK_FAIL;
	return r;
}

/* What the start is called, and whether it may be recorded. */
static void read_workload(struct create *c)
{
	const struct bs_conf *conf = c->conf;
	const struct bs_json *process = bs_json_get(c->config.doc, "process");
	const char *asked = c->annot.record;

	c->want.record = conf->record == BS_RECORD_AUTO	       ? !asked || bs_streq(asked, "yes")
			 : conf->record == BS_RECORD_ANNOTATED ? asked && bs_streq(asked, "yes")
							       : false;
	if (!conf->prefetch && !c->want.record)
		return;
	if (c->annot.workload)
		(void)snprintf(c->want.workload, sizeof(c->want.workload), "%s", c->annot.workload);
	else
		bs_workload_of_args(bs_json_get(process, "args"), c->want.workload,
				    sizeof(c->want.workload));
}

/* Whether only what is read, and what is hot, is fetched. */
static void read_background(struct create *c)
{
	const char *asked = c->annot.background;

	c->want.hot_only = asked ? bs_streq(asked, "hot-only")
				 : bs_conf_is_hot_only(c->conf, &c->want.sources);
}

static bool has_image(const struct create *c)
{
	return c->marker || c->annot.image;
}

/* 1: we act, 0: not after all, or an error. */
static int read_all(struct create *c, struct bs_error *err)
{
	int r = bs_config_parse(c->text, c->len, &c->config, err);

	if (r < 0)
		return r;
	c->rootfs = resolve_root(c, c->config.root_path);
	if (!c->rootfs)
		return 0; /* the runtime's to tell */
	r = read_marker(c->rootfs, &c->marker, &c->marker_len, err);
	if (r >= 0)
		r = read_annotations(c, err);
	if (r < 0)
		return r;
	return has_image(c) || c->ckpts.n > 0 ? 1 : 0;
}

/* --- acting ---------------------------------------------------------------------------------- */

static int set(char **at, const char *text)
{
	*at = strdup(text);
	return *at ? 0 : -ENOMEM;
}

static int write_state(struct create *c, struct bs_error *err)
{
	bs_autofree char *layer = bs_strf("bootseer:%s", c->plan ? c->want.digest : "");
	struct bs_state *s = &c->state;
	int r;

	bs_state_done(s);
	if (!layer || set(&s->id, c->args->id) < 0 ||
	    set(&s->root, bs_runc_root(c->runc, c->args)) < 0 ||
	    set(&s->bundle, c->bundle.path) < 0 || set(&s->rootfs, c->rootfs) < 0 ||
	    set(&s->digest, c->plan ? c->want.digest : "") < 0 || set(&s->lease, c->job.key) < 0)
		return bs_fail(err, -ENOMEM, "container '%s': out of memory", c->args->id);
	s->kind = BS_STATE_NONE;
	r = c->plan ? bs_rootfs_describe(c->plan, layer, NULL, s, err) : 0;
	return r < 0 ? r : bs_state_write(c->job.state_fd, c->job.key, s, err);
}

/* What an earlier container of that name left, when its runtime no longer knows it. */
static void clear_stale(struct create *c)
{
	bs_autostate old = { 0 };

	if (bs_state_read(c->job.state_fd, c->job.key, &old, NULL) == 0) {
		bs_log_info("container '%s' was never deleted, cleaning up after it", c->args->id);
		bs_job_clean(&c->job, c->conf, &old);
	}
}

static void begin(struct create *c)
{
	clear_stale(c);
	bs_timeline_begin(&c->timeline, c->job.run_fd, c->args->id, "bootseer");
	bs_timeline_span(&c->timeline, BS_SPAN_CONFIG, c->start_ns, c->len, NULL);
}

static int prepare(struct create *c, struct bs_error *err)
{
	const struct bs_rootfs_request q = { .path = c->rootfs,
					     .marker = c->marker,
					     .marker_len = c->marker_len,
					     .readonly = c->config.root_readonly,
					     .run_dir = c->conf->run_dir };
	int r;

	r = bs_want_resolve(c->conf, c->marker, c->marker_len, c->annot.image,
			    c->config.annotations, &c->want, err);
	if (r == 0)
		r = bs_rootfs_plan(&q, &c->plan, err);
	if (r < 0)
		return r;
	read_workload(c);
	read_background(c);
	c->want.lease = c->job.key;
	c->want.timeline = c->args->id;
	return 0;
}

/*
 * Which image a tag means: what it means now, at each start. But an overlay of ours that the
 * engine kept has its image already.
 */
static int find_image(struct create *c, struct bs_error *err)
{
	const char *in_place = bs_rootfs_image(c->plan);

	if (c->want.digest)
		return 0;
	if (!in_place)
		return bs_want_find(c->conf, &c->want, c->annot.image, &c->timeline, err);
	c->want.digest = strdup(in_place);
	return c->want.digest ? 0
			      : bs_fail(err, -ENOMEM, "container '%s': out of memory", c->args->id);
}

/* A signal must not leave the rootfs half way. */
static int swap(struct create *c, int image, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &old);
	r = bs_rootfs_swap(c->plan, c->want.digest, image, -EBADF, err);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	bs_timeline_span(&c->timeline, BS_SPAN_SWAP, start, 0, NULL);
	return r;
}

static int rewrite_config(struct create *c, struct bs_error *err)
{
	bs_autobuf out = BS_BUF_INIT(2 * BS_CONFIG_BYTES_MAX);
	int r = c->plan ? bs_edit_annotation(&c->config, BS_ANNOT_SERVED, c->want.digest, err) : 0;

	if (r == 0)
		r = bs_config_write(&c->config, &out, err);
	if (r == 0)
		r = bs_bundle_write(&c->bundle, bs_buf_str(&out), out.len, err);
	return r;
}

static void take_back(struct create *c)
{
	struct bs_error err = BS_ERROR_INIT;

	if (c->plan && bs_rootfs_undo(c->plan, &err) < 0)
		bs_log_warning("container '%s': %s", c->args->id, bs_error_text(&err));
	bs_job_clean(&c->job, c->conf, &c->state);
}

static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	bool empty = true;

	while (dir && empty && (e = readdir(dir)))
		empty = bs_streq(e->d_name, ".") || bs_streq(e->d_name, "..");
	if (dir)
		(void)closedir(dir);
	return empty;
}

/*
 * The one place that decides for a plain start although an image was asked for: the
 * rootfs is complete by itself (no stub), and nobody wants a failure instead.
 */
static bool may_start_plain(const struct create *c)
{
	return !c->marker && c->want.fallback != BS_FALLBACK_FAIL && !is_empty(c->rootfs);
}

/* 0: the start is a plain one, or the error. */
static int plain_start(struct create *c, int r, struct bs_error *err)
{
	if (!may_start_plain(c))
		return r;
	bs_timeline_mark(&c->timeline, BS_MARK_FALLBACK, bs_clock_ns(), bs_error_text(err));
	bs_log_warning("image %s is not served (%s): starting from the rootfs as it is",
		       c->want.digest ? c->want.digest : c->annot.image, bs_error_text(err));
	c->plan = bs_rootfs_free(c->plan);
	return 0;
}

/* 1: the image is in place, 0: the start is a plain one, or an error. */
static int put_image(struct create *c, struct bs_error *err)
{
	bs_autofd int image = -EBADF;
	int r = find_image(c, err);

	if (r < 0)
		return plain_start(c, r, err);
	r = write_state(c, err);
	if (r < 0)
		return r;
	image = bs_acquire(c->conf, &c->want, &c->timeline, err);
	r = image < 0 ? image : swap(c, image, err);
	if (r == 0)
		r = rewrite_config(c, err);
	if (r == 0)
		return 1;
	take_back(c);
	return plain_start(c, r, err);
}

/* 1: the container has mounts of checkpoints, 0: not, or an error. */
static int put_checkpoints(struct create *c, struct bs_error *err)
{
	const struct bs_ckpts_request q = { .conf = c->conf,
					    .asks = &c->ckpts,
					    .job = &c->job,
					    .id = c->args->id,
					    .timeline = &c->timeline };
	int r = c->plan ? 0 : write_state(c, err), n = 0;

	if (r == 0)
		r = n = bs_ckpts_attach(&q, &c->config, err);
	if (r >= 0)
		r = rewrite_config(c, err);
	if (r == 0 && (n > 0 || c->plan))
		return n > 0;
	take_back(c);
	return r;
}

/* Whether the container outlives the runtime's command. */
static bool stays(const struct create *c)
{
	return c->args->command == BS_COMMAND_CREATE || c->args->detach || c->args->keep;
}

static int run_runtime(struct create *c, int *ret_status, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	int r;

	bs_timeline_span(&c->timeline, BS_SPAN_CREATE, c->start_ns, 0, NULL);
	if (!stays(c)) /* the runtime's command lasts as long as the container, which may be deleted */
		bs_job_unlock(&c->job);
	r = bs_runc_run(c->runc, c->args, ret_status, err);
	if (r < 0) {
		take_back(c);
		return r;
	}
	bs_timeline_span(&c->timeline, BS_SPAN_RUNTIME, start, 0, NULL);
	if (stays(c) && c->ckpts.n > 0) /* the container has its own now */
		bs_ckpts_detach(&c->job);
	if (WIFEXITED(*ret_status) && WEXITSTATUS(*ret_status) == 0 && stays(c))
		return 0;
	if (bs_runc_knows(c->runc, c->args, c->args->id) ||
	    bs_job_lock(&c->job, LOCK_WAIT_NS) < 0 || bs_runc_knows(c->runc, c->args, c->args->id))
		return 0; /* delete will come */
	if (stays(c))
		take_back(c);
	else
		bs_job_clean(&c->job, c->conf, &c->state);
	return 0;
}

static int lock(struct create *c, struct bs_error *err)
{
	int r = bs_job_lock(&c->job, LOCK_WAIT_NS);

	if (r == -ETIMEDOUT)
		return bs_fail(err, -EEXIST, "container '%s' is being created by another process",
			       c->args->id);
	return r < 0 ? bs_fail_errno(err, r, "lock container '%s' in '%s'", c->args->id,
				     c->conf->run_dir)
		     : 0;
}

static int act(struct create *c)
{
	struct bs_error err = BS_ERROR_INIT;
	int status, r;

	r = bs_job_open(c->conf, c->runc, c->args, true, &c->job, &err);
	if (r == 0)
		r = lock(c, &err);
	if (r < 0)
		return bs_report_failure(&err);
	/* the runtime refuses the name, and the one that has it must come to no harm */
	if (bs_runc_knows(c->runc, c->args, c->args->id))
		return bs_passthrough(c->runc, c->args);
	begin(c);
	if (has_image(c)) {
		r = prepare(c, &err);
		if (r == 0)
			r = put_image(c, &err);
	}
	if (r >= 0 && c->ckpts.n > 0) {
		const int n = put_checkpoints(c, &err);

		r = n < 0 || n > 0 ? n : r;
	}
	if (r < 0)
		return bs_report_failure(&err);
	if (r == 0)
		return bs_passthrough(c->runc, c->args);
	if (run_runtime(c, &status, &err) < 0)
		return bs_report_failure(&err);
	bs_runc_end_as(status);
}

int bs_create(const struct bs_conf *conf, const struct bs_runc *runc, const struct bs_args *a)
{
	struct create c = { .conf = conf,
			    .runc = runc,
			    .args = a,
			    .start_ns = bs_clock_ns(),
			    .bundle.fd = -EBADF,
			    .job = BS_JOB_INIT,
			    .timeline = BS_TIMELINE_NONE };
	struct bs_error err = BS_ERROR_INIT;
	int r = 0;

	if (a->id && !a->help && open_config(&c))
		r = look(&c, &err);
	if (r > 0)
		r = read_all(&c, &err);
	/* from the stub alone it would start without its files */
	if (r > 0 && !bs_args_id_ok(a->id))
		r = bs_fail(&err, -EINVAL,
			    "container ID '%.64s': with a converted image or a checkpoint mount it "
			    "may have at most %d "
			    "of A-Z a-z 0-9 _ + , - .",
			    a->id, BS_ARGS_ID_MAX);
	if (r < 0)
		r = bs_report_failure(&err);
	else
		r = r == 0 ? bs_passthrough(runc, a) : act(&c);
	done(&c);
	return r;
}
