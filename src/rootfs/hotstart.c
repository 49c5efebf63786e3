/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotstart.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "hot/pack.h"
#include "hot/warmlist.h"
#include "net/repo.h"
#include "rootfs/hotagain.h"
#include "rootfs/hotdonor.h"
#include "rootfs/hotfiles.h"
#include "rootfs/hotpriv.h"

#define STREAMED_MAX 256u /* in the list, but for those that run */

const char *bs_hot_id(const struct bs_digest *image, const char *workload, char id[HOT_ID_LEN + 1])
{
	char tag[BS_HOT_TAG_LEN];

	(void)snprintf(id, HOT_ID_LEN + 1, "%s",
		       bs_hot_tag(image, workload, tag) + strlen(BS_HOT_TAG_PREFIX));
	return id;
}

void bs_hotstart_tell(struct bs_hotstart *hs, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!hs->o.event)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hs->o.event(hs->o.cookie, text);
}

bool bs_hot_has_file(const struct bs_cached *image, const char *id, const char *what)
{
	bs_autofree char *name = bs_strf("hot-%s.%s", id, what);

	return name && faccessat(bs_cached_dirfd(image), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- watching ------------------------------------------------------------------------------- */

/* The builder ends it. */
static void watch(struct bs_hotstart *hs, const struct bs_hotwatch_start *start)
{
	bs_hotwatch_open(hs->watch, start);
	(void)pthread_mutex_lock(&hs->lock);
	(void)pthread_cond_signal(&hs->changed);
	(void)pthread_mutex_unlock(&hs->lock);
}

/* A pack that was made here: nothing has to come, but it may lack what this start needs. */
static void watch_kept(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *head = bs_hot_made_head(image, id, hot);
	bs_auto(pack) struct bs_pack *pack = NULL;

	if (!head || bs_pack_read(head, hot->head_len, bs_cached_table(image),
				  &bs_cached_artifact(image)->table.digest, &pack, NULL) < 0)
		return;
	watch(hs, &(struct bs_hotwatch_start){ .image = image,
					       .hot = hot,
					       .pack = pack,
					       .kept = true,
					       .timeline = rq->timeline });
}

void bs_hotstart_read(struct bs_hotstart *hs, const struct bs_cached *image, uint64_t off,
		      uint64_t len, pid_t pid)
{
	bs_hotwatch_note(hs->watch, image, off, len, pid);
}

/* A pack that is not what it should be, or not there any more: the next start asks anew. */
static void forget(const struct bs_cached *image, const char *id)
{
	bs_autofree char *name = bs_strf("hot-%s.json", id), *head = bs_strf("hot-%s.head", id);

	if (name)
		(void)unlinkat(bs_cached_dirfd(image), name, 0);
	/* it is known by its length alone: the one that comes next may be as long */
	if (head)
		(void)unlinkat(bs_cached_dirfd(image), head, 0);
}

/* --- finding -------------------------------------------------------------------------------- */

void bs_hotstart_plan_done(struct bs_hotstart_plan *p)
{
	(void)bs_repo_unref(p->repo);
	*p = (struct bs_hotstart_plan){ 0 };
}

static bool is_of(const struct streamed *s, const struct bs_digest *image, const char *workload)
{
	return bs_digest_eq(&s->hot.image.digest, image) && bs_streq(s->hot.workload, workload);
}

/* Lock held. */
static bool streams(struct bs_hotstart *hs, const struct bs_digest *image, const char *workload)
{
	bs_list_for_each(it, &hs->streamed) {
		const struct streamed *s = bs_list_entry(it, struct streamed, all);

		if (s->running && is_of(s, image, workload))
			return true;
	}
	return false;
}

static bool is_streaming(struct bs_hotstart *hs, const struct bs_digest *image,
			 const char *workload)
{
	bool found;

	(void)pthread_mutex_lock(&hs->lock);
	found = streams(hs, image, workload);
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

static int find_at(struct bs_hotstart *hs, const struct bs_hotstart_request *rq, size_t i,
		   struct bs_hotstart_plan *p)
{
	struct bs_error err = BS_ERROR_INIT;
	int r = hs->o.open_source(hs->o.cookie, rq->sources[i], &p->repo, &err);

	if (r < 0)
		return r;
	r = bs_hot_find(p->repo, rq->image, rq->workload, &p->hot, &err);
	if (r == 0)
		return 0;
	p->repo = bs_repo_unref(p->repo);
	if (r != -ENOENT)
		bs_hotstart_tell(hs, "hot pack of %s at '%s': %s", rq->workload, rq->sources[i],
				 bs_error_text(&err));
	return r;
}

static void find_at_sources(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			    struct bs_hotstart_plan *ret)
{
	bool all_say_none = rq->n_sources > 0;

	for (size_t i = 0; i < rq->n_sources && !ret->stream; i++) {
		int r = find_at(hs, rq, i, ret);

		ret->stream = r == 0;
		/* a source that is out of reach may have one: no reason to make another */
		all_say_none &= r == -ENOENT;
	}
	ret->record = all_say_none && rq->may_record;
}

/*
 * The pack is stale: another may be there by now, which is then taken. Else this start is
 * recorded, beside the old one.
 */
static void look_again(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       const struct bs_cached *image, const char *id, struct bs_hotstart_plan *ret)
{
	struct bs_hotstart_plan other = { 0 };

	find_at_sources(hs, rq, &other);
	if (other.stream && !bs_digest_eq(&other.hot.pack.digest, &ret->hot.pack.digest)) {
		bs_autofree char *pack = bs_strf("hot-%s.pack", id);

		forget(image, id);
		if (pack)
			(void)unlinkat(bs_cached_dirfd(image), pack, 0);
		*ret = other;
		return;
	}
	ret->record = other.stream || other.record;
	bs_hotstart_plan_done(&other);
}

/* No pack is to be had: that of an image with equal frames may do until there is one. */
static void look_elsewhere(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			   struct bs_hotstart_plan *ret)
{
	bs_autostrv sources = { 0 };

	ret->donor = bs_hotdonor_find(hs->o.images, rq->image, rq->workload, &ret->hot);
	if (!ret->donor)
		return;
	(void)bs_hot_sources(ret->donor, &sources);
	for (size_t i = 0; i < sources.n && !ret->stream; i++)
		ret->stream = hs->o.open_source(hs->o.cookie, sources.v[i], &ret->repo, NULL) == 0;
}

static void look(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		 struct bs_cached *image, struct bs_hotstart_plan *ret)
{
	bool recording;
	char id[HOT_ID_LEN + 1];

	if ((image && bs_blob_complete(image->blob)) || is_streaming(hs, rq->image, rq->workload))
		return;
	recording = bs_hotstart_is_recording(hs, bs_hot_id(rq->image, rq->workload, id));
	if (!image || bs_hot_find_kept(image, rq->workload, &ret->hot) < 0) {
		if (!recording)
			find_at_sources(hs, rq, ret);
		if (!recording && !ret->stream)
			look_elsewhere(hs, rq, ret);
		return;
	}
	if (!recording && rq->may_record &&
	    bs_hotwatch_verdict(image, &ret->hot) == BS_VERDICT_STALE)
		look_again(hs, rq, image, id, ret);
	if (ret->stream)
		return;
	if (bs_hot_has_pack(image, id, &ret->hot)) {
		if (!ret->record)
			watch_kept(hs, rq, image, id, &ret->hot);
		return;
	}
	for (size_t i = 0; i < rq->n_sources && !ret->stream; i++)
		ret->stream = hs->o.open_source(hs->o.cookie, rq->sources[i], &ret->repo, NULL) ==
			      0;
}

void bs_hotstart_find(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		      struct bs_hotstart_plan *ret)
{
	*ret = (struct bs_hotstart_plan){ 0 };
	look(hs, rq, bs_images_cached(hs->o.images, rq->image), ret);
	if (!ret->record) /* else it reads through a mount of its own */
		bs_hotwatch_other(hs->watch, rq->image, rq->workload);
}

/* --- streaming ------------------------------------------------------------------------------ */

/* The head as the cache has it from an earlier start; NULL: it has none. */
static char *kept_head(const struct bs_cached *image, const char *id, const struct bs_hot *hot)
{
	bs_autofree char *name = bs_strf("hot-%s.head", id), *bytes = NULL;
	size_t len;

	if (!name ||
	    bs_read_file_at(bs_cached_dirfd(image), name, O_NOFOLLOW, BS_PACK_HEAD_MAX, &bytes,
			    &len) < 0 ||
	    len != hot->head_len)
		return bs_hot_made_head(image, id, hot);
	return bs_take(&bytes);
}

/* So that the next start here asks for nothing. The manifest last: it says that there is a head. */
static void keep(const struct bs_cached *image, const char *id, const struct bs_hot *hot,
		 const char *head)
{
	bs_autofree char *head_name = bs_strf("hot-%s.head", id),
			 *name = bs_strf("hot-%s.json", id), *text = NULL;
	int dirfd = bs_cached_dirfd(image);
	size_t len;

	if (!name || !head_name || bs_hot_has_file(image, id, "json") ||
	    bs_hot_write(hot, &text, &len, NULL) < 0 ||
	    bs_atomicfile_write(dirfd, head_name, head, hot->head_len, 0600, false) < 0)
		return;
	(void)bs_atomicfile_write(dirfd, name, text, len, 0600, false);
}

static void op_segment(void *cookie, uint32_t i, struct bs_stream_segment *ret)
{
	const struct bs_pack *p = ((struct streamed *)cookie)->pack;
	const struct bs_pack_segment *s = &p->segments[i];

	*ret = (struct bs_stream_segment){ .off = s->off,
					   .len = s->len,
					   .extents = p->extents + s->first_extent,
					   .n_extents = s->n_extents };
}

static int op_decode(void *cookie, void *scratch, uint32_t i, const void *data, void *out)
{
	struct streamed *s = cookie;

	if (s->donor)
		return bs_hotdonor_decode(s->donor, scratch, s->pack, i, data, out);
	return bs_pack_decode(scratch, s->pack, bs_cached_table(s->image), i, data, out);
}

static void op_landed(void *cookie, uint32_t i)
{
	struct streamed *s = cookie;

	(void)pthread_mutex_lock(&s->of->lock);
	s->landed[i] = 1;
	(void)pthread_cond_broadcast(&s->of->landed);
	(void)pthread_mutex_unlock(&s->of->lock);
}

/* Whether another pack of the same image comes. Lock held. */
static bool runs_another(struct bs_hotstart *hs, const struct streamed *s)
{
	bs_list_for_each(it, &hs->streamed) {
		const struct streamed *other = bs_list_entry(it, struct streamed, all);

		if (other != s && other->running &&
		    bs_digest_eq(&other->hot.image.digest, &s->hot.image.digest))
			return true;
	}
	return false;
}

/* The next start asks anew. One that was made here did not come from a source that was wrong. */
static void forget_wrong(const struct streamed *s)
{
	const struct bs_cached *of = s->donor ? bs_hotdonor_image(s->donor) : s->image;
	char id[HOT_ID_LEN + 1];

	(void)bs_hot_id(&of->digest, s->hot.workload, id);
	if (!bs_hot_has_pack(of, id, &s->hot))
		forget(of, id);
}

static void op_done(void *cookie, const struct bs_stream_result *result)
{
	struct streamed *s = cookie;
	struct bs_hotstart *hs = s->of;
	const struct bs_digest *image = &s->image->digest;
	char text[256 + BS_WORKLOAD_MAX];
	struct bs_use_counts c = { 0 };
	bool last;

	(void)bs_hotwatch_counts(hs->watch, image, s->hot.workload, &c);
	(void)snprintf(text, sizeof(text),
		       "%s%s: %u segments, %u were there; until now %" PRIu64 " of %" PRIu64
		       " blocks read, %" PRIu64 " beside them%s",
		       s->hot.workload, s->donor ? " of another image" : "", result->segments,
		       result->local_segments, c.read_blocks + c.warmed_blocks, c.pack_blocks,
		       c.fetched_blocks + c.cached_blocks,
		       result->error == -EBADMSG ? "; it lied"
		       : result->error		 ? "; not all of it"
						 : "");
	bs_timeline_span(&s->tl, BS_SPAN_HOT, result->start_ns, result->bytes, text);
	bs_timeline_done(&s->tl);
	if (result->error)
		forget_wrong(s);
	if (result->error == -EBADMSG)
		bs_hotstart_tell(hs,
				 "the hot pack of workload '%s' has wrong bytes: not used any more",
				 s->hot.workload);
	else if (result->error)
		bs_hotstart_tell(hs, "the hot pack of workload '%s' did not come whole: %s",
				 s->hot.workload, strerror(-result->error));
	(void)pthread_mutex_lock(&hs->lock);
	s->result = *result;
	s->running = false;
	last = !runs_another(hs, s);
	if (s->told && !s->warming)
		s->pack = bs_pack_free(s->pack);
	(void)pthread_cond_broadcast(&hs->landed);
	(void)pthread_mutex_unlock(&hs->lock);
	if (!last)
		return;
	bs_hotwatch_streams(hs->watch, image, false);
	hs->o.streaming(hs->o.cookie, image, false);
}

static const struct bs_stream_ops stream_ops = {
	.segment = op_segment,
	.decode = op_decode,
	.landed = op_landed,
	.done = op_done,
};

static struct streamed *streamed_free(struct streamed *s)
{
	if (!s)
		return NULL;
	(void)bs_pack_free(s->pack);
	(void)bs_hotdonor_free(s->donor);
	bs_timeline_done(&s->tl);
	free(s->landed);
	free(s);
	return NULL;
}
DEFINE_BS_AUTO(streamed, struct streamed, streamed_free)

/*
 * In the list from now on, running: a second start finds it. Those of the same that have
 * ended go. NULL: another start was first.
 */
static struct streamed *reserve(struct bs_hotstart *hs, const struct bs_hot *hot, bool warm)
{
	struct streamed *s = calloc(1, sizeof(*s));
	unsigned int n = 0;

	if (!s)
		return NULL;
	s->of = hs;
	s->hot = *hot;
	s->tl = BS_TIMELINE_NONE;
	s->running = true;
	s->told = !warm;
	bs_list_init(&s->all);
	(void)pthread_mutex_lock(&hs->lock);
	if (streams(hs, &hot->image.digest, hot->workload)) {
		(void)pthread_mutex_unlock(&hs->lock);
		return streamed_free(s);
	}
	bs_list_for_each(it, &hs->streamed)
		n++;
	bs_list_for_each(it, &hs->streamed) {
		struct streamed *old = bs_list_entry(it, struct streamed, all);

		if (old->running || old->warming ||
		    (n < STREAMED_MAX && !is_of(old, &hot->image.digest, hot->workload)))
			continue;
		bs_list_remove(it);
		(void)streamed_free(old);
		n--;
	}
	bs_list_append(&hs->streamed, &s->all);
	(void)pthread_mutex_unlock(&hs->lock);
	return s;
}

static void unreserve(struct bs_hotstart *hs, struct streamed *s)
{
	(void)pthread_mutex_lock(&hs->lock);
	bs_list_remove(&s->all);
	(void)pthread_mutex_unlock(&hs->lock);
	(void)streamed_free(s);
}

/* The head, while the image's parts come on another thread; then both fit together. */
static int read_pack(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		     const struct bs_hotstart_plan *p, struct bs_cached **ret_image,
		     struct bs_pack **ret, struct bs_error *err)
{
	struct bs_cached *of = p->donor ? p->donor : bs_images_cached(hs->o.images, rq->image);
	bs_auto(pack) struct bs_pack *pack = NULL;
	bs_autofree char *head = NULL;
	char id[HOT_ID_LEN + 1];
	int r;

	(void)bs_hot_id(&p->hot.image.digest, rq->workload, id);
	if (of)
		head = kept_head(of, id, &p->hot);
	if (!head) {
		r = bs_hot_read_head(p->repo, &p->hot, &head, err);
		if (r < 0)
			return r;
	}
	*ret_image = bs_images_await(hs->o.images, rq->image, rq->since_ns,
				     rq->since_ns + rq->wait_ns);
	if (!*ret_image)
		return bs_fail(err, -ETIMEDOUT, "hot pack: its image was not made ready");
	of = p->donor ? p->donor : *ret_image;
	r = bs_pack_read(head, p->hot.head_len, bs_cached_table(of),
			 &bs_cached_artifact(of)->table.digest, &pack, err);
	if (r == 0 && pack->len != p->hot.pack.size)
		r = bs_fail(err, -EBADMSG, "hot pack: it is not as long as its segments");
	if (r < 0) {
		forget(of, id);
		return r;
	}
	keep(of, id, &p->hot, head);
	*ret = bs_take(&pack);
	return 0;
}

static int open_pack(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		     const struct bs_hotstart_plan *p, struct streamed *s, struct bs_error *err)
{
	bs_auto(pack) struct bs_pack *pack = NULL;
	struct bs_cached *image = NULL;
	uint8_t *landed;
	int r = read_pack(hs, rq, p, &image, &pack, err);

	if (r == 0 && p->donor)
		r = bs_hotdonor_open(p->donor, image, &pack, &s->donor, err);
	if (r < 0)
		return r;
	if (s->donor)
		s->copied = bs_hotdonor_copy(s->donor, image, pack);
	landed = calloc(pack->n_segments, 1);
	if (!landed)
		return bs_fail(err, -ENOMEM, "out of memory");
	/* together: a warmer may hear of it from now on */
	(void)pthread_mutex_lock(&hs->lock);
	s->landed = landed;
	s->image = image;
	s->pack = bs_take(&pack);
	(void)pthread_mutex_unlock(&hs->lock);
	return 0;
}

/* s is in other hands afterwards; what goes wrong is told to op_done. */
static void start_stream(struct bs_hotstart *hs, struct streamed *s, struct bs_repo *repo)
{
	bs_auto(origin) struct bs_origin *origin = bs_origin_new(&s->hot.pack.digest);
	struct bs_stream_options o = { .blob = s->image->blob,
				       .origin = origin,
				       .n_segments = s->pack->n_segments,
				       .parallel_max = hs->o.parallel_max,
				       .ops = &stream_ops,
				       .cookie = s };
	const struct bs_stream_result none = { .error = -ENOMEM };

	if (origin)
		bs_origin_add(origin, &repo, 1);
	bs_hotwatch_streams(hs->watch, &s->hot.image.digest, true);
	hs->o.streaming(hs->o.cookie, &s->hot.image.digest, true);
	if (!origin || bs_fill_stream(hs->o.fill, &o) < 0)
		op_done(s, &none);
}

int bs_hotstart_stream(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       const struct bs_hotstart_plan *p, struct bs_error *err)
{
	struct bs_hot hot = p->hot;
	struct streamed *s;
	int r;

	hot.image.digest = *rq->image; /* whoever's it is, it is streamed for this one */
	s = reserve(hs, &hot, !p->record);
	if (!s) /* it comes already; or there is no memory, and it is only slower */
		return 0;
	r = open_pack(hs, rq, p, s, err);
	if (r < 0) {
		unreserve(hs, s);
		return r;
	}
	s->tl = (struct bs_timeline){ rq->timeline >= 0 ? bs_dup(rq->timeline) : -EBADF,
				      "bootseerd" };
	if (!p->record && !p->donor)
		watch(hs, &(struct bs_hotwatch_start){ .image = s->image,
						       .hot = &s->hot,
						       .pack = s->pack,
						       .timeline = rq->timeline });
	start_stream(hs, s, p->repo);
	return 0;
}

/* --- telling a warmer --------------------------------------------------------------------------- */

/*
 * The last stream of the image, if it is not told of yet; it stays while it is told of. It
 * may have ended: when all was there, that takes less time than to start a warmer.
 */
static struct streamed *begin_telling(struct bs_hotstart *hs, const struct bs_digest *image)
{
	struct streamed *found = NULL;

	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed) {
		struct streamed *s = bs_list_entry(it, struct streamed, all);

		if (s->pack && !s->told && bs_digest_eq(&s->hot.image.digest, image))
			found = s;
	}
	if (found)
		found->told = found->warming = true;
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

static void end_telling(struct bs_hotstart *hs, struct streamed *s)
{
	(void)pthread_mutex_lock(&hs->lock);
	s->warming = false;
	if (!s->running)
		s->pack = bs_pack_free(s->pack);
	(void)pthread_mutex_unlock(&hs->lock);
}

/* The next segment that has landed and was not told of; n_segments: no more will. */
static uint32_t next_landed(struct bs_hotstart *hs, struct streamed *s, uint8_t *told)
{
	uint32_t i, first = 0;

	(void)pthread_mutex_lock(&hs->lock);
	for (;;) {
		for (i = first; i < s->pack->n_segments && (told[i] || !s->landed[i]); i++) {
			if (told[i] && i == first)
				first++;
		}
		if (i < s->pack->n_segments || !s->running)
			break;
		(void)pthread_cond_wait(&hs->landed, &hs->lock);
	}
	(void)pthread_mutex_unlock(&hs->lock);
	return i;
}

/* A list that is being filled, and where it goes. */
struct telling {
	int fd;
	struct bs_warmlist list;
};

static int send_list(struct telling *t)
{
	ssize_t n = send(t->fd, t->list.data, t->list.len, MSG_NOSIGNAL);

	bs_warmlist_init(&t->list);
	return n < 0 ? -errno : 0;
}

static int add_run(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	struct telling *t = cookie;
	int r = bs_warmlist_add(&t->list, path, off, len);

	if (r != -E2BIG)
		return r == -EINVAL ? 0 : r;
	r = send_list(t);
	return r < 0 ? r : bs_warmlist_add(&t->list, path, off, len);
}

static int tell_all(struct bs_hotstart *hs, struct streamed *s, const struct bs_hotfiles *files,
		    struct telling *t)
{
	bs_autofree uint8_t *told = calloc(s->pack->n_segments, 1);
	uint32_t i;
	int r = told ? 0 : -ENOMEM;

	while (r == 0 && (i = next_landed(hs, s, told)) < s->pack->n_segments) {
		const struct bs_pack_segment *g = &s->pack->segments[i];

		told[i] = 1;
		r = bs_hotfiles_runs(files, s->pack->extents + g->first_extent, g->n_extents,
				     add_run, t);
		if (r == 0 && !bs_warmlist_empty(&t->list))
			r = send_list(t);
	}
	return r;
}

void bs_hotstart_warm(struct bs_hotstart *hs, const struct bs_digest *image, int fd, pid_t pid)
{
	struct streamed *s = begin_telling(hs, image);
	bs_auto(hotfiles) struct bs_hotfiles *files = NULL;
	struct telling *t = s ? malloc(sizeof(*t)) : NULL;
	bs_autofd int socket = fd;
	bs_autofd int tree = s ? bs_cached_open_tree(s->image) : -EBADF;

	bs_hotwatch_warmer(hs->watch, image, pid);
	/* without it the start is only slower */
	if (t && tree >= 0 && bs_hotfiles_read(tree, &files, NULL) == 0) {
		t->fd = socket;
		bs_warmlist_init(&t->list);
		(void)tell_all(hs, s, files, t);
	}
	free(t);
	if (s)
		end_telling(hs, s);
}

/* --- status and life ------------------------------------------------------------------------------ */

static void put_streamed(struct bs_hotstart *hs, struct bs_jsonw *w, const struct streamed *s)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "image", bs_digest_text(&s->hot.image.digest, text));
	bs_jsonw_kstr(w, "workload", s->hot.workload);
	bs_jsonw_kstr(w, "state",
		      s->running		    ? "streaming"
		      : s->result.error == -EBADMSG ? "refused"
		      : s->result.error		    ? "broken"
						    : "streamed");
	if (s->donor) {
		bs_jsonw_kstr(w, "pack_of",
			      bs_digest_text(&bs_hotdonor_image(s->donor)->digest, text));
		bs_jsonw_ku64(w, "copied_blocks", s->copied);
	}
	bs_jsonw_ku64(w, "pack_bytes", s->hot.pack.size);
	bs_jsonw_ku64(w, "bytes", s->result.bytes);
	bs_jsonw_ku64(w, "segments", s->result.segments);
	bs_jsonw_ku64(w, "local_segments", s->result.local_segments);
	bs_jsonw_ku64(w, "parallel", s->result.parallel);
	bs_jsonw_ku64(w, "duration_ns", s->result.end_ns - s->result.start_ns);
	bs_hotwatch_put(hs->watch, w, &s->hot.image.digest, s->hot.workload);
	bs_jsonw_end(w);
}

static void put_recorded(struct bs_jsonw *w, const struct recorded *r)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "image", bs_digest_text(&r->pub.image->digest, text));
	bs_jsonw_kstr(w, "workload", r->workload);
	bs_jsonw_kstr(w, "state", r->built || !r->recording ? "recorded" : "recording");
	bs_jsonw_end(w);
}

