/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the parts of the checkpoint tree share: ckpt.c (handles, and who writes), tree.c (names),
 * marked.c, attr.c, view.c (a generation, to read), writer.c (a file that is written), pages.c
 * (its memory), commit.c (its end), gc.c.
 *
 * Locks, in this order: a writer's io (over the network; another's beside it only when nobody
 * has it just now), ckpt.lock, a writer's lock, room_lock, a view's lock. All but the first only
 * for moments.
 */
#ifndef BS_HDFS_CKPTPRIV_H
#define BS_HDFS_CKPTPRIV_H

#include <pthread.h>

#include "base/list.h"
#include "hdfs/ckpt.h"
#include "hdfs/file.h"
#include "hdfs/manifest.h"

struct bs_pool;
struct bs_putter;
struct bs_view;
struct bs_writer;

struct bs_ckpt {
	struct bs_ckpt_options o;
	struct bs_putter *putter;
	struct bs_pool *pool;
	uint32_t replication;	    /* 0: not asked for yet; atomic */
	struct bs_ckpt_stats stats; /* atomic members */
	uint64_t sending;	    /* of what is buffered; atomic */
	pthread_mutex_t room_lock;
	pthread_cond_t room; /* less is buffered */

	pthread_mutex_t lock;	/* guards what follows */
	struct bs_list writers; /* that have a name */
};

#define BS_CKPT_ASIDE "rm-" /* in .bootseer: where a directory waits to be removed */

/* --- paths ----------------------------------------------------------------------------------- */

/* 0, or -ENOENT for what is hidden; what a path of a caller's has to be. */
int bs_ckpt_path_check(const char *path, struct bs_error *err);
/* "/a/b" has the directory "/a"; malloc'ed. */
char *bs_ckpt_parent(const char *path);
/* DIR/.bootseer/ID/NAME; NULL: none of it. malloc'ed, NULL: out of memory. */
char *bs_ckpt_hidden(const char *dir, const char *id, const char *name);
/* DIR/.bootseer, for whom may write in DIR. */
int bs_ckpt_make_hidden(struct bs_ckpt *c, const char *dir, struct bs_error *err);
/* 32 digits at random. */
int bs_ckpt_new_id(char id[BS_STRIPES_ID_LEN + 1]);
int bs_ckpt_no_memory(struct bs_error *err); /* -ENOMEM */
void bs_ckpt_step(struct bs_ckpt *c, const char *name);
void bs_ckpt_count(uint64_t *counter, uint64_t n);
/* -EROFS of a tree that is read only. */
int bs_ckpt_may_write(const struct bs_ckpt *c, const char *path, struct bs_error *err);
/* What a path has to be that is changed: -EPERM for what is hidden, -EROFS. */
int bs_ckpt_may_change(struct bs_ckpt *c, const char *path, struct bs_error *err);
/*
 * The stripes of the file at path: *ret is NULL when it has none. Bytes that are no manifest of
 * ours have none; what cannot be read now is an error, since it may have some.
 */
int bs_ckpt_stripes_at(struct bs_ckpt *c, const char *path, const struct bs_hdfs_status *s,
		       struct bs_view **ret, struct bs_error *err);
/* The replication of new files. */
int bs_ckpt_replication(struct bs_ckpt *c, uint32_t *ret, struct bs_error *err);

/* --- a generation, to read (view.c) ---------------------------------------------------------- */

/* What is at path now. -EISDIR, -ENOENT, … */
int bs_view_open(struct bs_ckpt *c, const char *path, struct bs_view **ret, struct bs_error *err);
struct bs_view *bs_view_ref(struct bs_view *v);
struct bs_view *bs_view_unref(struct bs_view *v);
DEFINE_BS_AUTO(view, struct bs_view, bs_view_unref)
/* NULL: a plain file. */
const struct bs_stripes *bs_view_stripes(const struct bs_view *v);
/* Of the file at the path: the manifest's, when it is striped. */
const struct bs_hdfs_status *bs_view_status(const struct bs_view *v);
uint64_t bs_view_size(const struct bs_view *v);
/* Blocks. As bs_file_pread. */
ssize_t bs_view_pread(struct bs_view *v, void *buf, size_t len, uint64_t off, struct bs_error *err);
/* A copy of s with the size and unit of stripes, if there are any. 0 or -ENOMEM. */
int bs_view_tell(const struct bs_view *v, struct bs_hdfs_status *ret);
int bs_ckpt_copy_status(const struct bs_hdfs_status *s, struct bs_hdfs_status *ret);

