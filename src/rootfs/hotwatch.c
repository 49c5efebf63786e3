/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotwatch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cache/blob.h"
#include "hot/pack.h"
#include "obs/timeline.h"
#include "rootfs/hotfiles.h"
#include "rootfs/hotkept.h"
#include "rootfs/images.h"

#define RUNNING_MAX 16u /* at once: each has two bits a block of its image */
#define KEPT_MAX 256u	/* in the list */
#define TEXT_MAX 4096u
#define FILES_TOLD 3u  /* in the log and the timeline */
#define PATH_TOLD 200u /* bytes of a path, there */

struct missed_file {
	char *path;
	uint64_t blocks;
};

/* What was found at the end. */
struct outcome {
	struct bs_use_counts counts;
	enum bs_verdict verdict;
	struct missed_file files[BS_HOTWATCH_FILES_MAX]; /* most blocks first */
	unsigned int n_files;
};

struct watched {
	struct bs_list all;
	struct bs_cached *image;
	struct bs_hot hot;
	struct bs_use *use; /* NULL: it is over */
	uint64_t start_ns, until_ns;
	struct bs_timeline tl;
	pid_t warmer;
	bool kept, streams;
	bool mixed;	    /* other workloads read, too */
	struct outcome end; /* when it is over */
};

struct bs_hotwatch {
	struct bs_hotwatch_options o;
	pthread_rwlock_t lock; /* of the list and what is in it; held to write by few */
	struct bs_list list;
	_Atomic unsigned int n_running;
};

/* --- verdicts --------------------------------------------------------------------------------- */

static const char *const verdicts[] = {
	[BS_VERDICT_NONE] = "none",
	[BS_VERDICT_STALE] = "stale",
	[BS_VERDICT_RIGHT] = "right",
};

/* One word and the pack's digest: it is not to be said of another. */
static char *verdict_text(const struct bs_hot *hot, enum bs_verdict v)
{
	char text[BS_DIGEST_TEXT_LEN];

	return bs_strf("%s %s\n", verdicts[v], bs_digest_text(&hot->pack.digest, text));
}

enum bs_verdict bs_hotwatch_verdict(const struct bs_cached *image, const struct bs_hot *hot)
{
	char id[HOT_ID_LEN + 1];
	bs_autofree char *is = NULL;

	if (bs_hot_read_file(image, bs_hot_id(&hot->image.digest, hot->workload, id), "judged", 256,
			     &is, NULL) < 0)
		return BS_VERDICT_NONE;
	for (enum bs_verdict v = BS_VERDICT_STALE; v <= BS_VERDICT_RIGHT; v++) {
		bs_autofree char *text = verdict_text(hot, v);

		if (text && bs_streq(is, text))
			return v;
	}
	return BS_VERDICT_NONE;
}

void bs_hotwatch_judge(const struct bs_cached *image, const struct bs_hot *hot, enum bs_verdict v)
{
	bs_autofree char *text = verdict_text(hot, v);
	char id[HOT_ID_LEN + 1];

	if (text)
		(void)bs_hot_write_file(image, bs_hot_id(&hot->image.digest, hot->workload, id),
					"judged", text, strlen(text));
}

/* --- what is watched ---------------------------------------------------------------------------- */

static struct watched *watched_free(struct watched *d)
{
	if (!d)
		return NULL;
	(void)bs_use_free(d->use);
	bs_timeline_done(&d->tl);
	for (unsigned int i = 0; i < d->end.n_files; i++)
		free(d->end.files[i].path);
	free(d);
	return NULL;
}
DEFINE_BS_AUTO(watched, struct watched, watched_free)

static bool is_of(const struct watched *d, const struct bs_digest *image, const char *workload)
{
	return bs_digest_eq(&d->hot.image.digest, image) && bs_streq(d->hot.workload, workload);
}

/* The last one. Lock held. */
static struct watched *find(struct bs_hotwatch *w, const struct bs_digest *image,
			    const char *workload)
{
	struct watched *found = NULL;

	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (is_of(d, image, workload))
			found = d;
	}
	return found;
}

