/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/ckpts.h"

#include <errno.h>
#include <inttypes.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "ctl/client.h"
#include "ctl/conf.h"
#include "obs/timeline.h"
#include "oci/ckptask.h"
#include "oci/config.h"
#include "oci/edit.h"
#include "rootfs/ckptdir.h"
#include "shim/acquire.h"
#include "shim/job.h"

#define OPTIONS_MAX 16384u
#define REPLY_GRACE_NS (15 * BS_NS_PER_S) /* over what the mount may take */
#define SLOW_NS (5 * BS_NS_PER_S)
#define RECONNECTS_MAX 3

/* --- options -------------------------------------------------------------------------------- */

/* What a container's ID is on the host; without a mapping of its own the same. */
static uint64_t host_id(const struct bs_json *linux_, const char *mappings, uint64_t id)
{
	const struct bs_json *list = bs_json_get(linux_, mappings);

	for (size_t i = 0; i < bs_json_n(list); i++) {
		const struct bs_json *m = bs_json_at(list, i);
		uint64_t in, out, n;

		if (bs_json_u64(bs_json_get(m, "containerID"), &in) == 0 &&
		    bs_json_u64(bs_json_get(m, "hostID"), &out) == 0 &&
		    bs_json_u64(bs_json_get(m, "size"), &n) == 0 && id >= in && id - in < n)
			return out + (id - in);
	}
	return id;
}

/*
 * To HDFS all that the container does is the mount's user's doing. Where its process is not
 * the host's root, the files are shown as its own, for else the kernel would refuse what
 * HDFS allows.
 */
static void add_owner(struct bs_buf *b, const struct bs_json *doc)
{
	const struct bs_json *linux_ = bs_json_get(doc, "linux");
	const struct bs_json *user = bs_json_find(doc, "process.user");
	uint64_t uid = 0, gid = 0;

	(void)bs_json_u64(bs_json_get(user, "uid"), &uid);
	(void)bs_json_u64(bs_json_get(user, "gid"), &gid);
	uid = host_id(linux_, "uidMappings", uid);
	gid = host_id(linux_, "gidMappings", gid);
	if (uid != 0 && uid < UINT32_MAX && gid < UINT32_MAX)
		(void)bs_buf_addf(b, ",uid=%" PRIu64 ",gid=%" PRIu64, uid, gid);
}

static int make_options(const struct bs_conf *conf, const struct bs_ckptask *a,
			const struct bs_json *doc, struct bs_buf *b)
{
	const char *user = a->user ? a->user : conf->ckpt_user;

	for (size_t i = 0; i < conf->ckpt_options.n; i++)
		(void)bs_buf_addf(b, "%s,", conf->ckpt_options.v[i]);
	(void)bs_buf_adds(b, a->writable ? "rw" : "ro");
	if (user[0])
		(void)bs_buf_addf(b, ",user=%s", user);
	if (a->layout)
		(void)bs_buf_addf(b, ",layout=%s", a->layout);
	if (a->unit)
		(void)bs_buf_addf(b, ",unit=%" PRIu64, a->unit);
	if (a->files)
		(void)bs_buf_addf(b, ",files=%" PRIu64, a->files);
	add_owner(b, doc);
	return b->error;
}

/* --- getting one ---------------------------------------------------------------------------- */

static void say_waiting(void *cookie)
{
	bs_log_warning("waiting for '%s'", (const char *)cookie);
}

