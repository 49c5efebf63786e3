/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What NameNodes answer over WebHDFS, read into plain values. Foreign text in, every number and
 * size checked. Pure. -EBADMSG: not such an answer.
 */
#ifndef BS_HDFS_REPLY_H
#define BS_HDFS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdfs/blocks.h"

struct bs_error;

#define BS_REPLY_MAX ((size_t)32 << 20)

enum bs_hdfs_type { BS_HDFS_FILE, BS_HDFS_DIRECTORY, BS_HDFS_SYMLINK };

struct bs_hdfs_status {
	char *name; /* within its directory; "" when it was asked for itself */
	char *owner, *group;
	char *target; /* of a symlink, or NULL */
	enum bs_hdfs_type type;
	bool encrypted, erasure_coded;
	uint32_t mode; /* 01777 at most */
	uint32_t replication;
	uint64_t len, block_size, file_id, children;
	uint64_t mtime_ms, atime_ms;
};
void bs_hdfs_status_done(struct bs_hdfs_status *s);

struct bs_hdfs_list {
	struct bs_hdfs_status *v;
	size_t n, cap;
	uint64_t left; /* entries behind these; 0 also when that was not said */
};
void bs_hdfs_list_done(struct bs_hdfs_list *l);

struct bs_hdfs_summary {
	uint64_t len, files, directories;
	uint64_t consumed;	    /* with all replicas */
	int64_t quota, space_quota; /* -1: none */
};

struct bs_hdfs_defaults {
	uint64_t block_size;
	uint32_t replication, chunk;
	bool encrypted_transfer;
};

struct bs_hdfs_space {
	uint64_t capacity, used, remaining;
};

int bs_reply_status(const char *text, size_t len, struct bs_hdfs_status *ret, struct bs_error *err);
/* LISTSTATUS and LISTSTATUS_BATCH; appends. */
int bs_reply_list(const char *text, size_t len, struct bs_hdfs_list *list, struct bs_error *err);
/* GET_BLOCK_LOCATIONS; blocks in order, none overlaps another. */
int bs_reply_blocks(const char *text, size_t len, struct bs_blocks **ret, struct bs_error *err);
int bs_reply_summary(const char *text, size_t len, struct bs_hdfs_summary *ret,
		     struct bs_error *err);
int bs_reply_defaults(const char *text, size_t len, struct bs_hdfs_defaults *ret,
		      struct bs_error *err);
int bs_reply_space(const char *text, size_t len, struct bs_hdfs_space *ret, struct bs_error *err);
/* {"boolean":…}, {"long":…}, {"Location":"…"}, {"Token":{"urlString":"…"}}; token NULL: none is given */
int bs_reply_bool(const char *text, size_t len, bool *ret, struct bs_error *err);
int bs_reply_long(const char *text, size_t len, int64_t *ret, struct bs_error *err);
int bs_reply_location(const char *text, size_t len, char **ret, struct bs_error *err);
int bs_reply_token(const char *text, size_t len, char **ret, struct bs_error *err);
/* The value of the first XAttr, in the text form that was asked for (hex: "0x…"). -ENODATA: none. */
int bs_reply_xattr(const char *text, size_t len, char **ret, struct bs_error *err);
/* LISTXATTRS: names, each with a NUL behind, malloc'ed. */
int bs_reply_xattr_names(const char *text, size_t len, char **ret, size_t *ret_len,
			 struct bs_error *err);

/* What a RemoteException asks of a client. */
enum bs_hdfs_remedy {
	BS_HDFS_NONE,	  /* the answer stands */
	BS_HDFS_STANDBY,  /* ask the other NameNode */
	BS_HDFS_SAFEMODE, /* wait: nothing can be changed now */
	BS_HDFS_RETRY,	  /* wait: it is starting */
	BS_HDFS_LOGIN,	  /* token or ticket is no good */
};

struct bs_hdfs_exception {
	char name[64];
	char message[200]; /* its first line, shown safely */
	int code;	   /* negative errno */
	enum bs_hdfs_remedy remedy;
};
/* Of an answer with a status of 400 or more; with an answer of another form only the status counts. */
void bs_reply_exception(int status, const char *text, size_t len, struct bs_hdfs_exception *ret);

#endif
