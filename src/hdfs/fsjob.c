/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Requests that wait, on threads of their own, and what becomes of those whose caller is
 * killed meanwhile. The kernel says once that a signal came, whichever it was, so from then
 * on the caller is looked at until the request is over: a process that is about to end has
 * SIGKILL pending, whatever signal it was that ends it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "hdfs/fspriv.h"

#define STACK_BYTES (512u << 10)
#define LOOK_NS (200 * BS_NS_PER_MS)
#define STATUS_MAX 16384u

/* --- jobs -------------------------------------------------------------------------------------- */

static void on_interrupt(fuse_req_t req, void *cookie)
{
	struct bs_fsjob *j = cookie;
	struct bs_fs *fs = j->fs;

	(void)pthread_mutex_lock(&fs->watch_lock);
	if (!atomic_load(&j->answered) && bs_list_empty(&j->interrupted)) {
		bs_list_append(&fs->interrupted, &j->interrupted);
		(void)pthread_cond_signal(&fs->watch_change);
	}
	(void)pthread_mutex_unlock(&fs->watch_lock);
}

struct bs_fsjob *bs_fsjob_inner(struct bs_fs *fs, void (*run)(struct bs_fsjob *j))
{
	struct bs_fsjob *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	bs_list_init(&j->queued);
	bs_list_init(&j->interrupted);
	j->fs = fs;
	j->run = run;
	return j;
}

struct bs_fsjob *bs_fsjob_new(fuse_req_t req, fuse_ino_t ino, const char *name, const char *name2,
			      const struct fuse_file_info *fi, void (*run)(struct bs_fsjob *j))
{
	struct bs_fsjob *j = bs_fsjob_inner(bs_fs_of(req), run);

	if (j) {
		j->name = name ? strdup(name) : NULL;
		j->name2 = name2 ? strdup(name2) : NULL;
	}
	if (!j || (name && !j->name) || (name2 && !j->name2)) {
		if (j)
			free(j->name);
		free(j);
		(void)fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	j->req = req;
	j->pid = fuse_req_ctx(req)->pid;
	j->ino = ino;
	j->has_fi = fi != NULL;
	if (fi)
		j->fi = *fi;
	fuse_req_interrupt_func(req, on_interrupt, j);
	return j;
}

bool bs_fsjob_claim(struct bs_fsjob *j)
{
	if (atomic_exchange(&j->answered, true))
		return false;
	/* waits for one that is being called; none is called after */
	fuse_req_interrupt_func(j->req, NULL, NULL);
	atomic_fetch_add(&j->fs->n_requests, 1);
	return true;
}

void bs_fsjob_free(struct bs_fsjob *j)
{
	(void)pthread_mutex_lock(&j->fs->watch_lock);
	bs_list_remove(&j->interrupted);
	(void)pthread_mutex_unlock(&j->fs->watch_lock);
	if (j->put)
		j->put(j->held);
	free(j->name);
	free(j->name2);
	free(j->data);
	free(j);
}

void bs_fsjob_end(struct bs_fsjob *j, int r)
{
	if (bs_fsjob_claim(j)) {
		if (r < 0)
			atomic_fetch_add(&j->fs->n_failures, 1);
		(void)fuse_reply_err(j->req, -r);
	}
	bs_fsjob_free(j);
}

/* --- pools ------------------------------------------------------------------------------------- */

static void *pool_main(void *arg)
{
	struct bs_fspool *p = arg;

	for (;;) {
		struct bs_fsjob *j = NULL;

		(void)pthread_mutex_lock(&p->lock);
		while (bs_list_empty(&p->queue) && !p->over)
			(void)pthread_cond_wait(&p->work, &p->lock);
		if (!bs_list_empty(&p->queue)) {
			j = bs_list_entry(p->queue.next, struct bs_fsjob, queued);
			bs_list_remove(&j->queued);
		}
		(void)pthread_mutex_unlock(&p->lock);
		if (!j)
			return NULL;
		j->run(j);
	}
}

int bs_fspool_start(struct bs_fspool *p, struct bs_fs *fs, unsigned int n)
{
	pthread_attr_t attr;
	int r = 0;

	p->fs = fs;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->work, NULL);
	bs_list_init(&p->queue);
	p->threads = calloc(n, sizeof(*p->threads));
	if (!p->threads)
		return -ENOMEM;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (r == 0 && p->n < n) {
		r = pthread_create(&p->threads[p->n], &attr, pool_main, p);
		p->n += r == 0;
	}
	(void)pthread_attr_destroy(&attr);
	return -r;
}

