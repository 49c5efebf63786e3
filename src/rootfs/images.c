/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/images.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "image/artifact.h"
#include "image/frames.h"
#include "image/table.h"
#include "image/tree.h"
#include "net/repo.h"
#include "rootfs/entry.h"
#include "rootfs/sources.h"

#define FAILED_MAX 64u

struct image {
	struct bs_cached pub; /* first: geometry's cookie and callers' pointer are the same */
	struct bs_images *of;
	int dirfd;
	struct bs_artifact artifact;
	uint64_t manifest_len;
	struct bs_table *table;
	struct bs_timeline tl; /* of the start that prepared it */
	bool prepared;	       /* its metadata is there, too; guarded by bs_images.lock */
	struct image *next_removed;
	atomic_bool read_marked, fetch_marked;
	_Atomic uint64_t reads, fetched_bytes;
	_Atomic(struct bs_alias *) aliases; /* set once, after n_aliases */
	size_t n_aliases;
	bool completing;	/* guarded by bs_images.lock */
	struct waiter *waiters; /* for the completion; guarded by bs_images.lock */
};

struct waiter {
	struct waiter *next;
	void (*done)(void *cookie, int result);
	void *cookie;
};

struct bs_images {
	struct bs_images_options o;
	pthread_mutex_t lock;	 /* guards by_digest */
	struct bs_map by_digest; /* prepared, or with their table */
	struct image *removed;	 /* whose entries were, before they were prepared */
	pthread_cond_t loaded;	 /* one more in by_digest, or prepared, or in failed */
	struct {
		struct bs_digest digest;
		uint64_t at_ns;
	} failed[FAILED_MAX]; /* images that could not be made ready, the last ones; under lock */
	unsigned int next_failed;
	/* order: loading, lock; none is held over the network */
	pthread_mutex_t loading; /* held over the disk */
	pthread_mutex_t telling; /* alone: sources and timeline of an image are set */
};

/* --- the blob's ops: frames of the table ------------------------------------------------ */

static const struct bs_frame *frame(void *cookie, uint32_t i)
{
	return &((struct image *)cookie)->table->frames[i];
}

static void op_unit(void *cookie, uint32_t i, struct bs_unit *ret)
{
	const struct bs_frame *fr = frame(cookie, i);

	*ret = (struct bs_unit){ .blob_off = fr->first_block * BS_BLOCK_SIZE,
				 .blob_len = fr->n_blocks * BS_BLOCK_SIZE,
				 .data_off = fr->off,
				 .data_len = fr->len };
}

static uint32_t op_find(void *cookie, uint64_t blob_off)
{
	return bs_table_find(((struct image *)cookie)->table, blob_off / BS_BLOCK_SIZE);
}

static int op_decode(void *cookie, void *scratch, uint32_t i, const void *data, void *out)
{
	return bs_frame_decode(scratch, frame(cookie, i), data, out);
}

static int op_verify(void *cookie, void *scratch, uint32_t i, const void *bytes)
{
	return bs_frame_verify(scratch, frame(cookie, i), bytes);
}

static bool op_alias(void *cookie, uint32_t unit, struct bs_blob **ret_blob, uint32_t *ret_unit)
{
	struct image *i = cookie;
	const struct bs_alias *list = atomic_load_explicit(&i->aliases, memory_order_acquire);
	size_t low = 0, high = list ? i->n_aliases : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (list[mid].frame < unit)
			low = mid + 1;
		else
			high = mid;
	}
	if (!list || low == i->n_aliases || list[low].frame != unit)
		return false;
	*ret_blob = list[low].other->blob;
	*ret_unit = list[low].other_frame;
	return true;
}

static const struct bs_blob_ops ops = {
	.unit = op_unit,
	.find = op_find,
	.decode = op_decode,
	.verify = op_verify,
	.alias = op_alias,
};

const struct bs_table *bs_cached_table(const struct bs_cached *i)
{
	return ((const struct image *)i)->table;
}

const struct bs_artifact *bs_cached_artifact(const struct bs_cached *i)
{
	return &((const struct image *)i)->artifact;
}

uint64_t bs_cached_manifest_len(const struct bs_cached *i)
{
	return ((const struct image *)i)->manifest_len;
}

