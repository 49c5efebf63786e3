/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The tree itself and its open files. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/path.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/path.h"
#include "hdfs/put.h"
#include "hdfs/stripe.h"
#include "hdfs/writerpriv.h"

#define THREADS 24u
#define FILE_BYTES (UINT64_C(64) << 20)
#define MOUNT_BYTES (UINT64_C(512) << 20)
#define DEADLINE_NS (60 * BS_NS_PER_S)
#define GRACE_NS (3600 * BS_NS_PER_S)
#define BEAT_NS (900 * BS_NS_PER_S)
#define PLAIN_STREAMS 4u

struct bs_ckpt_file {
	struct bs_ckpt *c;
	bool may_write;
	bool counted;		  /* one of the writer's handles */
	struct bs_view *view;	  /* of a file that nobody wrote here when it was opened */
	struct bs_writer *writer; /* else */
};

/* --- small things that all parts need -------------------------------------------------------- */

int bs_ckpt_path_check(const char *path, struct bs_error *err)
{
	const char *at = path;
	int r = bs_hdfs_path_check(path);

	if (r < 0)
		return bs_fail(err, r, "a name that HDFS cannot have (':', no UTF-8, too long)");
	while ((at = strstr(at, "/" BS_CKPT_HIDDEN)) != NULL) {
		at += sizeof("/" BS_CKPT_HIDDEN) - 1;
		if (!*at || *at == '/')
			return bs_fail(err, -ENOENT, "'%s' is where stripes are kept", path);
	}
	return 0;
}

int bs_ckpt_no_memory(struct bs_error *err)
{
	return bs_fail(err, -ENOMEM, "HDFS: out of memory");
}

char *bs_ckpt_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path || !slash ? bs_strf("/") : bs_strf("%.*s", (int)(slash - path), path);
}

char *bs_ckpt_hidden(const char *dir, const char *id, const char *name)
{
	return bs_strf("%s/" BS_CKPT_HIDDEN "%s%s%s%s", bs_streq(dir, "/") ? "" : dir,
		       id ? "/" : "", id ? id : "", name ? "/" : "", name ? name : "");
}

