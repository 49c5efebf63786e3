/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/entry.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/atomicfile.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "image/artifact.h"
#include "image/erofs.h"
#include "image/table.h"
#include "image/tree.h"
#include "net/repo.h"
#include "obs/timeline.h"

#define TREE_DATA_MAX (1u << 30) /* compressed tree */

/* What one source must give before anything can be mounted. */
struct parts {
	struct bs_manifest manifest;
	struct bs_artifact artifact;
	char *table;
};

static void parts_done(struct parts *p)
{
	bs_manifest_done(&p->manifest);
	free(p->table);
}

static int write_metadata(int dirfd, const struct bs_tree *tree, struct bs_timeline *tl,
			  struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	bs_autofd int fd = bs_atomicfile_open(dirfd, 0600);
	uint64_t bytes;
	int r;

	if (fd < 0)
		return bs_fail_errno(err, fd, "make the metadata file in the cache");
	r = bs_erofs_write(tree, fd, &bytes, err);
	if (r < 0)
		return bs_error_context(err, "write EROFS metadata");
	r = bs_atomicfile_publish(fd, dirfd, BS_ENTRY_METADATA, true);
	if (r < 0)
		return bs_fail_errno(err, r, "publish '%s' in the cache", BS_ENTRY_METADATA);
	bs_timeline_span(tl, BS_SPAN_METADATA, start, bytes, NULL);
	return 0;
}

static int publish(int dirfd, const char *name, const void *bytes, size_t len, struct bs_error *err)
{
	int r = bs_atomicfile_write(dirfd, name, bytes, len, 0600, true);

	return r < 0 ? bs_fail_errno(err, r, "write cache file '%s'", name) : 0;
}

/*
 * A few kilobytes may stand for a tree of BS_TREE_BYTES_MAX. Small ones are read side by
 * side, large ones one after the other: together they are no larger than the largest. No
 * network is waited for while there is one.
 */
static struct {
	pthread_mutex_t lock; /* guards used */
	pthread_cond_t less;
	uint64_t used;
} memory = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

void bs_entry_memory_take(uint64_t n)
{
	(void)pthread_mutex_lock(&memory.lock);
	while (memory.used > 0 && memory.used + n > BS_TREE_BYTES_MAX)
		(void)pthread_cond_wait(&memory.less, &memory.lock);
	memory.used += n;
	(void)pthread_mutex_unlock(&memory.lock);
}

void bs_entry_memory_give(uint64_t n)
{
	(void)pthread_mutex_lock(&memory.lock);
	memory.used -= n;
	(void)pthread_cond_broadcast(&memory.less);
	(void)pthread_mutex_unlock(&memory.lock);
}

static int write_tree(const struct bs_artifact *a, const char *bytes, uint64_t blob_blocks,
		      uint64_t start, int dirfd, struct bs_timeline *tl, struct bs_error *err)
{
	bs_auto(tree) struct bs_tree *tree = NULL;
	int r = bs_tree_read(bytes, a->tree.size, &tree, err);

	if (r < 0)
		return bs_error_context(err, "tree");
	if (tree->blob_blocks != blob_blocks)
		return bs_fail(err, -EBADMSG, "tree and table speak of blobs of different sizes");
	bs_timeline_span(tl, BS_SPAN_TREE, start, a->tree.size, NULL);
	r = publish(dirfd, "tree", bytes, a->tree.size, err);
	return r < 0 ? r : write_metadata(dirfd, tree, tl, err);
}

int bs_entry_fetch_tree(int dirfd, const struct bs_artifact *a, uint64_t blob_blocks,
			struct bs_repo *repo, struct bs_timeline *tl, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	bs_autofree char *bytes = NULL;
	uint64_t size;
	int r = bs_repo_get_blob_mem(repo, &a->tree.digest, a->tree.size, TREE_DATA_MAX, &bytes,
				     err);

	if (r < 0)
		return bs_error_context(err, "tree");
	size = bs_tree_bytes(bytes, a->tree.size);
	bs_entry_memory_take(size);
	r = write_tree(a, bytes, blob_blocks, start, dirfd, tl, err);
	bs_entry_memory_give(size);
	return r;
}

static int get_parts(struct bs_repo *repo, const struct bs_digest *digest, struct parts *p,
		     struct bs_timeline *tl, struct bs_error *err)
{
	bs_auto(table) struct bs_table *table = NULL;
	char text[BS_DIGEST_TEXT_LEN];
	uint64_t start = bs_clock_ns();
	int r = bs_repo_get_manifest(repo, bs_digest_text(digest, text), &p->manifest, err);

	if (r < 0)
		return r;
	r = bs_artifact_parse(&p->manifest, &p->artifact, err);
	if (r < 0)
		return r;
	bs_timeline_span(tl, BS_SPAN_MANIFEST, start, p->manifest.len, repo->name);
	start = bs_clock_ns();
	r = bs_repo_get_blob_mem(repo, &p->artifact.table.digest, p->artifact.table.size,
				 BS_ENTRY_TABLE_MAX, &p->table, err);
	if (r < 0)
		return bs_error_context(err, "frame table");
	r = bs_table_read(p->table, p->artifact.table.size, &table, err);
	if (r < 0)
		return bs_error_context(err, "frame table");
	if (table->data_len != p->artifact.data.size)
		return bs_fail(err, -EBADMSG,
			       "frame table and manifest speak of data of different sizes");
	bs_timeline_span(tl, BS_SPAN_TABLE, start, p->artifact.table.size, NULL);
	return 0;
}

int bs_entry_fetch_table(int images, const struct bs_digest *digest, struct bs_repo *repo,
			 struct bs_timeline *tl, struct bs_error *err)
{
	__attribute__((cleanup(parts_done))) struct parts p = { 0 };
	char hex[BS_DIGEST_TEXT_LEN];
	bs_autofd int dirfd = -EBADF;
	int r = get_parts(repo, digest, &p, tl, err);

	if (r < 0)
		return r;
	dirfd = bs_mkdir_open(images, bs_digest_hex(digest, hex), 0700);
	if (dirfd == -ENOENT)
		return bs_fail(err, -EROFS,
			       "the cache directory was removed while bootseerd runs; 'bootseerctl "
			       "upgrade' makes it anew");
	if (dirfd < 0)
		return bs_fail_errno(err, dirfd, "make cache entry '%s'", hex);
	r = publish(dirfd, "manifest", p.manifest.bytes, p.manifest.len, err);
	return r < 0 ? r : publish(dirfd, "table", p.table, p.artifact.table.size, err);
}
