/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotstart.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "cache/stream.h"
#include "hot/pack.h"
#include "hot/profile.h"
#include "hot/recording.h"
#include "image/table.h"
#include "net/repo.h"
#include "rootfs/hotbuild.h"

#define ID_LEN 40u

/* A start's recording, from the first read until the pack is made. */
struct recorded {
	struct bs_list all;
	struct bs_recorded pub;
	char id[ID_LEN + 1];
	char workload[BS_WORKLOAD_MAX + 1];
	bool built; /* its pack, or it was given up */
};

/* A pack that is, or was, streamed. */
struct streamed {
	struct bs_list all;
	struct bs_hotstart *of;
	struct bs_cached *image;
	struct bs_hot hot;
	struct bs_pack *pack;
	struct bs_timeline tl;
	bool running;
	struct bs_stream_result result;
};

struct bs_hotstart {
	struct bs_hotstart_options o;
	pthread_mutex_t lock; /* guards the lists and what is in them */
	pthread_cond_t changed;
	struct bs_list recorded, streamed;
	_Atomic unsigned int n_recorded;
	pthread_t builder;
};

static const char *id_of(const struct bs_digest *image, const char *workload, char id[ID_LEN + 1])
{
	char tag[BS_HOT_TAG_LEN];

	(void)snprintf(id, ID_LEN + 1, "%s",
		       bs_hot_tag(image, workload, tag) + strlen(BS_HOT_TAG_PREFIX));
	return id;
}

