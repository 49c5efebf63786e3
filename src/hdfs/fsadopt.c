/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What stays of a file that is open when HDFS, or this server, has lost it: the bytes of a small
 * one whose name is taken away, and, for the next server, the generation that it was.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "hdfs/fskeep.h"
#include "hdfs/fspriv.h"
#include "hdfs/namenode.h"

#define KEPT_MAX (16u << 20)

/* What another client makes of the file meanwhile is no reason to fail: then nothing is kept. */
void bs_fs_keep(struct bs_fs *fs, fuse_ino_t parent, const char *name, const char *path)
{
	struct bs_node *n = bs_node_use_name(fs, parent, name);
	struct bs_hdfs_status s = { 0 };
	struct bs_ckpt_file *f = NULL;
	bs_autofree char *bytes = NULL;
	bool wanted;

	if (!n)
		return;
	(void)pthread_mutex_lock(&fs->nodes.lock);
	wanted = n->opens > 0 && n->writers == 0 && !n->kept && n->len > 0 && n->len <= KEPT_MAX;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	if (wanted && bs_ckpt_open(fs->o.ckpt, path, 0, 0, &f, NULL) == 0 &&
	    bs_ckpt_fstat(f, &s, NULL) == 0 && s.file_id == n->file_id && s.len == n->len)
		bytes = malloc(s.len);
	if (bytes && bs_ckpt_pread(f, bytes, s.len, 0, NULL) == (ssize_t)s.len) {
		(void)pthread_mutex_lock(&fs->nodes.lock);
		if (!n->kept) {
			n->kept = bs_take(&bytes);
			n->kept_len = s.len;
		}
		(void)pthread_mutex_unlock(&fs->nodes.lock);
	}
	(void)bs_ckpt_close(f, NULL);
	bs_hdfs_status_done(&s);
	bs_node_unuse(fs, n);
}

/* The same generation as then, or -ESTALE; what was being written is lost. */
int bs_fs_open_again(struct bs_fs *fs, const struct bs_fskeep_handle *k, struct bs_ckpt_file **ret,
		     struct bs_hdfs_status *ret_s)
{
	bs_autofree char *path = NULL;
	int r = k->kind == BS_FSKEEP_WRITES ? -EIO : bs_nodes_path(fs, k->node, NULL, &path);

	if (r == 0)
		r = bs_ckpt_open(fs->o.ckpt, path, 0, 0, ret, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	r = bs_ckpt_fstat(*ret, ret_s, NULL);
	if (r == 0 && (ret_s->file_id != k->file_id || ret_s->len != k->len ||
		       ret_s->mtime_ms != k->mtime_ms))
		r = -ESTALE;
	if (r < 0)
		(void)bs_ckpt_close(bs_take(ret), NULL);
	return r;
}

bool bs_fs_is_away(struct bs_fs *fs, int r)
{
	struct bs_hdfs_status s = { 0 };

	if (r != -ETIMEDOUT && r != -EHOSTUNREACH && r != -EAGAIN)
		return false;
	/* a DataNode that is gone for good must not hold up all other files */
	r = bs_nn_status(fs->o.nn, fs->o.root, &s, NULL);
	bs_hdfs_status_done(&s);
	return r == -ETIMEDOUT || r == -EHOSTUNREACH;
}

int bs_fs_adopt(struct bs_fs *fs)
{
	struct bs_fskeep_handle h;
	uint32_t slot = 0;
	int r = bs_fskeep_is_whole(fs->nodes.keep) ? bs_fsnodes_adopt(&fs->nodes) : -EOVERFLOW;

	while (r == 0 && bs_fskeep_next_handle(fs->nodes.keep, &slot, &h))
		r = h.kind == BS_FSKEEP_DIR ? bs_fs_adopt_dir(fs, &h, slot)
					    : bs_fs_adopt_file(fs, &h, slot);
	return r;
}
