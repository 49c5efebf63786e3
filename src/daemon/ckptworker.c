/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/ckptworker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/nofile.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "daemon/program.h"
#include "daemon/user.h"
#include "hdfs/mount.h"
#include "kern/sandbox.h"
#include "obs/timeline.h"

#define NAME "bootseer-ckpt"
#define IDLE_MS 50 /* between two looks whether a file is open, once we are to end */
#define STATS_MAX 65536u
#define LOOK_MS 500
#define LOOK_MAX_MS 10000
#define QUIET_NS (10 * BS_NS_PER_S) /* without a read: the checkpoint is loaded */

struct server {
	int control, fuse_fd;
	struct bs_timeline timeline; /* of the start that it was made for */
	bool read_told, load_told;
	struct bs_mounted *mounted;
	pthread_mutex_t lock; /* guards what is told */
};

/*
 * What a start reads of its checkpoint: from its first read on until there was none for a
 * while, or the mount is gone.
 */
static void tell_load(struct server *v, bool over)
{
	struct bs_mounted_load l;

	bs_mounted_load(v->mounted, &l);
	if (!l.first_ns || v->load_told)
		return;
	if (!v->read_told)
		bs_timeline_mark(&v->timeline, BS_MARK_CKPT_READ, l.first_ns, NULL);
	v->read_told = true;
	if (!over && bs_clock_ns() - l.last_ns < QUIET_NS)
		return;
	bs_timeline_past(&v->timeline, BS_SPAN_CKPT_LOAD, l.first_ns, l.last_ns, l.bytes, NULL);
	v->load_told = true;
	bs_timeline_done(&v->timeline);
}

static void tend_load(struct server *v, bool over)
{
	(void)pthread_mutex_lock(&v->lock);
	tell_load(v, over);
	(void)pthread_mutex_unlock(&v->lock);
}

/* Told to end; what is left open is somebody's who copied the mount, and is never closed. */
static void end_when_idle(struct server *v)
{
	while (!bs_mounted_idle(v->mounted))
		(void)poll(NULL, 0, IDLE_MS);
	tend_load(v, true);
	_exit(0);
}

static void reply_status(const struct server *v, uint32_t id)
{
	bs_autobuf text = BS_BUF_INIT(STATS_MAX);
	bs_automsg m;
	int r = bs_mounted_stats(v->mounted, &text);

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, r < 0 ? (uint64_t)-r : 0);
	if (r >= 0)
		(void)bs_msg_add_long(&m, BS_TAG_JSON, bs_buf_str(&text));
	(void)bs_msg_send(v->control, &m);
}

/* Until the supervisor and its keeper are gone, or say that it is over. */
static void *control_main(void *arg)
{
	struct server *v = arg;
	int look_ms = LOOK_MS;

	for (;;) {
		struct pollfd p = { .fd = v->control, .events = POLLIN };
		bool nobody_asks = v->load_told || v->timeline.fd < 0;
		bs_automsg m;

		bs_msg_init(&m, 0, 0);
		if (poll(&p, 1, nobody_asks ? -1 : look_ms) <= 0) {
			tend_load(v, false);
			/* what is seen late is told with its own time */
			look_ms = BS_MIN(2 * look_ms, LOOK_MAX_MS);
			continue;
		}
		if (bs_msg_recv(v->control, &m) < 0)
			return NULL;
		if (m.type == BS_MSG_QUIT)
			end_when_idle(v);
		else if (m.type == BS_MSG_STATUS)
			reply_status(v, m.id);
	}
}

/* While still root: START read, the user looked up, then shut in. */
static int shut_in(const struct bs_conf *conf, int control, struct bs_msg *start,
		   struct bs_mount_options *ret, struct bs_error *err)
{
	struct bs_conf as = { 0 };
	const char *options;
	uid_t uid;
	gid_t gid;
	int r = bs_msg_recv(control, start);

