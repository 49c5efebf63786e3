/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "cache/blocks.h"
#include "cache/near.h"

#define STATE_MAX 4096u

struct bs_blob {
	struct bs_blob_geometry g;
	uint64_t epoch;
	int dirfd;
	int fd;
	_Atomic uint64_t *present; /* mapped file */
	_Atomic uint64_t *proven;  /* subset of present that may be handed out */
	void *map, *heap;	   /* what the two point to */
	size_t map_bytes;
	pthread_mutex_t lock; /* held to change the rest */
	_Atomic uint32_t n_present;
	_Atomic bool complete;
	struct bs_blocks blocks;
	bool blocks_open;
	struct bs_near near;
	uint64_t n_forgotten; /* so often units were */
	uint64_t n_lost;      /* so often all of them were, since the disk failed */
};

/* What identifies a file whose content has not been touched since it was synced. */
struct identity {
	uint64_t ino, size;
	int64_t mtime_ns, ctime_ns;
};

static size_t n_words(const struct bs_blob *b)
{
	return bs_div_up(b->g.n_units, 64);
}

static bool test_bit(_Atomic uint64_t *bits, uint32_t i)
{
	return atomic_load_explicit(&bits[i / 64], memory_order_acquire) >> (i % 64) & 1;
}

static bool set_bit(_Atomic uint64_t *bits, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	return atomic_fetch_or_explicit(&bits[i / 64], bit, memory_order_release) & bit;
}

static bool clear_bit(_Atomic uint64_t *bits, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	return atomic_fetch_and_explicit(&bits[i / 64], ~bit, memory_order_release) & bit;
}

/* --- the state file -------------------------------------------------------------------- */

static int identify(int fd, struct identity *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct identity){
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
		.ctime_ns = st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec,
	};
	return 0;
}

static int write_state(struct bs_blob *b, const struct identity *complete, bool sync)
{
	bs_autobuf text = BS_BUF_INIT(STATE_MAX);
	struct bs_jsonw *w = bs_jsonw_new(false);
	int r;

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "epoch", b->epoch);
	if (complete) {
		bs_jsonw_key(w, "complete");
		bs_jsonw_object(w);
		bs_jsonw_ku64(w, "ino", complete->ino);
		bs_jsonw_ku64(w, "size", complete->size);
		bs_jsonw_key(w, "mtime_ns");
		bs_jsonw_i64(w, complete->mtime_ns);
		bs_jsonw_key(w, "ctime_ns");
		bs_jsonw_i64(w, complete->ctime_ns);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	r = bs_jsonw_finish(w, &text);
	if (r < 0)
		return r;
	return bs_atomicfile_write(b->dirfd, "state", text.data, text.len, 0600, sync);
}

/* Whatever is wrong with the file only means that nothing is believed. */
static void read_state(struct bs_blob *b, bool *ret_same_epoch, bool *ret_complete)
{
	bs_autofree char *text = NULL;
	bs_auto(json) struct bs_json *v = NULL;
	struct identity was = { 0 }, is;
	const struct bs_json *c;
	uint64_t epoch;
	size_t len;

	*ret_same_epoch = *ret_complete = false;
	if (bs_read_regular_at(b->dirfd, "state", STATE_MAX, &text, &len) < 0 ||
	    bs_json_parse("state", text, len, STATE_MAX, &v, NULL) < 0)
		return;
	*ret_same_epoch = bs_json_u64(bs_json_get(v, "epoch"), &epoch) == 0 && epoch == b->epoch;
	c = bs_json_get(v, "complete");
	if (!c || identify(b->fd, &is) < 0 || bs_json_u64(bs_json_get(c, "ino"), &was.ino) < 0 ||
	    bs_json_u64(bs_json_get(c, "size"), &was.size) < 0 ||
	    bs_json_i64(bs_json_get(c, "mtime_ns"), &was.mtime_ns) < 0 ||
	    bs_json_i64(bs_json_get(c, "ctime_ns"), &was.ctime_ns) < 0)
		return;
	*ret_complete = was.ino == is.ino && was.size == is.size && is.size == b->g.bytes &&
			was.mtime_ns == is.mtime_ns && was.ctime_ns == is.ctime_ns;
}

/* --- opening ------------------------------------------------------------------------------ */

