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
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/nofile.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "daemon/user.h"
#include "hdfs/mount.h"
#include "kern/sandbox.h"

#define NAME "bootseer-ckpt"
#define IDLE_MS 50 /* between two looks whether a file is open, once we are to end */
#define STATS_MAX 65536u

struct server {
	int control, fuse_fd;
	struct bs_mounted *mounted;
};

/* Told to end; what is left open is somebody's who copied the mount, and is never closed. */
static void end_when_idle(const struct server *v)
{
	while (!bs_mounted_idle(v->mounted))
		(void)poll(NULL, 0, IDLE_MS);
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
	const struct server *v = arg;

	for (;;) {
		bs_automsg m;

		bs_msg_init(&m, 0, 0);
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
	pthread_t t;
	bs_automsg m;
	int r;

	bs_msg_init(&m, 0, 0);
	r = shut_in(conf, v->control, &m, &o, err);
	if (r == 0)
		r = bs_mounted_start(bs_msg_text(&m, BS_TAG_SOURCE, 0), &o, v->fuse_fd, &v->mounted,
				     err);
	if (r < 0)
		return r;
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
	(void)prctl(PR_SET_NAME, NAME, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	v.control = control;
	v.fuse_fd = control + 1;
	r = start(&v, conf, &err);
	bs_msg_init(&ready, BS_MSG_READY, 0);
	(void)bs_msg_add_u64(&ready, BS_TAG_RESULT, (uint64_t)-r);
	if (r < 0)
		(void)bs_msg_add_text(&ready, BS_TAG_TEXT, bs_error_text(&err));
	if (bs_msg_send(control, &ready) < 0 || r < 0)
		return 1;
	(void)bs_mounted_wait(
		v.mounted); /* what was not written has failed with its file's close */
	bs_msg_init(&over, BS_MSG_QUIT, 0);
	(void)bs_msg_send(control, &over);
	_exit(0); /* others may be in the midst of a status */
}