int bs_cached_dirfd(const struct bs_cached *i)
{
	return ((const struct image *)i)->dirfd;
}

void bs_cached_set_aliases(struct bs_cached *pub, struct bs_alias *list, size_t n)
{
	struct image *i = (struct image *)pub;

	(void)pthread_mutex_lock(&i->of->lock);
	if (n > 0 && !atomic_load(&i->aliases)) {
		i->n_aliases = n;
		atomic_store_explicit(&i->aliases, list, memory_order_release);
		list = NULL;
	}
	(void)pthread_mutex_unlock(&i->of->lock);
	free(list);
}

int bs_images_dirfd(const struct bs_images *im)
{
	return im->o.dirfd;
}

void *bs_images_scratch_new(void)
{
	return bs_framer_new(0);
}

void bs_images_scratch_free(void *scratch)
{
	(void)bs_framer_free(scratch);
}

/* --- loading ---------------------------------------------------------------------------------- */

static uint64_t node_of(const struct bs_digest *d)
{
	uint64_t v;

	memcpy(&v, d->b, sizeof(v));
	v = be64toh(v);
	return v < 2 ? v + 2 : v; /* 0 is no node, 1 the root */
}

static struct image *image_free(struct image *i)
{
	if (!i)
		return NULL;
	(void)bs_blob_free(i->pub.blob);
	(void)bs_origin_unref(i->pub.origin);
	(void)bs_table_free(i->table);
	bs_timeline_done(&i->tl);
	(void)bs_close(i->dirfd);
	free(atomic_load(&i->aliases));
	free(i);
	return NULL;
}
DEFINE_BS_AUTO(image, struct image, image_free)

static int read_manifest(int dirfd, const struct bs_digest *digest, struct bs_artifact *ret,
			 uint64_t *ret_len, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	char type[] = BS_MEDIA_OCI_MANIFEST;
	struct bs_manifest m = { .media_type = type };
	int r = bs_read_regular_at(dirfd, "manifest", BS_MANIFEST_MAX, &bytes, &m.len);

	if (r < 0)
		return bs_fail_errno(err, r, "read cache file 'manifest'");
	m.bytes = bytes;
	bs_digest_of(bytes, m.len, &m.digest);
	if (!bs_digest_eq(&m.digest, digest))
		return bs_fail(err, -EBADMSG, "cache file 'manifest' has another digest");
	*ret_len = m.len;
	return bs_artifact_parse(&m, ret, err);
}

static int read_table(int dirfd, const struct bs_descriptor *d, struct bs_table **ret,
		      struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	struct bs_digest is;
	size_t len;
	int r = bs_read_regular_at(dirfd, "table", BS_ENTRY_TABLE_MAX, &bytes, &len);

	if (r < 0)
		return bs_fail_errno(err, r, "read cache file 'table'");
	bs_digest_of(bytes, len, &is);
	if (!bs_digest_eq(&is, &d->digest))
		return bs_fail(err, -EBADMSG, "cache file 'table' has another digest");
	return bs_table_read(bytes, len, ret, err);
}

static int open_sources(struct bs_images *im, const char *const *sources, size_t n,
			struct bs_repo **repos, struct bs_error *err)
{
	size_t n_open = 0;

	for (size_t i = 0; i < n && n_open < BS_ORIGIN_SOURCES_MAX; i++) {
		if (im->o.open_source(im->o.cookie, sources[i], &repos[n_open], err) == 0)
			n_open++;
	}
	return (int)n_open;
}

static void close_sources(struct bs_repo **repos, int n)
{
	for (int i = 0; i < n; i++)
		(void)bs_repo_unref(repos[i]);
}

/* Tells the image where its data is; what cannot be opened is left out. */
static void set_sources(struct image *i, const char *const *sources, size_t n)
{
	struct bs_repo *repos[BS_ORIGIN_SOURCES_MAX];
	struct bs_error err = BS_ERROR_INIT;
	int n_open = open_sources(i->of, sources, n, repos, &err);

	if (n_open > 0)
		bs_origin_add(i->pub.origin, repos, (size_t)n_open);
	else if (n > 0 && i->of->o.event)
		i->of->o.event(i->of->o.cookie, bs_error_text(&err));
	close_sources(repos, n_open);
}