/* --- work for threads (pool.c) --------------------------------------------------------------- */

int bs_pool_new(unsigned int threads, struct bs_pool **ret, struct bs_error *err);
/* What was queued is done before. */
struct bs_pool *bs_pool_free(struct bs_pool *p);
void bs_pool_run(struct bs_pool *p, struct bs_job *j);
/* A thread of the pool calls fn about so often. Once. */
void bs_pool_every(struct bs_pool *p, uint64_t ns, void (*fn)(void *cookie), void *cookie);

/* --- a file that is written (writer.c) ------------------------------------------------------- */

/* view: what there is, or NULL. trunc: its bytes do not count. Both taken over on success. */
int bs_writer_new(struct bs_ckpt *c, const char *path, struct bs_view *view, unsigned int flags,
		  uint32_t mode, struct bs_writer **ret, struct bs_error *err);
struct bs_writer *bs_writer_ref(struct bs_writer *w);
struct bs_writer *bs_writer_unref(struct bs_writer *w);
DEFINE_BS_AUTO(writer, struct bs_writer, bs_writer_unref)
uint64_t bs_writer_size(struct bs_writer *w);
uint32_t bs_writer_unit(const struct bs_writer *w);
int bs_writer_write(struct bs_writer *w, const void *buf, size_t len, uint64_t off,
		    struct bs_error *err);
int bs_writer_truncate(struct bs_writer *w, uint64_t len, struct bs_error *err);
ssize_t bs_writer_pread(struct bs_writer *w, void *buf, size_t len, uint64_t off,
			struct bs_error *err);
/* What there is to read when nothing waits to be written, else NULL; also, unless wait, when busy. */
struct bs_view *bs_writer_clean_view(struct bs_writer *w, bool wait);
int bs_writer_sync(struct bs_writer *w, struct bs_error *err);
int bs_writer_tell(struct bs_writer *w, struct bs_hdfs_status *ret);
/* Its segment's directory shows that somebody writes. */
void bs_writer_beat(struct bs_writer *w);

/* --- who writes (ckpt.c) --------------------------------------------------------------------- */

/* Who writes path, or NULL; the caller's reference. */
struct bs_writer *bs_ckpt_writer_of(struct bs_ckpt *c, const char *path);
/* With its io held: it has no name any more, what it wrote is dropped. */
void bs_writer_forget(struct bs_writer *w);
/* With its io held: after a rename of from, which it is or lies below. */
int bs_writer_renamed(struct bs_writer *w, const char *from, const char *to, struct bs_error *err);

/* Of the files in a segment's directory, and of itself (attr.c). NULL: unchanged. */
int bs_ckpt_own_segment(struct bs_ckpt *c, const char *segment, const char *owner,
			const char *group, struct bs_error *err);

/* --- segments (gc.c) ------------------------------------------------------------------------- */

/* The time of a segment's directory becomes that of now, by the NameNode's clock. */
void bs_ckpt_beat(struct bs_ckpt *c, const char *segment);
/*
 * A segment is about to move to another directory, and its manifest after it; then it has moved.
 * What stops in between is not garbage for a week. Best effort: not every mover may write in it.
 */
void bs_ckpt_note_move(struct bs_ckpt *c, const char *segment);
void bs_ckpt_moved(struct bs_ckpt *c, const char *segment);
/* Segments of old, at dir, that kept (or NULL) does not have get their marks. Best effort. */
void bs_ckpt_trash(struct bs_ckpt *c, const char *dir, const struct bs_stripes *old,
		   const struct bs_stripes *kept);

#endif
