/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the parts of the filesystem (fs*.c) share. */
#ifndef BS_HDFS_FSPRIV_H
#define BS_HDFS_FSPRIV_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/map.h"
#include "hdfs/ckpt.h"
#include "hdfs/fs.h"
#include "hdfs/units.h"

#define BS_FS_IO_MAX (1u << 20) /* of a read or write */

/* --- nodes (fsnode.c) -------------------------------------------------------------------------- */

struct bs_node {
	uint64_t id;		/* the kernel's name of it */
	uint64_t ino;		/* as stat(2) shows it */
	struct bs_node *parent; /* NULL: the root, or its name is gone */
	char *key;		/* the parent's id and the name: of the map */
	size_t key_len;
	char *name;	   /* in key */
	uint64_t lookups;  /* that the kernel has not forgotten yet */
	uint32_t slot;	   /* of fskeep.h */
	unsigned int uses; /* children, handles, jobs */
	/* of the generation; all 0: whichever there is (it is being written here) */
	uint64_t file_id, mtime_ms, len;
	bool is_dir, is_link;
	unsigned int writers;	/* handles that may write */
	bool cached;		/* the kernel may have pages of it */
	struct bs_units *units; /* what was read ahead, or NULL */
	bool unsynced;		/* written since it was on HDFS last */
	uint64_t opens;		/* handles */
	struct bs_list handles; /* the same ones */
	/*
	 * What all of them read by, since the kernel has one set of pages and one size: whoever opened
	 * it last, or writes. Has a reference. NULL: each by itself.
	 */
	struct bs_units_handle *current;
	struct stat last; /* as it was told last */
	/*
	 * All of it, when its name was taken away while it was open: HDFS gives the bytes of a
	 * small file to nobody any more. Set once.
	 */
	char *kept;
	size_t kept_len;
};

struct bs_nodes {
	pthread_mutex_t lock; /* guards all of all nodes */
	struct bs_map by_id, by_name;
	uint64_t last_id;
	struct bs_fskeep *keep; /* or NULL */
	struct bs_node root;
};

/* --- pools (fsjob.c) --------------------------------------------------------------------------- */

struct bs_fspool {
	struct bs_fs *fs;
	pthread_mutex_t lock; /* guards queue, over */
	pthread_cond_t work;
	struct bs_list queue;
	bool over;
	unsigned int n;
	pthread_t *threads;
};

/* A request that is worked on elsewhere. */
struct bs_fsjob {
	struct bs_list queued;
	struct bs_list interrupted; /* of fs->interrupted, or alone */
	struct bs_fs *fs;
	fuse_req_t req;
	_Atomic bool answered; /* who makes it so may answer */
	pid_t pid;
	void (*run)(struct bs_fsjob *j);
	/* arguments */
	fuse_ino_t ino, ino2;
	char *name, *name2;
	bool has_fi;
	struct fuse_file_info fi;
	mode_t mode;
	unsigned int flags;
	off_t off;
	size_t size;
	void *data; /* freed with it */
	struct stat attr;
	/* a handle's: its caller may be killed, and the handle be released, before run is over */
	void *held;
	void (*put)(void *held);
};

struct bs_fs {
	struct bs_fs_options o;
	struct bs_fuseserve *serve;
	struct bs_fsowners *owners;
	struct bs_nodes nodes;
	struct bs_unitpool *unitpool;
	struct bs_fspool meta;	 /* of the NameNode */
	struct bs_fspool data;	 /* writes, what is closed */
	struct bs_fspool answer; /* bytes for the kernel */
	pthread_t watcher;
	pthread_mutex_t watch_lock; /* guards what follows */
	pthread_cond_t watch_change, closed;
	struct bs_list interrupted;
	bool watch_over;
	uint64_t
		n_files; /* files of the tree that handles have, or had and that are not closed yet */
	_Atomic uint64_t first_read_ns, last_read_ns;
	_Atomic uint64_t n_requests, n_failures, n_interrupted, n_reads, n_read_bytes, n_hits,
		n_waits, n_direct, n_writes, n_written_bytes, n_open;
	_Atomic uint64_t changes; /* of names and attributes, that this mount made */
};

static inline struct bs_fs *bs_fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* A job with copies of the names; NULL: it is answered already. */
struct bs_fsjob *bs_fsjob_new(fuse_req_t req, fuse_ino_t ino, const char *name, const char *name2,
			      const struct fuse_file_info *fi, void (*run)(struct bs_fsjob *j));
/* One that nobody asked for: it is freed, never answered. NULL: out of memory. */
struct bs_fsjob *bs_fsjob_inner(struct bs_fs *fs, void (*run)(struct bs_fsjob *j));
void bs_fsjob_queue(struct bs_fspool *p, struct bs_fsjob *j);
/* Whether we are to answer, which then is done with j->req; else somebody has. */
bool bs_fsjob_claim(struct bs_fsjob *j);
void bs_fsjob_free(struct bs_fsjob *j);
/* Answers with an errno (0 or negative) and frees. */
void bs_fsjob_end(struct bs_fsjob *j, int r);

int bs_fspool_start(struct bs_fspool *p, struct bs_fs *fs, unsigned int n);
/* Works off what is queued. */
void bs_fspool_stop(struct bs_fspool *p);
int bs_fswatch_start(struct bs_fs *fs);
void bs_fswatch_stop(struct bs_fs *fs);

/* --- nodes ------------------------------------------------------------------------------------- */