static void read_sources(struct image *i)
{
	bs_autostrv list = { 0 };

	if (bs_sources_read(i->dirfd, BS_SOURCES_FILE, &list) == 0)
		set_sources(i, (const char *const *)list.v, list.n);
}

/* Loads the entry in dirfd (taken over), which has a table at least. */
static int load(struct bs_images *im, const struct bs_digest *digest, int dirfd, struct image **ret,
		struct bs_error *err)
{
	bs_auto(image) struct image *i = calloc(1, sizeof(*i));
	struct bs_blob_geometry g = { .ops = &ops };
	int r;

	if (!i) {
		(void)bs_close(dirfd);
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	i->of = im;
	i->dirfd = dirfd;
	i->tl = BS_TIMELINE_NONE;
	i->pub.digest = *digest;
	i->pub.node = node_of(digest);
	if ((r = read_manifest(dirfd, digest, &i->artifact, &i->manifest_len, err)) < 0 ||
	    (r = read_table(dirfd, &i->artifact.table, &i->table, err)) < 0)
		return r;
	i->pub.origin = bs_origin_new(&i->artifact.data.digest);
	if (!i->pub.origin)
		return bs_fail(err, -ENOMEM, "out of memory");
	i->pub.blob_bytes = i->table->blob_blocks * BS_BLOCK_SIZE;
	g.cookie = i;
	g.bytes = i->pub.blob_bytes;
	g.n_units = i->table->n_frames;
	r = bs_blob_open(dirfd, &g, im->o.epoch, &i->pub.blob, err);
	if (r < 0)
		return r;
	*ret = bs_take(&i);
	return 0;
}

/* half: one that is not prepared is good enough. */
static struct image *find_loaded(struct bs_images *im, const struct bs_digest *d, bool half)
{
	struct image *i;

	(void)pthread_mutex_lock(&im->lock);
	i = bs_map_get(&im->by_digest, d->b, sizeof(d->b));
	if (i && !i->prepared && !half)
		i = NULL;
	(void)pthread_mutex_unlock(&im->lock);
	return i;
}

static int load_and_keep(struct bs_images *im, const struct bs_digest *d, struct image **ret,
			 struct bs_error *err)
{
	char hex[BS_DIGEST_TEXT_LEN];
	struct image *i = NULL;
	int r, fd;

