/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/log.h"
#include "base/nofile.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "daemon/broker.h"
#include "daemon/sources.h"
#include "daemon/user.h"
#include "image/artifact.h"
#include "kern/sandbox.h"
#include "net/loop.h"
#include "rootfs/blockfs.h"
#include "rootfs/hotstart.h"
#include "rootfs/images.h"
#include "rootfs/rounds.h"
#include "rootfs/share.h"

#define FUSE_THREADS 4u
/* each may wait for an unreachable source: more than a node starts containers at once */
#define PREPARE_THREADS 128u
#define PREPARE_THREADS_MIN 4u
#define PREPARE_STACK (1u << 20)
#define JSON_MAX (4u << 20)
#define SOURCES_MAX 32u /* as many as the shim names */

/* A request of the supervisor that waits for a preparing thread. */
struct task {
	struct bs_list queued;
	struct bs_msg msg;
};

struct worker {
	const struct bs_conf *conf;
	struct bs_broker *broker;
	struct bs_loop *loop;
	struct bs_fill *fill;
	struct bs_images *images;
	struct bs_sources *sources;
	struct bs_hotstart *hot;
	pthread_mutex_t lock; /* guards what follows but work */
	pthread_cond_t work;
	struct bs_list tasks;
	unsigned int n_hot; /* threads with one that is_hot */
	unsigned int n_preparers;
};

/* Of what only tells of failures. */
static void event(void *cookie, const char *text)
{
	bs_broker_event(((struct worker *)cookie)->broker, BS_LOG_WARNING, text);
}

static void hot_event(void *cookie, enum bs_log_level level, const char *text)
{
	bs_broker_event(((struct worker *)cookie)->broker, level, text);
}

static int open_source(void *cookie, const char *source, struct bs_repo **ret, struct bs_error *err)
{
	return bs_sources_open(((struct worker *)cookie)->sources, source, ret, err);
}

/* --- preparing images ------------------------------------------------------------------- */

static size_t read_sources(const struct bs_msg *m, const char *sources[SOURCES_MAX])
{
	size_t n = 0;

	while (n < SOURCES_MAX && (sources[n] = bs_msg_text(m, BS_TAG_SOURCE, n)))
		n++;
	return n;
}

static uint64_t read_wait(const struct bs_msg *m)
{
	uint64_t wait_ns = 0;

	(void)bs_msg_u64(m, BS_TAG_WAIT_NS, &wait_ns);
	return wait_ns;
}

static int read_digest(const struct bs_msg *m, struct bs_digest *ret, struct bs_error *err)
{
	const char *text = bs_msg_text(m, BS_TAG_DIGEST, 0);

	if (!text || bs_digest_parse(text, strlen(text), ret) < 0)
		return bs_fail(err, -EBADMSG, "a request without a digest");
	return 0;
}

static void reply_prepared(struct worker *w, uint32_t id, struct bs_cached *i)
{
	const bool complete = bs_blob_complete(i->blob);
	bs_autofd int meta = bs_cached_open_metadata(i);
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	if (meta < 0) {
		struct bs_error err = BS_ERROR_INIT;

		(void)bs_fail_errno(&err, meta, "open the metadata in the cache");
		bs_broker_reply(w->broker, id, meta, &err);
		return;
	}
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_COMPLETE, complete);
	(void)bs_msg_add_fd(&m, meta);
	if (complete)
		(void)bs_msg_add_fd(&m, bs_blob_fd(i->blob));
	bs_broker_send(w->broker, &m);
}

static void completed(void *cookie, const struct bs_digest *digest)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_broker_completed(((struct worker *)cookie)->broker, bs_digest_text(digest, text));
}

/* A request that is answered when its image is complete. */
struct completion {
	struct worker *w;
	struct bs_cached *image;
	uint32_t id;
	bool unpack; /* wants the tree and the blob */
};

static void reply_unpack(struct worker *w, uint32_t id, struct bs_cached *i)
{
	bs_autofd int tree = bs_cached_open_tree(i);
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg m;

	if (tree < 0) {
		(void)bs_fail_errno(&err, tree, "open the tree in the cache");
		bs_broker_reply(w->broker, id, tree, &err);
		return;
	}
	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_fd(&m, tree);
	(void)bs_msg_add_fd(&m, bs_blob_fd(i->blob));
	bs_broker_send(w->broker, &m);
}

