/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * bootseerctl ckpt export, import: a file from here or from HDFS to the other, or from HDFS to
 * HDFS. What is read next from HDFS is on its way, from all DataNodes at once, while what came
 * before is written.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cmd/ctl-ckpt.h"
#include "cmd/ctl.h"
#include "cmd/progress.h"
#include "hdfs/ckpt.h"

#define BUFS 3u
#define BUF_BYTES ((size_t)32 << 20)

/* A file of HDFS or of this machine. */
struct end {
	struct bs_mount_options o;
	struct bs_mounted *m;
	struct bs_ckpt_file *f; /* NULL: fd */
	int fd;
	const char *name;
	bool made; /* fd's file is ours to remove */
	uint64_t size;
};

/* One of the reads that go on ahead. */
struct ahead {
	struct bs_ckpt_read read;
	bool done;
};

struct copy {
	struct end from, to;
	struct bs_progress progress;
	pthread_mutex_t lock; /* guards done of each */
	pthread_cond_t change;
	struct ahead ahead[BUFS];
};

/* --- ends ------------------------------------------------------------------------------------ */

static int open_from(struct end *e, const struct ctl_ckpt_how *how, struct bs_error *err)
{
	struct stat st;
	int r;

	if (ctl_ckpt_is_url(e->name)) {
		r = ctl_ckpt_connect(how, e->name, "ro", &e->o, &e->m, err);
		if (r == 0)
			r = bs_ckpt_open(bs_mounted_ckpt(e->m), bs_mounted_path(e->m), 0, 0, &e->f,
					 err);
		if (r == 0)
			e->size = bs_ckpt_size(e->f);
		return r;
	}
	e->fd = open(e->name, O_RDONLY | O_CLOEXEC);
	if (e->fd < 0 || fstat(e->fd, &st) < 0)
		return bs_fail_errno(err, -errno, "open '%s'", e->name);
	if (!S_ISREG(st.st_mode))
		return bs_fail(err, -EINVAL, "'%s' is no regular file", e->name);
	e->size = (uint64_t)st.st_size;
	return 0;
}

static int open_to(struct end *e, const struct ctl_ckpt_how *how, const char *layout, bool force,
		   struct bs_error *err)
{
	const unsigned int flags = BS_CKPT_WRITE | BS_CKPT_CREATE |
				   (force ? BS_CKPT_TRUNC : BS_CKPT_EXCL);
	struct stat st;
	int r;

	if (ctl_ckpt_is_url(e->name)) {
		r = ctl_ckpt_connect(how, e->name, layout, &e->o, &e->m, err);
		return r < 0 ? r
			     : bs_ckpt_open(bs_mounted_ckpt(e->m), bs_mounted_path(e->m), flags,
					    0644, &e->f, err);
	}
	e->fd = open(e->name, O_WRONLY | O_CREAT | (force ? O_TRUNC : O_EXCL) | O_CLOEXEC, 0666);
	if (e->fd < 0 || fstat(e->fd, &st) < 0)
		return bs_fail_errno(err, -errno, "make '%s'%s", e->name,
				     errno == EEXIST ? " (see --force)" : "");
	e->made = S_ISREG(st.st_mode); /* else it is a pipe or a device, and stays */
	return 0;
}

static int put(struct end *e, const void *buf, size_t len, uint64_t off, struct bs_error *err)
{
	int r;

	if (e->f)
		return bs_ckpt_write(e->f, buf, len, off, err);
	r = bs_write_full(e->fd, buf, len);
	return r < 0 ? bs_fail_errno(err, r, "write '%s'", e->name) : 0;
}

/* Now it counts. */
static int finish(struct end *e, struct bs_error *err)
{
	if (e->f)
		return bs_ckpt_close(bs_take(&e->f), err);
	return e->made && fsync(e->fd) < 0 ? bs_fail_errno(err, -errno, "write '%s'", e->name) : 0;
}

/*
 * A file of HDFS that was not finished is not closed: that would put it in its place. The end
 * of this process leaves what was written of it to be collected.
 */
static void end_done(struct end *e, bool failed)
{
	if (failed && e->made)
		(void)unlink(e->name);
	(void)bs_close(e->fd);
	if (e->f && failed)
		return;
	(void)bs_ckpt_close(e->f, NULL);
	(void)bs_mounted_free(e->m);
	bs_mount_options_done(&e->o);
}

/* --- reading --------------------------------------------------------------------------------- */