/* Other workloads of the image that are watched are not alone any more. Lock held to write. */
static bool mix(struct bs_hotwatch *w, const struct bs_digest *image, const char *workload)
{
	bool any = false;

	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (!d->use || !bs_digest_eq(&d->hot.image.digest, image) ||
		    bs_streq(d->hot.workload, workload))
			continue;
		d->mixed = any = true;
	}
	return any;
}

void bs_hotwatch_other(struct bs_hotwatch *w, const struct bs_digest *image, const char *workload)
{
	if (atomic_load(&w->n_running) == 0)
		return;
	(void)pthread_rwlock_wrlock(&w->lock);
	(void)mix(w, image, workload);
	(void)pthread_rwlock_unlock(&w->lock);
}

/* What is over goes: of the same workload, and the oldest when there are many. Lock held to write. */
static void trim(struct bs_hotwatch *w, const struct watched *next)
{
	unsigned int n = 0;

	bs_list_for_each(it, &w->list)
		n++;
	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (d->use ||
		    (n < KEPT_MAX && !is_of(d, &next->hot.image.digest, next->hot.workload)))
			continue;
		bs_list_remove(it);
		(void)watched_free(d);
		n--;
	}
}

void bs_hotwatch_open(struct bs_hotwatch *w, const struct bs_hotwatch_start *s)
{
	bs_auto(watched) struct watched *d = calloc(1, sizeof(*d));
	struct watched *old;

	if (!d || atomic_load(&w->n_running) >= RUNNING_MAX)
		return;
	d->hot = *s->hot;
	d->image = s->image;
	d->kept = s->kept;
	d->start_ns = bs_clock_ns();
	d->until_ns = d->start_ns + w->o.window_ns;
	d->tl = (struct bs_timeline){ s->timeline >= 0 ? bs_dup(s->timeline) : -EBADF,
				      "bootseerd" };
	bs_list_init(&d->all);
	d->use = bs_use_new(s->pack->extents, s->pack->n_extents,
			    s->image->blob_bytes / BS_BLOCK_BYTES);
	if (!d->use)
		return;
	(void)pthread_rwlock_wrlock(&w->lock);
	old = find(w, &d->hot.image.digest, d->hot.workload);
	if (!old || !old->use) {
		d->mixed = mix(w, &d->hot.image.digest, d->hot.workload);
		trim(w, d);
		bs_list_append(&w->list, &d->all);
		atomic_fetch_add(&w->n_running, 1);
		d = NULL;
	}
	(void)pthread_rwlock_unlock(&w->lock);
}

void bs_hotwatch_streams(struct bs_hotwatch *w, const struct bs_digest *image, bool on)
{
	(void)pthread_rwlock_wrlock(&w->lock);
	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (d->use && bs_digest_eq(&d->hot.image.digest, image))
			d->streams = on;
	}
	(void)pthread_rwlock_unlock(&w->lock);
}

void bs_hotwatch_warmer(struct bs_hotwatch *w, const struct bs_digest *image, pid_t pid)
{
	(void)pthread_rwlock_wrlock(&w->lock);
	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (d->use && bs_digest_eq(&d->hot.image.digest, image))
			d->warmer = pid;
	}
	(void)pthread_rwlock_unlock(&w->lock);
}

static bool there(void *cookie, uint64_t block)
{
	return bs_blob_has_range(cookie, block * BS_BLOCK_BYTES, BS_BLOCK_BYTES);
}

void bs_hotwatch_note(struct bs_hotwatch *w, const struct bs_cached *image, uint64_t off,
		      uint64_t len, pid_t pid)
{
	struct bs_use_read rd = { .off = off, .len = len, .there = there, .cookie = image->blob };
	uint64_t now;

	if (atomic_load_explicit(&w->n_running, memory_order_relaxed) == 0)
		return;
	now = bs_clock_ns();
	(void)pthread_rwlock_rdlock(&w->lock);
	bs_list_for_each(it, &w->list) {
		const struct watched *d = bs_list_entry(it, struct watched, all);

		if (!d->use || d->image != image || now >= d->until_ns)
			continue;
		rd.warmer = pid != 0 && pid == d->warmer;
		rd.exact = d->streams;
		bs_use_note(d->use, &rd);
	}
	(void)pthread_rwlock_unlock(&w->lock);
}

