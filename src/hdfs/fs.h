/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A tree of checkpoints (hdfs/ckpt.h) as a FUSE filesystem.
 *
 * Requests come to a few threads that never wait: what must, waits on other threads, so that
 * the kernel is always heard. A request whose caller is being killed is answered with EINTR,
 * though its work goes on; other signals interrupt nothing, as with NFS. Reads are answered
 * by whoever has their bytes.
 *
 * What the kernel keeps: names and attributes for attr_ns, pages of a file as long as its
 * generation stays (looked at when it is opened).
 *
 * Files are known by nodes (fsnode.c), made at look-ups and gone when the kernel forgets them.
 * A node means a generation of a file: when another client has replaced the file, a look-up
 * makes a new node, and who has the old one open goes on with that.
 *
 * Locks, in this order: an open file's (units.c), the nodes', a pool's. None is held over the
 * network or over an answer to the kernel.
 */
#ifndef BS_HDFS_FS_H
#define BS_HDFS_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bs_buf;
struct bs_ckpt;
struct bs_error;
struct bs_fs;
struct bs_fskeep;
struct bs_jsonw;
struct bs_nn;

#define BS_FS_STATS "user.bootseer.stats" /* JSON: what the mount has done, for who may read it */

struct bs_fs_options {
	struct bs_ckpt *ckpt;	/* outlives it */
	struct bs_nn *nn;	/* outlives it; attributes beside ckpt's, space */
	const char *root;	/* directory of HDFS that is the mount's root; "/" or clean */
	const char *user;	/* whose files are that are not on HDFS yet; NULL: uid's */
	int fuse_fd;		/* taken over; mounted */
	struct bs_fskeep *keep; /* NULL: nobody can take over from this server */
	bool takeover;		/* it takes over from an earlier one, with what that kept */
	bool read_only;
	bool one_owner;	       /* all is uid's and gid's */
	uid_t uid;	       /* of whoever is not known here */
	gid_t gid;	       /* the same */
	uint64_t attr_ns;      /* how long the kernel may keep attributes and names */
	uint64_t memory_bytes; /* at most of what was read ahead; 0: none is */
	/*
	 * Adds members to the object that the root's attribute BS_FS_STATS shows; does not block.
	 * May be NULL.
	 */
	void (*stats)(void *cookie, struct bs_jsonw *w);
	void *cookie;
};

/* Serves; returns once the kernel and we have agreed. After a failure the process has to end. */
int bs_fs_start(const struct bs_fs_options *o, struct bs_fs **ret, struct bs_error *err);

/*
 * Until it is unmounted and all that was closed is on HDFS. Once. Whether nothing is under way
 * any more; it is, when the connection was cut while files were open. Then nothing may be
 * freed, and what they had written is not on HDFS.
 */
bool bs_fs_join(struct bs_fs *fs);

struct bs_fs_stats {
	uint64_t requests, failures,
		interrupted; /* answered; with an error; with EINTR for a death */
	uint64_t reads, read_bytes;
	uint64_t first_read_ns, last_read_ns;	      /* on bs_clock_ns; 0: none */
	uint64_t unit_hits, unit_waits, direct_reads; /* reads by how they were answered */
	uint64_t units_fetched, units_ahead,
		units_unread; /* all; before anybody asked; for nobody */
	uint64_t writes, written_bytes;
	uint64_t memory_bytes, memory_peak_bytes; /* of units, now; at most so far */
	uint64_t nodes, open_files;		  /* now */
};
void bs_fs_stats(struct bs_fs *fs, struct bs_fs_stats *ret);
/* What the root's attribute BS_FS_STATS shows. */
int bs_fs_stats_text(struct bs_fs *fs, struct bs_buf *ret);
/* Whether no file is open, and all that was closed is on HDFS. */
bool bs_fs_idle(struct bs_fs *fs);

#endif
