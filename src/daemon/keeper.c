/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/nofile.h"
#include "base/spawn.h"
#include "base/str.h"
#include "ctl/msg.h"
#include "daemon/program.h"
#include "kern/caps.h"

#define RESTART_PAUSE_MS 200	   /* when supervisors die at once, one after the other */
#define QUICK_NS (2 * BS_NS_PER_S) /* a life shorter than this was one of those */

struct kept {
	char *name;
	int fd;
};

static struct kept kept[BS_KEEPER_MAX];
static size_t n_kept;

static size_t find(const char *name)
{
	size_t i = 0;

	while (i < n_kept && !bs_streq(kept[i].name, name))
		i++;
	return i;
}

static void drop(const char *name)
{
	size_t i = find(name);

	if (i == n_kept)
		return;
	free(kept[i].name);
	(void)bs_close(kept[i].fd);
	kept[i] = kept[--n_kept];
}

static void keep(const char *name, int fd)
{
	char *copy = strdup(name);

	drop(name);
	if (!copy || n_kept == BS_KEEPER_MAX) {
		bs_log_error("'%s' is not kept (%s): it is lost when the supervisor dies", name,
			     copy ? "no room" : "out of memory");
		free(copy);
		(void)bs_close(fd);
		return;
	}
	kept[n_kept++] = (struct kept){ copy, fd };
}

/* Until the other end closes; false: it said QUIT. */
static bool serve(int link)
{
	for (;;) {
		bs_automsg m;
		const char *name;
		int fd, r;

		bs_msg_init(&m, 0, 0);
		r = bs_msg_recv(link, &m);
		if (r ==
		    -EBADMSG) { /* its descriptor found no room: the rest is kept all the same */
			bs_log_error("what the supervisor gave could not be kept (too many open "
				     "files?), continuing");
			continue;
		}
		if (r < 0)
			return true;
		if (m.type == BS_MSG_QUIT)
			return false;
		name = bs_msg_text(&m, BS_TAG_NAME, 0);
		fd = bs_msg_take_fd(&m, 0);
		if (name && m.type == BS_MSG_KEEP && fd >= 0)
			keep(name, fd);
		else
			(void)bs_close(fd);
		if (name && m.type == BS_MSG_DROP)
			drop(name);
	}
}

static int hand_over(int link)
{
	bs_automsg end;
	int r = 0;

	for (size_t i = 0; i < n_kept && r == 0; i++) {
		bs_automsg m;

		bs_msg_init(&m, BS_MSG_KEPT, 0);
		r = bs_msg_add_text(&m, BS_TAG_NAME, kept[i].name);
		if (r == 0)
			r = bs_msg_add_fd(&m, kept[i].fd);
		if (r == 0)
			r = bs_msg_send(link, &m);
	}
	bs_msg_init(&end, BS_MSG_KEPT, 0);
	return r < 0 ? r : bs_msg_send(link, &end);
}

/* A new supervisor; the link to it, or -errno. */
static int start_supervisor(const char *config, struct bs_error *err)
{
	const struct bs_part part = { .role = "supervisor", .config = config };
	bs_autofd int ours = -EBADF;
	struct bs_child c;
	int r = bs_program_start(&part, &c, &ours, err);

	if (r < 0)
		return r;
	(void)bs_close(c.pidfd); /* its end of the link tells us when it dies */
	(void)hand_over(ours);	 /* one that died meanwhile is seen at its end of the link */
	return bs_take_fd(&ours);
}

int bs_keeper_main(const char *config, int link)
{
	struct bs_error err = BS_ERROR_INIT;
	uint64_t started = bs_clock_ns();

	(void)signal(SIGPIPE, SIG_IGN);
	(void)bs_caps_limit(BS_ROLE_KEEPER);
	bs_nofile_raise();
	while (serve(link)) {
		(void)bs_close(link);
		if (bs_clock_ns() - started < QUICK_NS)
			(void)poll(NULL, 0, RESTART_PAUSE_MS);
		bs_log_warning("the supervisor died, starting another");
		started = bs_clock_ns();
		/* what we hold is worth more than an end: a full process table passes */
		while ((link = start_supervisor(config, &err)) < 0) {
			bs_log_error("%s, trying again", bs_error_text(&err));
			(void)poll(NULL, 0, RESTART_PAUSE_MS);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			; /* supervisors that we had started */
	}
	return 0;
}