bool bs_hotwatch_counts(struct bs_hotwatch *w, const struct bs_digest *image, const char *workload,
			struct bs_use_counts *ret)
{
	const struct watched *d;

	(void)pthread_rwlock_rdlock(&w->lock);
	d = find(w, image, workload);
	if (d && d->use)
		bs_use_get(d->use, ret);
	else if (d)
		*ret = d->end.counts;
	(void)pthread_rwlock_unlock(&w->lock);
	return d != NULL;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Files with missed blocks, by path. */
struct missed {
	struct bs_map by_path;
};

static void missed_done(struct missed *m)
{
	struct missed_file *f;
	size_t pos = 0;

	while ((f = bs_map_next(&m->by_path, &pos))) {
		free(f->path);
		free(f);
	}
	bs_map_done(&m->by_path);
}

static int add_run(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	struct missed *m = cookie;
	struct missed_file *f = bs_map_get(&m->by_path, path, strlen(path));

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->path = strdup(path);
		if (!f || !f->path || bs_map_put(&m->by_path, f->path, strlen(f->path), f) < 0) {
			if (f)
				free(f->path);
			free(f);
			return -ENOMEM;
		}
	}
	f->blocks += len / BS_BLOCK_BYTES;
	return 0;
}

/* Whether a stands before b. */
static bool before(const struct missed_file *a, const struct missed_file *b)
{
	return a->blocks != b->blocks ? a->blocks > b->blocks : strcmp(a->path, b->path) < 0;
}

/* Keeps those with most blocks. */
static void pick_files(struct outcome *e, struct missed *m)
{
	struct missed_file *f;
	size_t pos = 0;

	while ((f = bs_map_next(&m->by_path, &pos))) {
		unsigned int at = e->n_files;

		while (at > 0 && before(f, &e->files[at - 1]))
			at--;
		if (at == BS_HOTWATCH_FILES_MAX)
			continue;
		if (e->n_files == BS_HOTWATCH_FILES_MAX)
			free(e->files[--e->n_files].path);
		memmove(&e->files[at + 1], &e->files[at], (e->n_files - at) * sizeof(e->files[0]));
		e->files[at] = *f;
		f->path = NULL;
		e->n_files++;
	}
}

static void find_files(struct watched *d, struct outcome *e)
{
	bs_autofree struct bs_extent *extents = NULL;
	__attribute__((cleanup(missed_done))) struct missed m = { 0 };
	bs_auto(hotfiles) struct bs_hotfiles *files = NULL;
	bs_autofd int tree = -EBADF;
	uint32_t n;

	bs_map_init(&m.by_path);
	if (e->counts.missed_reads == 0 || bs_use_missed(d->use, &extents, &n) < 0)
		return;
	tree = bs_cached_open_tree(d->image);
	if (tree >= 0 && bs_hotfiles_read(tree, &files, NULL) == 0 &&
	    bs_hotfiles_runs(files, extents, n, add_run, &m) == 0)
		pick_files(e, &m);
}

/* The end of a path. */
static const char *tail(const char *path)
{
	size_t len = strlen(path);

	if (len > PATH_TOLD)
		path += len - PATH_TOLD;
	while ((*path & 0xc0) == 0x80) /* not from the middle of a character on */
		path++;
	return path;
}

/* "; most of: PATH (N), …": those of a few files. */
static void say_files(const struct outcome *e, struct bs_buf *b)
{
	const unsigned int n = BS_MIN(e->n_files, FILES_TOLD);

	for (unsigned int i = 0; i < n; i++) {
		bs_autofree char *shown = bs_str_shown(e->files[i].path, strlen(e->files[i].path));

		(void)bs_buf_addf(b, "%s%s (%" PRIu64 ")", i == 0 ? "; most of: " : ", ",
				  shown ? tail(shown) : "?", e->files[i].blocks);
	}
	if (n < e->n_files)
		(void)bs_buf_addf(b, ", …");
}