/* After init: what an earlier server of the mount knew. 0 or -errno. */
int bs_fsnodes_adopt(struct bs_nodes *t);
void bs_fsnodes_init(struct bs_nodes *t);
void bs_fsnodes_done(struct bs_nodes *t);
/* The path on HDFS of the node, or of name in it; malloc'ed. -ESTALE: the node has no name any more. */
int bs_nodes_path(struct bs_fs *fs, fuse_ino_t ino, const char *name, char **ret);
/* One more look-up of what HDFS has at name in parent. -ENOMEM, -ESTALE. */
int bs_nodes_enter(struct bs_fs *fs, fuse_ino_t parent, const char *name,
		   const struct bs_hdfs_status *s, bool is_link, struct fuse_entry_param *ret);
void bs_nodes_forget(struct bs_fs *fs, fuse_ino_t ino, uint64_t n);
/* The name is gone, or stands for another. */
void bs_nodes_unname(struct bs_fs *fs, fuse_ino_t parent, const char *name);
void bs_nodes_rename(struct bs_fs *fs, fuse_ino_t from, const char *name, fuse_ino_t to,
		     const char *newname);
/* For as long as it is used; NULL: there is none. The second: by name. */
struct bs_node *bs_node_use(struct bs_fs *fs, fuse_ino_t ino);
struct bs_node *bs_node_use_name(struct bs_fs *fs, fuse_ino_t parent, const char *name);
void bs_node_unuse(struct bs_fs *fs, struct bs_node *n);

/* --- owners (fsowner.c): names of HDFS and numbers here ---------------------------------------- */

int bs_fsowners_new(uid_t uid, gid_t gid, bool one, struct bs_fsowners **ret);
void bs_fsowners_free(struct bs_fsowners *o);
uid_t bs_fsowners_uid(struct bs_fsowners *o, const char *name);
gid_t bs_fsowners_gid(struct bs_fsowners *o, const char *name);
/* malloc'ed; NULL: nobody has that number here. */
char *bs_fsowners_user(uid_t uid);
char *bs_fsowners_group(gid_t gid);

/* --- operations -------------------------------------------------------------------------------- */

void bs_fs_attr(struct bs_fs *fs, const struct bs_hdfs_status *s, bool is_link, uint64_t ino,
		struct stat *ret);
double bs_fs_timeout(const struct bs_fs *fs);
/* Status of a path, and whether it is one of our symbolic links. */
int bs_fs_status(struct bs_fs *fs, const char *path, struct bs_hdfs_status *ret, bool *ret_link);
bool bs_fs_maybe_link(const struct bs_hdfs_status *s);
bool bs_fs_is_link(struct bs_fs *fs, const char *path, const struct bs_hdfs_status *s);

void bs_fsop_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void bs_fsop_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void bs_fsop_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		     struct fuse_file_info *fi);
void bs_fsop_readlink(fuse_req_t req, fuse_ino_t ino);
void bs_fsop_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void bs_fsop_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void bs_fsop_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void bs_fsop_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void bs_fsop_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		    const char *newname, unsigned int flags);
void bs_fsop_statfs(fuse_req_t req, fuse_ino_t ino);
void bs_fsop_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		      size_t size, int flags);
void bs_fsop_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void bs_fsop_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void bs_fsop_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void bs_fsop_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void bs_fsop_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi);
void bs_fsop_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			 struct fuse_file_info *fi);
void bs_fsop_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void bs_fsop_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void bs_fsop_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void bs_fsop_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi);
void bs_fsop_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		  struct fuse_file_info *fi);
void bs_fsop_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		   struct fuse_file_info *fi);
void bs_fsop_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void bs_fsop_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void bs_fsop_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/*
 * Before the name of a file in parent is taken away: if it is open, and small enough, its bytes
 * are read and kept with the node.
 */
void bs_fs_keep(struct bs_fs *fs, fuse_ino_t parent, const char *name, const char *path);
/* What a file has that lost its name, as somebody has it open. -ESTALE: nobody has. */
int bs_fs_nameless(struct bs_fs *fs, struct bs_node *n, struct stat *ret);
/* The handle stays until the job is freed. For a job of a file. */
void bs_fs_hold(struct bs_fsjob *j);
/* Of what the handle reads now. */
int bs_fs_fstat(struct bs_fs *fs, const struct fuse_file_info *fi, struct bs_hdfs_status *ret);
/* A handle of an earlier server, before anything is served. 0, -ENOMEM or: HDFS is away. */
struct bs_fskeep_handle;
int bs_fs_adopt(struct bs_fs *fs); /* all of them */
/* Whether a file failed with r since HDFS itself does not answer, which says nothing of it. */
bool bs_fs_is_away(struct bs_fs *fs, int r);
/* The same generation as then, or -ESTALE; -EIO: it was being written. */
int bs_fs_open_again(struct bs_fs *fs, const struct bs_fskeep_handle *k, struct bs_ckpt_file **ret,
		     struct bs_hdfs_status *ret_s);
int bs_fs_adopt_file(struct bs_fs *fs, const struct bs_fskeep_handle *h, uint32_t slot);
int bs_fs_adopt_dir(struct bs_fs *fs, const struct bs_fskeep_handle *h, uint32_t slot);
/* Why nothing can be done by it any more: -errno; 0: it can. */
int bs_fs_dead(const struct fuse_file_info *fi);
/* The handle's file, for setattr and getattr; NULL: no file's. */
struct bs_ckpt_file *bs_fs_file(const struct fuse_file_info *fi);

#endif