static void completion_done(void *cookie, int result)
{
	struct completion *c = cookie;
	struct bs_error err = BS_ERROR_INIT;
	char text[BS_DIGEST_TEXT_LEN];

	if (result < 0)
		(void)bs_fail_errno(&err, result, "complete image %s",
				    bs_digest_text(&c->image->digest, text));
	if (result == 0 && c->unpack)
		reply_unpack(c->w, c->id, c->image);
	else
		bs_broker_reply(c->w->broker, c->id, result, &err);
	free(c);
}

static void complete_then_reply(struct worker *w, struct bs_cached *i, const struct bs_msg *m)
{
	struct completion *c = malloc(sizeof(*c));
	struct bs_error err = BS_ERROR_INIT;

	if (c)
		*c = (struct completion){ w, i, m->id, m->type == BS_MSG_UNPACK };
	if (c && bs_cached_complete(i, completion_done, c) == 0)
		return;
	free(c);
	bs_broker_reply(w->broker, m->id, bs_fail(&err, -ENOMEM, "out of memory"), &err);
}

static void verify_cache(struct worker *w, uint32_t id)
{
	bs_autobuf text = BS_BUF_INIT(4096);
	struct bs_error err = BS_ERROR_INIT;
	uint64_t images, frames, wrong;
	struct bs_jsonw *j;
	bs_automsg m;
	int r = bs_images_verify(w->images, &images, &frames, &wrong, &err);

	j = r == 0 ? bs_jsonw_new(false) : NULL;
	if (!j) {
		bs_broker_reply(w->broker, id, r < 0 ? r : bs_fail(&err, -ENOMEM, "out of memory"),
				&err);
		return;
	}
	bs_jsonw_object(j);
	bs_jsonw_ku64(j, "images", images);
	bs_jsonw_ku64(j, "frames", frames);
	bs_jsonw_ku64(j, "wrong", wrong);
	bs_jsonw_end(j);
	(void)bs_jsonw_finish(j, &text);
	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_text(&m, BS_TAG_JSON, bs_buf_str(&text));
	bs_broker_send(w->broker, &m);
}

/* The rest of the image, while nobody waits; a stream of it goes first. m: the start's request. */
static void complete_behind(struct worker *w, struct bs_cached *i, const struct bs_msg *m)
{
	uint64_t hot_only = 0;
	const uint32_t n_units = bs_blob_geometry(i->blob)->n_units;

	if (bs_blob_n_present(i->blob) < n_units)
		bs_images_share(w->images, i);
	(void)bs_msg_u64(m, BS_TAG_HOT_ONLY, &hot_only);
	/* also for what is all here, but has not been proven since a restart */
	if ((w->conf->background && !hot_only) || bs_blob_n_present(i->blob) == n_units)
		(void)bs_cached_complete(i, NULL, NULL);
}

static void streaming(void *cookie, const struct bs_digest *image, const char *workload, bool on)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_broker_streaming(((struct worker *)cookie)->broker, bs_digest_text(image, text),
			    workload, on);
}

static void reply_hot(struct worker *w, uint32_t id, bool stream, struct bs_cached *i,
		      const char *file)
{
	bs_autofd int meta = i ? bs_cached_open_metadata(i) : -EBADF;
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_u64(&m, BS_TAG_STREAM, stream);
	if (meta >= 0) {
		(void)bs_msg_add_text(&m, BS_TAG_FILE, file);
		(void)bs_msg_add_fd(&m, meta);
	}
	bs_broker_send(w->broker, &m);
}

/* A start is as well without: what goes wrong is said, and it goes on. */
static void run_hot(struct worker *w, struct bs_msg *m, const struct bs_hotstart_request *rq)
{
	struct bs_hotstart_plan plan;
	struct bs_error err = BS_ERROR_INIT;
	char file[BS_HOTSTART_FILE_LEN];
	struct bs_cached *i = NULL;
	int r = 0;

	bs_hotstart_find(w->hot, rq, &plan);
	plan.stream = plan.stream && w->conf->prefetch;
	if (plan.record && bs_hotstart_record(w->hot, rq, &i, file, &err) < 0) {
		event(w, bs_error_text(&err));
		plan.record = false;
	}
	reply_hot(w, m->id, plan.stream, plan.record ? i : NULL, file);
	if (!plan.record)
		bs_hotstart_shares(w->hot, rq);
	if (plan.stream)
		r = bs_hotstart_stream(w->hot, rq, &plan, &err);
	if (r < 0 && !(r == -ENOENT && plan.donor)) /* images with nothing in common are no news */
		event(w, bs_error_text(&err));
	bs_hotstart_plan_done(&plan);
}