static uint64_t unread(const struct bs_use_counts *c)
{
	return c->pack_blocks - BS_MIN(c->pack_blocks, c->read_blocks + c->warmed_blocks);
}

static void write_span(struct watched *d, const struct outcome *e)
{
	const struct bs_use_counts *c = &e->counts;
	bs_autobuf text = BS_BUF_INIT(TEXT_MAX);
	char part[7][BS_HUMAN_LEN];
	const uint64_t blocks[] = { c->pack_blocks,   c->read_blocks, c->waited_blocks,
				    c->warmed_blocks, unread(c),      c->fetched_blocks,
				    c->cached_blocks };

	for (size_t i = 0; i < BS_ARRAY_LEN(blocks); i++)
		(void)bs_human_bytes(blocks[i] * BS_BLOCK_BYTES, part[i]);
	(void)bs_buf_addf(&text,
			  "workload '%s': of the pack's %s the containers read %s (%s of it before "
			  "it had come), the warmer %s before them, nobody %s; what is not in the "
			  "pack: %s fetched and %s cached, in %" PRIu64 " reads",
			  d->hot.workload, part[0], part[1], part[2], part[3], part[4], part[5],
			  part[6], c->missed_reads);
	say_files(e, &text);
	bs_timeline_span(&d->tl, BS_SPAN_HOT_USE, d->start_ns, c->fetched_blocks * BS_BLOCK_BYTES,
			 bs_buf_str(&text));
	bs_timeline_done(&d->tl);
}

static void judge(struct bs_hotwatch *w, const struct watched *d, bool mixed, struct outcome *e)
{
	bs_autobuf text = BS_BUF_INIT(TEXT_MAX);

	e->verdict = bs_hotwatch_verdict(d->image, &d->hot);
	if (mixed || e->verdict != BS_VERDICT_NONE ||
	    !bs_use_is_bad(&e->counts, w->o.stale_percent))
		return;
	e->verdict = BS_VERDICT_STALE;
	bs_hotwatch_judge(d->image, &d->hot, BS_VERDICT_STALE);
	(void)bs_buf_addf(&text,
			  "hot pack of workload '%s' is stale: a start needed at least %" PRIu64
			  " blocks beside its %" PRIu64 "; the next one here is recorded again",
			  d->hot.workload, e->counts.missed_min, e->counts.pack_blocks);
	say_files(e, &text);
	if (w->o.event)
		w->o.event(w->o.cookie, BS_LOG_INFO, bs_buf_str(&text));
}

bool bs_hotwatch_running(struct bs_hotwatch *w)
{
	return atomic_load(&w->n_running) > 0;
}

bool bs_hotwatch_end_one(struct bs_hotwatch *w)
{
	const uint64_t now = bs_clock_ns();
	struct watched *over = NULL;
	struct outcome e = { 0 };
	bool mixed = false;

	(void)pthread_rwlock_rdlock(&w->lock);
	bs_list_for_each(it, &w->list) {
		struct watched *d = bs_list_entry(it, struct watched, all);

		if (!d->use || d->until_ns > now)
			continue;
		over = d;
		mixed = d->mixed;
	}
	(void)pthread_rwlock_unlock(&w->lock);
	if (!over)
		return false;
	/* its time is over: nothing is noted any more; it stays in the list while it has its use */
	bs_use_get(over->use, &e.counts);
	find_files(over, &e);
	write_span(over, &e);
	judge(w, over, mixed, &e);
	(void)pthread_rwlock_wrlock(&w->lock);
	over->use = bs_use_free(over->use);
	over->end = e;
	(void)pthread_rwlock_unlock(&w->lock);
	atomic_fetch_sub(&w->n_running, 1);
	return true;
}

/* --- status ------------------------------------------------------------------------------------- */

