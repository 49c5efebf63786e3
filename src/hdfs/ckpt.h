/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A tree of checkpoints on HDFS as a program sees it: files that are striped (format in
 * bootseer-stripe(5)) and plain ones alike, with their true sizes, and without the .bootseer
 * directories that hold the stripes. What a FUSE filesystem or a tool builds on.
 *
 * Names: paths are HDFS's, absolute and clean (hdfs/path.h). A name ".bootseer" anywhere in one
 * is refused with -ENOENT (looking) or -EPERM (making); listings do not show it.
 *
 * Reading: a handle keeps the generation of the file that it opened. When the file is replaced,
 * its bytes are still read for the grace time; then reads give -ESTALE. Never two generations'
 * bytes in one file.
 *
 * Writing: all handles of one path that may write share one file, and so do their readers. What
 * is written is seen through this tree at once, on HDFS after bs_ckpt_sync or the last
 * bs_ckpt_close: then the new generation takes the old one's place in one step, or, after a
 * failure, the old one stays as it was. A file that was created shows up in this tree at once, on
 * HDFS when it is synced first. An error of a write that went on behind the caller's back is
 * given to the next write, sync and close of each handle.
 *
 * Threads: any; calls block (no longer than the deadline and the writing of what is buffered),
 * no lock is held over the network but by those who write one file.
 */
#ifndef BS_HDFS_CKPT_H
#define BS_HDFS_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/mem.h"
#include "hdfs/reply.h"

struct bs_ckpt;
struct bs_ckpt_file;
struct bs_error;
struct bs_nn;
struct bs_reader;
struct bs_stripes;
struct bs_view;
struct bs_writer;

#define BS_CKPT_HIDDEN ".bootseer"
#define BS_CKPT_SIZE_MAX ((UINT64_C(1) << 50)) /* of a file; -EFBIG */

enum bs_ckpt_layout { BS_CKPT_STRIPED, BS_CKPT_PLAIN };

struct bs_ckpt_options {
	struct bs_nn *nn;	    /* outlives it; its loop sends what is written */
	struct bs_reader *reader;   /* outlives it */
	bool read_only;		    /* -EROFS for all that changes something */
	enum bs_ckpt_layout layout; /* of files that are written */
	uint32_t unit;		    /* 0: 4 MiB; bytes, a multiple of 1 MiB up to 1 GiB */
	uint32_t files;		    /* of a segment; 0: as the DataNodes are, 16 at most */
	uint32_t replication;	    /* 0: the cluster's */
	uint64_t file_bytes;	    /* 0: 64 MiB; buffered of one file, at least two units */
	uint64_t mount_bytes;	    /* 0: 512 MiB; of all */
	uint64_t deadline_ns;	    /* 0: 60 s; of a read, and of sending one unit */
	uint64_t grace_ns;	    /* 0: 1 h; how long a replaced generation is kept */
	/* called before each step of a commit, with its name; for tests. May be NULL */
	void (*step)(const char *name, void *cookie);
	void *cookie;
};

int bs_ckpt_new(const struct bs_ckpt_options *o, struct bs_ckpt **ret, struct bs_error *err);
/* All handles are closed. */
struct bs_ckpt *bs_ckpt_free(struct bs_ckpt *c);
DEFINE_BS_AUTO(ckpt, struct bs_ckpt, bs_ckpt_free)

/* --- names ----------------------------------------------------------------------------------- */

/*
 * hdfs/namenode.h's, but of a file: len is what a reader sees, and block_size the unit where it
 * is striped. Files that are being written have their size of now. file_id is 0 for one that is
 * not on HDFS yet, and its owner and group are "": who mounts. atime_ms is mtime_ms for a striped file.
 */
int bs_ckpt_stat(struct bs_ckpt *c, const char *path, struct bs_hdfs_status *ret,
		 struct bs_error *err);
/* All entries in the order of bytes, those that are being created too. One walk of LISTSTATUS. */
int bs_ckpt_list(struct bs_ckpt *c, const char *path, struct bs_hdfs_list *ret,
		 struct bs_error *err);
/* 1: the file is striped, and that is its manifest; 0: it is a plain one. */
int bs_ckpt_manifest(struct bs_ckpt *c, const char *path, struct bs_stripes *ret,
		     struct bs_error *err);
/* -EEXIST */
int bs_ckpt_mkdir(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err);
/* -ENOTEMPTY as a user sees it; garbage of dead writers goes with it. */
int bs_ckpt_rmdir(struct bs_ckpt *c, const char *path, struct bs_error *err);
/* Of a file. Handles go on; what they write is dropped. */
int bs_ckpt_unlink(struct bs_ckpt *c, const char *path, struct bs_error *err);
/*
 * In place of a file, or of an empty directory, unless no_replace: -EEXIST. Handles go with
 * the file.
 */
int bs_ckpt_rename(struct bs_ckpt *c, const char *from, const char *to, bool no_replace,
		   struct bs_error *err);
struct bs_ckpt_mark {
	uint32_t mode;
	const char *name, *value; /* of an extended attribute */
};
/* An empty file that has the mark as soon as it is there. -EEXIST. */
int bs_ckpt_make_marked(struct bs_ckpt *c, const char *path, const struct bs_ckpt_mark *m,
			struct bs_error *err);
