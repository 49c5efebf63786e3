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

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "hot/pack.h"
#include "hot/proofs.h"
#include "net/repo.h"
#include "rootfs/hotdonor.h"
#include "rootfs/hotkept.h"
#include "rootfs/hotpriv.h"
#include "rootfs/sources.h"

#define LOOK_NS (2 * BS_NS_PER_S)    /* for its turn to look, and for each answer */
#define LOOKS_MAX 2u		     /* at one host, of the connections that readers need */
#define LARGE_HEAD (2u << 20)	     /* bytes: of a pack of 1 GiB at the worst */
#define LARGE_HEADS_MAX 2u	     /* at once */
#define STREAMED_MAX 256u	     /* in the list, but for those that run */
#define UNTOLD_NS (30 * BS_NS_PER_S) /* a warmer that comes at all comes sooner */

void bs_hotstart_tell(struct bs_hotstart *hs, enum bs_log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!hs->o.event)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hs->o.event(hs->o.cookie, level, text);
}

/* Whether that is the pack's fault, and not the network's or the disk's. */
static bool is_verdict(int error)
{
	return error == -EBADMSG || error == -ENOENT || error == -EFBIG;
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

/* --- finding -------------------------------------------------------------------------------- */

static void unreserve(struct bs_hotstart *hs, struct streamed *s);

void bs_hotstart_plan_done(struct bs_hotstart_plan *p)
{
	if (p->streamed)
		unreserve(p->streamed->of, p->streamed);
	bs_strv_done(&p->sources);
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

/* -ENOENT: no pack, or one that is known to be bad. */
static int ask_at(struct bs_hotstart *hs, const struct bs_hotstart_request *rq, size_t i,
		  const struct bs_cached *image, const char *id, struct bs_hotstart_plan *p)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	struct bs_error err = BS_ERROR_INIT;
	int r = hs->o.open_source(hs->o.cookie, rq->sources[i], &repo, &err);

	if (r < 0)
		return r;
	r = bs_hot_find(repo, rq->image, rq->workload, bs_clock_ns() + LOOK_NS, &p->hot, &err);
	if (r == 0 && image && bs_hot_is_bad(image, id, &p->hot.digest))
		r = -ENOENT;
	else if (r == 0)
		return 0;
	else if (r != -ENOENT)
		bs_hotstart_tell(hs, BS_LOG_WARNING, "hot pack of %s at '%s': %s", rq->workload,
				 rq->sources[i], bs_error_text(&err));
	return r;
}

/* The same, if few enough ask there: who has no answer keeps a connection. */
static int find_at(struct bs_hotstart *hs, const struct bs_hotstart_request *rq, size_t i,
		   const struct bs_cached *image, const char *id, struct bs_hotstart_plan *p)
{
	struct bs_hotlook_turn turn;
	char host[BS_HOTLOOK_HOST_LEN];
	int r;

	if (!bs_hotlook_begin(&hs->looks, &turn, bs_hotlook_host(rq->sources[i], host), LOOKS_MAX,
			      rq->since_ns + LOOK_NS)) {
		bs_hotstart_tell(hs, BS_LOG_WARNING,
				 "hot pack of %s at '%s': not looked for: %u others are, and have "
				 "no answer",
				 rq->workload, rq->sources[i], LOOKS_MAX);
		return -ETIMEDOUT;
	}
	r = ask_at(hs, rq, i, image, id, p);
	bs_hotlook_end(&hs->looks, &turn);
	return r;
}

static void find_at_sources(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			    const struct bs_cached *image, const char *id,
			    struct bs_hotstart_plan *ret)
{
	bool all_say_none = rq->n_sources > 0;

	for (size_t i = 0; i < rq->n_sources && !ret->stream; i++) {
		int r = find_at(hs, rq, i, image, id, ret);

		ret->stream = r == 0;
		/* a source that is out of reach may have one: no reason to make another */
		all_say_none &= is_verdict(r);
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

	find_at_sources(hs, rq, image, id, &other);
	if (other.stream && !bs_digest_eq(&other.hot.pack.digest, &ret->hot.pack.digest)) {
		bs_hot_forget(image, id);
		bs_hot_remove_file(image, id, "pack");
		*ret = other;
		return;
	}
	ret->record = other.stream || other.record;
}

/* No pack is to be had: that of an image with equal frames may do until there is one. */
static void look_elsewhere(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			   struct bs_hotstart_plan *ret)
{
	ret->donor = bs_hotdonor_find(hs->o.images, rq->image, rq->workload, &ret->hot);
	if (ret->donor)
		(void)bs_sources_read(bs_cached_dirfd(ret->donor), BS_SOURCES_FILE, &ret->sources);
	ret->stream = ret->sources.n > 0;
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
			find_at_sources(hs, rq, image, id, ret);
		if (!recording && !ret->stream)
			look_elsewhere(hs, rq, ret);
		return;
	}
	if (!recording && rq->may_record && hs->o.rerecord > 0 &&
	    bs_hotwatch_verdict(image, &ret->hot) == BS_VERDICT_STALE)
		look_again(hs, rq, image, id, ret);
	if (ret->stream)
		return;
	if (!bs_hot_has_pack(image, id, &ret->hot))
		ret->stream = rq->n_sources > 0;
	else if (!ret->record)
		watch_kept(hs, rq, image, id, &ret->hot);
}

static struct streamed *reserve(struct bs_hotstart *hs, const struct bs_hot *hot);

void bs_hotstart_find(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		      struct bs_hotstart_plan *ret)
{
	struct bs_hotlook_turn turn;
	char id[HOT_ID_LEN + 1];

	*ret = (struct bs_hotstart_plan){ 0 };
	/* one start of the workload looks; the others find what came of that, or go without */
	if (!bs_hotlook_begin(&hs->looks, &turn, bs_hot_id(rq->image, rq->workload, id), 1,
			      rq->since_ns + LOOK_NS))
		return;
	look(hs, rq, bs_images_cached(hs->o.images, rq->image), ret);
	if (ret->stream) {
		struct bs_hot hot = ret->hot;

		hot.image.digest = *rq->image; /* whoever's it is, it is streamed for this one */
		/* NULL: it comes already; or there is no memory, and it is only slower */
		ret->streamed = reserve(hs, &hot);
		ret->stream = ret->streamed != NULL;
	}
	bs_hotlook_end(&hs->looks, &turn);
}

void bs_hotstart_shares(struct bs_hotstart *hs, const struct bs_hotstart_request *rq)
{
	bs_hotwatch_other(hs->watch, rq->image, rq->workload);
}

/* --- streaming ------------------------------------------------------------------------------ */

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
	const struct bs_table *table;
	int r;

	if (s->donor)
		return bs_hotdonor_decode(s->donor, scratch, s->pack, i, data, out);
	table = bs_cached_table(s->image);
	r = bs_pack_decode(scratch, s->pack, table, i, data, out);
	if (r == 0 && s->proofs_fd >= 0) /* what is lacking is found out when they are used */
		(void)bs_proofs_keep(s->proofs_fd, s->pack, table, i, data);
	return r;
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
static void forget_bad(const struct bs_cached *of, const char *id, const struct bs_hot *hot,
		       bool is_bad)
{
	if (bs_hot_has_pack(of, id, hot))
		return;
	bs_hot_forget(of, id);
	if (is_bad)
		bs_hot_note_bad(of, id, hot);
}

static void forget_streamed(const struct streamed *s, bool is_bad)
{
	const struct bs_cached *of = s->donor ? bs_hotdonor_image(s->donor) : s->image;
	char id[HOT_ID_LEN + 1];

	forget_bad(of, bs_hot_id(&of->digest, s->hot.workload, id), &s->hot, is_bad);
}

static void tell_end(struct bs_hotstart *hs, const struct streamed *s,
		     const struct bs_stream_result *result)
{
	char image[BS_DIGEST_TEXT_LEN], hot[BS_DIGEST_TEXT_LEN];
	const char *how;

	if (result->error == -EBADMSG)
		how = "it has wrong bytes at every source that has it: it is not used any more, "
		      "and the next start here is recorded to make another";
	else if (result->error == -ENOENT)
		how = "no source has its bytes any more: the next start here is recorded to make "
		      "another";
	else if (result->error)
		how = "it did not come whole, the next start asks for it again";
	else if (result->wrong)
		how = "wrong bytes of it came, and right ones from elsewhere";
	else
		return;
	bs_hotstart_tell(hs, BS_LOG_WARNING,
			 "hot pack %s of workload '%s' of image %s: %s%s%s%s (%s)",
			 bs_digest_text(&s->hot.digest, hot), s->hot.workload,
			 bs_digest_text(&s->image->digest, image), how,
			 result->wrong ? "; the last to give wrong bytes was '" : "",
			 result->wrong_source, result->wrong ? "'" : "",
			 !result->error	  ? "look at that store"
			 : result->why[0] ? result->why
					  : strerror(-result->error));
}

static void op_done(void *cookie, const struct bs_stream_result *result)
{
	struct streamed *s = cookie;
	struct bs_hotstart *hs = s->of;
	const struct bs_digest *image = &s->image->digest;
	char text[384 + BS_WORKLOAD_MAX], read[BS_HUMAN_LEN], beside[BS_HUMAN_LEN];
	struct bs_use_counts c = { 0 };
	bool last;

	(void)bs_hotwatch_counts(hs->watch, image, s->hot.workload, &c);
	(void)snprintf(
		text, sizeof(text),
		"workload '%s'%s: %u of its segments came, %u were here before; by its end %s "
		"of it were read, and %s that are not in it%s",
		s->hot.workload, s->donor ? ", the pack of another image" : "", result->segments,
		result->local_segments,
		bs_human_bytes((c.read_blocks + c.warmed_blocks) * BS_BLOCK_BYTES, read),
		bs_human_bytes((c.fetched_blocks + c.cached_blocks) * BS_BLOCK_BYTES, beside),
		result->error == -EBADMSG ? "; it has wrong bytes, and is not used any more"
		: result->error		  ? "; not all of it came"
					  : "");
	bs_timeline_span(&s->tl, BS_SPAN_HOT, result->start_ns, result->bytes, text);
	bs_timeline_done(&s->tl);
	if (result->error)
		forget_streamed(s, is_verdict(result->error));
	tell_end(hs, s, result);
	/* before the next one can begin, whose begin is told of too */
	hs->o.streaming(hs->o.cookie, image, s->hot.workload, false);
	(void)pthread_mutex_lock(&hs->lock);
	s->result = *result;
	s->running = false;
	last = !runs_another(hs, s);
	if (s->donor)
		bs_hotdonor_end(s->donor);
	if (s->told && !s->warming)
		s->pack = bs_pack_free(s->pack);
	(void)pthread_cond_broadcast(&hs->landed);
	(void)pthread_cond_signal(&hs->changed);
	(void)pthread_mutex_unlock(&hs->lock);
	if (last)
		bs_hotwatch_streams(hs->watch, image, false);
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
	(void)bs_close(s->proofs_fd);
	free(s);
	return NULL;
}
DEFINE_BS_AUTO(streamed, struct streamed, streamed_free)

/*
 * In the list from now on, running: a second start finds it. Those of the same that have
 * ended go. NULL: another start was first.
 */
static struct streamed *reserve(struct bs_hotstart *hs, const struct bs_hot *hot)
{
	struct streamed *s = calloc(1, sizeof(*s));
	unsigned int n = 0;

	if (!s)
		return NULL;
	s->of = hs;
	s->hot = *hot;
	s->tl = BS_TIMELINE_NONE;
	s->proofs_fd = -EBADF;
	s->running = true;
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
	bool last;

	(void)pthread_mutex_lock(&hs->lock);
	last = !runs_another(hs, s);
	bs_list_remove(&s->all);
	(void)pthread_mutex_unlock(&hs->lock);
	if (last) /* one that ended meanwhile took this one for another that comes */
		bs_hotwatch_streams(hs->watch, &s->hot.image.digest, false);
	(void)streamed_free(s);
}

/* Where the pack is: with the image, or with the one whose it is. */
struct places {
	const char *const *v;
	size_t n;
};

static struct places places_of(const struct bs_hotstart_request *rq,
			       const struct bs_hotstart_plan *p)
{
	if (p->donor)
		return (struct places){ (const char *const *)p->sources.v, p->sources.n };
	return (struct places){ rq->sources, rq->n_sources };
}

/* What is asked of each source. */
struct head_question {
	const struct bs_hot *hot;
	char *head;
};

static int ask_head(void *cookie, struct bs_repo *repo, struct bs_error *err)
{
	struct head_question *q = cookie;

	return bs_hot_read_head(repo, q->hot, &q->head, err);
}

static int read_head(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		     const struct bs_hotstart_plan *p, char **ret_head, struct bs_error *err)
{
	const struct places from = places_of(rq, p);
	const struct bs_rounds rounds = { hs->o.open_source, hs->o.cookie, from.v, from.n,
					  rq->since_ns + rq->wait_ns };
	struct bs_cached *of = p->donor ? p->donor : bs_images_cached(hs->o.images, rq->image);
	struct head_question q = { .hot = &p->hot };
	char id[HOT_ID_LEN + 1];
	int r = 0;

	if (of)
		q.head = bs_hot_kept_head(of, bs_hot_id(&of->digest, rq->workload, id), &p->hot);
	if (!q.head)
		r = bs_rounds_run(&rounds, ask_head, &q, err);
	*ret_head = q.head;
	return r;
}

static int use_head(const char *head, const struct bs_hotstart_plan *p, struct bs_cached *of,
		    struct bs_pack **ret, struct bs_error *err)
{
	return bs_hot_use_head(&p->hot, head, bs_cached_table(of),
			       &bs_cached_artifact(of)->table.digest, ret, err);
}

/*
 * The head that was read is no good, or not to be had: what each source says of it. Bad is
 * only what all of them have wrong, or not at all.
 */
static int ask_each(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		    const struct bs_hotstart_plan *p, struct bs_cached *of, char **head,
		    struct bs_pack **ret, bool *ret_is_bad, struct bs_error *err)
{
	const struct places from = places_of(rq, p);
	int r = -ENOENT;

	*ret_is_bad = from.n > 0;
	for (size_t i = 0; i < from.n; i++) {
		bs_auto(repo) struct bs_repo *repo = NULL;
		bs_autofree char *own = NULL;

		r = hs->o.open_source(hs->o.cookie, from.v[i], &repo, err);
		if (r == 0)
			r = bs_hot_read_head(repo, &p->hot, &own, err);
		if (r == 0)
			r = use_head(own, p, of, ret, err);
		if (r == 0) {
			free(*head);
			*head = bs_take(&own);
			return 0;
		}
		(void)bs_error_context(err, "source '%s'", from.v[i]);
		*ret_is_bad = *ret_is_bad && is_verdict(r);
	}
	return r;
}

/*
 * The head, while the image's parts come on another thread; then both fit together, or the
 * pack is bad.
 */
static int read_pack(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		     const struct bs_hotstart_plan *p, struct bs_cached **ret_image,
		     struct bs_pack **ret, struct bs_error *err)
{
	bs_auto(pack) struct bs_pack *pack = NULL;
	bs_autofree char *head = NULL;
	char id[HOT_ID_LEN + 1];
	struct bs_cached *of;
	bool is_bad = false;
	int r = read_head(hs, rq, p, &head, err);

	if (r < 0 && !is_verdict(r))
		return r;
	/* not until it can be mounted: the link would be idle meanwhile */
	*ret_image = bs_images_await_table(hs->o.images, rq->image, rq->since_ns,
					   rq->since_ns + rq->wait_ns);
	if (!*ret_image)
		return r < 0 ? r
			     : bs_fail(err, -ETIMEDOUT, "hot pack: its image's table did not come");
	of = p->donor ? p->donor : *ret_image;
	(void)bs_hot_id(&of->digest, rq->workload, id);
	if (r == 0)
		r = use_head(head, p, of, &pack, err);
	if (is_verdict(r))
		r = ask_each(hs, rq, p, of, &head, &pack, &is_bad, err);
	if (r < 0) {
		forget_bad(of, id, &p->hot, is_bad);
		return r;
	}
	bs_hot_keep(of, id, &p->hot, head);
	*ret = bs_take(&pack);
	return 0;
}

/* The same; of heads that take much memory few are read at once. */
static int read_pack_in_turn(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			     const struct bs_hotstart_plan *p, struct bs_cached **ret_image,
			     struct bs_pack **ret, struct bs_error *err)
{
	struct bs_hotlook_turn turn;
	int r;

	if (p->hot.head_len <= LARGE_HEAD)
		return read_pack(hs, rq, p, ret_image, ret, err);
	if (!bs_hotlook_begin(&hs->looks, &turn, "large heads", LARGE_HEADS_MAX,
			      rq->since_ns + rq->wait_ns))
		return bs_fail(err, -ETIMEDOUT, "hot pack: its head is large, and others are read");
	r = read_pack(hs, rq, p, ret_image, ret, err);
	bs_hotlook_end(&hs->looks, &turn);
	return r;
}

/* A pack that is being recorded anew: who makes that one has no frames of what this one brings. */
static int open_proofs(const struct bs_cached *image, const char *workload)
{
	char id[HOT_ID_LEN + 1];
	bs_autofree char *name = bs_hot_file(bs_hot_id(&image->digest, workload, id), "proofs");
	int fd;

	if (!name)
		return -ENOMEM;
	fd = openat(bs_cached_dirfd(image), name,
		    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int open_pack(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		     const struct bs_hotstart_plan *p, struct streamed *s, struct bs_error *err)
{
	bs_auto(hotdonor) struct bs_hotdonor *donor = NULL;
	bs_auto(pack) struct bs_pack *pack = NULL;
	struct bs_cached *image;
	uint64_t copied = 0;
	uint8_t *landed;
	int r = read_pack_in_turn(hs, rq, p, &image, &pack, err);

	if (r == 0 && p->donor)
		r = bs_hotdonor_open(p->donor, image, &pack, &donor, err);
	if (r < 0)
		return r;
	if (donor)
		copied = bs_hotdonor_copy(donor, image, pack);
	else if (p->record)
		s->proofs_fd = open_proofs(image, rq->workload);
	landed = calloc(pack->n_segments, 1);
	if (!landed)
		return bs_fail(err, -ENOMEM, "out of memory");
	/* together: a warmer may hear of it from now on */
	(void)pthread_mutex_lock(&hs->lock);
	s->landed = landed;
	s->image = image;
	s->donor = bs_take(&donor);
	s->copied = copied;
	s->pack = bs_take(&pack);
	(void)pthread_mutex_unlock(&hs->lock);
	return 0;
}

/* Every place that the start names may have it, and serve when another has gone. */
static struct bs_origin *find_origin(struct bs_hotstart *hs, struct places from,
				     const struct bs_hot *hot, struct bs_error *err)
{
	struct bs_origin *o = bs_origin_new(&hot->pack.digest);

	for (size_t i = 0; o && i < from.n; i++) {
		bs_auto(repo) struct bs_repo *repo = NULL;

		if (hs->o.open_source(hs->o.cookie, from.v[i], &repo, err) == 0)
			bs_origin_add(o, &repo, 1);
	}
	return o;
}

/* s is in other hands afterwards; what goes wrong is told to op_done. */
static void start_stream(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
			 const struct bs_hotstart_plan *p, struct streamed *s)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_auto(origin) struct bs_origin *origin = find_origin(hs, places_of(rq, p), &s->hot, &err);
	struct bs_stream_options o = { .blob = s->image->blob,
				       .origin = origin,
				       .n_segments = s->pack->n_segments,
				       .parallel_max = hs->o.parallel_max,
				       .ops = &stream_ops,
				       .cookie = s };
	struct bs_stream_result none = { .error = -ENOMEM };
	size_t n = 0;

	if (origin)
		(void)bs_repo_unref(bs_origin_pick(origin, 0, &n));
	if (origin && n == 0) {
		none.error = -EIO;
		(void)snprintf(none.why, sizeof(none.why), "%.150s", bs_error_text(&err));
	}
	bs_hotwatch_streams(hs->watch, &s->hot.image.digest, true);
	hs->o.streaming(hs->o.cookie, &s->hot.image.digest, s->hot.workload, true);
	if (n == 0 || bs_fill_stream(hs->o.fill, &o) < 0)
		op_done(s, &none);
}

int bs_hotstart_stream(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_hotstart_plan *p, struct bs_error *err)
{
	struct streamed *s = bs_take(&p->streamed);
	int r;

	(void)pthread_mutex_lock(&hs->lock);
	s->told = p->record; /* its reads go through a mount that nobody warms */
	(void)pthread_mutex_unlock(&hs->lock);
	r = open_pack(hs, rq, p, s, err);
	if (r < 0) {
		hs->o.streaming(hs->o.cookie, rq->image, rq->workload, false);
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
	start_stream(hs, rq, p, s);
	return 0;
}

bool bs_hotstart_drop_untold(struct bs_hotstart *hs)
{
	const uint64_t now = bs_clock_ns();
	bool some = false;

	bs_list_for_each(it, &hs->streamed) {
		struct streamed *s = bs_list_entry(it, struct streamed, all);

		if (s->running || s->warming || !s->pack)
			continue;
		if (now - s->result.end_ns >= UNTOLD_NS)
			s->pack = bs_pack_free(s->pack);
		else
			some = true;
	}
	return some;
}

/* --- life ---------------------------------------------------------------------------------------- */

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
	bs_hotlook_init(&hs->looks);
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