static void put_files(struct bs_jsonw *j, const struct outcome *e)
{
	bs_jsonw_key(j, "files");
	bs_jsonw_array(j);
	for (unsigned int i = 0; i < e->n_files; i++) {
		bs_jsonw_object(j);
		bs_jsonw_key(j, "path");
		bs_jsonw_bytes(j, e->files[i].path, strlen(e->files[i].path));
		bs_jsonw_ku64(j, "blocks", e->files[i].blocks);
		bs_jsonw_end(j);
	}
	bs_jsonw_end(j);
}

/* Lock held. */
static void put_use(struct bs_jsonw *j, const struct watched *d)
{
	struct bs_use_counts c = d->end.counts;
	char text[BS_DIGEST_TEXT_LEN];

	if (d->use)
		bs_use_get(d->use, &c);
	bs_jsonw_key(j, "use");
	bs_jsonw_object(j);
	bs_jsonw_kstr(j, "artifact", bs_digest_text(&d->hot.digest, text)); /* of the pack */
	bs_jsonw_kbool(j, "over", !d->use);
	bs_jsonw_kbool(j, "mixed", d->mixed);
	bs_jsonw_ku64(j, "pack_blocks", c.pack_blocks);
	bs_jsonw_ku64(j, "read_blocks", c.read_blocks);
	bs_jsonw_ku64(j, "waited_blocks", c.waited_blocks);
	bs_jsonw_ku64(j, "warmed_blocks", c.warmed_blocks);
	bs_jsonw_ku64(j, "unread_blocks", unread(&c));
	bs_jsonw_ku64(j, "fetched_blocks", c.fetched_blocks);
	bs_jsonw_ku64(j, "cached_blocks", c.cached_blocks);
	bs_jsonw_ku64(j, "missed_reads", c.missed_reads);
	bs_jsonw_ku64(j, "missed_min_blocks", c.missed_min);
	bs_jsonw_kstr(j, "verdict", verdicts[d->end.verdict]);
	if (!d->use)
		put_files(j, &d->end);
	bs_jsonw_end(j);
}

void bs_hotwatch_put(struct bs_hotwatch *w, struct bs_jsonw *j, const struct bs_digest *image,
		     const char *workload)
{
	const struct watched *d;

	(void)pthread_rwlock_rdlock(&w->lock);
	d = find(w, image, workload);
	if (d && !d->kept)
		put_use(j, d);
	(void)pthread_rwlock_unlock(&w->lock);
}

void bs_hotwatch_put_kept(struct bs_hotwatch *w, struct bs_jsonw *j)
{
	char text[BS_DIGEST_TEXT_LEN];

	(void)pthread_rwlock_rdlock(&w->lock);
	bs_list_for_each(it, &w->list) {
		const struct watched *d = bs_list_entry(it, struct watched, all);

		if (!d->kept)
			continue;
		bs_jsonw_object(j);
		bs_jsonw_kstr(j, "image", bs_digest_text(&d->hot.image.digest, text));
		bs_jsonw_kstr(j, "workload", d->hot.workload);
		bs_jsonw_kstr(j, "state", "kept");
		bs_jsonw_ku64(j, "pack_bytes", d->hot.pack.size);
		put_use(j, d);
		bs_jsonw_end(j);
	}
	(void)pthread_rwlock_unlock(&w->lock);
}

/* --- life --------------------------------------------------------------------------------------- */

struct bs_hotwatch *bs_hotwatch_new(const struct bs_hotwatch_options *o)
{
	struct bs_hotwatch *w = calloc(1, sizeof(*w));
	pthread_rwlockattr_t attr;

	if (!w)
		return NULL;
	w->o = *o;
	/* readers of images come without end: who has to write must not wait for the last */
	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&w->lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	bs_list_init(&w->list);
	return w;
}

struct bs_hotwatch *bs_hotwatch_free(struct bs_hotwatch *w)
{
	if (!w)
		return NULL;
	bs_list_for_each(it, &w->list) {
		bs_list_remove(it);
		(void)watched_free(bs_list_entry(it, struct watched, all));
	}
	(void)pthread_rwlock_destroy(&w->lock);
	free(w);
	return NULL;
}
