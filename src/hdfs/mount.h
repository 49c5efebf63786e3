/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A mount of a checkpoint tree: its options as mount(8) writes them, and the process that
 * serves it, from the client of HDFS up to the filesystem.
 */
#ifndef BS_HDFS_MOUNT_H
#define BS_HDFS_MOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"

struct bs_buf;
struct bs_ckpt;
struct bs_error;
struct bs_jsonw;
struct bs_mounted;
struct bs_nn;

struct bs_mount_options {
	char *text; /* what the names below point into */
	bool read_only, noexec, noatime;
	/* of the client */
	const char *user, *conf, *token, *ca; /* NULL: hdfs/namenode.h's */
	bool kerberos, insecure;
	uint64_t deadline_ns; /* 0: hdfs/ckpt.h's */
	/* of files that are written */
	bool plain;
	uint64_t unit, files, replication; /* 0: hdfs/ckpt.h's */
	uint64_t write_file, write_mount;
	uint64_t grace_ns;
	/* of what is seen */
	bool one_owner; /* uid= or gid= */
	uint32_t uid, gid;
	uint64_t attr_ns, memory;
	/* of the process */
	const char *runas, *log;
	bool foreground;
};

/* "ro,user=…,…", maybe NULL. sloppy: what is not known is left out. -EINVAL. */
int bs_mount_options_parse(const char *text, bool sloppy, struct bs_mount_options *ret,
			   struct bs_error *err);
void bs_mount_options_done(struct bs_mount_options *o);

/* For servers that take over from one another: hdfs/fskeep.h. */
struct bs_mounted_kept {
	int fd; /* of the memory, borrowed */
	uint32_t generation;
	bool takeover; /* there was a server before */
};
uint64_t bs_mounted_kept_bytes(void); /* of the memory */

/*
 * Finds the directory on HDFS, unless it takes over, and serves it through fuse_fd, which is
 * mounted and taken over.
 * kept: NULL: when this server dies the mount is dead. After a failure the process has to end.
 */
int bs_mounted_start(const char *source, const struct bs_mount_options *o, int fuse_fd,
		     const struct bs_mounted_kept *kept, struct bs_mounted **ret,
		     struct bs_error *err);
/* Until it is unmounted and what was written is on HDFS. Then the process has to end. */
void bs_mounted_join(struct bs_mounted *m);
/* The same, for whoever has threads that go on to call what follows; whether all is written. */
bool bs_mounted_wait(struct bs_mounted *m);
/* Any thread. */
bool bs_mounted_idle(struct bs_mounted *m);			/* as bs_fs_idle */
int bs_mounted_stats(struct bs_mounted *m, struct bs_buf *ret); /* JSON */

struct bs_mounted_load {
	uint64_t first_ns, last_ns; /* of what programs read, on bs_clock_ns; 0: nothing yet */
	uint64_t bytes;
};
void bs_mounted_load(struct bs_mounted *m, struct bs_mounted_load *ret);

/*
 * The client alone, for tools: the tree of the HDFS that the source means, and the path in it.
 * To be freed when all handles of the tree are closed.
 */
int bs_mounted_connect(const char *source, const struct bs_mount_options *o,
		       struct bs_mounted **ret, struct bs_error *err);
struct bs_ckpt *bs_mounted_ckpt(struct bs_mounted *m);
struct bs_nn *bs_mounted_nn(struct bs_mounted *m);
/* Members "files", "datanodes" and "namenodes" of the object that is open. */
void bs_mounted_client_stats(struct bs_mounted *m, struct bs_jsonw *w);
const char *bs_mounted_path(const struct bs_mounted *m);
struct bs_mounted *bs_mounted_free(struct bs_mounted *m);
DEFINE_BS_AUTO(mounted, struct bs_mounted, bs_mounted_free)

#endif