void bs_hotstart_status(struct bs_hotstart *hs, struct bs_jsonw *w)
{
	bs_jsonw_array(w);
	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed)
		put_streamed(hs, w, bs_list_entry(it, struct streamed, all));
	bs_list_for_each(it, &hs->recorded)
		put_recorded(w, bs_list_entry(it, struct recorded, all));
	(void)pthread_mutex_unlock(&hs->lock);
	bs_hotwatch_put_kept(hs->watch, w);
	bs_jsonw_end(w);
}

int bs_hotstart_new(const struct bs_hotstart_options *o, struct bs_hotstart **ret,
		    struct bs_error *err)
{
	const struct bs_hotwatch_options wo = { .window_ns = o->window_ns,
						.stale_percent = o->rerecord,
						.event = o->event,
						.cookie = o->cookie };
	struct bs_hotstart *hs = calloc(1, sizeof(*hs));
	int r;

	if (!hs)
		return bs_fail(err, -ENOMEM, "out of memory");
	hs->o = *o;
	hs->watch = bs_hotwatch_new(&wo);
	if (!hs->watch) {
		free(hs);
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	(void)pthread_mutex_init(&hs->lock, NULL);
	(void)pthread_cond_init(&hs->changed, NULL);
	(void)pthread_cond_init(&hs->landed, NULL);
	bs_list_init(&hs->recorded);
	bs_list_init(&hs->streamed);
	r = bs_hotstart_start_builder(hs, err);
	if (r < 0) {
		(void)bs_hotwatch_free(hs->watch);
		free(hs);
		return r;
	}
	*ret = hs;
	return 0;
}