int bs_ckpt_new_id(char id[BS_STRIPES_ID_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[BS_STRIPES_ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		id[2 * i] = digits[bytes[i] >> 4];
		id[2 * i + 1] = digits[bytes[i] & 15];
	}
	id[BS_STRIPES_ID_LEN] = '\0';
	return 0;
}

void bs_ckpt_step(struct bs_ckpt *c, const char *name)
{
	if (c->o.step)
		c->o.step(name, c->o.cookie);
}

void bs_ckpt_count(uint64_t *counter, uint64_t n)
{
	(void)__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

int bs_ckpt_may_write(const struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	return c->o.read_only ? bs_fail(err, -EROFS, "'%s': mounted to be read only", path) : 0;
}

int bs_ckpt_replication(struct bs_ckpt *c, uint32_t *ret, struct bs_error *err)
{
	uint32_t n = __atomic_load_n(&c->replication, __ATOMIC_RELAXED);
	struct bs_hdfs_defaults d;
	int r;

	if (n == 0) {
		r = bs_nn_defaults(c->o.nn, &d, err);
		if (r < 0)
			return r;
		n = BS_MAX(d.replication, UINT32_C(1));
		__atomic_store_n(&c->replication, n, __ATOMIC_RELAXED);
	}
	*ret = n;
	return 0;
}

void bs_ckpt_stats(struct bs_ckpt *c, struct bs_ckpt_stats *ret)
{
	const uint64_t *from = (const uint64_t *)&c->stats;
	uint64_t *to = (uint64_t *)ret;

	_Static_assert(sizeof(*ret) % sizeof(uint64_t) == 0, "counters only");
	for (size_t i = 0; i < sizeof(*ret) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* --- making and ending ----------------------------------------------------------------------- */

/* Any writer behind after, or the first one. */
static struct bs_writer *writer_at(struct bs_ckpt *c, size_t i)
{
	struct bs_writer *w = NULL;

	(void)pthread_mutex_lock(&c->lock);
	bs_list_for_each(it, &c->writers) {
		if (i-- == 0) {
			w = bs_writer_ref(bs_list_entry(it, struct bs_writer, link));
			break;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return w;
}

static void beat_all(void *cookie)
{
	struct bs_ckpt *c = cookie;
	struct bs_writer *w;

	for (size_t i = 0; (w = writer_at(c, i)) != NULL; i++) {
		bs_writer_beat(w);
		(void)bs_writer_unref(w);
	}
}

static void set_defaults(struct bs_ckpt_options *o)
{
	if (!o->unit)
		o->unit = BS_STRIPE_UNIT;
	if (!o->file_bytes)
		o->file_bytes = FILE_BYTES;
	o->file_bytes = BS_MAX(o->file_bytes, 2 * (uint64_t)o->unit);
	if (!o->mount_bytes)
		o->mount_bytes = MOUNT_BYTES;
	o->mount_bytes = BS_MAX(o->mount_bytes, o->file_bytes);
	if (!o->deadline_ns)
		o->deadline_ns = DEADLINE_NS;
	if (!o->grace_ns)
		o->grace_ns = GRACE_NS;
}

int bs_ckpt_new(const struct bs_ckpt_options *o, struct bs_ckpt **ret, struct bs_error *err)
{
	bs_auto(ckpt) struct bs_ckpt *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return bs_ckpt_no_memory(err);
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_mutex_init(&c->room_lock, NULL);
	(void)pthread_cond_init(&c->room, NULL);
	bs_list_init(&c->writers);
	c->o = *o;
	set_defaults(&c->o);
	c->replication = o->replication;
	if (!bs_stripe_unit_ok(c->o.unit))
		return bs_fail(err, -EINVAL, "unit=%u: a multiple of 1 MiB up to 1 GiB, please",
			       c->o.unit);
	if (c->o.files > BS_STRIPE_FILES_MAX)
		return bs_fail(err, -EINVAL, "files=%u: no more than %u, please", c->o.files,
			       BS_STRIPE_FILES_MAX);
	r = bs_putter_new(o->nn, &c->putter, err);
	if (r == 0)
		r = bs_pool_new(THREADS, &c->pool, err);
	if (r < 0)
		return r;
	if (!o->read_only)
		bs_pool_every(c->pool, BEAT_NS, beat_all, c);
	*ret = bs_take(&c);
	return 0;
}

struct bs_ckpt *bs_ckpt_free(struct bs_ckpt *c)
{
	if (!c)
		return NULL;
	(void)bs_pool_free(c->pool);
	(void)bs_putter_free(c->putter);
	(void)pthread_cond_destroy(&c->room);
	(void)pthread_mutex_destroy(&c->room_lock);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

/* --- who writes ------------------------------------------------------------------------------ */

/* With the lock. */
static struct bs_writer *find(struct bs_ckpt *c, const char *path)
{
	bs_list_for_each(it, &c->writers) {
		struct bs_writer *w = bs_list_entry(it, struct bs_writer, link);

		if (bs_streq(w->path, path))
			return w;
	}
	return NULL;
}

struct bs_writer *bs_ckpt_writer_of(struct bs_ckpt *c, const char *path)
{
	struct bs_writer *w;

	(void)pthread_mutex_lock(&c->lock);
	w = find(c, path);
	if (w)
		(void)bs_writer_ref(w);
	(void)pthread_mutex_unlock(&c->lock);
	return w;
}

void bs_writer_forget(struct bs_writer *w)
{
	w->unlinked = true;
	(void)pthread_mutex_lock(&w->c->lock);
	bs_list_remove(&w->link);
	(void)pthread_mutex_unlock(&w->c->lock);
}

static int move(char **path, const char *from, const char *to)
{
	char *moved;

	if (!*path || !bs_path_is_below(*path, from))
		return 0;
	moved = bs_strf("%s%s", to, *path + strlen(from));
	if (!moved)
		return -ENOMEM;
	free(*path);
	*path = moved;
	return 0;
}

int bs_writer_renamed(struct bs_writer *w, const char *from, const char *to, struct bs_error *err)
{
	struct bs_view *v = NULL;
	int r;

	(void)pthread_mutex_lock(&w->c->lock);
	r = move(&w->path, from, to);
	(void)pthread_mutex_unlock(&w->c->lock);
	if (r == 0)
		r = move(&w->segment_dir, from, to);
	if (r == 0 && w->base && !w->fresh) {
		r = bs_view_open(w->c, w->path, &v, err);
		if (r == 0)
			bs_writer_set_base(w, v);
	}
	return r;
}

/* --- opening and closing --------------------------------------------------------------------- */

static int parent_is_there(struct bs_ckpt *c, const char *path, struct bs_error *err)
{
	bs_autofree char *dir = bs_ckpt_parent(path);
	struct bs_hdfs_status s = { 0 };
	int r = dir ? bs_nn_status(c->o.nn, dir, &s, err) : bs_ckpt_no_memory(err);

	if (r == 0 && s.type != BS_HDFS_DIRECTORY)
		r = bs_fail(err, -ENOTDIR, "HDFS '%s': no directory", dir);
	bs_hdfs_status_done(&s);
	return r;
}

/* Takes the writer of path, of another handle if there is one; view is taken over. */
static int join_writer(struct bs_ckpt *c, const char *path, struct bs_view *view,
		       unsigned int flags, uint32_t mode, struct bs_writer **ret,
		       struct bs_error *err)
{
	struct bs_writer *mine = NULL, *w;
	bool is_others;
	int r = bs_writer_new(c, path, view, flags, mode, &mine, err);

	if (r < 0) {
		(void)bs_view_unref(view);
		return r;
	}
	(void)pthread_mutex_lock(&c->lock);
	w = find(c, path);
	if (!w) {
		w = bs_take(&mine);
		bs_list_append(&c->writers, &w->link);
	} else if (flags & BS_CKPT_EXCL) {
		w = NULL;
	} else {
		(void)bs_writer_ref(w);
	}
	if (w)
		w->handles++;
	(void)pthread_mutex_unlock(&c->lock);
	is_others = mine != NULL;
	(void)bs_writer_unref(mine);
	*ret = w;
	if (!w)
		return bs_fail(err, -EEXIST, "'%s' is there already", path);
	return is_others && flags & BS_CKPT_TRUNC ? bs_writer_truncate(w, 0, err) : 0;
}

/* A writer that is there already. 1: there is none. */
static int join_other(struct bs_ckpt_file *f, const char *path, unsigned int flags,
		      struct bs_error *err)
{
	struct bs_ckpt *c = f->c;
	struct bs_writer *w;

	(void)pthread_mutex_lock(&c->lock);
	w = find(c, path);
	if (w && !(flags & BS_CKPT_EXCL)) {
		f->writer = bs_writer_ref(w);
		f->counted = (flags & (BS_CKPT_WRITE | BS_CKPT_TRUNC)) != 0;
		w->handles += f->counted;
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (!w)
		return 1;
	if (flags & BS_CKPT_EXCL)
		return bs_fail(err, -EEXIST, "'%s' is there already", path);
	return flags & BS_CKPT_TRUNC ? bs_writer_truncate(w, 0, err) : 0;
}

static int mode_of(struct bs_ckpt *c, const char *path, uint32_t *ret, struct bs_error *err)
{
	struct bs_hdfs_status s = { 0 };
	int r = bs_nn_status(c->o.nn, path, &s, err);

	if (r == 0)
		*ret = s.mode;
	bs_hdfs_status_done(&s);
	return r;
}

static int open_new(struct bs_ckpt_file *f, const char *path, unsigned int flags, uint32_t mode,
		    struct bs_error *err)
{
	struct bs_view *view = NULL;
	int r = bs_view_open(f->c, path, &view, err);

	if (r == -ENOENT && flags & BS_CKPT_CREATE)
		r = parent_is_there(f->c, path, err);
	else if ((r == 0 || r == -EIO || r == -EPROTONOSUPPORT) && flags & BS_CKPT_EXCL)
		r = bs_fail(err, -EEXIST, "'%s' is there already", path);
	else if ((r == -EIO || r == -EPROTONOSUPPORT) && flags & BS_CKPT_TRUNC)
		r = mode_of(f->c, path, &mode, err); /* what cannot be read can be replaced */
	if (r < 0) {
		(void)bs_view_unref(view);
		return r;
	}
	if (view && !(flags & (BS_CKPT_WRITE | BS_CKPT_TRUNC))) {
		f->view = view;
		return 0;
	}
	r = join_writer(f->c, path, view, flags, mode, &f->writer, err);
	f->counted = f->writer != NULL;
	return r;
}

int bs_ckpt_open(struct bs_ckpt *c, const char *path, unsigned int flags, uint32_t mode,
		 struct bs_ckpt_file **ret, struct bs_error *err)
{
	struct bs_ckpt_file *f;
	int r = bs_ckpt_path_check(path, err);

	if (!(flags & BS_CKPT_CREATE))
		flags &= ~(unsigned int)BS_CKPT_EXCL;
	if (r == -ENOENT && flags & BS_CKPT_CREATE)
		return bs_fail(err, -EPERM, "'%s' is where stripes are kept", path);
	if (r == 0 && flags & (BS_CKPT_WRITE | BS_CKPT_TRUNC))
		r = bs_ckpt_may_write(c, path, err);
	if (r < 0)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f)
		return bs_ckpt_no_memory(err);
	f->c = c;
	f->may_write = (flags & BS_CKPT_WRITE) != 0;
	r = join_other(f, path, flags, err);
	if (r > 0)
		r = open_new(f, path,
			     c->o.read_only ? flags & ~(unsigned int)BS_CKPT_CREATE : flags, mode,
			     err);
	if (r < 0) {
		(void)bs_ckpt_close(f, NULL);
		return r;
	}
	*ret = f;
	return 0;
}

int bs_ckpt_close(struct bs_ckpt_file *f, struct bs_error *err)
{
	struct bs_writer *w = f ? f->writer : NULL;
	bool last = false;
	int r = 0;

	if (!f)
		return 0;
	if (w && f->counted) {
		(void)pthread_mutex_lock(&f->c->lock);
		last = --w->handles == 0;
		(void)pthread_mutex_unlock(&f->c->lock);
		r = last ? bs_writer_sync(w, err) : bs_writer_error(w, err);
	}
	if (last) {
		(void)pthread_mutex_lock(&f->c->lock);
		if (w->handles == 0)
			bs_list_remove(&w->link);
		(void)pthread_mutex_unlock(&f->c->lock);
	}
	(void)bs_writer_unref(w);
	(void)bs_view_unref(f->view);
	free(f);
	return r;
}

int bs_ckpt_reopen(struct bs_ckpt_file *f, struct bs_ckpt_file **ret)
{
	struct bs_ckpt_file *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->c = f->c;
	g->view = f->view ? bs_view_ref(f->view) : bs_writer_clean_view(f->writer, true);
	if (!g->view) {
		free(g);
		return 1;
	}
	*ret = g;
	return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

uint64_t bs_ckpt_size(struct bs_ckpt_file *f)
{
	return f->writer ? bs_writer_size(f->writer) : bs_view_size(f->view);
}

int bs_ckpt_fstat(struct bs_ckpt_file *f, struct bs_hdfs_status *ret, struct bs_error *err)
{
	int r = f->writer ? bs_writer_tell(f->writer, ret) : bs_view_tell(f->view, ret);

	return r < 0 ? bs_fail(err, r, "HDFS: out of memory") : 0;
}

static uint64_t unit_of(const struct bs_view *v)
{
	const struct bs_stripes *s = bs_view_stripes(v);

	return s ? s->unit : BS_MAX(bs_view_status(v)->block_size, UINT64_C(1));
}

uint64_t bs_ckpt_unit(const struct bs_ckpt_file *f)
{
	return f->writer ? bs_writer_unit(f->writer) : unit_of(f->view);
}

unsigned int bs_ckpt_streams(const struct bs_ckpt_file *f)
{
	const struct bs_stripes *s = f->view ? bs_view_stripes(f->view) : NULL;
	unsigned int n = 1;

	if (!s)
		return PLAIN_STREAMS;
	for (uint32_t i = 0; i < s->n_segments; i++)
		n = BS_MAX(n, s->segments[i].files);
	return BS_MIN(n, THREADS);
}

/* A part of a read that is not the first one. */
struct part {
	struct bs_job job;
	struct bs_ckpt_read *read;
	size_t at, len;
};

/* Of some that fail at once, any. */
static void fail_read(struct bs_ckpt_read *r, int code, const struct bs_error *err)
{
	ssize_t good = (ssize_t)r->len;

	if (__atomic_compare_exchange_n(&r->result, &good, code, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		(void)snprintf(r->text, sizeof(r->text), "%.150s", bs_error_text(err));
}

static void part_done(struct bs_ckpt_read *r)
{
	if (__atomic_sub_fetch(&r->left, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	(void)bs_view_unref(r->view);
	(void)bs_writer_unref(r->writer);
	r->done(r);
}

static void read_part(struct bs_ckpt_read *r, size_t at, size_t len)
{
	struct bs_error err = BS_ERROR_INIT;
	char *to = (char *)r->buf + at;
	ssize_t n = 0;

	if (len && r->view)
		n = bs_view_pread(r->view, to, len, r->off + at, &err);
	else if (len)
		n = bs_writer_pread(r->writer, to, len, r->off + at, &err);
	if (n < 0)
		fail_read(r, (int)n, &err);
	else if ((size_t)n < len && r->writer) /* cut in the meantime */
		r->result = n;
	else if ((size_t)n < len)
		fail_read(r, -EIO, &err);
	part_done(r);
}

static void run_part(struct bs_job *j)
{
	struct part *p = BS_CONTAINER_OF(j, struct part, job);
	struct part own = *p;

	free(p);
	read_part(own.read, own.at, own.len);
}

/*
 * A file that is being saved is read by one thread at a time: its io may be somebody's for long,
 * and the other threads are there for other files. false: the job runs when it is its turn.
 */
static bool is_my_turn(struct bs_writer *w, struct bs_job *j)
{
	bool mine;

	(void)pthread_mutex_lock(&w->lock);
	mine = !w->is_read;
	if (mine)
		w->is_read = true;
	else
		bs_list_append(&w->to_read, &j->link);
	(void)pthread_mutex_unlock(&w->lock);
	return mine;
}

static void turn_is_over(struct bs_ckpt *c, struct bs_writer *w)
{
	struct bs_job *next = NULL;

	(void)pthread_mutex_lock(&w->lock);
	w->is_read = false;
	if (!bs_list_empty(&w->to_read)) {
		next = bs_list_entry(w->to_read.next, struct bs_job, link);
		bs_list_remove(&next->link);
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (next)
		bs_pool_run(c->pool, next);
}

static void run_first(struct bs_job *j)
{
	struct bs_ckpt_read *r = BS_CONTAINER_OF(j, struct bs_ckpt_read, job);
	bs_auto(writer) struct bs_writer *w = NULL;

	if (r->writer && !is_my_turn(r->writer, j))
		return;
	w = r->writer ? bs_writer_ref(r->writer) : NULL;
	read_part(r, 0, r->first_len); /* r is the owner's again */
	if (w)
		turn_is_over(w->c, w);
}

/* Units of a striped file are read side by side, by as many threads as there are. */
static void start_parts(struct bs_ckpt *c, struct bs_ckpt_read *r)
{
	uint64_t unit = unit_of(r->view);
	size_t at = r->first_len;

	while (at < r->len) {
		size_t len = (size_t)BS_MIN((uint64_t)(r->len - at), unit - (r->off + at) % unit);
		struct part *p = calloc(1, sizeof(*p));

		(void)__atomic_add_fetch(&r->left, 1, __ATOMIC_RELAXED);
		if (!p) {
			struct bs_error err = BS_ERROR_INIT;

			fail_read(r, bs_fail(&err, -ENOMEM, "out of memory"), &err);
			part_done(r);
			break;
		}
		p->job.fn = run_part;
		p->read = r;
		p->at = at;
		p->len = len;
		bs_pool_run(c->pool, &p->job);
		at += len;
	}
}

void bs_ckpt_read_start(struct bs_ckpt_file *f, struct bs_ckpt_read *r)
{
	uint64_t size = bs_ckpt_size(f), unit;

	r->view = f->view ? bs_view_ref(f->view) : bs_writer_clean_view(f->writer, false);
	r->writer = r->view ? NULL : bs_writer_ref(f->writer);
	r->len = r->off < size ? (size_t)BS_MIN((uint64_t)r->len, size - r->off) : 0;
	r->result = (ssize_t)r->len;
	r->text[0] = '\0';
	r->first_len = r->len;
	r->left = 1;
	r->job.fn = run_first;
	if (r->view && bs_view_stripes(r->view) && r->len) {
		unit = unit_of(r->view);
		r->first_len = (size_t)BS_MIN((uint64_t)r->len, unit - r->off % unit);
		start_parts(f->c, r);
	}
	bs_pool_run(f->c->pool, &r->job);
}

struct waiting {
	struct bs_ckpt_read read;
	struct bs_latch over;
};

static void on_read(struct bs_ckpt_read *r)
{
	bs_latch_open(&BS_CONTAINER_OF(r, struct waiting, read)->over);
}

ssize_t bs_ckpt_pread(struct bs_ckpt_file *f, void *buf, size_t len, uint64_t off,
		      struct bs_error *err)
{
	struct waiting w = { .read = { .buf = buf, .len = len, .off = off, .done = on_read },
			     .over = BS_LATCH_INIT };

	bs_ckpt_read_start(f, &w.read);
	bs_latch_wait(&w.over);
	bs_latch_done(&w.over);
	return w.read.result < 0 ? bs_fail(err, (int)w.read.result, "%s", w.read.text)
				 : w.read.result;
}

/* --- writing --------------------------------------------------------------------------------- */

static int may_write(const struct bs_ckpt_file *f, struct bs_error *err)
{
	return f->may_write ? 0 : bs_fail(err, -EBADF, "the file is not open for writing");
}

int bs_ckpt_write(struct bs_ckpt_file *f, const void *buf, size_t len, uint64_t off,
		  struct bs_error *err)
{
	int r = may_write(f, err);

	return r < 0 ? r : bs_writer_write(f->writer, buf, len, off, err);
}

int bs_ckpt_truncate(struct bs_ckpt_file *f, uint64_t len, struct bs_error *err)
{
	int r = may_write(f, err);

	return r < 0 ? r : bs_writer_truncate(f->writer, len, err);
}

int bs_ckpt_sync(struct bs_ckpt_file *f, struct bs_error *err)
{
	return f->writer ? bs_writer_sync(f->writer, err) : 0;
}
