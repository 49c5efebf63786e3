/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/fuseserve.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "kern/fusedev.h"

#define INIT_WAIT_NS (10 * BS_NS_PER_S)

struct bs_fuseserve {
	struct bs_fuseserve_options o;
	struct fuse_session *se;
	pthread_mutex_t lock; /* guards ready */
	pthread_cond_t changed;
	bool ready;
	unsigned int n_started;
	pthread_t *threads;
};

static void note_ready(struct bs_fuseserve *fs)
{
	(void)pthread_mutex_lock(&fs->lock);
	fs->ready = true;
	(void)pthread_cond_broadcast(&fs->changed);
	(void)pthread_mutex_unlock(&fs->lock);
}

static void serve(struct bs_fuseserve *fs)
{
	struct fuse_buf buf = { 0 };
	bool told = fs->ready;

	while (!fuse_session_exited(fs->se)) {
		int r = fuse_session_receive_buf(fs->se, &buf);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			break; /* the connection is gone */
		fuse_session_process_buf(fs->se, &buf);
		if (!told) {
			note_ready(fs); /* the first request is INIT, and was answered */
			told = true;
		}
	}
	free(buf.mem);
}

static void *server_main(void *arg)
{
	struct bs_fuseserve *fs = arg;

	if (!fs->o.begin || fs->o.begin(fs->o.cookie) >= 0)
		serve(fs);
	if (fs->o.end)
		fs->o.end(fs->o.cookie);
	return NULL;
}

/* The answer goes to a request that the kernel does not know, which it refuses without harm. */
static int repeat_init(struct bs_fuseserve *fs)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in init;
	} msg = {
		.head = { .len = sizeof(msg), .opcode = FUSE_INIT, .unique = UINT64_MAX >> 1 },
		.init = { .major = FUSE_KERNEL_VERSION,
			  .minor = FUSE_KERNEL_MINOR_VERSION,
			  .max_readahead = fs->o.max_readahead,
			  .flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES |
				   FUSE_PARALLEL_DIROPS },
	};
	const struct fuse_buf buf = { .size = sizeof(msg), .mem = &msg };

	fuse_session_process_buf(fs->se, &buf);
	return bs_fusedev_resend(fs->o.fuse_fd);
}

static int open_session(struct bs_fuseserve *fs, struct bs_error *err)
{
	char program[] = "bootseer", path[32];
	char *argv[] = { program, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	int r;

	fs->se = fuse_session_new(&args, fs->o.ops, fs->o.ops_size, fs->o.cookie);
	fuse_opt_free_args(&args);
	if (!fs->se)
		return bs_fail(err, -ENOMEM, "start a FUSE session");
	/* libfuse's form for a descriptor that is mounted already */
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fs->o.fuse_fd);
	if (fuse_session_mount(fs->se, path) < 0)
		return bs_fail(err, -EINVAL, "hand the FUSE device to the library");
	if (!fs->o.takeover)
		return 0;
	r = repeat_init(fs);
	if (r < 0)
		return bs_fail_errno(err, r, "ask the kernel to resend (Linux 6.9 can)");
	fs->ready = true;
	return 0;
}

static int start_threads(struct bs_fuseserve *fs, unsigned int first, unsigned int n,
			 struct bs_error *err)
{
	for (unsigned int i = first; i < first + n; i++) {
		int r = pthread_create(&fs->threads[i], NULL, server_main, fs);

		if (r != 0)
			return bs_fail_errno(err, -r, "start a FUSE thread");
		fs->n_started++;
	}
	return 0;
}

static int wait_ready(struct bs_fuseserve *fs, struct bs_error *err)
{
	uint64_t until = bs_clock_ns() + INIT_WAIT_NS;
	int r = 0;

	(void)pthread_mutex_lock(&fs->lock);
	while (!fs->ready && r == 0)
		r = bs_clock_cond_wait(&fs->changed, &fs->lock, until);
	(void)pthread_mutex_unlock(&fs->lock);
	return r ? bs_fail(err, -ETIMEDOUT, "the kernel's FUSE did not say a word") : 0;
}

int bs_fuseserve_start(const struct bs_fuseserve_options *o, struct bs_fuseserve **ret,
		       struct bs_error *err)
{
	struct bs_fuseserve *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return bs_fail(err, -ENOMEM, "out of memory");
	fs->o = *o;
	(void)pthread_mutex_init(&fs->lock, NULL);
	(void)pthread_cond_init(&fs->changed, NULL);
	fs->threads = calloc(o->n_threads, sizeof(*fs->threads));
	if (!fs->threads) {
		free(fs);
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	/* on failure the process ends: the session is not taken apart */
	if ((r = open_session(fs, err)) < 0 || (r = start_threads(fs, 0, 1, err)) < 0 ||
	    (r = wait_ready(fs, err)) < 0 || (r = start_threads(fs, 1, o->n_threads - 1, err)) < 0)
		return r;
	*ret = fs;
	return 0;
}

void bs_fuseserve_join(struct bs_fuseserve *fs)
{
	for (unsigned int i = 0; i < fs->n_started; i++)
		(void)pthread_join(fs->threads[i], NULL);
	fs->n_started = 0;
}

struct fuse_session *bs_fuseserve_session(struct bs_fuseserve *fs)
{
	return fs->se;
}