/* 1 when the file was there with another size: its content is not to be believed. */
static int open_sized(int dirfd, const char *name, uint64_t bytes, int *ret_fd)
{
	bs_autofd int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size != bytes && ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	*ret_fd = bs_take_fd(&fd);
	return (uint64_t)st.st_size != bytes;
}

static int map_present(struct bs_blob *b)
{
	bs_autofd int fd = -EBADF;
	int r;

	b->map_bytes = BS_MAX(n_words(b) * 8, (size_t)8);
	r = open_sized(b->dirfd, "present", b->map_bytes, &fd);
	if (r < 0)
		return r;
	/* a hole in the file would be SIGBUS on a full disk: take its blocks now */
	r = posix_fallocate(fd, 0, (off_t)b->map_bytes);
	if (r != 0)
		return -r;
	b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (b->map == MAP_FAILED) {
		b->map = NULL;
		return -errno;
	}
	b->present = b->map;
	return 0;
}

static void count_present(struct bs_blob *b)
{
	uint32_t n = 0, last = b->g.n_units % 64;

	if (last) /* bits behind the last unit mean nothing */
		b->present[n_words(b) - 1] &= (UINT64_C(1) << last) - 1;
	for (size_t i = 0; i < n_words(b); i++)
		n += (uint32_t)__builtin_popcountll(b->present[i]);
	b->n_present = n;
}

static int open_files(struct bs_blob *b, struct bs_error *err)
{
	bool same_epoch, complete;
	int cut = open_sized(b->dirfd, "blob", b->g.bytes, &b->fd), r;

	if (cut < 0)
		return bs_fail_errno(err, cut, "open cache file 'blob'");
	r = map_present(b);
	if (r < 0)
		return bs_fail_errno(err, r, "open cache file 'present'");
	b->proven = b->heap = calloc(BS_MAX(n_words(b), (size_t)1), sizeof(*b->proven));
	if (!b->heap)
		return bs_fail(err, -ENOMEM, "out of memory");
	count_present(b);
	read_state(b, &same_epoch, &complete);
	same_epoch = same_epoch && !cut;
	if (complete && b->n_present == b->g.n_units)
		b->complete = true;
	if (same_epoch || b->complete) {
		for (size_t i = 0; i < n_words(b); i++)
			b->proven[i] = b->present[i];
	}
	r = bs_blocks_open(&b->blocks, b->dirfd, bs_div_up(b->g.bytes, BS_BLOCK_BYTES), same_epoch);
	if (r < 0)
		return bs_fail_errno(err, r, "open cache file 'blocks'");
	b->blocks_open = true;
	if (!same_epoch && !b->complete) {
		r = write_state(b, NULL, false);
		if (r < 0)
			return bs_fail_errno(err, r, "write cache file 'state'");
	}
	return 0;
}

int bs_blob_open(int dirfd, const struct bs_blob_geometry *g, uint64_t epoch, struct bs_blob **ret,
		 struct bs_error *err)
{
	bs_auto(blob) struct bs_blob *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return bs_fail(err, -ENOMEM, "out of memory");
	b->g = *g;
	b->epoch = epoch;
	b->fd = -EBADF;
	(void)pthread_mutex_init(&b->lock, NULL);
	b->dirfd = bs_dup(dirfd);
	if (b->dirfd < 0)
		return bs_fail_errno(err, b->dirfd, "keep the cache directory");
	if (bs_near_init(&b->near, g->n_units) < 0)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = open_files(b, err);
	if (r < 0)
		return r;
	*ret = bs_take(&b);
	return 0;
}

struct bs_blob *bs_blob_free(struct bs_blob *b)
{
	if (!b)
		return NULL;
	if (b->map)
		(void)munmap(b->map, b->map_bytes);
	if (b->blocks_open)
		bs_blocks_done(&b->blocks);
	bs_near_done(&b->near);
	free(b->heap);
	(void)bs_close(b->fd);
	(void)bs_close(b->dirfd);
	(void)pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}

/* --- units ---------------------------------------------------------------------------------- */

const struct bs_blob_geometry *bs_blob_geometry(const struct bs_blob *b)
{
	return &b->g;
}

int bs_blob_fd(const struct bs_blob *b)
{
	return b->fd;
}