static void on_done(struct bs_ckpt_read *r)
{
	struct copy *c = r->cookie;
	struct ahead *a = BS_CONTAINER_OF(r, struct ahead, read);

	(void)pthread_mutex_lock(&c->lock);
	a->done = true;
	(void)pthread_cond_signal(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
}

static size_t bytes_at(const struct copy *c, uint64_t off)
{
	return off >= c->from.size ? 0 : (size_t)BS_MIN(c->from.size - off, (uint64_t)BUF_BYTES);
}

static void start(struct copy *c, uint64_t off)
{
	struct ahead *a = &c->ahead[off / BUF_BYTES % BUFS];

	if (bytes_at(c, off) == 0 || !c->from.f)
		return;
	a->done = false;
	a->read.len = bytes_at(c, off);
	a->read.off = off;
	a->read.done = on_done;
	a->read.cookie = c;
	bs_ckpt_read_start(c->from.f, &a->read);
}

static int wait_for(struct copy *c, struct ahead *a, size_t len, struct bs_error *err)
{
	(void)pthread_mutex_lock(&c->lock);
	while (!a->done)
		(void)pthread_cond_wait(&c->change, &c->lock);
	(void)pthread_mutex_unlock(&c->lock);
	if (a->read.result < 0 && a->read.text[0])
		return bs_fail(err, (int)a->read.result, "read '%s': %s", c->from.name,
			       a->read.text);
	if (a->read.result < 0)
		return bs_fail_errno(err, (int)a->read.result, "read '%s'", c->from.name);
	return (size_t)a->read.result == len
		       ? 0
		       : bs_fail(err, -EIO, "'%s' became shorter while it was read", c->from.name);
}

static int get(struct copy *c, struct ahead *a, uint64_t off, size_t len, struct bs_error *err)
{
	ssize_t n;

	if (c->from.f)
		return wait_for(c, a, len, err);
	n = bs_pread_full(c->from.fd, a->read.buf, len, off);
	if (n < 0)
		return bs_fail_errno(err, (int)n, "read '%s'", c->from.name);
	return (size_t)n == len
		       ? 0
		       : bs_fail(err, -EIO, "'%s' became shorter while it was read", c->from.name);
}

static int copy_bytes(struct copy *c, struct bs_error *err)
{
	int r = 0;

	for (unsigned int i = 0; i < BUFS; i++)
		start(c, (uint64_t)i * BUF_BYTES);
	for (uint64_t off = 0; off < c->from.size; off += BUF_BYTES) {
		struct ahead *a = &c->ahead[off / BUF_BYTES % BUFS];
		const size_t len = bytes_at(c, off);
		int e = get(c, a, off, len, r == 0 ? err : NULL);

		if (r == 0)
			r = e < 0 ? e : put(&c->to, a->read.buf, len, off, err);
		if (r < 0) /* only the reads that are under way are waited for */
			c->from.size = BS_MIN(c->from.size, off + BUFS * BUF_BYTES);
		else
			start(c, off + BUFS * BUF_BYTES);
		bs_progress_set(&c->progress, off + len);
	}
	return r;
}

static int copy(struct copy *c, struct bs_error *err)
{
	int r = 0;

	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->change, NULL);
	for (unsigned int i = 0; i < BUFS; i++) {
		c->ahead[i].read.buf = malloc(BUF_BYTES);
		if (!c->ahead[i].read.buf)
			r = bs_fail(err, -ENOMEM, "out of memory");
	}
	bs_progress_begin(&c->progress, "copying", c->from.size);
	if (r == 0)
		r = copy_bytes(c, err);
	if (r == 0)
		r = finish(&c->to, err);
	bs_progress_end(&c->progress, r < 0);
	for (unsigned int i = 0; i < BUFS; i++)
		free(c->ahead[i].read.buf);
	return r;
}

static int run(int argc, char **argv, const char *layout, const char *synopsis, const char *text)
{
	struct ctl_ckpt_how how = { 0 };
	bool quiet = false, force = false;
	const struct bs_option options[] = {
		CTL_CKPT_OPTIONS(&how),
		{ "force", 'f', BS_OPTION_FLAG, &force, NULL, "in place of a file that is there" },
		{ "quiet", 'q', BS_OPTION_FLAG, &quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = { .synopsis = synopsis,
					.text = text,
					.options = options,
					.n_options = BS_ARRAY_LEN(options),
					.min_args = 2,
					.max_args = 2 };
	static struct copy c; /* a transfer that is given up may come to it until the end */
	struct bs_error err = BS_ERROR_INIT;
	const char *args[2];
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	c.from.fd = c.to.fd = -EBADF;
	c.from.name = args[0];
	c.to.name = args[1];
	bs_progress_init(&c.progress, quiet);
	r = open_from(&c.from, &how, &err);
	if (r == 0)
		r = open_to(&c.to, &how, layout, force, &err);
	if (r == 0)
		r = copy(&c, &err);
	end_done(&c.to, r < 0);
	end_done(&c.from, false);
	return r < 0 ? ctl_fail(&err) : 0;
}

int ctl_ckpt_export(int argc, char **argv)
{
	return run(argc, argv, "layout=plain", "bootseerctl ckpt export URL FILE|URL [OPTION]...",
		   "Copies a file of HDFS, striped or not, to a file here, or to an ordinary\n"
		   "file of HDFS that every client can read.\n");
}

int ctl_ckpt_import(int argc, char **argv)
{
	return run(argc, argv, "layout=striped", "bootseerctl ckpt import FILE|URL URL [OPTION]...",
		   "Copies a file, from here or from HDFS, to a striped file of HDFS.\n");
}