int bs_ckpt_set_mode(struct bs_ckpt *c, const char *path, uint32_t mode, struct bs_error *err);
/* NULL: unchanged */
int bs_ckpt_set_owner(struct bs_ckpt *c, const char *path, const char *owner, const char *group,
		      struct bs_error *err);
/* UINT64_MAX: unchanged. A striped file has no time of access: that one is not kept. */
int bs_ckpt_set_times(struct bs_ckpt *c, const char *path, uint64_t mtime_ms, uint64_t atime_ms,
		      struct bs_error *err);

/* --- open files ------------------------------------------------------------------------------ */

enum bs_ckpt_open_flag {
	BS_CKPT_WRITE = 1u << 0,  /* reading always can be done */
	BS_CKPT_CREATE = 1u << 1, /* if it is not there */
	BS_CKPT_EXCL = 1u << 2,	  /* it must not be there: -EEXIST, at the first sync too */
	BS_CKPT_TRUNC = 1u << 3,  /* the old bytes stay on HDFS until the next sync or close */
};

/* mode: of a file that is created. */
int bs_ckpt_open(struct bs_ckpt *c, const char *path, unsigned int flags, uint32_t mode,
		 struct bs_ckpt_file **ret, struct bs_error *err);

/*
 * What f has on HDFS, to be read only: a handle of its own. 1: none, since something of it is not
 * there.
 */
int bs_ckpt_reopen(struct bs_ckpt_file *f, struct bs_ckpt_file **ret);

uint64_t bs_ckpt_size(struct bs_ckpt_file *f);
/* As bs_ckpt_stat, of what the handle has open, also when its name is gone. */
int bs_ckpt_fstat(struct bs_ckpt_file *f, struct bs_hdfs_status *ret, struct bs_error *err);
/* For readahead: reads of whole units have their sums checked. Of a plain file: the block's. */
uint64_t bs_ckpt_unit(const struct bs_ckpt_file *f);
/* How many units are worth being read at once. */
unsigned int bs_ckpt_streams(const struct bs_ckpt_file *f);

struct bs_job { /* of the tree's threads */
	struct bs_list link;
	void (*fn)(struct bs_job *j); /* may block, frees or forgets it */
};

/*
 * One read; the owner keeps it and buf until done was called, exactly once, on a thread of the
 * tree's, where it must not block. result: bytes, less than len only at the end of the file, or
 * -errno: -EIO, -ESTALE, -ETIMEDOUT, -ENOMEM, ….
 */
struct bs_ckpt_read {
	void *buf;
	size_t len;
	uint64_t off;
	void (*done)(struct bs_ckpt_read *r);
	void *cookie;

	ssize_t result;
	char text[160];

	/* the tree's */
	struct bs_job job;
	struct bs_view *view;
	struct bs_writer *writer;
	size_t first_len;
	unsigned int left; /* atomic */
};

/* Never calls done from within. */
void bs_ckpt_read_start(struct bs_ckpt_file *f, struct bs_ckpt_read *r);
/* The same, waited for. Not from done. */
ssize_t bs_ckpt_pread(struct bs_ckpt_file *f, void *buf, size_t len, uint64_t off,
		      struct bs_error *err);

#define BS_CKPT_END UINT64_MAX

/*
 * All of len or -errno. off BS_CKPT_END: at the end, whichever that is now. Waits when the
 * bound of what is buffered is reached. -EBADF: not open for writing.
 */
int bs_ckpt_write(struct bs_ckpt_file *f, const void *buf, size_t len, uint64_t off,
		  struct bs_error *err);
int bs_ckpt_truncate(struct bs_ckpt_file *f, uint64_t len, struct bs_error *err);
/* What was written is on HDFS, and is what everybody reads. What fsync(2) and close(2) call. */
int bs_ckpt_sync(struct bs_ckpt_file *f, struct bs_error *err);
/* Syncs when it is the last handle that may write. f is gone in any case. NULL: 0. */
int bs_ckpt_close(struct bs_ckpt_file *f, struct bs_error *err);

/* --- tidying up ------------------------------------------------------------------------------ */

struct bs_ckpt_gc {
	uint64_t
		lease_ns; /* a segment that nobody refers to is a dead writer's after this; 0: 1 h */
	bool recursive;
	uint64_t segments, bytes; /* out: removed */
	uint64_t kept;		  /* out: in use, or too young */
};
/* Removes what dead writers and replaced generations left below a directory. */
int bs_ckpt_gc(struct bs_ckpt *c, const char *path, struct bs_ckpt_gc *gc, struct bs_error *err);

struct bs_ckpt_stats {
	uint64_t written;      /* bytes that callers wrote */
	uint64_t sent;	       /* bytes that DataNodes took */
	uint64_t placed_again; /* units that were sent to another DataNode */
	uint64_t commits;
	uint64_t buffered;		   /* bytes, now */
	uint64_t sums_checked, sums_wrong; /* units */
};
void bs_ckpt_stats(struct bs_ckpt *c, struct bs_ckpt_stats *ret);

#endif