static int ask(int sock, const struct bs_ckpts_request *q, const struct bs_ckptask *a,
	       const char *options, struct bs_error *err)
{
	const struct bs_client_slow slow = { SLOW_NS, say_waiting, (void *)(uintptr_t)a->source };
	bs_automsg m, reply;
	int r;

	bs_msg_init(&m, BS_MSG_CKPT_MOUNT, 1);
	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	if (bs_msg_add_text(&m, BS_TAG_CONTAINER, q->job->key) < 0 ||
	    bs_msg_add_text(&m, BS_TAG_SOURCE, a->source) < 0 ||
	    bs_msg_add_text(&m, BS_TAG_OPTIONS, options) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_READ_ONLY, !a->writable) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_WAIT_NS, q->conf->ckpt_mount_wait_ns) < 0 ||
	    bs_msg_add_text(&m, BS_TAG_TIMELINE, q->id) < 0)
		return bs_fail(err, -E2BIG, "there are too many options");
	r = bs_client_call_slow(sock, &m, q->conf->ckpt_mount_wait_ns + REPLY_GRACE_NS, &slow,
				&reply, err);
	if (r < 0)
		return r;
	r = bs_msg_take_fd(&reply, 0);
	return r < 0 ? bs_fail(err, -EPROTO, "bootseerd sent no mount") : r;
}

static int get(const struct bs_ckpts_request *q, const struct bs_ckptask *a,
	       const struct bs_json *doc, struct bs_error *err)
{
	bs_autobuf options = BS_BUF_INIT(OPTIONS_MAX);
	int r = make_options(q->conf, a, doc, &options);

	if (r < 0)
		return bs_fail_errno(err, r, "put the options together");
	for (int tries = 0;; tries++) {
		bs_autofd int sock = bs_connect(q->conf, q->timeline, err);

		r = sock < 0 ? sock : ask(sock, q, a, bs_buf_str(&options), err);
		/* one that is replaced takes our request with it */
		if (r != -ECONNRESET || tries == RECONNECTS_MAX)
			return r;
	}
}

static int attach_one(const struct bs_ckpts_request *q, unsigned int n, const struct bs_ckptask *a,
		      struct bs_config *config, struct bs_error *err)
{
	const struct bs_conf_ckpt wanted = { a->source, a->target, a->user, a->writable };
	bs_autofree char *source = bs_strf("%s/" BS_CKPTDIR "/%s/%u", q->conf->run_dir, q->job->key,
					   n);
	bs_autofd int mnt = -EBADF;
	int r = bs_conf_allows_ckpt(q->conf, &wanted, err);

	if (r < 0)
		return r;
	if (!source)
		return bs_fail(err, -ENOMEM, "out of memory");
	mnt = get(q, a, config->doc, err);
	if (mnt < 0)
		return mnt;
	r = bs_ckptdir_attach(q->job->run_fd, q->job->key, n, mnt, err);
	return r < 0 ? r : bs_edit_bind(config, source, a->target, a->writable, err);
}

static bool is_required(const struct bs_conf *conf, const struct bs_ckptask *a)
{
	return a->need == BS_CKPTASK_HOST ? conf->ckpt_required : a->need == BS_CKPTASK_REQUIRED;
}

int bs_ckpts_attach(const struct bs_ckpts_request *q, struct bs_config *config,
		    struct bs_error *err)
{
	bs_autofree char *dir = bs_strf("%s/" BS_CKPTDIR, q->conf->run_dir);
	int n = 0;

	if (!dir)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_edit_unbind(config, dir); /* of an earlier start from the same bundle */
	for (size_t i = 0; i < q->asks->n; i++) {
		const struct bs_ckptask *a = &q->asks->v[i];
		const uint64_t start = bs_clock_ns();
		int r = attach_one(q, (unsigned int)i, a, config, err);

		bs_timeline_span(q->timeline, BS_SPAN_CKPT, start, 0,
				 r < 0 ? bs_error_text(err) : a->target);
		if (r == 0) {
			n++;
			continue;
		}
		(void)bs_error_context(err, "checkpoint '%s' at '%s'", a->source, a->target);
		if (is_required(q->conf, a))
			return r;
		bs_log_warning("%s: STARTING WITHOUT IT, as it is not required; '%s' is what the "
			       "image has there",
			       bs_error_text(err), a->target);
	}
	return n;
}

void bs_ckpts_detach(const struct bs_job *j)
{
	struct bs_error err = BS_ERROR_INIT;

	if (bs_ckptdir_detach(j->run_fd, j->key, &err) < 0)
		bs_log_warning("%s; delete the container to retry", bs_error_text(&err));
}