static void run_hot_task(struct worker *w, struct bs_msg *m)
{
	const char *sources[SOURCES_MAX], *workload = bs_msg_text(m, BS_TAG_WORKLOAD, 0);
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int timeline = bs_msg_take_fd(m, 0);
	struct bs_digest digest;
	struct bs_hotstart_request rq = { .image = &digest,
					  .workload = workload,
					  .sources = sources,
					  .n_sources = read_sources(m, sources),
					  .since_ns = bs_clock_ns(),
					  .wait_ns = read_wait(m),
					  .timeline = timeline };
	uint64_t record = 0;
	struct bs_cached *i;
	int r = read_digest(m, &digest, &err);

	if (r == 0 && (!workload || !bs_workload_ok(workload)))
		r = bs_fail(&err, -EINVAL, "a hot start without a workload");
	if (r < 0) {
		bs_broker_reply(w->broker, m->id, r, &err);
		return;
	}
	(void)bs_msg_u64(m, BS_TAG_RECORD, &record);
	rq.may_record = record != 0;
	run_hot(w, m, &rq);
	i = bs_images_await(w->images, &digest, rq.since_ns, rq.since_ns + rq.wait_ns);
	if (i) /* else PREPARE says what is wrong */
		complete_behind(w, i, m);
}

static void warm(struct worker *w, struct bs_msg *m)
{
	struct bs_error err = BS_ERROR_INIT;
	int fd = bs_msg_take_fd(m, 0);
	struct bs_digest digest;
	uint64_t pid = 0;

	(void)bs_msg_u64(m, BS_TAG_PID, &pid);
	if (fd >= 0 && read_digest(m, &digest, &err) == 0)
		bs_hotstart_warm(w->hot, &digest, fd, (pid_t)pid);
	else
		(void)bs_close(fd);
}

static void stop_recording(struct worker *w, const struct bs_msg *m)
{
	const char *workload = bs_msg_text(m, BS_TAG_WORKLOAD, 0);
	struct bs_digest digest;
	uint64_t nobody = 0;

	(void)bs_msg_u64(m, BS_TAG_RESULT, &nobody);
	if (workload && read_digest(m, &digest, NULL) == 0)
		bs_hotstart_stop(w->hot, &digest, workload, nobody != 0);
}

/* What a name means, and where the answer goes. */
struct question {
	const char *name;
	struct bs_artifact found;
};

static int ask_source(void *cookie, struct bs_repo *repo, struct bs_error *err)
{
	struct question *q = cookie;

	return bs_artifact_find(repo, q->name, NULL, &q->found, err);
}

static void resolve(struct worker *w, const struct bs_msg *m)
{
	const char *sources[SOURCES_MAX];
	const struct bs_rounds rounds = { open_source, w, sources, read_sources(m, sources),
					  bs_clock_ns() + read_wait(m) };
	struct question q = { .name = bs_msg_text(m, BS_TAG_NAME, 0) };
	struct bs_error err = BS_ERROR_INIT;
	char text[BS_DIGEST_TEXT_LEN];
	bs_automsg reply;
	int r = q.name ? bs_rounds_run(&rounds, ask_source, &q, &err)
		       : bs_fail(&err, -EBADMSG, "a request without a name");

	if (r < 0) {
		bs_broker_reply(w->broker, m->id, r, &err);
		return;
	}
	bs_msg_init(&reply, BS_MSG_REPLY, m->id);
	(void)bs_msg_add_u64(&reply, BS_TAG_RESULT, 0);
	(void)bs_msg_add_text(&reply, BS_TAG_DIGEST, bs_digest_text(&q.found.digest, text));
	bs_broker_send(w->broker, &reply);
}

