/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * An OCI layout directory as a repository (image-spec, image-layout.md).
 *
 *   oci-layout            {"imageLayoutVersion":"1.0.0"}
 *   index.json            what has a name, and what refers to something else
 *   blobs/sha256/<hex>    blobs and manifests
 *   .lock                 held while index.json is changed
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/str.h"
#include "net/layout.h"
#include "net/layout_files.h"
#include "net/layout_impl.h"
#include "net/layout_index.h"
#include "net/layout_reads.h"
#include "net/repo.h"

#define LOCK_WAIT_NS (30 * BS_NS_PER_S)
#define CHUNK (1u << 20)
#define FOLLOW_NS BS_NS_PER_S /* between looks at the path, for what is asked often */

struct layout {
	struct bs_layout base;
	struct bs_reads *reads; /* of ranges */
	int dirfd;
	int blobs;  /* atomic: blobs/sha256; -EBADF while it does not exist */
	bool swept; /* atomic: leftovers were looked for */
	int (*reopen)(void *cookie);
	void *cookie;
	void (*free_cookie)(void *cookie);
	pthread_mutex_t lock; /* held to look at the path again; guards followed_ns */
	uint64_t followed_ns; /* when that was; 0: never */
};

static struct layout *of(struct bs_repo *r)
{
	return BS_CONTAINER_OF(r, struct layout, base.repo);
}

static void layout_free(struct bs_repo *r)
{
	struct layout *l = of(r);

	bs_reads_end(l->reads);
	(void)bs_close(l->dirfd);
	(void)bs_close(l->blobs);
	if (l->free_cookie)
		l->free_cookie(l->cookie);
	(void)pthread_mutex_destroy(&l->lock);
	free(l->base.repo.name);
	free(l);
}

/* --- directories that are replaced --------------------------------------------------------- */

