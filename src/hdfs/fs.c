/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/fs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "hdfs/fspriv.h"
#include "kern/fuseserve.h"

#define LISTENERS 2u
#define META_THREADS 16u
#define DATA_THREADS 64u /* each may wait for the room or the network that its writer needs */
#define ANSWER_THREADS 3u
#define CLOSE_WAIT_NS (120 * BS_NS_PER_S)
#define BACKGROUND_MAX 256u /* requests of the kernel's own at once; its default, 12, caps reads */

static void op_init(void *cookie, struct fuse_conn_info *conn)
{
	conn->max_readahead = BS_FS_IO_MAX;
	conn->max_write = BS_FS_IO_MAX;
	conn->max_background = BACKGROUND_MAX;
	conn->congestion_threshold = BACKGROUND_MAX / 4 * 3;
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS_AUTO |
				      FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_POSIX_LOCKS |
				      FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_HANDLE_KILLPRIV);
	conn->want |= conn->capable &
		      (FUSE_CAP_READDIRPLUS | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct bs_fs *fs = bs_fs_of(req);

	fuse_reply_none(req);
	bs_nodes_forget(fs, ino, n);
}

static void op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *v)
{
	struct bs_fs *fs = bs_fs_of(req);

	fuse_reply_none(req);
	for (size_t i = 0; i < n; i++)
		bs_nodes_forget(fs, v[i].ino, v[i].nlookup);
}

/* HDFS has neither. */
static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)fuse_reply_err(req, EPERM);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	(void)fuse_reply_err(req, EPERM);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = bs_fsop_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = bs_fsop_getattr,
	.setattr = bs_fsop_setattr,
	.readlink = bs_fsop_readlink,
	.mknod = op_mknod,
	.mkdir = bs_fsop_mkdir,
	.unlink = bs_fsop_unlink,
	.rmdir = bs_fsop_rmdir,
	.symlink = bs_fsop_symlink,
	.rename = bs_fsop_rename,
	.link = op_link,
	.open = bs_fsop_open,
	.read = bs_fsop_read,
	.write = bs_fsop_write,
	.flush = bs_fsop_flush,
	.release = bs_fsop_release,
	.fsync = bs_fsop_fsync,
	.opendir = bs_fsop_opendir,
	.readdir = bs_fsop_readdir,
	.readdirplus = bs_fsop_readdirplus,
	.releasedir = bs_fsop_releasedir,
	.fsyncdir = bs_fsop_fsyncdir,
	.statfs = bs_fsop_statfs,
	.setxattr = bs_fsop_setxattr,
	.getxattr = bs_fsop_getxattr,
	.listxattr = bs_fsop_listxattr,
	.removexattr = bs_fsop_removexattr,
	.create = bs_fsop_create,
};

int bs_fs_start(const struct bs_fs_options *o, struct bs_fs **ret, struct bs_error *err)
{
	struct bs_fs *fs = calloc(1, sizeof(*fs));
	struct bs_fuseserve_options so = {
		.fuse_fd = o->fuse_fd,
		.takeover = o->takeover,
		.n_threads = LISTENERS,
		.max_readahead = BS_FS_IO_MAX,
		.ops = &ops,
		.ops_size = sizeof(ops),
		.cookie = fs,
	};
	int r;

	if (!fs)
		return bs_fail(err, -ENOMEM, "out of memory");
	fs->o = *o;
	bs_fsnodes_init(&fs->nodes);
	fs->nodes.keep = o->keep;
	r = bs_fsowners_new(o->uid, o->gid, o->one_owner, &fs->owners);
	if (r == 0 && o->memory_bytes) {
		fs->unitpool = bs_unitpool_new(o->memory_bytes);
		r = fs->unitpool ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = bs_fswatch_start(fs);
	if (r == 0)
		r = bs_fspool_start(&fs->meta, fs, META_THREADS);
	if (r == 0)
		r = bs_fspool_start(&fs->data, fs, DATA_THREADS);
	if (r == 0)
		r = bs_fspool_start(&fs->answer, fs, ANSWER_THREADS);
	if (r < 0)
		return bs_fail_errno(err, r, "start the filesystem's threads");
	if (o->takeover && (r = bs_fs_adopt(fs)) < 0)
		return bs_fail_errno(err, r, "take over what an earlier server had open");
	r = bs_fuseserve_start(&so, &fs->serve, err);
	if (r == 0)
		*ret = fs;
	return r;
}

/* What was released, and what was read ahead with it, is over. */
static bool wait_closed(struct bs_fs *fs)
{
	uint64_t until = bs_clock_ns() + CLOSE_WAIT_NS;
	bool all;
	int r = 0;

	(void)pthread_mutex_lock(&fs->watch_lock);
	while (fs->n_files > fs->n_open && r == 0)
		r = bs_clock_cond_wait(&fs->closed, &fs->watch_lock, until);
	all = fs->n_files == 0;
	(void)pthread_mutex_unlock(&fs->watch_lock);
	return all;
}

bool bs_fs_idle(struct bs_fs *fs)
{
	bool idle;

	(void)pthread_mutex_lock(&fs->watch_lock);
	idle = fs->n_files == 0;
	(void)pthread_mutex_unlock(&fs->watch_lock);
	return idle;
}

bool bs_fs_join(struct bs_fs *fs)
{
	bool all;

	bs_fuseserve_join(fs->serve);
	all = wait_closed(fs);
	if (!all)
		return false;
	bs_fspool_stop(&fs->meta);
	bs_fspool_stop(&fs->answer);
	bs_fspool_stop(&fs->data);
	bs_fswatch_stop(fs);
	return true;
}

void bs_fs_stats(struct bs_fs *fs, struct bs_fs_stats *ret)
{
	struct bs_unitpool_stats u = { 0 };

	if (fs->unitpool)
		bs_unitpool_stats(fs->unitpool, &u);
	*ret = (struct bs_fs_stats){ .requests = fs->n_requests,
				     .failures = fs->n_failures,
				     .interrupted = fs->n_interrupted,
				     .reads = fs->n_reads,
				     .read_bytes = fs->n_read_bytes,
				     .first_read_ns = fs->first_read_ns,
				     .last_read_ns = fs->last_read_ns,
				     .unit_hits = fs->n_hits,
				     .unit_waits = fs->n_waits,
				     .direct_reads = fs->n_direct,
				     .units_fetched = u.fetched,
				     .units_ahead = u.ahead,
				     .units_unread = u.unread,
				     .writes = fs->n_writes,
				     .written_bytes = fs->n_written_bytes,
				     .memory_bytes = u.bytes,
				     .memory_peak_bytes = u.peak,
				     .open_files = fs->n_open };
	(void)pthread_mutex_lock(&fs->nodes.lock);
	ret->nodes = fs->nodes.by_id.n;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
}