static void run_task(struct worker *w, struct bs_msg *m)
{
	const char *sources[SOURCES_MAX];
	struct bs_timeline tl = BS_TIMELINE_NONE;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_digest digest;
	struct bs_cached *i;
	size_t n = read_sources(m, sources);
	int r = read_digest(m, &digest, &err);

	tl.program = "bootseerd";
	tl.fd = bs_msg_take_fd(m, 0);
	if (r == 0)
		r = bs_images_prepare(w->images, &digest, sources, n, read_wait(m), &tl, &i, &err);
	if (r < 0) {
		bs_broker_reply(w->broker, m->id, r, &err);
		return;
	}
	if (m->type != BS_MSG_PREPARE) {
		complete_then_reply(w, i, m);
		return;
	}
	reply_prepared(w, m->id, i);
	if (!bs_msg_text(m, BS_TAG_WORKLOAD,
			 0)) /* else what is hot comes first, see run_hot_task */
		complete_behind(w, i, m);
}

/* Nobody has to have it; it must not keep from others what they have to. */
static bool is_hot(const struct task *t)
{
	return t->msg.type == BS_MSG_HOT || t->msg.type == BS_MSG_WARM;
}

/* The first task that may run; NULL: none. Lock held. */
static struct task *take_task(struct worker *w)
{
	bs_list_for_each(it, &w->tasks) {
		struct task *t = bs_list_entry(it, struct task, queued);

		if (is_hot(t) && w->n_hot >= w->n_preparers / 2)
			continue;
		w->n_hot += is_hot(t);
		bs_list_remove(it);
		return t;
	}
	return NULL;
}

static void *prepare_main(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		struct task *t;
		bool hot;

		(void)pthread_mutex_lock(&w->lock);
		while (!(t = take_task(w)))
			(void)pthread_cond_wait(&w->work, &w->lock);
		(void)pthread_mutex_unlock(&w->lock);
		hot = is_hot(t);
		if (t->msg.type == BS_MSG_VERIFY)
			verify_cache(w, t->msg.id);
		else if (t->msg.type == BS_MSG_RESOLVE)
			resolve(w, &t->msg);
		else if (t->msg.type == BS_MSG_HOT)
			run_hot_task(w, &t->msg);
		else if (t->msg.type == BS_MSG_WARM)
			warm(w, &t->msg);
		else
			run_task(w, &t->msg);
		bs_msg_done(&t->msg);
		free(t);
		if (!hot)
			continue;
		(void)pthread_mutex_lock(&w->lock);
		w->n_hot--;
		(void)pthread_cond_signal(&w->work);
		(void)pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void queue_task(struct worker *w, struct bs_msg *m)
{
	struct task *t = malloc(sizeof(*t));
	struct bs_error err = BS_ERROR_INIT;

	if (!t) {
		bs_broker_reply(w->broker, m->id, bs_fail(&err, -ENOMEM, "out of memory"), &err);
		return;
	}
	t->msg = *m;
	bs_msg_init(m, 0, 0);
	(void)pthread_mutex_lock(&w->lock);
	bs_list_append(&w->tasks, &t->queued);
	(void)pthread_cond_signal(&w->work);
	(void)pthread_mutex_unlock(&w->lock);
}

/* --- status -------------------------------------------------------------------------------- */

static void put_lanes(struct bs_jsonw *w, const struct bs_loop_stats *s)
{
	static const char *const names[] = { "demand", "hot", "background" };

	_Static_assert(BS_ARRAY_LEN(names) == BS_LANE_MAX, "a name a lane");
	bs_jsonw_key(w, "lanes");
	bs_jsonw_object(w);
	for (size_t i = 0; i < BS_LANE_MAX; i++) {
		bs_jsonw_key(w, names[i]);
		bs_jsonw_object(w);
		bs_jsonw_ku64(w, "requests", s->requests[i]);
		bs_jsonw_ku64(w, "bytes", s->bytes[i]);
		bs_jsonw_ku64(w, "failures", s->failures[i]);
		bs_jsonw_ku64(w, "queued", s->queued[i]);
		bs_jsonw_ku64(w, "running", s->running[i]);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	bs_jsonw_ku64(w, "demand_waited", s->demand_waited);
	bs_jsonw_ku64(w, "connections", s->connections);
	bs_jsonw_ku64(w, "token_refreshes", s->token_refreshes);
}

static void put_fill(struct bs_jsonw *w, const struct bs_fill_stats *s)
{
	bs_jsonw_key(w, "cache");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "reads", s->reads);
	bs_jsonw_ku64(w, "read_bytes", s->read_bytes);
	bs_jsonw_ku64(w, "hits", s->hits);
	bs_jsonw_ku64(w, "misses", s->misses);
	bs_jsonw_ku64(w, "joined", s->joined);
	bs_jsonw_ku64(w, "fetched_frames", s->fetched_units);
	bs_jsonw_ku64(w, "fetched_bytes", s->fetched_bytes);
	bs_jsonw_ku64(w, "copied_frames", s->copied_units);
	bs_jsonw_ku64(w, "bad_frames", s->bad_units);
	bs_jsonw_ku64(w, "unstored_frames", s->unstored_units);
	bs_jsonw_ku64(w, "retries", s->retries);
	bs_jsonw_ku64(w, "failed_reads", s->failed_reads);
	bs_jsonw_ku64(w, "hot_bytes", s->streamed_bytes);
	bs_jsonw_ku64(w, "hot_blocks", s->streamed_blocks);
	bs_jsonw_ku64(w, "hot_waits", s->stream_waits);
	bs_jsonw_ku64(w, "bad_segments", s->bad_segments);
	bs_jsonw_end(w);
}

static void reply_status(struct worker *w, uint32_t id)
{
	bs_autobuf text = BS_BUF_INIT(JSON_MAX);
	struct bs_jsonw *j = bs_jsonw_new(false);
	struct bs_error err = BS_ERROR_INIT;
	struct bs_loop_stats loop;
	struct bs_fill_stats fill;
	bs_automsg m;
	int r = -ENOMEM;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	if (j) {
		bs_loop_stats(w->loop, &loop);
		bs_fill_stats(w->fill, &fill);
		bs_jsonw_object(j);
		put_fill(j, &fill);
		put_lanes(j, &loop);
		bs_jsonw_key(j, "hdfs");
		bs_sources_hdfs_status(w->sources, j);
		bs_jsonw_key(j, "images");
		bs_images_status(w->images, j);
		bs_jsonw_key(j, "hot");
		bs_hotstart_status(w->hot, j);
		bs_jsonw_end(j);
		r = bs_jsonw_finish(j, &text);
	}
	if (r < 0) {
		bs_broker_reply(w->broker, id, bs_fail(&err, r, "the status is too long"), &err);
		return;
	}
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, 0);
	(void)bs_msg_add_long(&m, BS_TAG_JSON, bs_buf_str(&text));
	bs_broker_send(w->broker, &m);
}

