/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/ckpts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* --- getting them --------------------------------------------------------------------------- */

/* One that is asked for. */
struct wanted {
	const struct bs_ckptask *a;
	bool done;
	int mnt; /* -EBADF: not had, see err */
	struct bs_error err;
};

static bool is_required(const struct bs_conf *conf, const struct bs_ckptask *a)
{
	return a->need == BS_CKPTASK_HOST ? conf->ckpt_required : a->need == BS_CKPTASK_REQUIRED;
}

static int make_request(const struct bs_ckpts_request *q, struct wanted *w,
			const struct bs_json *doc, struct bs_msg *m)
{
	bs_autobuf options = BS_BUF_INIT(OPTIONS_MAX);
	int r = make_options(q->conf, w->a, doc, &options);

	if (r < 0)
		return bs_fail_errno(&w->err, r, "put the options together");
	if (bs_msg_add_text(m, BS_TAG_CONTAINER, q->job->key) < 0 ||
	    bs_msg_add_text(m, BS_TAG_SOURCE, w->a->source) < 0 ||
	    bs_msg_add_text(m, BS_TAG_OPTIONS, bs_buf_str(&options)) < 0 ||
	    bs_msg_add_u64(m, BS_TAG_READ_ONLY, !w->a->writable) < 0 ||
	    bs_msg_add_u64(m, BS_TAG_WAIT_NS, q->conf->ckpt_mount_wait_ns) < 0 ||
	    bs_msg_add_text(m, BS_TAG_TIMELINE, q->id) < 0)
		return bs_fail(&w->err, -E2BIG, "there are too many options");
	return 0;
}

static void answered(const struct bs_ckpts_request *q, struct wanted *w, uint64_t start_ns)
{
	w->done = true;
	bs_timeline_span(q->timeline, BS_SPAN_CKPT, start_ns, 0,
			 w->mnt < 0 ? bs_error_text(&w->err) : w->a->target);
}

static void fail_rest(const struct bs_ckpts_request *q, struct wanted *w, uint64_t start_ns,
		      const struct bs_error *err)
{
	for (size_t i = 0; i < q->asks->n; i++) {
		if (w[i].done)
			continue;
		w[i].err = *err;
		answered(q, &w[i], start_ns);
	}
}

/* What the start waits for; NULL: for nothing more, for all are there or one must be and is not. */
static const struct wanted *open_one(const struct bs_ckpts_request *q, const struct wanted *w)
{
	const struct wanted *open = NULL;

	for (size_t i = 0; i < q->asks->n; i++) {
		if (w[i].done && w[i].mnt < 0 && is_required(q->conf, w[i].a))
			return NULL;
		if (!w[i].done)
			open = &w[i];
	}
	return open;
}

static void say_waiting(const struct bs_ckpts_request *q, const struct wanted *w)
{
	for (size_t i = 0; i < q->asks->n; i++) {
		if (!w[i].done)
			bs_log_warning("waiting for '%s'", w[i].a->source);
	}
}

/* Replies to what was asked on sock. */
static int collect(const struct bs_ckpts_request *q, struct wanted *w, int sock, uint64_t start_ns,
		   struct bs_error *err)
{
	const uint64_t deadline = start_ns + q->conf->ckpt_mount_wait_ns + REPLY_GRACE_NS;
	uint64_t until = BS_MIN(deadline, start_ns + SLOW_NS);

	while (open_one(q, w)) {
		struct wanted *at;
		bs_automsg reply;
		int r;

		bs_msg_init(&reply, 0, 0);
		r = bs_client_next(sock, until, &reply, err);
		if (r == -ETIMEDOUT && until < deadline) {
			say_waiting(q, w);
			until = deadline;
			continue;
		}
		if (r < 0)
			return r;
		if (reply.id == 0 || reply.id > q->asks->n || w[reply.id - 1].done)
			continue;
		at = &w[reply.id - 1];
		if (bs_client_result(&reply, &at->err) == 0)
			at->mnt = bs_msg_take_fd(&reply, 0);
		if (at->mnt < 0 && !at->err.code)
			(void)bs_fail(&at->err, -EPROTO, "bootseerd sent no mount");
		answered(q, at, start_ns);
	}
	return 0;
}

/*
 * All at once and with one deadline: one that cannot be had, and need not be, holds up the
 * others' start no longer than itself.
 */