void bs_fspool_stop(struct bs_fspool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->over = true;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->n; i++)
		(void)pthread_join(p->threads[i], NULL);
	free(p->threads);
	p->threads = NULL;
	p->n = 0;
}

void bs_fsjob_queue(struct bs_fspool *p, struct bs_fsjob *j)
{
	(void)pthread_mutex_lock(&p->lock);
	bs_list_append(&p->queue, &j->queued);
	(void)pthread_cond_signal(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
}

/* --- the dying --------------------------------------------------------------------------------- */

static bool has_kill(const char *status, const char *field)
{
	const char *at = strstr(status, field);
	uint64_t mask = 0;

	if (!at)
		return false;
	for (at += strlen(field); *at == ' ' || *at == '\t'; at++)
		;
	for (; *at && *at != '\n'; at++)
		mask = mask << 4 | (uint64_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
	return mask >> (SIGKILL - 1) & 1;
}

static bool read_status(pid_t pid, char **ret)
{
	char path[32];
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return bs_read_file_at(AT_FDCWD, path, 0, STATUS_MAX, ret, &len) == 0;
}

/*
 * A thread that is not there any more counts as dying: it was told that a signal came. Not one
 * that nobody here can look at: another pid namespace's (0), or any, with hidepid of proc(5).
 */
static bool is_dying(pid_t pid)
{
	bs_autofree char *status = NULL, *init = NULL;

	if (pid == 0)
		return false;
	if (!read_status(pid, &status))
		return read_status(1, &init);
	return has_kill(status, "\nSigPnd:") || has_kill(status, "\nShdPnd:");
}

/* Lock held; the list's jobs are not freed while it is. */
static void look_at_all(struct bs_fs *fs)
{
	bs_list_for_each(it, &fs->interrupted) {
		struct bs_fsjob *j = bs_list_entry(it, struct bs_fsjob, interrupted);
		fuse_req_t req = j->req;

		if (!is_dying(j->pid))
			continue;
		bs_list_remove(it);
		if (atomic_exchange(&j->answered, true))
			continue;
		atomic_fetch_add(&fs->n_interrupted, 1);
		(void)fuse_reply_err(req, EINTR);
	}
}

static void *watch_main(void *arg)
{
	struct bs_fs *fs = arg;

	(void)pthread_mutex_lock(&fs->watch_lock);
	while (!fs->watch_over) {
		if (bs_list_empty(&fs->interrupted)) {
			(void)pthread_cond_wait(&fs->watch_change, &fs->watch_lock);
			continue;
		}
		look_at_all(fs);
		(void)bs_clock_cond_wait(&fs->watch_change, &fs->watch_lock,
					 bs_clock_ns() + LOOK_NS);
	}
	(void)pthread_mutex_unlock(&fs->watch_lock);
	return NULL;
}

int bs_fswatch_start(struct bs_fs *fs)
{
	(void)pthread_mutex_init(&fs->watch_lock, NULL);
	(void)pthread_cond_init(&fs->watch_change, NULL);
	(void)pthread_cond_init(&fs->closed, NULL);
	bs_list_init(&fs->interrupted);
	return -pthread_create(&fs->watcher, NULL, watch_main, fs);
}

void bs_fswatch_stop(struct bs_fs *fs)
{
	(void)pthread_mutex_lock(&fs->watch_lock);
	fs->watch_over = true;
	(void)pthread_cond_signal(&fs->watch_change);
	(void)pthread_mutex_unlock(&fs->watch_lock);
	(void)pthread_join(fs->watcher, NULL);
}