	options = r == 0 ? bs_msg_text(start, BS_TAG_OPTIONS, 0) : NULL;
	if (!options || start->type != BS_MSG_START || !bs_msg_text(start, BS_TAG_SOURCE, 0))
		return bs_fail(err, -EPROTO, "the supervisor did not say start");
	r = bs_mount_options_parse(options, false, ret, err);
	if (r < 0)
		return r;
	/* its log is bootseerd's, and it never is in somebody's foreground */
	if (ret->log || ret->foreground)
		return bs_fail(err, -EINVAL, "option '%s' is mount.bootseer-hdfs(8)'s alone",
			       ret->log ? "log" : "foreground");
	as.user = ret->runas ? (char *)(uintptr_t)ret->runas : conf->user;
	r = bs_worker_user(&as, &uid, &gid, err);
	if (r < 0)
		return r;
	(void)umask(0077);
	if (chdir("/") < 0)
		return bs_fail_errno(err, -errno, "go to '/'");
	bs_nofile_raise();
	return bs_sandbox_enter_worker(uid, gid, 0, err);
}

static int start(struct server *v, const struct bs_conf *conf, struct bs_error *err)
{
	static struct bs_mount_options o; /* the mount's threads read it to the very end */
	struct bs_mounted_kept kept = { .fd = -EBADF };
	uint64_t generation = 0, takeover = 0;
	pthread_t t;
	bs_automsg m;
	int r;

	bs_msg_init(&m, 0, 0);
	r = shut_in(conf, v->control, &m, &o, err);
	if (r < 0)
		return r;
	(void)bs_msg_u64(&m, BS_TAG_EPOCH, &generation);
	(void)bs_msg_u64(&m, BS_TAG_TAKEOVER, &takeover);
	kept.fd = bs_msg_take_fd(&m, 0);
	kept.generation = (uint32_t)generation;
	kept.takeover = takeover != 0;
	r = bs_mounted_start(bs_msg_text(&m, BS_TAG_SOURCE, 0), &o, v->fuse_fd,
			     kept.fd >= 0 ? &kept : NULL, &v->mounted, err);
	(void)bs_close(kept.fd);
	if (r < 0)
		return r;
	v->timeline.fd = bs_msg_take_fd(&m, 1);
	r = -pthread_create(&t, NULL, control_main, v);
	if (r == 0)
		r = -pthread_detach(t);
	return r < 0 ? bs_fail_errno(err, r, "start a thread") : 0;
}

int bs_ckptworker_main(const struct bs_conf *conf, int control)
{
	static struct server v; /* threads that never end point to it */
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg ready, over;
	int r;

	bs_log_init(NAME, BS_LOG_INFO);
	bs_program_oom_score(0); /* it holds what containers write: not spared as bootseerd is */
	/* whoever had bootseerd started is nobody to HDFS: the configuration says who is */
	(void)unsetenv("HADOOP_USER_NAME");
	(void)unsetenv("HADOOP_TOKEN_FILE_LOCATION");
	(void)prctl(PR_SET_NAME, NAME, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	v.control = control;
	v.fuse_fd = control + 1;
	v.timeline = (struct bs_timeline){ .fd = -EBADF, .program = NAME };
	(void)pthread_mutex_init(&v.lock, NULL);
	r = start(&v, conf, &err);
	bs_msg_init(&ready, BS_MSG_READY, 0);
	(void)bs_msg_add_u64(&ready, BS_TAG_RESULT, (uint64_t)-r);
	if (r < 0)
		(void)bs_msg_add_text(&ready, BS_TAG_TEXT, bs_error_text(&err));
	if (bs_msg_send(control, &ready) < 0 || r < 0)
		return 1;
	(void)bs_mounted_wait(
		v.mounted); /* what was not written has failed with its file's close */
	tend_load(&v, true);
	bs_msg_init(&over, BS_MSG_QUIT, 0);
	(void)bs_msg_send(control, &over);
	_exit(0); /* others may be in the midst of a status */
}