struct bs_near *bs_blob_near(struct bs_blob *b)
{
	return &b->near;
}

bool bs_blob_has(struct bs_blob *b, uint32_t i)
{
	return test_bit(b->proven, i);
}

static void forget(struct bs_blob *b, uint32_t i)
{
	struct bs_unit u;
	bool was_complete;

	b->g.ops->unit(b->g.cookie, i, &u);
	(void)pthread_mutex_lock(&b->lock);
	bs_blocks_clear(&b->blocks, u.blob_off / BS_BLOCK_BYTES, u.blob_len / BS_BLOCK_BYTES);
	(void)clear_bit(b->proven, i);
	if (clear_bit(b->present, i))
		atomic_fetch_sub(&b->n_present, 1);
	b->n_forgotten++;
	was_complete = atomic_exchange(&b->complete, false);
	(void)pthread_mutex_unlock(&b->lock);
	/* or a crash would bring the bit back; what fails here fails with the disk */
	if (was_complete)
		(void)write_state(b, NULL, true);
}

/* The disk did not take what was written. */
static void forget_all(struct bs_blob *b)
{
	(void)pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < n_words(b); i++) {
		atomic_store(&b->proven[i], 0);
		atomic_store(&b->present[i], 0);
	}
	atomic_store(&b->n_present, 0);
	bs_blocks_clear(&b->blocks, 0, b->blocks.n);
	b->n_forgotten++;
	b->n_lost++;
	atomic_store(&b->complete, false);
	(void)pthread_mutex_unlock(&b->lock);
	/* nor when the old bits come back; what fails here fails with the disk */
	(void)unlinkat(b->dirfd, "state", 0);
}

static uint64_t locked(struct bs_blob *b, const uint64_t *counter)
{
	uint64_t n;

	(void)pthread_mutex_lock(&b->lock);
	n = *counter;
	(void)pthread_mutex_unlock(&b->lock);
	return n;
}

int bs_blob_prove(struct bs_blob *b, uint32_t i, void *scratch, void *buf)
{
	struct bs_unit u;

	if (!test_bit(b->present, i))
		return 0;
	b->g.ops->unit(b->g.cookie, i, &u);
	if (bs_pread_full(b->fd, buf, u.blob_len, u.blob_off) == (ssize_t)u.blob_len &&
	    b->g.ops->verify(b->g.cookie, scratch, i, buf) == 0) {
		bool is_there;

		(void)pthread_mutex_lock(&b->lock);
		is_there = test_bit(b->present, i); /* it may have been forgotten meanwhile */
		if (is_there)
			(void)set_bit(b->proven, i);
		(void)pthread_mutex_unlock(&b->lock);
		return is_there;
	}
	forget(b, i);
	return -EBADMSG;
}

bool bs_blob_check(struct bs_blob *b, uint32_t i, void *scratch, void *buf)
{
	return bs_blob_has(b, i) || bs_blob_prove(b, i, scratch, buf) == 1;
}

/* Calls each for the piece of every unit that the range touches, until it says false. */
static bool for_pieces(struct bs_blob *b, uint64_t off, uint64_t len,
		       bool (*each)(struct bs_blob *b, uint32_t i, uint64_t off, uint64_t len))
{
	const uint64_t end = off + len;
	uint32_t i = b->g.ops->find(b->g.cookie, off);
	struct bs_unit u;

	for (; off < end; off = u.blob_off + u.blob_len, i++) {
		b->g.ops->unit(b->g.cookie, i, &u);
		if (!each(b, i, off, BS_MIN(end, u.blob_off + u.blob_len) - off))
			return false;
	}
	return true;
}

static bool has_piece(struct bs_blob *b, uint32_t i, uint64_t off, uint64_t len)
{
	uint64_t first = off / BS_BLOCK_BYTES;

	return bs_blob_has(b, i) ||
	       bs_blocks_have(&b->blocks, first, bs_div_up(off + len, BS_BLOCK_BYTES) - first);
}

bool bs_blob_has_range(struct bs_blob *b, uint64_t off, uint64_t len)
{
	return for_pieces(b, off, len, has_piece);
}

bool bs_blob_has_blocks(struct bs_blob *b)
{
	return atomic_load_explicit(&b->blocks.bits, memory_order_relaxed) != NULL;
}

