/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Ordinary files only, to be read: as much of ckpt.h as the client below it can do by itself. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "hdfs/ckpt.h"
#include "hdfs/file.h"
#include "hdfs/namenode.h"

#define READERS 16u

struct bs_ckpt {
	struct bs_ckpt_options o;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct bs_list queue;
	bool over;
	pthread_t threads[READERS];
};

struct bs_ckpt_file {
	struct bs_ckpt *c;
	struct bs_file *file;
	char *path;
};

static void *reader_main(void *arg)
{
	struct bs_ckpt *c = arg;

	for (;;) {
		struct bs_error err = BS_ERROR_INIT;
		struct bs_ckpt_read *r = NULL;

		(void)pthread_mutex_lock(&c->lock);
		while (bs_list_empty(&c->queue) && !c->over)
			(void)pthread_cond_wait(&c->work, &c->lock);
		if (!bs_list_empty(&c->queue)) {
			r = bs_list_entry(c->queue.next, struct bs_ckpt_read, link);
			bs_list_remove(&r->link);
		}
		(void)pthread_mutex_unlock(&c->lock);
		if (!r)
			return NULL;
		r->result = bs_file_pread(r->file->file, r->buf, r->len, r->off, &err);
		r->done(r);
	}
}

int bs_ckpt_new(const struct bs_ckpt_options *o, struct bs_ckpt **ret, struct bs_error *err)
{
	struct bs_ckpt *c = calloc(1, sizeof(*c));

	if (!c)
		return bs_fail(err, -ENOMEM, "out of memory");
	c->o = *o;
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->work, NULL);
	bs_list_init(&c->queue);
	for (unsigned int i = 0; i < READERS; i++)
		(void)pthread_create(&c->threads[i], NULL, reader_main, c);
	*ret = c;
	return 0;
}

struct bs_ckpt *bs_ckpt_free(struct bs_ckpt *c)
{
	if (!c)
		return NULL;
	(void)pthread_mutex_lock(&c->lock);
	c->over = true;
	(void)pthread_cond_broadcast(&c->work);
	(void)pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < READERS; i++)
		(void)pthread_join(c->threads[i], NULL);
	free(c);
	return NULL;
}

int bs_ckpt_stat(struct bs_ckpt *c, const char *path, struct bs_hdfs_status *ret,
		 struct bs_error *err)
{
	return bs_nn_status(c->o.nn, path, ret, err);
}

int bs_ckpt_list(struct bs_ckpt *c, const char *path, struct bs_hdfs_list *ret,
		 struct bs_error *err)
{
	return bs_nn_list(c->o.nn, path, ret, err);
}

int bs_ckpt_mkdir(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err)
{
	struct bs_hdfs_status s = { 0 };
	int r = bs_nn_status(c->o.nn, path, &s, err);

	bs_hdfs_status_done(&s);
	if (r == 0)
		return -EEXIST;
	return r == -ENOENT ? bs_nn_mkdirs(c->o.nn, path, mode, err) : r;
}

int bs_ckpt_rmdir(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	return bs_nn_delete(c->o.nn, path, false, err);
}

int bs_ckpt_unlink(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	return bs_nn_delete(c->o.nn, path, false, err);
}

int bs_ckpt_rename(struct bs_ckpt *c, const char *from, const char *to, bool no_replace,
		   struct bs_error *err)
{
	return bs_nn_rename(c->o.nn, from, to, !no_replace, err);
}

int bs_ckpt_set_mode(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err)
{
	return bs_nn_set_mode(c->o.nn, path, mode, err);
}

int bs_ckpt_set_owner(struct bs_ckpt *c, const char *path, const char *owner, const char *group,
		      struct bs_error *err)
{
	return bs_nn_set_owner(c->o.nn, path, owner, group, err);
}

int bs_ckpt_set_times(struct bs_ckpt *c, const char *path, uint64_t mtime_ms, uint64_t atime_ms,
		      struct bs_error *err)
{
	return bs_nn_set_times(c->o.nn, path, mtime_ms, atime_ms, err);
}

int bs_ckpt_open(struct bs_ckpt *c, const char *path, unsigned int flags, uint32_t mode,
		 struct bs_ckpt_file **ret, struct bs_error *err)
{
	const struct bs_file_options fo = { .nn = c->o.nn, .reader = c->o.reader };
	struct bs_ckpt_file *f;
	int r;

	if (flags)
		return -EOPNOTSUPP;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->c = c;
	f->path = strdup(path);
	r = f->path ? bs_file_open(&fo, path, &f->file, err) : -ENOMEM;
	if (r < 0) {
		free(f->path);
		free(f);
		return r;
	}
	*ret = f;
	return 0;
}

uint64_t bs_ckpt_size(struct bs_ckpt_file *f)
{
	return bs_file_status(f->file)->len;
}

int bs_ckpt_fstat(struct bs_ckpt_file *f, struct bs_hdfs_status *ret, struct bs_error *err)
{
	return bs_nn_status(f->c->o.nn, f->path, ret, err);
}

uint64_t bs_ckpt_unit(const struct bs_ckpt_file *f)
{
	return bs_file_status(f->file)->block_size;
}

unsigned int bs_ckpt_streams(const struct bs_ckpt_file *f)
{
	return 16;
}

void bs_ckpt_read_start(struct bs_ckpt_file *f, struct bs_ckpt_read *r)
{
	r->file = f;
	(void)pthread_mutex_lock(&f->c->lock);
	bs_list_append(&f->c->queue, &r->link);
	(void)pthread_cond_signal(&f->c->work);
	(void)pthread_mutex_unlock(&f->c->lock);
}

int bs_ckpt_write(struct bs_ckpt_file *f, const void *buf, size_t len, uint64_t off,
		  struct bs_error *err)
{
	return -EOPNOTSUPP;
}

int bs_ckpt_truncate(struct bs_ckpt_file *f, uint64_t len, struct bs_error *err)
{
	return -EOPNOTSUPP;
}

int bs_ckpt_sync(struct bs_ckpt_file *f, struct bs_error *err)
{
	return 0;
}

int bs_ckpt_close(struct bs_ckpt_file *f, struct bs_error *err)
{
	if (!f)
		return 0;
	(void)bs_file_free(f->file);
	free(f->path);
	free(f);
	return 0;
}