static void get_all(const struct bs_ckpts_request *q, const struct bs_json *doc, struct wanted *w)
{
	const uint64_t start = bs_clock_ns();
	struct bs_error err = BS_ERROR_INIT;
	int r = 0;

	for (int tries = 0; open_one(q, w); tries++) {
		bs_autofd int sock = bs_connect(q->conf, q->timeline, &err);

		r = BS_MIN(sock, 0);
		for (size_t i = 0; r == 0 && i < q->asks->n; i++) {
			bs_automsg m;

			bs_msg_init(&m, BS_MSG_CKPT_MOUNT, (uint32_t)i + 1);
			if (w[i].done)
				continue;
			if (make_request(q, &w[i], doc, &m) < 0)
				answered(q, &w[i], start);
			else
				r = bs_client_send(sock, &m, &err);
		}
		if (r == 0)
			r = collect(q, w, sock, start, &err);
		/* one that is replaced takes our requests with it */
		if (r < 0 && (r != -ECONNRESET || tries == RECONNECTS_MAX))
			fail_rest(q, w, start, &err);
	}
}

/* --- putting them in place -------------------------------------------------------------------- */

/* What the host's options say of the mount: the runtime clears what is not named to it. */
static unsigned int bind_flags(const struct bs_ckpts_request *q, const struct bs_ckptask *a)
{
	bs_autobuf options = BS_BUF_INIT(OPTIONS_MAX);

	for (size_t i = 0; i < q->conf->ckpt_options.n; i++)
		(void)bs_buf_addf(&options, "%s,", q->conf->ckpt_options.v[i]);
	return (a->writable ? BS_BIND_WRITABLE : 0) |
	       (bs_str_option(bs_buf_str(&options), "noexec", "exec") ? BS_BIND_NOEXEC : 0) |
	       (bs_str_option(bs_buf_str(&options), "noatime", "atime") ? BS_BIND_NOATIME : 0);
}

static int attach_one(const struct bs_ckpts_request *q, unsigned int n, const struct wanted *w,
		      struct bs_config *config, struct bs_error *err)
{
	bs_autofree char *source = bs_strf("%s/" BS_CKPTDIR "/%s/%u", q->conf->run_dir, q->job->key,
					   n);
	int r;

	if (w->mnt < 0)
		return bs_fail(err, w->err.code, "%s", bs_error_text(&w->err));
	if (!source)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_ckptdir_attach(q->job->run_fd, q->job->key, n, w->mnt, err);
	return r < 0 ? r : bs_edit_bind(config, source, w->a->target, bind_flags(q, w->a), err);
}

static int attach_all(const struct bs_ckpts_request *q, const struct wanted *w,
		      struct bs_config *config, struct bs_error *err)
{
	int n = 0;

	for (size_t i = 0; i < q->asks->n; i++) {
		const struct bs_ckptask *a = w[i].a;
		int r;

		/* another one, which must be, is not there */
		if (!w[i].done)
			continue;
		r = attach_one(q, (unsigned int)i, &w[i], config, err);
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

/* What policy forbids is asked for by nobody. */
static void look_at_policy(const struct bs_ckpts_request *q, struct wanted *w)
{
	for (size_t i = 0; i < q->asks->n; i++) {
		const struct bs_ckptask *a = &q->asks->v[i];
		const struct bs_conf_ckpt c = { a->source, a->target, a->user, a->writable };

		w[i] = (struct wanted){ .a = a, .mnt = -EBADF };
		if (bs_conf_allows_ckpt(q->conf, &c, &w[i].err) < 0)
			answered(q, &w[i], bs_clock_ns());
	}
}

int bs_ckpts_attach(const struct bs_ckpts_request *q, struct bs_config *config,
		    struct bs_error *err)
{
	bs_autofree char *dir = bs_strf("%s/" BS_CKPTDIR, q->conf->run_dir);
	bs_autofree struct wanted *w = calloc(q->asks->n + 1, sizeof(*w));
	int r;

	if (!dir || !w)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_edit_unbind(config, dir); /* of an earlier start from the same bundle */
	look_at_policy(q, w);
	get_all(q, config->doc, w);
	r = attach_all(q, w, config, err);
	for (size_t i = 0; i < q->asks->n; i++)
		(void)bs_close(w[i].mnt);
	return r;
}

void bs_ckpts_detach(const struct bs_job *j)
{
	struct bs_error err = BS_ERROR_INIT;

	if (bs_ckptdir_detach(j->run_fd, j->key, &err) < 0)
		bs_log_warning("%s; delete the container to retry", bs_error_text(&err));
}