static void tell(struct bs_hotstart *hs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(struct bs_hotstart *hs, const char *fmt, ...)
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

/* --- finding -------------------------------------------------------------------------------- */

void bs_hotstart_plan_done(struct bs_hotstart_plan *p)
{
	(void)bs_repo_unref(p->repo);
	*p = (struct bs_hotstart_plan){ 0 };
}

static bool is_recording(struct bs_hotstart *hs, const char *id)
{
	bool found = false;

	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->recorded) {
		const struct recorded *r = bs_list_entry(it, struct recorded, all);

		found |= bs_streq(r->id, id) && r->pub.recording && !r->built;
	}
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

static bool is_streaming(struct bs_hotstart *hs, const struct bs_digest *image,
			 const char *workload)
{
	bool found = false;

	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed) {
		const struct streamed *s = bs_list_entry(it, struct streamed, all);

		found |= s->running && bs_digest_eq(&s->hot.image.digest, image) &&
			 bs_streq(s->hot.workload, workload);
	}
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

static bool has_file(const struct bs_cached *image, const char *id, const char *what)
{
	bs_autofree char *name = bs_strf("hot-%s.%s", id, what);

	return name && faccessat(bs_cached_dirfd(image), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What an earlier start found or made; -ENOENT: nothing. */
static int find_kept(const struct bs_cached *image, const char *id, const char *workload,
		     struct bs_hot *ret)
{
	bs_autofree char *name = bs_strf("hot-%s.json", id), *bytes = NULL;
	char type[] = BS_MEDIA_OCI_MANIFEST;
	struct bs_manifest m = { .media_type = type };
	int r;

	if (!name)
		return -ENOMEM;
	r = bs_read_file_at(bs_cached_dirfd(image), name, O_NOFOLLOW, BS_MANIFEST_MAX, &bytes,
			    &m.len);
	if (r < 0)
		return r;
	m.bytes = bytes;
	bs_digest_of(bytes, m.len, &m.digest);
	r = bs_hot_parse(&m, ret, NULL);
	if (r == 0 && (!bs_digest_eq(&ret->image.digest, &image->digest) ||
		       !bs_streq(ret->workload, workload)))
		r = -EBADMSG;
	return r;
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
		tell(hs, "hot pack of %s at '%s': %s", rq->workload, rq->sources[i],
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

void bs_hotstart_find(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		      struct bs_hotstart_plan *ret)
{
	struct bs_cached *image = bs_images_cached(hs->o.images, rq->image);
	char id[ID_LEN + 1];

	*ret = (struct bs_hotstart_plan){ 0 };
	(void)id_of(rq->image, rq->workload, id);
	if ((image && bs_blob_complete(image->blob)) || is_streaming(hs, rq->image, rq->workload) ||
	    is_recording(hs, id))
		return;
	if (!image || find_kept(image, id, rq->workload, &ret->hot) < 0) {
		find_at_sources(hs, rq, ret);
		return;
	}
	/* made here: its frames are here too */
	if (has_file(image, id, "pack"))
		return;
	for (size_t i = 0; i < rq->n_sources && !ret->stream; i++)
		ret->stream = hs->o.open_source(hs->o.cookie, rq->sources[i], &ret->repo, NULL) ==
			      0;
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
		return NULL;
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

	if (!name || !head_name || has_file(image, id, "json") ||
	    bs_hot_write(hot, &text, &len, NULL) < 0 ||
	    bs_atomicfile_write(dirfd, head_name, head, hot->head_len, 0600, false) < 0)
		return;
	(void)bs_atomicfile_write(dirfd, name, text, len, 0600, false);
}

/* A pack that is not what it should be, or not there any more: the next start asks anew. */
static void forget(const struct bs_cached *image, const char *id)
{
	bs_autofree char *name = bs_strf("hot-%s.json", id);

	if (name)
		(void)unlinkat(bs_cached_dirfd(image), name, 0);
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

	return bs_pack_decode(scratch, s->pack, bs_cached_table(s->image), i, data, out);
}

static void op_done(void *cookie, const struct bs_stream_result *result)
{
	struct streamed *s = cookie;
	struct bs_hotstart *hs = s->of;
	char text[128 + BS_WORKLOAD_MAX], id[ID_LEN + 1];

	(void)snprintf(text, sizeof(text), "%s: %u segments, %u were there%s", s->hot.workload,
		       result->segments, result->local_segments,
		       result->error == -EBADMSG ? "; it lied"
		       : result->error		 ? "; not all of it"
						 : "");
	bs_timeline_span(&s->tl, BS_SPAN_HOT, result->start_ns, result->bytes, text);
	bs_timeline_done(&s->tl);
	if (result->error)
		forget(s->image, id_of(&s->hot.image.digest, s->hot.workload, id));
	if (result->error == -EBADMSG)
		tell(hs, "the hot pack of workload '%s' has wrong bytes: not used any more",
		     s->hot.workload);
	else if (result->error)
		tell(hs, "the hot pack of workload '%s' did not come whole: %s", s->hot.workload,
		     strerror(-result->error));
	hs->o.streaming(hs->o.cookie, &s->hot.image.digest, false);
	(void)pthread_mutex_lock(&hs->lock);
	s->result = *result;
	s->running = false;
	s->pack = bs_pack_free(s->pack);
	(void)pthread_mutex_unlock(&hs->lock);
}

static const struct bs_stream_ops stream_ops = {
	.segment = op_segment,
	.decode = op_decode,
	.done = op_done,
};

static struct streamed *streamed_free(struct streamed *s)
{
	if (!s)
		return NULL;
	(void)bs_pack_free(s->pack);
	bs_timeline_done(&s->tl);
	free(s);
	return NULL;
}
DEFINE_BS_AUTO(streamed, struct streamed, streamed_free)

static int start_stream(struct bs_hotstart *hs, struct streamed *s, struct bs_repo *repo,
			struct bs_error *err)
{
	bs_auto(origin) struct bs_origin *origin = bs_origin_new(&s->hot.pack.digest);
	struct bs_stream_options o = { .blob = s->image->blob,
				       .origin = origin,
				       .n_segments = s->pack->n_segments,
				       .parallel_max = hs->o.parallel_max,
				       .ops = &stream_ops,
				       .cookie = s };
	int r;

	if (!origin)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_origin_add(origin, &repo, 1);
	s->running = true;
	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed) {
		struct streamed *old = bs_list_entry(it, struct streamed, all);

		if (old->running || !bs_digest_eq(&old->hot.image.digest, &s->hot.image.digest) ||
		    !bs_streq(old->hot.workload, s->hot.workload))
			continue;
		bs_list_remove(it);
		(void)streamed_free(old);
	}
	bs_list_append(&hs->streamed, &s->all);
	(void)pthread_mutex_unlock(&hs->lock);
	hs->o.streaming(hs->o.cookie, &s->hot.image.digest, true);
	r = bs_fill_stream(hs->o.fill, &o);
	if (r < 0) {
		hs->o.streaming(hs->o.cookie, &s->hot.image.digest, false);
		(void)pthread_mutex_lock(&hs->lock);
		bs_list_remove(&s->all);
		(void)pthread_mutex_unlock(&hs->lock);
		return bs_fail(err, r, "out of memory");
	}
	return 0;
}

int bs_hotstart_stream(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       const struct bs_hotstart_plan *p, struct bs_error *err)
{
	bs_auto(streamed) struct streamed *s = calloc(1, sizeof(*s));
	struct bs_timeline none = BS_TIMELINE_NONE;
	bs_autofree char *head = NULL;
	char id[ID_LEN + 1];
	int r;

	if (!s)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_list_init(&s->all);
	s->of = hs;
	s->hot = p->hot;
	s->tl = (struct bs_timeline){ rq->timeline >= 0 ? bs_dup(rq->timeline) : -EBADF,
				      "bootseerd" };
	(void)id_of(rq->image, rq->workload, id);
	/* while the image's parts come, on another thread */
	s->image = bs_images_cached(hs->o.images, rq->image);
	if (s->image)
		head = kept_head(s->image, id, &p->hot);
	if (!head) {
		r = bs_hot_read_head(p->repo, &p->hot, &head, err);
		if (r < 0)
			return r;
	}
	r = bs_images_prepare(hs->o.images, rq->image, rq->sources, rq->n_sources, rq->wait_ns,
			      &none, &s->image, err);
	if (r < 0)
		return r;
	r = bs_pack_read(head, p->hot.head_len, bs_cached_table(s->image),
			 &bs_cached_artifact(s->image)->table.digest, &s->pack, err);
	if (r == 0 && s->pack->len != p->hot.pack.size)
		r = bs_fail(err, -EBADMSG, "hot pack: it is not as long as its segments");
	if (r < 0) {
		forget(s->image, id);
		return r;
	}
	keep(s->image, id, &p->hot, head);
	r = start_stream(hs, s, p->repo, err);
	if (r < 0)
		return r;
	s = NULL; /* the list's now */
	return 0;
}

/* --- recordings ------------------------------------------------------------------------------ */

/* The node of a recording's file: as for images, its name's first digits. */
static uint64_t node_of(const char *id)
{
	char digits[17];
	uint64_t node;

	(void)snprintf(digits, sizeof(digits), "%.16s", id);
	node = strtoull(digits, NULL, 16);
	return node < 2 ? node + 2 : node; /* 0 is no node, 1 the root */
}

static bool id_ok(const char *id)
{
	return strlen(id) == ID_LEN && strspn(id, "0123456789abcdef") == ID_LEN;
}

/* Lock held. */
static struct recorded *find_recorded(struct bs_hotstart *hs, uint64_t node)
{
	bs_list_for_each(it, &hs->recorded) {
		struct recorded *r = bs_list_entry(it, struct recorded, all);

		if (r->pub.node == node)
			return r;
	}
	return NULL;
}

static struct recorded *recorded_free(struct recorded *r)
{
	if (!r)
		return NULL;
	(void)bs_recording_free(r->pub.recording);
	free(r);
	return NULL;
}
DEFINE_BS_AUTO(recorded, struct recorded, recorded_free)

/*
 * Opens (or goes on with) the recording and keeps it in the list; one there is stays.
 * begin: also when there is none yet.
 */
static int open_recorded(struct bs_hotstart *hs, struct bs_cached *image, const char *id,
			 const char *workload, bool begin, struct bs_error *err)
{
	bs_auto(recorded) struct recorded *r = calloc(1, sizeof(*r));
	bs_autofree char *name = bs_strf("hot-%s.rec", id);
	int rc;

	if (!r || !name)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_list_init(&r->all);
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	(void)snprintf(r->workload, sizeof(r->workload), "%s", workload);
	r->pub.image = image;
	r->pub.node = node_of(id);
	if (begin || has_file(image, id, "rec")) {
		rc = bs_recording_open(bs_cached_dirfd(image), name,
				       image->blob_bytes / BS_BLOCK_BYTES, hs->o.window_ns,
				       &r->pub.recording, err);
		if (rc < 0)
			return rc;
	}
	(void)pthread_mutex_lock(&hs->lock);
	if (!find_recorded(hs, r->pub.node)) {
		bs_list_append(&hs->recorded, &r->all);
		atomic_fetch_add(&hs->n_recorded, 1);
		r = NULL;
		(void)pthread_cond_signal(&hs->changed);
	}
	(void)pthread_mutex_unlock(&hs->lock);
	return 0;
}

int bs_hotstart_record(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_cached **ret, char ret_file[BS_HOTSTART_FILE_LEN],
		       struct bs_error *err)
{
	struct bs_timeline none = BS_TIMELINE_NONE;
	char id[ID_LEN + 1], hex[BS_DIGEST_TEXT_LEN];
	bs_autofree char *name = NULL;
	struct bs_cached *image;
	int r = bs_images_prepare(hs->o.images, rq->image, rq->sources, rq->n_sources, rq->wait_ns,
				  &none, &image, err);

	if (r < 0)
		return r;
	name = bs_strf("hot-%s.workload", id_of(rq->image, rq->workload, id));
	if (!name)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_atomicfile_write(bs_cached_dirfd(image), name, rq->workload, strlen(rq->workload),
				0600, false);
	if (r < 0)
		return bs_fail_errno(err, r, "write '%s' in the cache", name);
	r = open_recorded(hs, image, id, rq->workload, true, err);
	if (r < 0)
		return r;
	(void)snprintf(ret_file, BS_HOTSTART_FILE_LEN, "%.64s.%s", bs_digest_hex(rq->image, hex),
		       id);
	*ret = image;
	return 0;
}

/* A recording that a worker before us began; it may be over, and the mount still there. */
static int load_recorded(struct bs_hotstart *hs, struct bs_cached *image, const char *id)
{
	bs_autofree char *name = bs_strf("hot-%s.workload", id), *workload = NULL;

	if (!name ||
	    bs_read_file_at(bs_cached_dirfd(image), name, O_NOFOLLOW, BS_WORKLOAD_MAX, &workload,
			    NULL) < 0 ||
	    !bs_workload_ok(workload))
		return -ENOENT;
	return open_recorded(hs, image, id, workload, false, NULL);
}

static bool give_recorded(struct bs_hotstart *hs, uint64_t node, struct bs_recorded *ret)
{
	struct recorded *r;

	(void)pthread_mutex_lock(&hs->lock);
	r = find_recorded(hs, node);
	if (r)
		*ret = r->pub;
	(void)pthread_mutex_unlock(&hs->lock);
	return r != NULL;
}

bool bs_hotstart_by_name(struct bs_hotstart *hs, const char *name, struct bs_recorded *ret)
{
	const char *dot = strchr(name, '.');
	char hex[BS_DIGEST_TEXT_LEN];
	struct bs_cached *image;

	if (!dot || dot - name != 64 || !id_ok(dot + 1))
		return false;
	if (give_recorded(hs, node_of(dot + 1), ret))
		return true;
	(void)snprintf(hex, sizeof(hex), "%.64s", name);
	image = bs_images_by_name(hs->o.images, hex);
	return image && load_recorded(hs, image, dot + 1) == 0 &&
	       give_recorded(hs, node_of(dot + 1), ret);
}

/* The recording's id in an image's entry, by its node. */
static bool find_in_entry(struct bs_hotstart *hs, struct bs_cached *image, uint64_t node)
{
	int fd = openat(bs_cached_dirfd(image), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool found = false;
	struct dirent *de;

	if (!d) {
		(void)bs_close(fd);
		return false;
	}
	while (!found && (de = readdir(d))) {
		const char *rest = bs_str_after(de->d_name, "hot-");
		char id[ID_LEN + 1];

		if (!rest || strlen(rest) != ID_LEN + strlen(".workload") ||
		    !bs_str_ends(rest, ".workload"))
			continue;
		(void)snprintf(id, sizeof(id), "%s", rest);
		found = id_ok(id) && node_of(id) == node && load_recorded(hs, image, id) == 0;
	}
	(void)closedir(d);
	return found;
}

bool bs_hotstart_known(struct bs_hotstart *hs, uint64_t node, struct bs_recorded *ret)
{
	return atomic_load_explicit(&hs->n_recorded, memory_order_acquire) > 0 &&
	       give_recorded(hs, node, ret);
}

bool bs_hotstart_by_node(struct bs_hotstart *hs, uint64_t node, struct bs_recorded *ret)
{
	struct dirent *de;
	DIR *d;
	int fd;

	if (give_recorded(hs, node, ret))
		return true;
	fd = openat(bs_images_dirfd(hs->o.images), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		(void)bs_close(fd);
		return false;
	}
	while ((de = readdir(d))) {
		struct bs_cached *image = de->d_name[0] == '.'
						  ? NULL
						  : bs_images_by_name(hs->o.images, de->d_name);

		if (image && find_in_entry(hs, image, node))
			break;
	}
	(void)closedir(d);
	return de && give_recorded(hs, node, ret);
}

/* --- the builder ------------------------------------------------------------------------------- */

/* Where the image's data was last said to be. */
static int sources_of(const struct bs_cached *image, struct bs_strv *ret)
{
	bs_autofree char *text = NULL;
	int r = bs_read_file_at(bs_cached_dirfd(image), "sources", O_NOFOLLOW, 65536, &text, NULL);

	return r < 0 ? r : bs_strv_split(ret, text, "\n");
}

/* At the first source that takes it. */
static void publish(struct bs_hotstart *hs, const struct recorded *r, struct bs_hotbuild *b)
{
	struct bs_error err = BS_ERROR_INIT, first = BS_ERROR_INIT;
	bs_autostrv sources = { 0 };

	(void)sources_of(r->pub.image, &sources);
	for (size_t i = 0; i < sources.n; i++) {
		bs_auto(repo) struct bs_repo *repo = NULL;
		int rc = hs->o.open_source(hs->o.cookie, sources.v[i], &repo, &err);

		if (rc == 0)
			rc = bs_hot_publish(repo, &b->hot, b->profile, b->profile_len, b->pack_fd,
					    false, &err);
		if (rc == 0 || rc == -EEXIST) {
			tell(hs, "hot pack of workload '%s' (%" PRIu64 " KiB): %s at '%s'",
			     r->workload, b->hot.pack.size >> 10,
			     rc == 0 ? "published" : "another node was first", sources.v[i]);
			return;
		}
		if (i == 0)
			first = err;
	}
	tell(hs,
	     "hot pack of workload '%s' stays on this node: %s (give the node's credentials "
	     "the right to push, or set publish = no; 'bootseerctl hot push' does it by hand)",
	     r->workload, sources.n ? bs_error_text(&first) : "no source is known");
}

static void build(struct bs_hotstart *hs, const struct recorded *r)
{
	bs_auto_hotbuild struct bs_hotbuild b = { .pack_fd = -EBADF };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *rec = bs_strf("hot-%s.rec", r->id);
	int dirfd = bs_cached_dirfd(r->pub.image);
	int rc = bs_hotbuild_make(r->pub.image, hs->o.fill, r->pub.recording, r->workload, &b,
				  &err);

	if (rc == 0)
		rc = bs_hotbuild_keep(&b, dirfd, r->id, &err);
	if (rc < 0)
		tell(hs, "no hot pack of workload '%s': %s", r->workload, bs_error_text(&err));
	else if (hs->o.publish)
		publish(hs, r, &b);
	if (rec)
		(void)unlinkat(dirfd, rec, 0);
}

/* One that is over and not built yet; else *ret_next_ns: when to look again. Lock held. */
static struct recorded *next_over(struct bs_hotstart *hs, uint64_t *ret_next_ns)
{
	*ret_next_ns = UINT64_MAX;
	bs_list_for_each(it, &hs->recorded) {
		struct recorded *r = bs_list_entry(it, struct recorded, all);

		if (!r->pub.recording || r->built)
			continue;
		if (bs_recording_over(r->pub.recording))
			return r;
		*ret_next_ns = BS_NS_PER_S;
	}
	return NULL;
}

/* A thread of its own, behind all others: nobody waits for a pack. */
static void *builder_main(void *arg)
{
	struct bs_hotstart *hs = arg;

	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	(void)pthread_mutex_lock(&hs->lock);
	for (;;) {
		uint64_t next_ns;
		struct recorded *r = next_over(hs, &next_ns);

		if (r) {
			(void)pthread_mutex_unlock(&hs->lock);
			build(hs, r); /* stays in the list as long as the process */
			(void)pthread_mutex_lock(&hs->lock);
			r->built = true;
		} else if (next_ns == UINT64_MAX) {
			(void)pthread_cond_wait(&hs->changed, &hs->lock);
		} else {
			(void)pthread_mutex_unlock(&hs->lock);
			(void)poll(NULL, 0, (int)(next_ns / BS_NS_PER_MS));
			(void)pthread_mutex_lock(&hs->lock);
		}
	}
	return NULL;
}

/* --- status and life ------------------------------------------------------------------------------ */

static void put_streamed(struct bs_jsonw *w, const struct streamed *s)
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
	bs_jsonw_ku64(w, "pack_bytes", s->hot.pack.size);
	bs_jsonw_ku64(w, "bytes", s->result.bytes);
	bs_jsonw_ku64(w, "segments", s->result.segments);
	bs_jsonw_ku64(w, "local_segments", s->result.local_segments);
	bs_jsonw_ku64(w, "parallel", s->result.parallel);
	bs_jsonw_ku64(w, "duration_ns", s->result.end_ns - s->result.start_ns);
	bs_jsonw_end(w);
}

static void put_recorded(struct bs_jsonw *w, const struct recorded *r)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "image", bs_digest_text(&r->pub.image->digest, text));
	bs_jsonw_kstr(w, "workload", r->workload);
	bs_jsonw_kstr(w, "state", r->built || !r->pub.recording ? "recorded" : "recording");
	bs_jsonw_end(w);
}

void bs_hotstart_status(struct bs_hotstart *hs, struct bs_jsonw *w)
{
	bs_jsonw_array(w);
	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed)
		put_streamed(w, bs_list_entry(it, struct streamed, all));
	bs_list_for_each(it, &hs->recorded)
		put_recorded(w, bs_list_entry(it, struct recorded, all));
	(void)pthread_mutex_unlock(&hs->lock);
	bs_jsonw_end(w);
}

int bs_hotstart_new(const struct bs_hotstart_options *o, struct bs_hotstart **ret,
		    struct bs_error *err)
{
	struct bs_hotstart *hs = calloc(1, sizeof(*hs));
	int r;

	if (!hs)
		return bs_fail(err, -ENOMEM, "out of memory");
	hs->o = *o;
	(void)pthread_mutex_init(&hs->lock, NULL);
	(void)pthread_cond_init(&hs->changed, NULL);
	bs_list_init(&hs->recorded);
	bs_list_init(&hs->streamed);
	r = pthread_create(&hs->builder, NULL, builder_main, hs);
	if (r != 0) {
		free(hs);
		return bs_fail_errno(err, -r, "start the builder of hot packs");
	}
	*ret = hs;
	return 0;
}
