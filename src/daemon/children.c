/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Processes that do for the supervisor what may block; jobs.c is what they run. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "daemon/jobs.h"
#include "daemon/program.h"
#include "daemon/super.h"

/*
 * Jobs that need nothing but what we have loaded run in a fork of ours (there is one
 * thread): to start a program that is linked with all that the worker wants takes longer
 * than the mount. The others are started as programs.
 */
static const struct {
	const char *role;
	int (*run)(void *arg);
} forked[] = {
	{ "mount-lazy", bs_job_mount_lazy },
	{ "mount-recorded", bs_job_mount_recorded },
	{ "mount-whole", bs_job_mount_whole },
	{ "warm", bs_job_warm },
};

static void finish(struct super *s, struct child *c, struct bs_msg *m)
{
	super_unwatch(s, &c->watch);
	(void)bs_close(c->watch.fd);
	bs_list_remove(&c->all);
	super_kill(&c->process);
	(void)bs_close(c->process.pidfd);
	c->ended(s, c, m);
	free(c);
}

static void socket_ready(struct super *s, struct watch *w, uint32_t events)
{
	struct child *c = BS_CONTAINER_OF(w, struct child, watch);
	bs_automsg m;

	bs_msg_init(&m, 0, 0);
	if (bs_msg_recv(w->fd, &m) < 0)
		finish(s, c, NULL);
	else
		finish(s, c, &m);
}

int children_start(struct super *s, const char *role, const char *arg, const int *fds, size_t n,
		   uint64_t deadline_ns,
		   void (*ended)(struct super *s, struct child *c, struct bs_msg *m), void *cookie,
		   uint32_t id, struct bs_error *err)
{
	struct bs_part part = { .role = role,
				.arg = arg,
				.config = s->config_file,
				.fds = fds,
				.n_fds = n,
				.die_with_parent = true };
	struct child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return bs_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < BS_ARRAY_LEN(forked); i++) {
		if (bs_streq(forked[i].role, role))
			part.run = forked[i].run;
	}
	r = bs_program_start(&part, &c->process, &c->watch.fd, err);
	if (r < 0) {
		free(c);
		return r;
	}
	c->watch.ready = socket_ready;
	c->deadline_ns = deadline_ns;
	c->ended = ended;
	c->cookie = cookie;
	c->id = id;
	r = super_watch(s, &c->watch);
	if (r < 0) {
		super_kill(&c->process);
		(void)bs_close(c->process.pidfd);
		(void)bs_close(c->watch.fd);
		free(c);
		return bs_fail_errno(err, r, "watch a child");
	}
	bs_list_append(&s->children, &c->all);
	return 0;
}

void children_expire(struct super *s, uint64_t now_ns)
{
	bs_list_for_each(it, &s->children) {
		struct child *c = bs_list_entry(it, struct child, all);

		if (c->deadline_ns <= now_ns)
			finish(s, c, NULL);
	}
}
