/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/blockfs.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "kern/fusedev.h"
#include "rootfs/hotstart.h"
#include "rootfs/images.h"

#define FOREVER 1e9 /* seconds: blobs never change */
#define READ_MAX (1u << 20)
#define INIT_WAIT_S 10

struct bs_blockfs {
	struct bs_blockfs_options o;
	struct fuse_session *se;
	pthread_mutex_t lock; /* guards ready */
	pthread_cond_t changed;
	bool ready;
	pthread_t *threads;
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

static void note_ready(struct bs_blockfs *fs)
{
	(void)pthread_mutex_lock(&fs->lock);
	fs->ready = true;
	(void)pthread_cond_broadcast(&fs->changed);
	(void)pthread_mutex_unlock(&fs->lock);
}

static void serve(struct bs_blockfs *fs)
{
	struct fuse_buf buf = { 0 };
	bool told = fs->ready;

	while (!fuse_session_exited(fs->se)) {
		int r = fuse_session_receive_buf(fs->se, &buf);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			break; /* the connection is gone */
		fuse_session_process_buf(fs->se, &buf);
		if (!told) {
			note_ready(fs); /* the first request is INIT, and was answered */
			told = true;
		}
	}
	free(buf.mem);
}

static void *server_main(void *arg)
{
	struct bs_blockfs *fs = arg;

	server.scratch = bs_images_scratch_new();
	server.unit = malloc(BS_UNIT_BYTES_MAX);
	if (server.scratch && server.unit)
		serve(fs);
	if (server.scratch)
		bs_images_scratch_free(server.scratch);
	free(server.unit);
	return NULL;
}

/*
 * The kernel says INIT once in the life of a connection. For a server that takes over,
 * its words are said again to the library; the answer goes to a request that the kernel
 * does not know, which it refuses without harm.
 */
static int repeat_init(struct bs_blockfs *fs)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in init;
	} msg = {
		.head = { .len = sizeof(msg), .opcode = FUSE_INIT, .unique = UINT64_MAX >> 1 },
		.init = { .major = FUSE_KERNEL_VERSION,
			  .minor = FUSE_KERNEL_MINOR_VERSION,
			  .max_readahead = READ_MAX,
			  .flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES |
				   FUSE_PARALLEL_DIROPS },
	};
	const struct fuse_buf buf = { .size = sizeof(msg), .mem = &msg };

	fuse_session_process_buf(fs->se, &buf);
	return bs_fusedev_resend(fs->o.fuse_fd);
}

static int open_session(struct bs_blockfs *fs, struct bs_error *err)
{
	char program[] = "bootseerd", path[32];
	char *argv[] = { program, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	int r;

	fs->se = fuse_session_new(&args, &ops, sizeof(ops), fs);
	fuse_opt_free_args(&args);
	if (!fs->se)
		return bs_fail(err, -ENOMEM, "start a FUSE session");
	/* libfuse's form for a descriptor that is mounted already */
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fs->o.fuse_fd);
	if (fuse_session_mount(fs->se, path) < 0)
		return bs_fail(err, -EINVAL, "hand the FUSE device to the library");
	if (!fs->o.takeover)
		return 0;
	r = repeat_init(fs);
	if (r < 0)
		return bs_fail_errno(err, r, "ask the kernel to resend (Linux 6.9 can)");
	fs->ready = true;
	return 0;
}

static int start_threads(struct bs_blockfs *fs, unsigned int first, unsigned int n,
			 struct bs_error *err)
{
	for (unsigned int i = first; i < first + n; i++) {
		int r = pthread_create(&fs->threads[i], NULL, server_main, fs);

		if (r != 0)
			return bs_fail_errno(err, -r, "start a FUSE thread");
	}
	return 0;
}

static int wait_ready(struct bs_blockfs *fs, struct bs_error *err)
{
	const uint64_t deadline_ns = bs_clock_ns() + INIT_WAIT_S * BS_NS_PER_S;
	int r = 0;

	(void)pthread_mutex_lock(&fs->lock);
	while (!fs->ready && r == 0)
		r = bs_clock_cond_wait(&fs->changed, &fs->lock, deadline_ns);
	(void)pthread_mutex_unlock(&fs->lock);
	return r ? bs_fail(err, -ETIMEDOUT, "the kernel's FUSE did not say a word") : 0;
}

int bs_blockfs_start(const struct bs_blockfs_options *o, struct bs_blockfs **ret,
		     struct bs_error *err)
{
	struct bs_blockfs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return bs_fail(err, -ENOMEM, "out of memory");
	fs->o = *o;
	(void)pthread_mutex_init(&fs->lock, NULL);
	(void)pthread_cond_init(&fs->changed, NULL);
	fs->threads = calloc(o->n_threads, sizeof(*fs->threads));
	if (!fs->threads) {
		free(fs);
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	/* on failure the process ends: the session is not taken apart */
	if ((r = open_session(fs, err)) < 0 || (r = start_threads(fs, 0, 1, err)) < 0 ||
	    (r = wait_ready(fs, err)) < 0 || (r = start_threads(fs, 1, o->n_threads - 1, err)) < 0)
		return r;
	*ret = fs;
	return 0;
}
