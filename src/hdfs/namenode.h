/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The metadata of one HDFS, over WebHDFS at its NameNodes.
 *
 * A NameNode that is standby, does not answer or is not there makes the next one be asked, in
 * rounds, until the deadline. One that starts or is in safe mode is waited for. An operation
 * whose answer was lost may have been done: it is looked at, not only repeated.
 *
 * Errors beside those of repo.h: -EEXIST, -ENOTDIR, -EISDIR, -ENOTEMPTY, -EDQUOT, -ENOSPC,
 * -ENAMETOOLONG, -EINVAL (a name that HDFS cannot have), -EROFS (safe mode to the deadline),
 * -EBUSY, -ESTALE, -ENODATA (no such attribute), -ETIMEDOUT.
 *
 * Threads: any; the calls block, not on the loop's.
 */
#ifndef BS_HDFS_NAMENODE_H
#define BS_HDFS_NAMENODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "hdfs/reply.h"

struct bs_error;
struct bs_hdfs_place;
struct bs_http_peer;
struct bs_loop;
struct bs_nn;

struct bs_nn_options {
	struct bs_loop *loop;	/* outlives it */
	const char *user;	/* user.name of simple authentication; NULL: who runs this */
	const char *token_file; /* NULL: HADOOP_TOKEN_FILE_LOCATION's, if it is set */
	bool kerberos;		/* SPNEGO with the ticket that KRB5CCNAME has */
	bool tls_verify;
	const char *ca_file;  /* PEM, NULL: the system's */
	uint64_t deadline_ns; /* of a call with all its attempts; 0: 30 s */
	uint64_t
		attempt_ns; /* of one attempt, twice that after a round without an answer; 0: 5 s */
};

int bs_nn_new(const struct bs_nn_options *o, const struct bs_hdfs_place *place, struct bs_nn **ret,
	      struct bs_error *err);
struct bs_nn *bs_nn_free(struct bs_nn *nn);
DEFINE_BS_AUTO(nn, struct bs_nn, bs_nn_free)

struct bs_loop *bs_nn_loop(const struct bs_nn *nn);
const struct bs_http_peer *bs_nn_peer(const struct bs_nn *nn);
bool bs_nn_https(const struct bs_nn *nn);

/* --- looking --------------------------------------------------------------------------------- */

int bs_nn_status(struct bs_nn *nn, const char *path, struct bs_hdfs_status *ret,
		 struct bs_error *err);
/* All entries, in HDFS's order (bytes); asked for in batches. A file: itself, with the name "". */
int bs_nn_list(struct bs_nn *nn, const char *path, struct bs_hdfs_list *ret, struct bs_error *err);
/* One batch: those behind after ("": the first ones). */
int bs_nn_list_batch(struct bs_nn *nn, const char *path, const char *after,
		     struct bs_hdfs_list *ret, struct bs_error *err);
/* The blocks that hold len bytes from off on. */
int bs_nn_blocks(struct bs_nn *nn, const char *path, uint64_t off, uint64_t len,
		 struct bs_blocks **ret, struct bs_error *err);
int bs_nn_summary(struct bs_nn *nn, const char *path, struct bs_hdfs_summary *ret,
		  struct bs_error *err);
int bs_nn_defaults(struct bs_nn *nn, struct bs_hdfs_defaults *ret, struct bs_error *err);
/* -EOPNOTSUPP: the NameNode does not know GETSTATUS yet. */
int bs_nn_space(struct bs_nn *nn, struct bs_hdfs_space *ret, struct bs_error *err);
/*
 * "/webhdfs/v1/PATH?op=OPEN&…" as a DataNode wants it (hdfs/read.h), malloc'ed. The file must
 * not be empty.
 */
int bs_nn_open_query(struct bs_nn *nn, const char *path, char **ret, struct bs_error *err);

/* --- changing -------------------------------------------------------------------------------- */

/* With parents. There already: fine when it is a directory. */
int bs_nn_mkdirs(struct bs_nn *nn, const char *path, uint32_t mode, struct bs_error *err);
/* overwrite: in place of a file or an empty directory. -ENOENT, -EEXIST, … */
int bs_nn_rename(struct bs_nn *nn, const char *from, const char *to, bool overwrite,
		 struct bs_error *err);
/* -ENOENT when it is not there. */
int bs_nn_delete(struct bs_nn *nn, const char *path, bool recursive, struct bs_error *err);
int bs_nn_set_mode(struct bs_nn *nn, const char *path, uint32_t mode, struct bs_error *err);
/* NULL: unchanged */
int bs_nn_set_owner(struct bs_nn *nn, const char *path, const char *owner, const char *group,
		    struct bs_error *err);
/* UINT64_MAX: unchanged */
int bs_nn_set_times(struct bs_nn *nn, const char *path, uint64_t mtime_ms, uint64_t atime_ms,
		    struct bs_error *err);
int bs_nn_set_replication(struct bs_nn *nn, const char *path, uint32_t replication,
			  struct bs_error *err);
/* 1 done; 0 the last block is being recovered, and the file cannot be appended to until then. */
int bs_nn_truncate(struct bs_nn *nn, const char *path, uint64_t len, struct bs_error *err);
/* Appends the files to path, and they are gone. All in one directory, by older NameNodes' rule. */
int bs_nn_concat(struct bs_nn *nn, const char *path, const char *const *sources, size_t n,
		 struct bs_error *err);

/* --- extended attributes: name "user.…" ------------------------------------------------------ */

int bs_nn_get_xattr(struct bs_nn *nn, const char *path, const char *name, void **ret,
		    size_t *ret_len, struct bs_error *err);
int bs_nn_list_xattrs(struct bs_nn *nn, const char *path, char **ret, size_t *ret_len,
		      struct bs_error *err);
/* create: -EEXIST when it is there; replace: -ENODATA when it is not. */
int bs_nn_set_xattr(struct bs_nn *nn, const char *path, const char *name, const void *value,
		    size_t len, bool create, bool replace, struct bs_error *err);
int bs_nn_remove_xattr(struct bs_nn *nn, const char *path, const char *name, struct bs_error *err);

/* --- tokens ---------------------------------------------------------------------------------- */

/* The text form, malloc'ed; *ret NULL: the cluster gives none. */
int bs_nn_get_token(struct bs_nn *nn, const char *renewer, char **ret, struct bs_error *err);
/* *ret_ms: until when, since 1970. */
int bs_nn_renew_token(struct bs_nn *nn, const char *token, uint64_t *ret_ms, struct bs_error *err);

struct bs_nn_stats {
	uint64_t requests, failovers, retries, logins;
};
void bs_nn_stats(struct bs_nn *nn, struct bs_nn_stats *ret);

#endif