/* --- life ------------------------------------------------------------------------------------ */

static int control_loop(struct worker *w, int control)
{
	for (;;) {
		bs_automsg m;

		bs_msg_init(&m, 0, 0);
		if (bs_msg_recv(control, &m) < 0)
			return 0; /* the supervisor is gone, and another will start another of us */
		if (m.type == BS_MSG_REPLY)
			bs_broker_answered(w->broker, &m);
		else if (m.type == BS_MSG_PREPARE || m.type == BS_MSG_COMPLETE ||
			 m.type == BS_MSG_UNPACK || m.type == BS_MSG_VERIFY ||
			 m.type == BS_MSG_RESOLVE || m.type == BS_MSG_HOT || m.type == BS_MSG_WARM)
			queue_task(w, &m);
		else if (m.type == BS_MSG_STATUS)
			reply_status(w, m.id);
		else if (m.type == BS_MSG_RECORDED)
			stop_recording(w, &m);
	}
}

/* Everything that is made while still root: user looked up, START read, then shut in. */
static int shut_in(const struct bs_conf *conf, int control, struct bs_msg *start,
		   struct bs_error *err)
{
	struct pollfd peer = { .fd = control };
	int r = bs_msg_recv(control, start);
	uid_t uid;
	gid_t gid;

	if (r < 0 || start->type != BS_MSG_START)
		return bs_fail(err, -EPROTO, "the supervisor did not say start");
	r = bs_worker_user(conf, &uid, &gid, err);
	if (r < 0)
		return r;
	bs_nofile_raise();
	r = bs_sandbox_enter_worker(uid, gid, getppid(), err);
	/* a supervisor that died before we asked to die with it would leave two of us reading */
	if (r == 0 && poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLERR)))
		return bs_fail(err, -ESRCH, "the supervisor is gone");
	return r;
}