	fd = openat(im->o.dirfd, bs_digest_hex(d, hex),
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return bs_fail_errno(err, -errno, "cache entry '%s'", hex);
	r = load(im, d, fd, &i, err);
	if (r < 0)
		return bs_error_context(err, "cache entry '%s'", hex);
	read_sources(i);
	(void)pthread_mutex_lock(&im->lock);
	r = bs_map_put(&im->by_digest, i->pub.digest.b, sizeof(i->pub.digest.b), i);
	(void)pthread_cond_broadcast(&im->loaded);
	(void)pthread_mutex_unlock(&im->lock);
	if (r < 0) {
		(void)image_free(i);
		return bs_fail(err, r, "out of memory");
	}
	*ret = i;
	return 0;
}

/* Its entry was removed, and another may be made: a stream may still use it. */
static void put_aside(struct bs_images *im, struct image *i)
{
	(void)pthread_mutex_lock(&im->lock);
	(void)bs_map_remove(&im->by_digest, i->pub.digest.b, sizeof(i->pub.digest.b));
	i->next_removed = im->removed;
	im->removed = i;
	(void)pthread_mutex_unlock(&im->lock);
}

static int set_prepared(struct bs_images *im, struct image *i, struct bs_error *err)
{
	if (faccessat(i->dirfd, BS_ENTRY_METADATA, R_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return bs_fail_errno(err, -errno, "cache file '%s'", BS_ENTRY_METADATA);
	(void)pthread_mutex_lock(&im->lock);
	i->prepared = true;
	(void)pthread_cond_broadcast(&im->loaded);
	(void)pthread_mutex_unlock(&im->lock);
	return 0;
}

/* The image, loaded from disk when it is prepared; half: when its table is there. */
static int get(struct bs_images *im, const struct bs_digest *d, bool half, struct image **ret,
	       struct bs_error *err)
{
	struct image *i;
	struct stat st;
	int r = 0;

	(void)pthread_mutex_lock(&im->loading);
	i = find_loaded(im, d, true);
	if (i && !find_loaded(im, d, false) && fstat(i->dirfd, &st) == 0 && st.st_nlink == 0) {
		put_aside(im, i);
		i = NULL;
	}
	if (!i)
		r = load_and_keep(im, d, &i, err);
	if (r == 0 && !half && !find_loaded(im, d, false))
		r = set_prepared(im, i, err);
	(void)pthread_mutex_unlock(&im->loading);
	if (r == 0)
		*ret = i;
	return r;
}

struct bs_cached *bs_images_cached(struct bs_images *im, const struct bs_digest *digest)
{
	struct image *i = find_loaded(im, digest, false);

	if (i)
		return &i->pub;
	return get(im, digest, false, &i, NULL) < 0 ? NULL : &i->pub;
}

/* Lock held. */
static bool has_failed(const struct bs_images *im, const struct bs_digest *digest,
		       uint64_t since_ns)
{
	for (size_t i = 0; i < FAILED_MAX; i++) {
		if (im->failed[i].at_ns >= since_ns && bs_digest_eq(&im->failed[i].digest, digest))
			return true;
	}
	return false;
}

static void note_failed(struct bs_images *im, const struct bs_digest *digest)
{
	(void)pthread_mutex_lock(&im->lock);
	im->failed[im->next_failed].digest = *digest;
	im->failed[im->next_failed].at_ns = bs_clock_ns();
	im->next_failed = (im->next_failed + 1) % FAILED_MAX;
	(void)pthread_cond_broadcast(&im->loaded);
	(void)pthread_mutex_unlock(&im->lock);
}

/* Lock held. */
static struct bs_cached *look_up(struct bs_images *im, const struct bs_digest *digest, bool half)
{
	struct image *i = bs_map_get(&im->by_digest, digest->b, sizeof(digest->b));

	return i && (half || i->prepared) ? &i->pub : NULL;
}

static struct bs_cached *await(struct bs_images *im, const struct bs_digest *digest,
			       uint64_t since_ns, uint64_t deadline_ns, bool half)
{
	struct bs_cached *found = bs_images_cached(im, digest);
	int r = 0;

	(void)pthread_mutex_lock(&im->lock);
	while (!found && r == 0 && !has_failed(im, digest, since_ns)) {
		found = look_up(im, digest, half);
		if (!found)
			r = bs_clock_cond_wait(&im->loaded, &im->lock, deadline_ns);
	}
	(void)pthread_mutex_unlock(&im->lock);
	return found;
}

struct bs_cached *bs_images_await(struct bs_images *im, const struct bs_digest *digest,
				  uint64_t since_ns, uint64_t deadline_ns)
{
	return await(im, digest, since_ns, deadline_ns, false);
}

struct bs_cached *bs_images_await_table(struct bs_images *im, const struct bs_digest *digest,
					uint64_t since_ns, uint64_t deadline_ns)
{
	return await(im, digest, since_ns, deadline_ns, true);
}

bool bs_images_digest(const char *name, struct bs_digest *ret)
{
	char text[BS_DIGEST_TEXT_LEN];
	int n = snprintf(text, sizeof(text), "sha256:%s", name);

	return n == BS_DIGEST_TEXT_LEN - 1 && bs_digest_parse(text, (size_t)n, ret) == 0;
}

struct bs_cached *bs_images_by_name(struct bs_images *im, const char *name)
{
	struct bs_digest d;

	return bs_images_digest(name, &d) ? bs_images_cached(im, &d) : NULL;
}

static struct image *loaded_by_node(struct bs_images *im, uint64_t node)
{
	struct image *i;
	size_t pos = 0;

	(void)pthread_mutex_lock(&im->lock);
	while ((i = bs_map_next(&im->by_digest, &pos))) {
		if (i->prepared && i->pub.node == node)
			break;
	}
	(void)pthread_mutex_unlock(&im->lock);
	return i;
}

struct bs_cached *bs_images_by_node(struct bs_images *im, uint64_t node)
{
	struct image *i = loaded_by_node(im, node);
	struct bs_cached *found = NULL;
	char prefix[17];
	struct dirent *de;
	DIR *d;

	if (i)
		return &i->pub;
	/* a worker that was just started: the name begins with the node's digits */
	d = bs_opendir_at(im->o.dirfd, ".");
	if (!d)
		return NULL;
	(void)snprintf(prefix, sizeof(prefix), "%016llx", (unsigned long long)node);
	while (!found && (de = readdir(d))) {
		if (strncmp(de->d_name, prefix, 16) == 0)
			found = bs_images_by_name(im, de->d_name);
	}
	(void)closedir(d);
	return found;
}

static int open_file(struct bs_cached *i, const char *name)
{
	return bs_open_regular_at(((struct image *)i)->dirfd, name);
}

int bs_cached_open_metadata(struct bs_cached *i)
{
	return open_file(i, BS_ENTRY_METADATA);
}

int bs_cached_open_tree(struct bs_cached *i)
{
	return open_file(i, "tree");
}

/* --- preparing ----------------------------------------------------------------------------------- */

struct entry {
	struct bs_images *im;
	const struct bs_digest *digest;
	struct bs_timeline *tl;
	struct image **ret;
};

static int try_source(void *cookie, struct bs_repo *repo, struct bs_error *err)
{
	const struct entry *e = cookie;
	struct image *i;
	int r;

	/* another, who asks elsewhere, may have been faster */
	if (get(e->im, e->digest, false, e->ret, NULL) == 0)
		return 0;
	r = get(e->im, e->digest, true, &i, NULL);
	if (r < 0) {
		r = bs_entry_fetch_table(e->im->o.dirfd, e->digest, repo, e->tl, err);
		if (r == 0)
			r = get(e->im, e->digest, true, &i, err);
	}
	if (r == 0)
		r = bs_entry_fetch_tree(i->dirfd, &i->artifact, i->table->blob_blocks, repo, e->tl,
					err);
	return r < 0 ? r : get(e->im, e->digest, false, e->ret, err);
}

/*
 * Further places of the image's data, behind those that are known: a start may name any
 * place, and must not take away the one that running containers read from.
 */
static void add_sources(struct image *i, const char *const *sources, size_t n)
{
	bs_autostrv list = { 0 };
	size_t n_known;

	(void)bs_sources_read(i->dirfd, BS_SOURCES_FILE, &list);
	n_known = list.n;
	for (size_t k = 0; k < n; k++) {
		if (!bs_strv_has(&list, sources[k]) && bs_strv_add(&list, sources[k]) < 0)
			return;
	}
	set_sources(i, sources, n);
	if (list.n > n_known) /* without it a restarted worker waits for the next start to tell */
		(void)bs_sources_write(i->dirfd, BS_SOURCES_FILE, (const char *const *)list.v,
				       list.n);
}

int bs_images_prepare(struct bs_images *im, const struct bs_digest *digest,
		      const char *const *sources, size_t n, uint64_t wait_ns,
		      struct bs_timeline *tl, struct bs_cached **ret, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	const struct bs_rounds rounds = { im->o.open_source, im->o.cookie, sources, n,
					  start + wait_ns };
	struct image *i;
	struct entry e = { im, digest, tl, &i };
	int r = get(im, digest, false, &i, err);

	if (r < 0)
		r = bs_rounds_run(&rounds, try_source, &e, err);
	if (r < 0)
		note_failed(im, digest);
	if (r == 0) {
		(void)pthread_mutex_lock(&im->telling);
		if (n > 0)
			add_sources(i, sources, n);
		bs_timeline_span(tl, BS_SPAN_PREPARE, start, 0, NULL);
		if (i->tl.fd < 0) {
			i->tl.program = tl->program;
			i->tl.fd = bs_take_fd(&tl->fd);
		}
		(void)pthread_mutex_unlock(&im->telling);
		*ret = &i->pub;
	}
	bs_timeline_done(tl);
	return r;
}

/* --- completion, marks and status --------------------------------------------------------- */

static void completed(void *cookie, int result)
{
	struct image *i = cookie;
	struct bs_images *im = i->of;
	struct waiter *w, *next;

	if (result == 0)
		bs_timeline_mark(&i->tl, BS_MARK_LAST_FRAME, bs_clock_ns(), NULL);
	if (result == 0 && im->o.completed)
		im->o.completed(im->o.cookie, &i->pub.digest);
	(void)pthread_mutex_lock(&im->lock);
	i->completing = false;
	w = i->waiters;
	i->waiters = NULL;
	(void)pthread_mutex_unlock(&im->lock);
	for (; w; w = next) {
		next = w->next;
		w->done(w->cookie, result);
		free(w);
	}
}

int bs_cached_complete(struct bs_cached *pub, void (*done)(void *cookie, int result), void *cookie)
{
	struct image *i = (struct image *)pub;
	struct bs_images *im = i->of;
	struct waiter *w = done ? malloc(sizeof(*w)) : NULL;
	bool start;
	int r = 0;

	if (done && !w)
		return -ENOMEM;
	if (bs_blob_complete(pub->blob)) {
		free(w);
		if (done)
			done(cookie, 0);
		return 0;
	}
	(void)pthread_mutex_lock(&im->lock);
	if (w) {
		*w = (struct waiter){ .next = i->waiters, .done = done, .cookie = cookie };
		i->waiters = w;
	}
	start = !i->completing;
	i->completing = true;
	(void)pthread_mutex_unlock(&im->lock);
	if (start)
		r = bs_fill_complete(im->o.fill, pub->blob, pub->origin, completed, i);
	if (r < 0)
		completed(i, r); /* tells the waiters, ours among them */
	return 0;
}

void bs_cached_note_read(struct bs_cached *pub)
{
	struct image *i = (struct image *)pub;

	atomic_fetch_add_explicit(&i->reads, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&i->read_marked, memory_order_relaxed) &&
	    !atomic_exchange(&i->read_marked, true))
		bs_timeline_mark(&i->tl, BS_MARK_FIRST_READ, bs_clock_ns(), NULL);
}

void bs_images_note_fetched(void *cookie, struct bs_blob *blob, uint64_t bytes)
{
	struct image *i = bs_blob_geometry(blob)->cookie;

	(void)cookie;
	atomic_fetch_add_explicit(&i->fetched_bytes, bytes, memory_order_relaxed);
	if (!atomic_load_explicit(&i->fetch_marked, memory_order_relaxed) &&
	    !atomic_exchange(&i->fetch_marked, true))
		bs_timeline_mark(&i->tl, BS_MARK_FIRST_FRAME, bs_clock_ns(), NULL);
}

void bs_images_status(struct bs_images *im, struct bs_jsonw *w)
{
	char text[BS_DIGEST_TEXT_LEN];
	struct image *i;
	size_t pos = 0;

	bs_jsonw_array(w);
	(void)pthread_mutex_lock(&im->lock);
	while ((i = bs_map_next(&im->by_digest, &pos))) {
		if (!i->prepared)
			continue;
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "digest", bs_digest_text(&i->pub.digest, text));
		bs_jsonw_ku64(w, "bytes", i->pub.blob_bytes);
		bs_jsonw_ku64(w, "frames", i->table->n_frames);
		bs_jsonw_ku64(w, "frames_present", bs_blob_n_present(i->pub.blob));
		bs_jsonw_kbool(w, "complete", bs_blob_complete(i->pub.blob));
		bs_jsonw_kbool(w, "completing", i->completing);
		bs_jsonw_ku64(w, "reads", i->reads);
		bs_jsonw_ku64(w, "fetched_bytes", i->fetched_bytes);
		bs_jsonw_end(w);
	}
	(void)pthread_mutex_unlock(&im->lock);
	bs_jsonw_end(w);
}

int bs_images_new(const struct bs_images_options *o, struct bs_images **ret, struct bs_error *err)
{
	struct bs_images *im = calloc(1, sizeof(*im));

	if (!im)
		return bs_fail(err, -ENOMEM, "out of memory");
	im->o = *o;
	im->o.dirfd = bs_dup(o->dirfd);
	if (im->o.dirfd < 0) {
		free(im);
		return bs_fail_errno(err, -EBADF, "keep the cache directory");
	}
	(void)pthread_mutex_init(&im->lock, NULL);
	(void)pthread_cond_init(&im->loaded, NULL);
	(void)pthread_mutex_init(&im->loading, NULL);
	(void)pthread_mutex_init(&im->telling, NULL);
	bs_map_init(&im->by_digest);
	*ret = im;
	return 0;
}
