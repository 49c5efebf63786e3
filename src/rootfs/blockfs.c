/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/blockfs.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "kern/fuseserve.h"
#include "rootfs/hotstart.h"
#include "rootfs/images.h"

#define FOREVER 1e9 /* seconds: blobs never change */
#define READ_MAX (1u << 20)

struct bs_blockfs {
	struct bs_blockfs_options o;
	struct bs_fuseserve *serve;
};

/* What a serving thread brings along. */
struct server {
	void *scratch;
	void *unit;
};
static __thread struct server server;

/* One read that is being answered, with its bytes behind it. */
struct request {
	struct bs_read read;
	fuse_req_t req;
	char bytes[];
};

static struct bs_blockfs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* The image behind a node, and its recording if the node is that of one; image NULL: none is. */
static struct bs_recorded find_node(struct bs_blockfs *fs, fuse_ino_t node)
{
	struct bs_recorded found = { .node = node };

	if (bs_hotstart_known(fs->o.hot, node, &found))
		return found;
	found.image = bs_images_by_node(fs->o.images, node);
	if (!found.image)
		(void)bs_hotstart_by_node(fs->o.hot, node, &found);
	return found;
}

static struct bs_recorded find_name(struct bs_blockfs *fs, const char *name)
{
	struct bs_recorded found = { .image = bs_images_by_name(fs->o.images, name) };

	if (found.image)
		found.node = found.image->node;
	else
		(void)bs_hotstart_by_name(fs->o.hot, name, &found);
	return found;
}

static void fill_attr(const struct bs_recorded *f, struct stat *st)
{
	*st = (struct stat){ .st_ino = f->node,
			     .st_mode = S_IFREG | 0400,
			     .st_nlink = 1,
			     .st_size = (off_t)f->image->blob_bytes,
			     .st_blksize = 4096,
			     .st_blocks = (blkcnt_t)(f->image->blob_bytes / 512) };
}

static void fill_root(struct stat *st)
{
	*st = (struct stat){ .st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0500, .st_nlink = 2 };
}

static void op_init(void *cookie, struct fuse_conn_info *conn)
{
	struct bs_blockfs *fs = cookie;

	conn->max_readahead = READ_MAX;
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE);
	(void)fs;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	struct bs_recorded f = { 0 };

	if (parent == FUSE_ROOT_ID)
		f = find_name(fs_of(req), name);
	if (!f.image) {
		(void)fuse_reply_err(req, ENOENT);
		return;
	}
	e.ino = f.node;
	fill_attr(&f, &e.attr);
	(void)fuse_reply_entry(req, &e);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	fuse_reply_none(req); /* images stay loaded */
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct bs_recorded f;
	struct stat st;

	if (ino == FUSE_ROOT_ID) {
		fill_root(&st);
	} else {
		f = find_node(fs_of(req), ino);
		if (!f.image) {
			(void)fuse_reply_err(req, EIO);
			return;
		}
		fill_attr(&f, &st);
	}
	(void)fuse_reply_attr(req, &st, FOREVER);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (!find_node(fs_of(req), ino).image) {
		(void)fuse_reply_err(req, EIO);
		return;
	}
	fi->keep_cache = 1;
	(void)fuse_reply_open(req, fi);
}

static void answered(struct bs_read *rd)
{
	struct request *rq = BS_CONTAINER_OF(rd, struct request, read);

	if (rd->result < 0)
		(void)fuse_reply_err(rq->req, -rd->result);
	else
		(void)fuse_reply_buf(rq->req, rq->bytes, rd->len);
	free(rq);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct bs_blockfs *fs = fs_of(req);
	struct bs_recorded f = find_node(fs, ino);
	struct bs_cached *i = f.image;
	struct request *rq;

	if (!i) {
		(void)fuse_reply_err(req, EIO);
		return;
	}
	if (off < 0 || (uint64_t)off >= i->blob_bytes || size == 0) {
		(void)fuse_reply_buf(req, NULL, 0);
		return;
	}
	size = BS_MIN(size, (size_t)READ_MAX);
	size = BS_MIN(size, i->blob_bytes - (uint64_t)off);
	rq = malloc(sizeof(*rq) + size);
	if (!rq) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	bs_cached_note_read(i);
	if (f.recorded)
		bs_hotstart_note(fs->o.hot, ino, (uint64_t)off, size);
	else
		bs_hotstart_read(fs->o.hot, i, (uint64_t)off, size, fuse_req_ctx(req)->pid);
	rq->req = req;
	rq->read = (struct bs_read){ .blob = i->blob,
				     .origin = i->origin,
				     .off = (uint64_t)off,
				     .len = (uint32_t)size,
				     .buf = rq->bytes,
				     .done = answered };
	bs_fill_read(fs->o.fill, &rq->read, server.scratch, server.unit);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct statvfs st = { .f_bsize = 4096, .f_namemax = 255 };

	(void)fuse_reply_statfs(req, &st);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.getattr = op_getattr,
	.open = op_open,
	.read = op_read,
	.statfs = op_statfs,
};

/* --- the threads ------------------------------------------------------------------------- */

static int begin(void *cookie)
{
	server.scratch = bs_images_scratch_new();
	server.unit = malloc(BS_UNIT_BYTES_MAX);
	return server.scratch && server.unit ? 0 : -ENOMEM;
}

static void end(void *cookie)
{
	if (server.scratch)
		bs_images_scratch_free(server.scratch);
	free(server.unit);
}

int bs_blockfs_start(const struct bs_blockfs_options *o, struct bs_blockfs **ret,
		     struct bs_error *err)
{
	struct bs_blockfs *fs = calloc(1, sizeof(*fs));
	const struct bs_fuseserve_options so = {
		.fuse_fd = o->fuse_fd,
		.takeover = o->takeover,
		.n_threads = o->n_threads,
		.max_readahead = READ_MAX,
		.ops = &ops,
		.ops_size = sizeof(ops),
		.cookie = fs,
		.begin = begin,
		.end = end,
	};
	int r;

	if (!fs)
		return bs_fail(err, -ENOMEM, "out of memory");
	fs->o = *o;
	r = bs_fuseserve_start(&so, &fs->serve, err); /* fs is its threads' from here on */
	if (r == 0)
		*ret = fs;
	return r;
}
