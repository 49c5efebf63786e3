/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Recordings of starts, the FUSE files that they read through, and what is made of them. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "cache/blob.h"
#include "hot/recording.h"
#include "net/repo.h"
#include "rootfs/hotagain.h"
#include "rootfs/hotbuild.h"
#include "rootfs/hotkept.h"
#include "rootfs/hotpriv.h"
#include "rootfs/sources.h"

#define RECORDED_MAX 1024u		 /* in the list */
#define BUILDS_MAX 10u			 /* of one recording, until it is given up */
#define BUILD_PAUSE_NS (5 * BS_NS_PER_S) /* after the first failure, then twice as long each time */
#define LOOK_MS 1000			 /* whether some recording or watch is over */

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

/* Whose recording is under way, or NULL. Lock held. */
static struct recorded *find_recording(struct bs_hotstart *hs, const char *id)
{
	bs_list_for_each(it, &hs->recorded) {
		struct recorded *r = bs_list_entry(it, struct recorded, all);

		if (bs_streq(r->id, id) && r->recording && !r->built)
			return r;
	}
	return NULL;
}

bool bs_hotstart_is_recording(struct bs_hotstart *hs, const char *id)
{
	bool found;

	(void)pthread_mutex_lock(&hs->lock);
	found = find_recording(hs, id);
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

/* --- recordings ------------------------------------------------------------------------------ */

/* The node of a recording's file: as for images, its name's first digits. */
static uint64_t node_of(const char *id)
{
	uint64_t node = 0;

	for (size_t i = 0; i < 16; i++)
		node = node << 4 | (uint64_t)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
	return node < 2 ? node + 2 : node; /* 0 is no node, 1 the root */
}

static bool id_ok(const char *id)
{
	return strlen(id) == HOT_ID_LEN && strspn(id, "0123456789abcdef") == HOT_ID_LEN;
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

/* Its memory and file are not needed any more once there is the pack. Lock held. */
static void end_built(struct recorded *r)
{
	if (r->built && r->users == 0)
		r->recording = bs_recording_free(r->recording);
}

static struct recorded *recorded_free(struct recorded *r)
{
	if (!r)
		return NULL;
	(void)bs_recording_free(r->recording);
	free(r);
	return NULL;
}
DEFINE_BS_AUTO(recorded, struct recorded, recorded_free)

/* Makes room in the list: what is over is found in the cache again, see load_recorded. Lock held. */
static void trim(struct bs_hotstart *hs)
{
	bs_list_for_each(it, &hs->recorded) {
		struct recorded *r = bs_list_entry(it, struct recorded, all);

		if (hs->n_recorded < RECORDED_MAX)
			break;
		if (r->recording)
			continue;
		bs_list_remove(it);
		(void)recorded_free(r);
		atomic_fetch_sub(&hs->n_recorded, 1);
	}
}

/* Whether one is under way, which then is somebody's. */
static bool join_recording(struct bs_hotstart *hs, const char *id)
{
	struct recorded *r;

	(void)pthread_mutex_lock(&hs->lock);
	r = find_recording(hs, id);
	if (r)
		r->nobody = false;
	(void)pthread_mutex_unlock(&hs->lock);
	return r;
}

/*
 * Opens (or goes on with) the recording and keeps it in the list; one there is stays,
 * unless it is over and begin is set. begin: also when there is none yet.
 */
static int open_recorded(struct bs_hotstart *hs, struct bs_cached *image, const char *id,
			 const char *workload, bool begin, struct bs_error *err)
{
	bs_auto(recorded) struct recorded *r = calloc(1, sizeof(*r));
	bs_autofree char *name = bs_hot_file(id, "rec");
	struct recorded *old;
	int rc;

	if (!r || !name)
		return bs_fail(err, -ENOMEM, "out of memory");
	bs_list_init(&r->all);
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	(void)snprintf(r->workload, sizeof(r->workload), "%s", workload);
	r->pub.image = image;
	r->pub.node = node_of(id);
	r->pub.recorded = true;
	if (begin && join_recording(hs, id)) /* another start of it was first */
		return 0;
	if (begin) /* of one that nobody took up: it is over */
		(void)unlinkat(bs_cached_dirfd(image), name, 0);
	if (begin || bs_hot_has_file(image, id, "rec")) {
		rc = bs_recording_open(bs_cached_dirfd(image), name,
				       image->blob_bytes / BS_BLOCK_BYTES, hs->o.epoch,
				       begin ? hs->o.window_ns : 0, &r->recording, err);
		if (rc < 0 && (begin || rc != -ENODATA))
			return rc;
	}
	(void)pthread_mutex_lock(&hs->lock);
	old = find_recorded(hs, r->pub.node);
	if (!old) {
		trim(hs);
		bs_list_append(&hs->recorded, &r->all);
		atomic_fetch_add(&hs->n_recorded, 1);
		r = NULL;
	} else if (begin && !old->recording) {
		old->recording = bs_take(&r->recording);
		old->built = old->nobody = false;
		old->failures = 0;
		old->again_ns = 0;
		old->pack[0] = '\0';
	}
	(void)pthread_cond_signal(&hs->changed);
	(void)pthread_mutex_unlock(&hs->lock);
	return 0;
}

/* The recording's id in the name of a file of an entry, if it is one that tells of a recording. */
static bool id_of_file(const char *name, char id[HOT_ID_LEN + 1])
{
	const char *rest = bs_str_after(name, "hot-");

	if (!rest || strlen(rest) != HOT_ID_LEN + strlen(".workload") ||
	    !bs_str_ends(rest, ".workload"))
		return false;
	(void)snprintf(id, HOT_ID_LEN + 1, "%s", rest);
	return id_ok(id);
}

/* Whether one more may be recorded. */
static int check_room(struct bs_hotstart *hs, const struct bs_cached *image, const char *id,
		      struct bs_error *err)
{
	bool known = bs_hot_has_file(image, id, "workload");
	unsigned int running = 0, workloads = 0;
	char other[HOT_ID_LEN + 1];
	struct dirent *de;
	DIR *d;

	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->recorded)
		running += bs_list_entry(it, struct recorded, all)->recording != NULL;
	(void)pthread_mutex_unlock(&hs->lock);
	if (running >= BS_HOT_RECORDINGS_MAX)
		return bs_fail(err, -EDQUOT, "%u starts are being recorded, no more at once",
			       running);
	d = known ? NULL : bs_opendir_at(bs_cached_dirfd(image), ".");
	while (d && (de = readdir(d)))
		workloads += id_of_file(de->d_name, other);
	if (d)
		(void)closedir(d);
	return workloads < BS_HOT_WORKLOADS_MAX
		       ? 0
		       : bs_fail(err, -EDQUOT,
				 "%u workloads of the image were recorded here, no more (give the "
				 "start a name with the annotation dev.bootseer.workload)",
				 workloads);
}

/* What whoever goes on with the recording must know, in the cache. */
static int note_start(const struct bs_cached *image, const char *id,
		      const struct bs_hotstart_request *rq, struct bs_error *err)
{
	bs_autofree char *sources = bs_hot_file(id, "sources");
	int r = sources ? bs_sources_write(bs_cached_dirfd(image), sources, rq->sources,
					   rq->n_sources)
			: -ENOMEM;

	if (r == 0)
		r = bs_hot_write_file(image, id, "workload", rq->workload, strlen(rq->workload));
	return r < 0 ? bs_fail_errno(err, r, "write 'hot-%s.workload' in the cache", id) : 0;
}

static void mark_recording(const struct bs_hotstart *hs, const struct bs_hotstart_request *rq)
{
	struct bs_timeline tl = { .fd = rq->timeline, .program = "bootseerd" };
	char text[64 + BS_WORKLOAD_MAX], window[16];

	(void)snprintf(text, sizeof(text), "workload '%s', for %s or until the container ends",
		       rq->workload, bs_clock_human(hs->o.window_ns, window, sizeof(window)));
	bs_timeline_mark(&tl, BS_MARK_RECORDING, bs_clock_ns(), text);
}

int bs_hotstart_record(struct bs_hotstart *hs, const struct bs_hotstart_request *rq,
		       struct bs_cached **ret, char ret_file[BS_HOTSTART_FILE_LEN],
		       struct bs_error *err)
{
	char id[HOT_ID_LEN + 1], hex[BS_DIGEST_TEXT_LEN];
	struct bs_cached *image = bs_images_await(hs->o.images, rq->image, rq->since_ns,
						  rq->since_ns + rq->wait_ns);
	int r;

	if (!image)
		return bs_fail(err, -ETIMEDOUT, "recording: its image was not made ready");
	r = check_room(hs, image, bs_hot_id(rq->image, rq->workload, id), err);
	if (r < 0)
		return bs_error_context(err, "workload '%s' is not recorded", rq->workload);
	r = note_start(image, id, rq, err);
	if (r < 0)
		return r;
	r = open_recorded(hs, image, id, rq->workload, true, err);
	if (r < 0)
		return r;
	mark_recording(hs, rq);
	(void)snprintf(ret_file, BS_HOTSTART_FILE_LEN, "%.64s.%s", bs_digest_hex(rq->image, hex),
		       id);
	*ret = image;
	return 0;
}

void bs_hotstart_stop(struct bs_hotstart *hs, const struct bs_digest *image, const char *workload,
		      bool nobody)
{
	char id[HOT_ID_LEN + 1];
	struct recorded *r;

	(void)bs_hot_id(image, workload, id);
	(void)pthread_mutex_lock(&hs->lock);
	r = find_recording(hs, id);
	if (r) {
		r->nobody = nobody;
		bs_recording_stop(r->recording);
	}
	(void)pthread_cond_signal(&hs->changed);
	(void)pthread_mutex_unlock(&hs->lock);
}

/* A recording that a worker before us began; it may be over, and the mount still there. */
static int load_recorded(struct bs_hotstart *hs, struct bs_cached *image, const char *id)
{
	bs_autofree char *workload = NULL;

	if (bs_hot_read_file(image, id, "workload", BS_WORKLOAD_MAX, &workload, NULL) < 0 ||
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
	DIR *d = bs_opendir_at(bs_cached_dirfd(image), ".");
	char id[HOT_ID_LEN + 1];
	bool found = false;
	struct dirent *de;

	if (!d)
		return false;
	while (!found && (de = readdir(d)))
		found = id_of_file(de->d_name, id) && node_of(id) == node &&
			load_recorded(hs, image, id) == 0;
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

	if (give_recorded(hs, node, ret))
		return true;
	d = bs_opendir_at(bs_images_dirfd(hs->o.images), ".");
	if (!d)
		return false;
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

void bs_hotstart_note(struct bs_hotstart *hs, uint64_t node, uint64_t off, uint64_t len)
{
	struct recorded *r;

	(void)pthread_mutex_lock(&hs->lock);
	r = find_recorded(hs, node);
	if (r && !r->recording)
		r = NULL;
	if (r)
		r->users++;
	(void)pthread_mutex_unlock(&hs->lock);
	if (!r)
		return;
	bs_recording_note(r->recording, off, len);
	(void)pthread_mutex_lock(&hs->lock);
	r->users--;
	end_built(r);
	(void)pthread_mutex_unlock(&hs->lock);
}

/* --- the builder ------------------------------------------------------------------------------- */

/* Only beside the image: who names many places may not have us write to any of them. */
static int check_image(struct bs_repo *repo, const struct recorded *r, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	bs_automanifest m = { 0 };

	return bs_repo_get_manifest(repo, bs_digest_text(&r->pub.image->digest, text), &m, err);
}

/* One that is bad is no pack: it is replaced; so is old, that was stale, if it is still there. */
static int publish_at(const struct recorded *r, struct bs_repo *repo, struct bs_hotbuild *b,
		      const struct bs_hotagain *old, struct bs_error *err)
{
	struct bs_hot other;
	int rc = check_image(repo, r, err);
	bool bad;

	if (rc < 0)
		return rc;
	bad = bs_hot_find(repo, &b->hot.image.digest, b->hot.workload, 0, &other, NULL) == 0 &&
	      bs_hot_is_bad(r->pub.image, r->id, &other.digest);
	if (bad && bs_digest_eq(&other.pack.digest, &b->hot.pack.digest))
		return bs_fail(err, -EBADMSG,
			       "the one there should be the same and is not: its store is damaged");
	if (!bad && old)
		return bs_hot_publish_over(repo, &b->hot, &old->hot.pack.digest, b->profile,
					   b->profile_len, b->pack_fd, err);
	return bs_hot_publish(repo, &b->hot, b->profile, b->profile_len, b->pack_fd, bad, err);
}

/* What status says of the pack. */
__attribute__((format(printf, 3, 4))) static void
note_pack(struct bs_hotstart *hs, struct recorded *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)pthread_mutex_lock(&hs->lock);
	(void)vsnprintf(r->pack, sizeof(r->pack), fmt, ap);
	/* cut off in the midst of a letter it would be no JSON */
	for (size_t n = strlen(r->pack); n > 0 && !bs_utf8_valid(r->pack, n); n--)
		r->pack[n - 1] = '\0';
	(void)pthread_mutex_unlock(&hs->lock);
	va_end(ap);
}

/* At the first source that has the image and takes it. */
static void publish(struct bs_hotstart *hs, struct recorded *r, struct bs_hotbuild *b,
		    const struct bs_hotagain *old)
{
	struct bs_error err = BS_ERROR_INIT, first = BS_ERROR_INIT;
	/* where the container that was recorded said that the image is */
	bs_autofree char *name = bs_hot_file(r->id, "sources");
	bs_autostrv sources = { 0 };
	char remedy[BS_SOURCES_REMEDY_LEN];

	if (name)
		(void)bs_sources_read(bs_cached_dirfd(r->pub.image), name, &sources);
	for (size_t i = 0; i < sources.n; i++) {
		bs_auto(repo) struct bs_repo *repo = NULL;
		int rc = hs->o.open_source(hs->o.cookie, sources.v[i], &repo, &err);

		if (rc == 0)
			rc = publish_at(r, repo, b, old, &err);
		if (rc == 0 || rc == -EEXIST) {
			bs_hotstart_tell(hs, BS_LOG_INFO,
					 "hot pack of workload '%s' (%" PRIu64 " KiB): %s at '%s'",
					 r->workload, b->hot.pack.size >> 10,
					 rc == 0 ? "published" : "another node was first",
					 sources.v[i]);
			note_pack(hs, r, rc == 0 ? "published: %s" : "published by another: %s",
				  sources.v[i]);
			return;
		}
		if (i == 0)
			first = err;
	}
	bs_hotstart_tell(hs, BS_LOG_WARNING,
			 "hot pack of workload '%s' stays on this node: %s (%s, or set publish = "
			 "no; 'bootseerctl hot push' does it by hand)",
			 r->workload, sources.n ? bs_error_text(&first) : "no source is known",
			 bs_sources_push_remedy(sources.n ? sources.v[0] : "", geteuid(), remedy));
	note_pack(hs, r, "kept: %s", sources.n ? bs_error_text(&first) : "no source is known");
}

/*
 * The pack that is there stays: a recording has shown that it is right, or broke off before it
 * could show anything; then the next starts are judged again.
 */
static void keep_old(struct bs_hotstart *hs, struct recorded *r, const struct bs_hotagain *old,
		     enum bs_verdict v)
{
	bs_hotwatch_judge(r->pub.image, &old->hot, v);
	bs_hotstart_tell(hs, BS_LOG_INFO, "workload '%s' was recorded again: %s, it stays",
			 r->workload,
			 v == BS_VERDICT_RIGHT ? "its hot pack is right"
					       : "not for long enough to judge its hot pack");
	note_pack(hs, r, "none: the one that was there stays");
}

static void no_pack(struct bs_hotstart *hs, struct recorded *r, const char *why)
{
	bs_hotstart_tell(hs, BS_LOG_WARNING, "no hot pack of workload '%s': %s", r->workload, why);
	note_pack(hs, r, "none: %s", why);
}

/* Whether another try may have what this one lacked: memory, space, a source. */
static bool may_come_right(int rc)
{
	return rc != -ENODATA && rc != -EBADMSG && rc != -EINVAL && rc != -EFBIG &&
	       rc != -EPROTONOSUPPORT;
}

/* It stays recorded, on the disk too. */
static void try_later(struct bs_hotstart *hs, struct recorded *r, const char *why)
{
	const uint64_t pause = BUILD_PAUSE_NS << r->failures;
	char text[16];

	bs_hotstart_tell(hs, BS_LOG_WARNING,
			 "no hot pack of workload '%s' yet: %s (it is tried again in %s)",
			 r->workload, why, bs_clock_human(pause, text, sizeof(text)));
	note_pack(hs, r, "not yet: %s", why);
	(void)pthread_mutex_lock(&hs->lock);
	r->failures++;
	r->again_ns = bs_clock_ns() + pause;
	(void)pthread_mutex_unlock(&hs->lock);
}

/* False: it is to be tried again. */
static bool build(struct bs_hotstart *hs, struct recorded *r)
{
	bs_auto_hotbuild struct bs_hotbuild b = { .pack_fd = -EBADF };
	bs_auto_hotagain old = { 0 };
	const bool again = bs_hotagain_load(r->pub.image, r->workload, hs->o.open_source,
					    hs->o.cookie, &old) == 0;
	const struct bs_hotbuild_options o = { .image = r->pub.image,
					       .fill = hs->o.fill,
					       .recording = r->recording,
					       .workload = r->workload,
					       .again = again ? &old : NULL,
					       .percent = hs->o.rerecord };
	struct bs_error err = BS_ERROR_INIT;
	int rc = bs_hotbuild_make(&o, &b, &err);

	if (rc == 0) /* that of the old one, before the manifest that is not its */
		bs_hot_remove_file(r->pub.image, r->id, "head");
	if (rc == 0)
		rc = bs_hotbuild_keep(&b, r->pub.image, r->id, &err);
	if (rc == -EALREADY)
		keep_old(hs, r, &old, BS_VERDICT_RIGHT);
	else if (rc == -ECANCELED)
		keep_old(hs, r, &old, BS_VERDICT_NONE);
	else if (rc < 0 && may_come_right(rc) && r->failures + 1 < BUILDS_MAX)
		return try_later(hs, r, bs_error_text(&err)), false;
	else if (rc < 0)
		no_pack(hs, r, bs_error_text(&err));
	else if (hs->o.publish)
		publish(hs, r, &b, again ? &old : NULL);
	else
		note_pack(hs, r, "kept: publish = no");
	bs_hot_remove_file(r->pub.image, r->id, "rec");
	bs_hot_remove_file(r->pub.image, r->id, "proofs");
	return true;
}

/* One that is over and not built yet; else *ret_more: whether one will be. Lock held. */
static struct recorded *next_over(struct bs_hotstart *hs, bool *ret_more)
{
	*ret_more = false;
	bs_list_for_each(it, &hs->recorded) {
		struct recorded *r = bs_list_entry(it, struct recorded, all);

		if (!r->recording || r->built)
			continue;
		if (bs_recording_over(r->recording) && bs_clock_ns() >= r->again_ns)
			return r;
		*ret_more = true;
	}
	return NULL;
}

/* Whether the image's entry has a recording. */
static bool has_recording(int images, const char *name)
{
	DIR *d = bs_opendir_at(images, name);
	struct dirent *de = NULL;

	while (d && (de = readdir(d))) {
		if (bs_str_after(de->d_name, "hot-") && bs_str_ends(de->d_name, ".rec"))
			break;
	}
	if (d)
		(void)closedir(d);
	return de != NULL;
}

/* What a worker before us did not bring to its end, whether somebody still reads or not. */
static void take_up(struct bs_hotstart *hs, struct bs_cached *image)
{
	DIR *d = bs_opendir_at(bs_cached_dirfd(image), ".");
	char id[HOT_ID_LEN + 1];
	struct dirent *de;

	while (d && (de = readdir(d))) {
		if (id_of_file(de->d_name, id) && bs_hot_has_file(image, id, "rec"))
			(void)load_recorded(hs, image, id);
	}
	if (d)
		(void)closedir(d);
}

static void take_up_all(struct bs_hotstart *hs)
{
	DIR *d = bs_opendir_at(bs_images_dirfd(hs->o.images), ".");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		struct bs_cached *image = NULL;

		/* not to load images for nothing: there may be many */
		if (de->d_name[0] != '.' &&
		    has_recording(bs_images_dirfd(hs->o.images), de->d_name))
			image = bs_images_by_name(hs->o.images, de->d_name);
		if (image)
			take_up(hs, image);
	}
	if (d)
		(void)closedir(d);
}

/* Lock held. */
static void forget(struct bs_hotstart *hs, struct recorded *r)
{
	bs_hot_remove_file(r->pub.image, r->id, "rec");
	bs_hot_remove_file(r->pub.image, r->id, "proofs");
	bs_list_remove(&r->all);
	(void)recorded_free(r);
	atomic_fetch_sub(&hs->n_recorded, 1);
}

/* A thread of its own, behind all others: nobody waits for a pack. */
static void *builder_main(void *arg)
{
	struct bs_hotstart *hs = arg;

	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	take_up_all(hs);
	(void)pthread_mutex_lock(&hs->lock);
	for (;;) {
		bool more, built;
		struct recorded *r = next_over(hs, &more);

		more |= bs_hotstart_drop_untold(hs);
		if (r && r->nobody && r->users == 0) {
			forget(hs, r);
		} else if (r) {
			(void)pthread_mutex_unlock(&hs->lock);
			/* stays in the list as long as it has its recording */
			built = build(hs, r);
			(void)pthread_mutex_lock(&hs->lock);
			r->built = built;
			end_built(r);
		} else if (!more && !bs_hotwatch_running(hs->watch)) {
			(void)pthread_cond_wait(&hs->changed, &hs->lock);
		} else {
			(void)pthread_mutex_unlock(&hs->lock);
			(void)poll(NULL, 0, LOOK_MS);
			while (bs_hotwatch_end_one(hs->watch))
				;
			(void)pthread_mutex_lock(&hs->lock);
		}
	}
	return NULL;
}

int bs_hotstart_start_builder(struct bs_hotstart *hs, struct bs_error *err)
{
	int r = pthread_create(&hs->builder, NULL, builder_main, hs);

	return r == 0 ? 0 : bs_fail_errno(err, -r, "start the builder of hot packs");
}