static int check_version(const char *shown_name, int dirfd, struct bs_error *err);

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* True: there is something new to look into. Lock held. */
static bool look_at_path(struct layout *l)
{
	bs_autofd int named = l->reopen ? l->reopen(l->cookie) : bs_dup(l->dirfd);
	bs_autofd int dir = -EBADF, blobs = -EBADF;
	int old = __atomic_load_n(&l->blobs, __ATOMIC_ACQUIRE);

	l->followed_ns = bs_clock_ns();
	dir = named < 0 ? named : openat(named, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	blobs = dir < 0 ? dir : bs_layout_open_dir(dir, "blobs/sha256", false);
	if (blobs < 0 || (same_file(dir, l->dirfd) && same_file(blobs, old)) ||
	    check_version(l->base.repo.name, dir, NULL) < 0)
		return false;
	if (dup3(dir, l->dirfd, O_CLOEXEC) < 0)
		return false;
	if (old >= 0)
		return dup3(blobs, old, O_CLOEXEC) >= 0;
	__atomic_store_n(&l->blobs, bs_take_fd(&blobs), __ATOMIC_RELEASE);
	return true;
}

/*
 * Puts the directory that the path names now, and the one of its blobs, in the place of
 * ours: under the same descriptors, since other threads may be using them. often: by one
 * thread, after a while, without waiting for another. True: it is worth looking again.
 */
static bool follow(struct layout *l, bool often)
{
	bool again = !often; /* another thread may have been quicker */

	if (often && pthread_mutex_trylock(&l->lock) != 0)
		return false;
	if (!often)
		(void)pthread_mutex_lock(&l->lock);
	if (!often || bs_clock_ns() >= l->followed_ns + FOLLOW_NS || !l->followed_ns)
		again |= look_at_path(l);
	(void)pthread_mutex_unlock(&l->lock);
	return again;
}

void bs_layout_follow(struct bs_repo *r, int (*fn)(void *cookie), void *cookie,
		      void (*free_cookie)(void *cookie))
{
	struct layout *l = of(r);

	l->reopen = fn;
	l->cookie = cookie;
	l->free_cookie = free_cookie;
}

/* --- blobs ------------------------------------------------------------------------------ */

static int try_blob(struct layout *l, const struct bs_digest *d, uint64_t *ret_size)
{
	int blobs = __atomic_load_n(&l->blobs, __ATOMIC_ACQUIRE);
	char hex[BS_DIGEST_TEXT_LEN];

	return blobs < 0 ? -ENOENT : bs_layout_open_file(blobs, bs_digest_hex(d, hex), ret_size);
}

static int open_blob(struct layout *l, const struct bs_digest *d, bool often, uint64_t *ret_size)
{
	int fd = try_blob(l, d, ret_size);

	return fd < 0 && follow(l, often) ? try_blob(l, d, ret_size) : fd;
}

static int layout_has_blob(struct bs_repo *r, const struct bs_digest *d, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	uint64_t size;
	bs_autofd int fd = open_blob(of(r), d, false, &size);

	if (fd >= 0)
		return 1;
	return fd == -ENOENT
		       ? 0
		       : bs_fail_errno(err, fd, "%s: blob %s", r->name, bs_digest_text(d, text));
}

static int layout_get_blob(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
			   bs_repo_sink *sink, void *cookie, struct bs_error *err)
{
	bs_autofree char *chunk = NULL;
	char text[BS_DIGEST_TEXT_LEN];
	uint64_t have, at = 0;
	bs_autofd int fd = open_blob(of(r), d, false, &have);
	int rc;

	(void)bs_digest_text(d, text);
	if (fd < 0)
		return bs_fail_errno(err, fd, "%s: blob %s", r->name, text);
	if (have != size)
		return bs_fail(err, -EBADMSG, "%s: blob %s has %" PRIu64 " bytes and not %" PRIu64,
			       r->name, text, have, size);
	chunk = malloc(CHUNK);
	if (!chunk)
		return bs_fail(err, -ENOMEM, "%s: out of memory", r->name);
	while (at < size) {
		ssize_t n = bs_pread_full(fd, chunk, BS_MIN((uint64_t)CHUNK, size - at), at);

		if (n <= 0)
			return bs_fail_errno(err, n < 0 ? (int)n : -EBADMSG, "%s: read blob %s",
					     r->name, text);
		rc = sink(cookie, chunk, (size_t)n);
		if (rc < 0)
			return bs_fail_errno(err, rc, "%s: blob %s", r->name, text);
		at += (uint64_t)n;
	}
	return 0;
}

static int open_range(struct bs_repo *r, const struct bs_range *rg)
{
	uint64_t size;

	return open_blob(of(r), &rg->blob, true, &size);
}

static void layout_read(struct bs_repo *r, struct bs_range *rg)
{
	bs_reads_read(of(r)->reads, r, rg);
}

void bs_layout_set_stall(struct bs_repo *r, uint64_t ns)
{
	bs_reads_set_stall(of(r)->reads, ns);
}

/* The directory for blobs, made when needed; leftovers are looked for once. */
static int writable_blobs(struct layout *l)
{
	if (l->blobs < 0)
		return -EROFS;
	if (!__atomic_exchange_n(&l->swept, true, __ATOMIC_RELAXED)) {
		bs_layout_sweep(l->blobs);
		bs_layout_sweep(l->dirfd);
	}
	return l->blobs;
}

static int copy_in(int from, int to, uint64_t size, const struct bs_digest *d,
		   void (*progress)(void *cookie, uint64_t sent), void *cookie)
{
	bs_autofree char *chunk = malloc(CHUNK);
	struct bs_sha256 *hash = bs_sha256_new();
	struct bs_digest got;
	uint64_t at = 0;
	int r = chunk && hash ? 0 : -ENOMEM;

	while (r == 0 && at < size) {
		ssize_t n = bs_pread_full(from, chunk, BS_MIN((uint64_t)CHUNK, size - at), at);

		if (n <= 0) {
			r = n < 0 ? (int)n : -EBADMSG;
			break;
		}
		bs_sha256_update(hash, chunk, (size_t)n);
		r = bs_write_full(to, chunk, (size_t)n);
		at += (uint64_t)n;
		if (progress)
			progress(cookie, at);
	}
	if (r == 0) {
		bs_sha256_final(hash, &got);
		if (!bs_digest_eq(&got, d))
			r = -EBADMSG;
	}
	(void)bs_sha256_free(hash);
	return r;
}

static int layout_put_blob(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
			   void (*progress)(void *cookie, uint64_t sent), void *cookie,
			   struct bs_error *err)
{
	char hex[BS_DIGEST_TEXT_LEN], text[BS_DIGEST_TEXT_LEN];
	struct layout *l = of(r);
	struct bs_layout_temp t;
	uint64_t have;
	bs_autofd int old = try_blob(l, d, &have);
	int rc;

	(void)bs_digest_text(d, text);
	if (old >= 0 && have == size)
		return 0;
	rc = writable_blobs(l);
	if (rc >= 0)
		rc = bs_layout_temp_open(rc, &t);
	if (rc < 0)
		return bs_fail_errno(err, rc, "%s: write blob %s", r->name, text);
	rc = copy_in(fd, t.fd, size, d, progress, cookie);
	if (rc == 0)
		rc = bs_layout_temp_publish(&t, bs_digest_hex(d, hex));
	bs_layout_temp_done(&t);
	if (rc == -EBADMSG)
		return bs_fail(err, rc,
			       "%s: blob %s: the bytes given have another digest or length",
			       r->name, text);
	return rc < 0 ? bs_fail_errno(err, rc, "%s: write blob %s", r->name, text) : 0;
}

static int layout_try_push(struct bs_repo *r, struct bs_error *err)
{
	struct bs_layout_temp t;
	int rc = writable_blobs(of(r));

	if (rc >= 0)
		rc = bs_layout_temp_open(rc, &t);
	if (rc < 0)
		return bs_fail_errno(err, rc, "%s: write there", r->name);
	bs_layout_temp_done(&t);
	return 0;
}

static int layout_mount_blob(struct bs_repo *r, const struct bs_digest *d, const char *from_name,
			     struct bs_error *err)
{
	return layout_has_blob(r, d, err);
}

/* --- manifests ---------------------------------------------------------------------------- */

static int layout_read_manifest(struct bs_repo *r, const struct bs_digest *d, bool often,
				char **ret, size_t *ret_len, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	uint64_t size;
	bs_autofd int fd = open_blob(of(r), d, often, &size);
	int rc = fd < 0 ? fd : bs_read_file(fd, BS_MANIFEST_MAX, ret, ret_len);

	return rc < 0 ? bs_fail_errno(err, rc, "%s: manifest %s", r->name, bs_digest_text(d, text))
		      : 0;
}

static void layout_follow(struct bs_repo *r)
{
	(void)follow(of(r), false); /* an old index would be found, too */
}

static int layout_read_index(struct bs_repo *r, struct bs_json **ret, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	uint64_t size;
	size_t len;
	bs_autofd int fd = bs_layout_open_file(of(r)->dirfd, "index.json", &size);
	int rc = fd < 0 ? fd : bs_read_file(fd, BS_LAYOUT_INDEX_MAX, &bytes, &len);

	if (rc < 0)
		return bs_fail_errno(err, rc, "%s: index.json", r->name);
	return bs_layout_index_parse(r->name, bytes, len, ret, err);
}

/* Under the lock of the file ".lock" beside it. */
static int layout_change_index(struct bs_repo *r, int (*fn)(struct bs_json *index, void *cookie),
			       void *cookie, struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	bs_autobuf out = BS_BUF_INIT(BS_LAYOUT_INDEX_MAX);
	bs_autofd int lock = bs_lock_open(of(r)->dirfd, ".lock", LOCK_WAIT_NS);
	int rc, changed;

	if (lock < 0)
		return bs_fail_errno(err, lock, "%s: lock '.lock'", r->name);
	rc = layout_read_index(r, &index, err);
	if (rc < 0)
		return rc;
	changed = fn(index, cookie);
	if (changed < 0)
		return bs_fail_errno(err, changed, "%s: index.json", r->name);
	if (changed == 0)
		return 0;
	rc = bs_json_write(index, &out);
	if (rc == 0)
		rc = bs_layout_write_file(of(r)->dirfd, "index.json", out.data, out.len);
	return rc < 0 ? bs_fail_errno(err, rc, "%s: write index.json", r->name) : changed;
}

static const struct bs_layout_ops index_ops = {
	.read_manifest = layout_read_manifest,
	.follow = layout_follow,
	.read_index = layout_read_index,
	.change_index = layout_change_index,
};

/* --- opening -------------------------------------------------------------------------------- */

static const struct bs_repo_ops layout_ops = {
	.scheme = "oci",
	.get_manifest = bs_layout_get_manifest,
	.get_blob = layout_get_blob,
	.read = layout_read,
	.has_blob = layout_has_blob,
	.put_blob = layout_put_blob,
	.try_push = layout_try_push,
	.mount_blob = layout_mount_blob,
	.put_manifest = bs_layout_put_manifest,
	.put_manifest_over = bs_layout_put_manifest_over,
	.list_tags = bs_layout_list_tags,
	.get_referrers = bs_layout_get_referrers,
	.delete_manifest = bs_layout_delete_manifest,
	.free = layout_free,
};

static int make_file(int dirfd, const char *name, const char *text)
{
	uint64_t size;
	bs_autofd int there = bs_layout_open_file(dirfd, name, &size);

	if (there != -ENOENT)
		return there < 0 ? there : 0;
	return bs_layout_write_file(dirfd, name, text, strlen(text));
}

static int create(struct layout *l, struct bs_error *err)
{
	bs_autofd int lock = bs_lock_open(l->dirfd, ".lock", LOCK_WAIT_NS);
	int r;

	if (lock < 0)
		return bs_fail_errno(err, lock, "%s: lock '.lock'", l->base.repo.name);
	r = make_file(l->dirfd, "index.json", BS_LAYOUT_NEW_INDEX);
	if (r == 0)
		r = make_file(l->dirfd, "oci-layout", BS_LAYOUT_VERSION);
	return r < 0 ? bs_fail_errno(err, r, "%s: make an OCI layout", l->base.repo.name) : 0;
}

/* Is it a layout, and of a version that we know? */
static int check_version(const char *shown_name, int dirfd, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	uint64_t size;
	size_t len;
	bs_autofd int fd = bs_layout_open_file(dirfd, "oci-layout", &size);
	int r = fd < 0 ? fd : bs_read_file(fd, BS_LAYOUT_VERSION_MAX, &bytes, &len);

	if (r == -ENOENT)
		return bs_fail(err, r, "%s is no OCI layout: it has no file 'oci-layout'",
			       shown_name);
	if (r < 0)
		return bs_fail_errno(err, r, "%s: oci-layout", shown_name);
	return bs_layout_check_version(shown_name, bytes, len, err);
}

static int open_blobs(struct layout *l, bool make, struct bs_error *err)
{
	bs_autofd int blobs = bs_layout_open_dir(l->dirfd, "blobs", make);
	int r = blobs;

	if (r >= 0)
		r = l->blobs = bs_layout_open_dir(blobs, "sha256", make);
	if (r == -ENOENT) /* a layout without any blob */
		r = 0;
	return r < 0 ? bs_fail_errno(err, r, "%s: blobs/sha256", l->base.repo.name) : 0;
}

int bs_layout_open(int dirfd, const char *shown_name, bool make, struct bs_repo **ret,
		   struct bs_error *err)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	struct layout *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return bs_fail(err, -ENOMEM, "oci:%s: out of memory", shown_name);
	l->base.repo = (struct bs_repo){ .ops = &layout_ops, .refs = 1 };
	l->base.ops = &index_ops;
	l->dirfd = l->blobs = -EBADF;
	(void)pthread_mutex_init(&l->lock, NULL);
	l->reads = bs_reads_new(open_range);
	repo = &l->base.repo;
	l->base.repo.name = bs_strf("oci:%s", shown_name);
	if (!l->base.repo.name || !l->reads)
		return bs_fail(err, -ENOMEM, "oci:%s: out of memory", shown_name);
	/* an own description, and one that can be synced: the caller's may be O_PATH */
	l->dirfd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dirfd < 0)
		return bs_fail_errno(err, -errno, "open '%s'", l->base.repo.name);
	r = make ? create(l, err) : 0;
	if (r == 0)
		r = check_version(l->base.repo.name, l->dirfd, err);
	if (r == 0)
		r = open_blobs(l, make, err);
	if (r < 0)
		return r;
	*ret = bs_take(&repo);
	return 0;
}