static int start_fill(struct worker *w, struct bs_error *err)
{
	const struct bs_loop_options lo = {
		.connections_per_host = w->conf->connections,
		.background_yields = true,
		.connect_timeout_ns = w->conf->connect_timeout_ns,
		.stall_timeout_ns = w->conf->stall_timeout_ns,
	};
	struct bs_fill_options fo = {
		.n_unpackers = 3, /* one is always for readers */
		.read_wait_ns = w->conf->read_wait_ns,
		.ahead = true,
		.scratch_new = bs_images_scratch_new,
		.scratch_free = bs_images_scratch_free,
		.event = event,
		.event_cookie = w,
		.fetched = bs_images_note_fetched,
	};
	int r = bs_loop_new(&lo, &w->loop, err);

	if (r < 0)
		return r;
	bs_loop_background_rate(w->loop, w->conf->background_rate.bytes);
	bs_loop_background_share(w->loop, w->conf->background_rate.percent);
	fo.loop = w->loop;
	return bs_fill_new(&fo, &w->fill, err);
}

static int start_preparers(struct worker *w, struct bs_error *err)
{
	unsigned int n = 0;
	pthread_attr_t attr;
	pthread_t t;
	int r = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, PREPARE_STACK);
	while (r == 0 && n < PREPARE_THREADS) {
		r = pthread_create(&t, &attr, prepare_main, w);
		n += r == 0;
		(void)pthread_mutex_lock(&w->lock);
		w->n_preparers = n;
		(void)pthread_cond_broadcast(&w->work);
		(void)pthread_mutex_unlock(&w->lock);
	}
	(void)pthread_attr_destroy(&attr);
	/* where a limit allows no more, a few must do */
	return n < PREPARE_THREADS_MIN ? bs_fail_errno(err, -r, "start a thread") : 0;
}

static int start_all(struct worker *w, struct bs_msg *start, struct bs_error *err)
{
	struct bs_images_options io = { .event = event, .completed = completed, .cookie = w };
	struct bs_blockfs_options bo = { .n_threads = FUSE_THREADS };
	struct bs_hotstart_options ho = { .open_source = open_source,
					  .publish = w->conf->publish,
					  .window_ns = w->conf->record_window_ns,
					  .parallel_max = w->conf->connections,
					  .rerecord = w->conf->rerecord,
					  .event = hot_event,
					  .streaming = streaming,
					  .cookie = w };
	struct bs_blockfs *fs;
	uint64_t takeover = 0;
	int r = start_fill(w, err);

	if (r < 0)
		return r;
	r = bs_sources_new(w->conf, w->loop, w->broker, &w->sources, err);
	if (r < 0)
		return r;
	(void)bs_msg_u64(start, BS_TAG_EPOCH, &io.epoch);
	(void)bs_msg_u64(start, BS_TAG_TAKEOVER, &takeover);
	io.fill = w->fill;
	io.dirfd = bs_msg_take_fd(start, 0);
	io.open_source = open_source;
	r = bs_images_new(&io, &w->images, err);
	if (r < 0)
		return r;
	ho.epoch = io.epoch;
	ho.images = w->images;
	ho.fill = w->fill;
	r = bs_hotstart_new(&ho, &w->hot, err);
	if (r < 0)
		return r;
	r = start_preparers(w, err);
	if (r < 0)
		return r;
	bo.fuse_fd = bs_msg_take_fd(start, 1);
	if (bo.fuse_fd < 0)
		return 0; /* no FUSE on this node: images are only fetched and unpacked */
	bo.takeover = takeover != 0;
	bo.images = w->images;
	bo.fill = w->fill;
	bo.hot = w->hot;
	return bs_blockfs_start(&bo, &fs, err);
}

int bs_worker_main(const struct bs_conf *conf, int control)
{
	static struct worker w; /* threads that never end point to it */
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg start, ready;
	int r;

	w.conf = conf;
	(void)pthread_mutex_init(&w.lock, NULL);
	(void)pthread_cond_init(&w.work, NULL);
	bs_list_init(&w.tasks);
	bs_msg_init(&start, 0, 0);
	bs_msg_init(&ready, BS_MSG_READY, 0);
	/* whoever had bootseerd started is nobody to HDFS: the configuration says who is */
	(void)unsetenv("HADOOP_USER_NAME");
	(void)unsetenv("HADOOP_TOKEN_FILE_LOCATION");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit is an error like a full disk */
	r = shut_in(conf, control, &start, &err);
	if (r == 0)
		r = bs_broker_new(control, &w.broker, &err);
	if (r == 0)
		r = start_all(&w, &start, &err);
	if (r < 0) {
		bs_log_error("worker: %s", bs_error_text(&err));
		return 1;
	}
	bs_broker_send(w.broker, &ready);
	return control_loop(&w, control);
}