static bool forget_piece(struct bs_blob *b, uint32_t i, uint64_t off, uint64_t len)
{
	forget(b, i);
	return true;
}

int bs_blob_read_range(struct bs_blob *b, uint64_t off, void *buf, uint32_t len)
{
	if (!bs_blob_has_range(b, off, len))
		return -ENODATA;
	if (bs_pread_full(b->fd, buf, len, off) == (ssize_t)len)
		return 0;
	(void)for_pieces(b, off, len, forget_piece); /* the file was cut, or the disk is broken */
	return -ENODATA;
}

/* Lock held. */
static bool promote_piece(struct bs_blob *b, uint32_t i, uint64_t off, uint64_t len)
{
	struct bs_unit u;

	b->g.ops->unit(b->g.cookie, i, &u);
	if (bs_blocks_have(&b->blocks, u.blob_off / BS_BLOCK_BYTES, u.blob_len / BS_BLOCK_BYTES)) {
		if (!set_bit(b->present, i))
			atomic_fetch_add(&b->n_present, 1);
		(void)set_bit(b->proven, i);
	}
	return true;
}

int bs_blob_store_blocks(struct bs_blob *b, uint64_t first, uint32_t n, const void *bytes)
{
	const uint64_t off = first * BS_BLOCK_BYTES, len = (uint64_t)n * BS_BLOCK_BYTES;
	uint64_t n_lost = locked(b, &b->n_lost);
	int r;

	if (bs_blob_has_range(b, off, len))
		return 1;
	r = bs_pwrite_full(b->fd, bytes, len, off);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&b->lock);
	/* these bytes, too, may be among those that were lost */
	r = b->n_lost == n_lost ? bs_blocks_set(&b->blocks, first, n) : -EIO;
	if (r == 0)
		(void)for_pieces(b, off, len, promote_piece);
	(void)pthread_mutex_unlock(&b->lock);
	return r;
}

int bs_blob_store(struct bs_blob *b, uint32_t i, const void *bytes)
{
	uint64_t n_lost = locked(b, &b->n_lost);
	struct bs_unit u;
	int r;

	b->g.ops->unit(b->g.cookie, i, &u);
	r = bs_pwrite_full(b->fd, bytes, u.blob_len, u.blob_off);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&b->lock);
	if (b->n_lost != n_lost) { /* these bytes, too, may be among those */
		r = -EIO;
	} else {
		r = set_bit(b->present, i);
		if (r == 0)
			atomic_fetch_add(&b->n_present, 1);
		(void)set_bit(b->proven, i);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return r;
}

uint32_t bs_blob_n_present(struct bs_blob *b)
{
	return atomic_load(&b->n_present);
}

uint32_t bs_blob_next_missing(struct bs_blob *b, uint32_t from)
{
	while (from < b->g.n_units) {
		uint64_t missing = ~atomic_load(&b->present[from / 64]) >> (from % 64);

		if (missing)
			return BS_MIN(from + (uint32_t)__builtin_ctzll(missing), b->g.n_units);
		from = (from / 64 + 1) * 64;
	}
	return b->g.n_units;
}

/* --- completion -------------------------------------------------------------------------------- */

int bs_blob_finish(struct bs_blob *b, void *scratch, void *buf)
{
	uint64_t n_forgotten = locked(b, &b->n_forgotten);
	struct identity id;
	int r;

	if (b->complete)
		return 0;
	if (bs_blob_n_present(b) < b->g.n_units)
		return -EAGAIN;
	for (uint32_t i = 0; i < b->g.n_units; i++) {
		if (!bs_blob_check(b, i, scratch, buf))
			return -EAGAIN;
	}
	if (fsync(b->fd) < 0 || msync(b->map, b->map_bytes, MS_SYNC) < 0) {
		r = -errno;
		forget_all(b);
		return r;
	}
	r = identify(b->fd, &id);
	if (r == 0)
		r = write_state(b, &id, true);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&b->lock);
	if (b->n_forgotten == n_forgotten)
		b->complete = true;
	else
		r = -EAGAIN;
	(void)pthread_mutex_unlock(&b->lock);
	if (r < 0)
		(void)write_state(b, NULL, true); /* as in forget() */
	return r;
}

bool bs_blob_complete(struct bs_blob *b)
{
	return atomic_load(&b->complete);
}
