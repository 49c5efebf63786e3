/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the parts of the image store share: store.c (clusters and layouts), storeread.c (blobs, to
 * read), storewrite.c (blobs and index.json, to write).
 */
#ifndef BS_HDFS_STOREPRIV_H
#define BS_HDFS_STOREPRIV_H

#include <pthread.h>

#include "base/list.h"
#include "hdfs/ckpt.h"
#include "hdfs/mount.h"
#include "net/layout_impl.h"

#define BS_STORE_THREADS 16u
#define BS_STORE_FILES 64u

struct bs_store_client {
	struct bs_list link;
	char *cluster; /* "hdfs://NAMESERVICE" */
	struct bs_mount_options o;
	struct bs_mounted *mounted;
	uint32_t hot_replication;
	uint64_t background_rate;
	struct bs_loop *loop;

	pthread_mutex_t writing; /* held while an index.json is changed */

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t work;
	struct bs_list queue[BS_LANE_MAX];
	unsigned int running[BS_LANE_MAX];
	uint64_t requests[BS_LANE_MAX], bytes[BS_LANE_MAX], failures[BS_LANE_MAX];
	uint64_t background_ns; /* none of that lane before */
	pthread_t threads[BS_STORE_THREADS];
	unsigned int n_threads;
	unsigned int askers; /* threads that wait for a manifest, whoever still does */
	bool stop;
};

/* Blobs never change: their files are kept open. */
struct bs_store_file {
	struct bs_digest digest;
	struct bs_ckpt_file *file; /* NULL: free */
	unsigned int users;
	bool bad; /* to be closed by its last user */
	uint64_t used;
};

struct bs_store {
	struct bs_layout base;
	struct bs_store_client *client;
	char *dir;
	bool checked; /* atomic: it is an OCI layout */
	bool swept;   /* atomic: leftovers were looked for */

	pthread_mutex_t lock; /* guards what follows */
	struct bs_store_file files[BS_STORE_FILES];
	uint64_t uses;
};

static inline struct bs_store *bs_store_of(struct bs_repo *r)
{
	return BS_CONTAINER_OF(r, struct bs_store, base.repo);
}

static inline struct bs_ckpt *bs_store_tree(const struct bs_store *s)
{
	return bs_mounted_ckpt(s->client->mounted);
}

/* DIR/blobs/sha256/HEX; malloc'ed, NULL: out of memory. */
char *bs_store_blob_path(const struct bs_store *s, const struct bs_digest *d);
int bs_store_no_memory(const struct bs_store *s, struct bs_error *err); /* -ENOMEM */
/* An error of HDFS as one of net/repo.h. */
int bs_store_error(int r);

/* --- reading (storeread.c) ------------------------------------------------------------------- */

/* The whole of a small file: -EFBIG, -ENOENT, …; malloc'ed, NUL behind. */
int bs_store_read_file(struct bs_store *s, const char *path, size_t max, char **ret,
		       size_t *ret_len, struct bs_error *err);
int bs_store_get_blob(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
		      bs_repo_sink *sink, void *cookie, struct bs_error *err);
void bs_store_read(struct bs_repo *r, struct bs_range *rg);
void bs_store_close_files(struct bs_store *s);
/* Of a client that nobody uses any more. */
void bs_store_stop(struct bs_store_client *c);

/* --- writing (storewrite.c) ------------------------------------------------------------------ */

int bs_store_put_blob(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
		      void (*progress)(void *cookie, uint64_t sent), void *cookie,
		      struct bs_error *err);
int bs_store_try_push(struct bs_repo *r, struct bs_error *err);
void bs_store_favour(struct bs_repo *r, const struct bs_digest *d);
int bs_store_read_index(struct bs_repo *r, struct bs_json **ret, struct bs_error *err);
int bs_store_change_index(struct bs_repo *r, int (*fn)(struct bs_json *index, void *cookie),
			  void *cookie, struct bs_error *err);
/* What is missing of a layout. */
int bs_store_create(struct bs_store *s, struct bs_error *err);

#endif
