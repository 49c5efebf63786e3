/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Packs as a whole: proven, published from a node's cache, made without a node. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/jsonw.h"
#include "base/path.h"
#include "base/str.h"
#include "cmd/ctl-hot.h"
#include "cmd/progress.h"
#include "ctl/conf.h"
#include "hot/pack.h"
#include "hot/packcheck.h"
#include "hot/profile.h"
#include "image/frames.h"
#include "image/open.h"
#include "image/table.h"
#include "image/tree.h"
#include "net/repo.h"

#define CHUNK (1u << 20)
#define LIST_MAX (16u << 20)

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

/* --- verify ---------------------------------------------------------------------------------- */

struct verifying {
	struct bs_progress progress;
	struct bs_packcheck *check;
	uint64_t done;
};

static int on_bytes(void *cookie, const void *data, size_t len)
{
	struct verifying *v = cookie;

	v->done += len;
	bs_progress_set(&v->progress, v->done);
	return bs_packcheck_feed(v->check, data, len);
}

static int verify(struct ctl_hot *c, const struct bs_hot *hot, struct verifying *v,
		  const struct bs_pack **ret, struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p = NULL;
	int r = ctl_hot_profile(c, hot, &p, err);

	if (r == 0)
		r = bs_packcheck_new(c->image->table, &c->a.table.digest, hot, &v->check, err);
	if (r < 0)
		return r;
	bs_progress_begin(&v->progress, "verifying", hot->pack.size);
	r = bs_repo_get_blob(c->repo, &hot->pack.digest, hot->pack.size, on_bytes, v, err);
	r = bs_packcheck_end(v->check, r, ret, err);
	bs_progress_end(&v->progress, r < 0);
	return r;
}

static int verified_json(const struct bs_hot *hot, const struct bs_pack *p)
{
	struct bs_jsonw *w = bs_jsonw_new(true);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "digest", bs_digest_text(&hot->digest, text));
	bs_jsonw_ku64(w, "segments", p->n_segments);
	bs_jsonw_ku64(w, "blocks", p->n_blocks);
	bs_jsonw_kbool(w, "ok", true);
	bs_jsonw_end(w);
	return ctl_hot_print(w);
}

int ctl_hot_verify(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	bool quiet = false;
	const struct bs_option options[] = {
		CTL_HOT_OPTIONS(&c),
		{ "json", 0, BS_OPTION_FLAG, &c.json, NULL, "print the result as JSON" },
		{ "quiet", 'q', BS_OPTION_FLAG, &quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = {
		"bootseerctl hot verify REF WORKLOAD|DIGEST [OPTION]...",
		"Fetches a hot pack and proves every block of it against the image.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	struct verifying v = { 0 };
	const struct bs_pack *p = NULL;
	struct bs_hot hot;
	const char *args[2];
	int r = ctl_hot_begin(&c, &usage, argc, argv, args, true);

	if (r >= 0)
		return r;
	bs_progress_init(&v.progress, quiet);
	r = ctl_hot_find(&c, args[1], &hot, &err);
	if (r == 0)
		r = verify(&c, &hot, &v, &p, &err);
	if (r < 0)
		r = ctl_fail(&err);
	else if (c.json)
		r = verified_json(&hot, p) < 0;
	else
		printf("%u segments with %u blocks are right\n", p->n_segments, p->n_blocks);
	(void)bs_packcheck_free(v.check);
	return r;
}

/* --- publishing ------------------------------------------------------------------------------ */

void ctl_hot_made_done(struct ctl_hot_made *m)
{
	free(m->profile);
	(void)bs_close(m->pack_fd);
}

/* What helps, by the kind of the failure. */
static int publish_failed(const struct ctl_hot *c, int r, struct bs_error *err)
{
	const struct bs_error why = *err;
	const char *remedy = NULL;

	if (c->ref.kind == BS_REF_LAYOUT && (r == -EACCES || r == -EPERM || r == -EROFS))
		remedy = "the directory and what is in it must be writable here";
	else if (c->ref.kind == BS_REF_REGISTRY && (r == -EACCES || r == -EPERM))
		remedy = "log in there as a user who may push (docker login, podman login)";
	else if (c->ref.kind == BS_REF_REGISTRY && (r == -EOPNOTSUPP || r == -EREMOTEIO))
		remedy = "is it a mirror or read-only? push to the registry that the image is "
			 "pushed to";
	else if (c->ref.kind == BS_REF_HDFS && (r == -EACCES || r == -EPERM))
		remedy = "say who you are with --hdfs-options, or let that user write there";
	return remedy ? bs_fail(err, r, "%s; %s", bs_error_text(&why), remedy) : r;
}

int ctl_hot_try_push(const struct ctl_hot *c, struct bs_error *err)
{
	int r = bs_repo_try_push(c->repo, err);

	return r < 0 ? publish_failed(c, r, err) : 0;
}

int ctl_hot_publish(struct ctl_hot *c, struct ctl_hot_made *m, bool replace, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN], size[BS_HUMAN_LEN];
	int r = bs_hot_publish(c->repo, &m->hot, m->profile, m->profile_len, m->pack_fd, replace,
			       err);

	if (r == -EEXIST)
		return bs_fail(err, r,
			       "%s: workload '%s' has a hot pack: --replace puts this one in its "
			       "place",
			       c->repo->name, m->hot.workload);
	if (r < 0)
		return publish_failed(c, r, err);
	printf("%s  %s  %s\n", bs_digest_text(&m->hot.digest, text), m->hot.workload,
	       bs_human_bytes(m->hot.pack.size, size));
	return 0;
}

/* --- push ------------------------------------------------------------------------------------ */

/*
 * What the cache holds is the worker's, and nobody's word: no link is followed, and
 * nothing is published that the image does not prove.
 */
static int open_kept(int cache, const struct bs_digest *image, const char *id, const char *what,
		     struct bs_error *err)
{
	char hex[BS_DIGEST_TEXT_LEN];
	bs_autofree char *path = bs_strf("images/%s/hot-%s.%s", bs_digest_hex(image, hex), id,
					 what);
	struct stat st;
	int fd;

	if (!path)
		return bs_fail(err, -ENOMEM, "out of memory");
	fd = bs_path_open_beneath(cache, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd == -ENOENT)
		return bs_fail(err, fd,
			       "this node's cache has no hot pack of that image and workload "
			       "('%s' is not there)",
			       path);
	if (fd < 0)
		return bs_fail_errno(err, fd, "cache: '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)bs_close(fd);
		return bs_fail(err, -EBADMSG, "cache: '%s' is no file", path);
	}
	return fd;
}

int ctl_hot_read_kept(int cache, const struct bs_digest *image, const char *workload,
		      struct ctl_hot_made *m, struct bs_error *err)
{
	char tag[BS_HOT_TAG_LEN], type[] = BS_MEDIA_OCI_MANIFEST;
	const char *id = bs_hot_tag(image, workload, tag) + strlen(BS_HOT_TAG_PREFIX);
	struct bs_manifest manifest = { .media_type = type };
	bs_autofd int json = -EBADF, profile = -EBADF;
	bs_autofree char *bytes = NULL;
	int r;

	m->pack_fd = r = open_kept(cache, image, id, "pack", err);
	if (r >= 0)
		json = r = open_kept(cache, image, id, "json", err);
	if (r >= 0)
		profile = r = open_kept(cache, image, id, "profile", err);
	if (r < 0)
		return r;
	r = bs_read_file(json, BS_MANIFEST_MAX, &bytes, &manifest.len);
	if (r == 0)
		r = bs_read_file(profile, BS_PROFILE_DATA_MAX, &m->profile, &m->profile_len);
	if (r < 0)
		return bs_fail_errno(err, r, "cache: hot pack of '%s'", workload);
	manifest.bytes = bytes;
	bs_digest_of(bytes, manifest.len, &manifest.digest);
	r = bs_hot_parse(&manifest, &m->hot, err);
	if (r == 0 &&
	    (!bs_digest_eq(&m->hot.image.digest, image) || !bs_streq(m->hot.workload, workload)))
		r = bs_fail(err, -EBADMSG, "hot pack: it is of another image or workload");
	return r < 0 ? bs_error_context(err, "cache") : 0;
}

int ctl_hot_prove(struct ctl_hot *c, struct ctl_hot_made *m, struct bs_error *err)
{
	bs_auto(packcheck) struct bs_packcheck *check = NULL;
	bs_auto(profile) struct bs_profile *p = NULL;
	bs_autofree char *chunk = malloc(CHUNK);
	const struct bs_pack *pack;
	uint64_t at = 0;
	ssize_t n = 1;
	int r = bs_profile_read(m->profile, m->profile_len, &c->a.table.digest,
				c->image->table->blob_blocks, &p, err);

	if (r == 0)
		r = chunk ? bs_packcheck_new(c->image->table, &c->a.table.digest, &m->hot, &check,
					     err)
			  : bs_fail(err, -ENOMEM, "out of memory");
	if (r < 0)
		return bs_error_context(err, "cache");
	while (r == 0 && n > 0) {
		n = bs_pread_full(m->pack_fd, chunk, CHUNK, at);
		if (n > 0)
			r = bs_packcheck_feed(check, chunk, (size_t)n);
		at += n > 0 ? (uint64_t)n : 0;
	}
	if (n < 0)
		r = bs_fail_errno(err, (int)n, "read the pack");
	r = bs_packcheck_end(check, r, &pack, err);
	return r < 0 ? bs_error_context(err, "cache") : 0;
}

static int open_cache(const char *config, struct bs_error *err)
{
	struct bs_conf conf;
	int r = bs_conf_read(config, &conf, err), fd;

	if (r == 0) {
		fd = open(conf.cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd >= 0 ? fd
			    : bs_fail_errno(err, -errno, "cache directory '%s'", conf.cache_dir);
	}
	bs_conf_done(&conf);
	return r;
}

/* The image itself has to be where its pack goes. */
static int open_destination(struct ctl_hot *c, const char *to, const struct bs_digest *image,
			    struct bs_error *err)
{
	bs_automanifest m = { 0 };
	char text[BS_DIGEST_TEXT_LEN];
	int r = bs_ref_parse(to, &c->ref, err);

	if (r == 0)
		r = ctl_repo_open(&c->net, &c->ref, false, &c->repo, err);
	if (r < 0)
		return r;
	r = bs_repo_get_manifest(c->repo, bs_digest_text(image, text), &m, err);
	if (r == -ENOENT)
		return bs_fail(err, r, "%s: it does not have the image %s itself", c->repo->name,
			       text);
	if (r == 0)
		r = bs_artifact_parse(&m, &c->a, err);
	return r < 0 ? r : ctl_hot_open(c, err);
}

static int push(struct ctl_hot *c, const char *config, const char *to, const char *const *args,
		bool replace, struct bs_error *err)
{
	ctl_automade m = { .pack_fd = -EBADF };
	bs_autofd int cache = -EBADF;
	struct bs_digest image;
	int r;

	if (bs_digest_parse(args[0], strlen(args[0]), &image) < 0)
		return bs_fail(err, -EINVAL, "'%s' is no digest of an image", args[0]);
	r = bs_workload_check(args[1], err);
	if (r < 0)
		return r;
	cache = r = open_cache(config, err);
	if (r >= 0)
		r = ctl_hot_read_kept(cache, &image, args[1], &m, err);
	if (r == 0)
		r = open_destination(c, to, &image, err);
	if (r == 0)
		r = ctl_hot_prove(c, &m, err);
	return r < 0 ? r : ctl_hot_publish(c, &m, replace, err);
}

int ctl_hot_push(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	const char *config = NULL, *to = NULL, *args[2];
	bool replace = false;
	const struct bs_option options[] = {
		{ "to", 0, BS_OPTION_TEXT, &to, "REF", "the repository that has the image" },
		{ "replace", 0, BS_OPTION_FLAG, &replace, NULL,
		  "put it in the place of one that is there" },
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
		CTL_NET_OPTIONS(&c.net),
	};
	const struct bs_usage usage = {
		"bootseerctl hot push IMAGE-DIGEST WORKLOAD --to REF [OPTION]...",
		"Publishes a hot pack that this node has made and could not publish itself, with\n"
		"the credentials of who calls it. It is proven before. As root.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r == 0 && !to)
		r = bs_fail(&err, -EINVAL, "say where to: --to docker://HOST/NAME or oci:DIR");
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	return push(&c, config, to, args, replace, &err) < 0 ? ctl_fail(&err) : 0;
}

/* --- build ----------------------------------------------------------------------------------- */

struct building {
	struct ctl_hot *c;
	struct bs_framer *f;
	void *packed;
	struct bs_progress progress;
	uint64_t done;
};

static int give_frame(void *cookie, uint32_t frame, void *out, struct bs_error *err)
{
	struct building *b = cookie;

	b->done += b->c->image->table->frames[frame].len;
	bs_progress_set(&b->progress, b->done);
	return bs_image_read_frame(b->c->image, b->f, frame, b->packed, out, err);
}

static int add_file(struct bs_image *i, const char *path, struct bs_profile_event **events,
		    size_t *n, size_t *cap, struct bs_error *err)
{
	int64_t at = bs_image_lookup(i, path);
	const struct bs_tree_entry *e;

	if (at < 0)
		return bs_fail_errno(err, (int)at, "'%s' of the image", path);
	e = &i->tree->entries[i->tree->entries[at].inode];
	if (!S_ISREG(e->mode))
		return bs_fail(err, -EINVAL, "'%s' of the image is no regular file", path);
	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_tree_extent *x = &i->tree->extents[e->first_extent + k];

		if (bs_grow(events, cap, *n + 1, sizeof(**events)) < 0)
			return bs_fail(err, -ENOMEM, "out of memory");
		(*events)[(*n)++] = (struct bs_profile_event){ (uint32_t)x->blob_block,
							       (uint32_t)x->n_blocks, 0 };
	}
	return 0;
}

/* A path a line: these files whole, in that order. */
static int profile_of_list(struct ctl_hot *c, const char *text, struct bs_profile **ret,
			   struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p = bs_profile_new(&c->a.table.digest,
							       c->image->table->blob_blocks);
	bs_autofree struct bs_profile_event *events = NULL;
	bs_autostrv paths = { 0 };
	size_t n = 0, cap = 0;
	int r = p ? bs_strv_split(&paths, text, "\n") : -ENOMEM;

	if (r < 0)
		return bs_fail_errno(err, r, "list of files");
	for (size_t i = 0; r == 0 && i < paths.n; i++)
		r = add_file(c->image, paths.v[i], &events, &n, &cap, err);
	if (r < 0)
		return r;
	r = bs_profile_add_run(p, events, n, 0);
	if (r < 0)
		return bs_fail_errno(err, r, "list of files");
	if (p->n_ranges == 0)
		return bs_fail(err, -ENODATA, "list of files: they have no content");
	*ret = bs_take(&p);
	return 0;
}

/* FILE is a profile, when it begins as Zstandard does, or a list. */
static int read_from(struct ctl_hot *c, const char *file, struct bs_profile **ret,
		     struct bs_error *err)
{
	static const char magic[] = "\x28\xb5\x2f\xfd";
	bs_autofree char *bytes = NULL;
	size_t len;
	int r = bs_read_file_at(AT_FDCWD, file, 0, BS_PROFILE_DATA_MAX, &bytes, &len);

	if (r < 0)
		return bs_fail_errno(err, r, "read '%s'", file);
	if (len >= 4 && memcmp(bytes, magic, 4) == 0)
		return bs_profile_read(bytes, len, &c->a.table.digest, c->image->table->blob_blocks,
				       ret, err);
	if (len > LIST_MAX || strlen(bytes) != len)
		return bs_fail(err, -EINVAL, "'%s' is no profile and no list of files", file);
	return profile_of_list(c, bytes, ret, err);
}

/* All of them as one; those that come later are newer recordings. */
static int read_all_from(struct ctl_hot *c, const struct bs_strv *files, struct bs_profile **ret,
			 struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *all = NULL;
	int r = 0;

	for (size_t i = 0; i < files->n && r == 0; i++) {
		bs_auto(profile) struct bs_profile *p = NULL;

		r = read_from(c, files->v[i], &p, err);
		if (r < 0)
			return r;
		if (all)
			r = bs_profile_merge(all, p);
		else
			all = bs_take(&p);
	}
	if (r < 0)
		return bs_fail_errno(err, r, "merge the profiles");
	*ret = bs_take(&all);
	return 0;
}

static int write_pack(struct building *b, const struct bs_profile *p, uint32_t level,
		      struct ctl_hot_made *m, struct bs_error *err)
{
	bs_autofree struct bs_extent *extents = calloc(p->n_ranges + (size_t)1, sizeof(*extents));
	struct bs_pack_write_options o = { .table = b->c->image->table,
					   .table_digest = &b->c->a.table.digest,
					   .frame = give_frame,
					   .cookie = b,
					   .level = (int)level };
	const char *tmp = secure_getenv("TMPDIR") ?: "/var/tmp";
	bs_autofd int dir = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t len;
	int r;

	m->pack_fd = r = dir < 0 ? -errno : bs_atomicfile_open(dir, 0600);
	if (r < 0)
		return bs_fail_errno(err, r, "make a file in '%s'", tmp);
	if (!extents)
		return bs_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < p->n_ranges; i++)
		extents[i] = (struct bs_extent){ p->ranges[i].block, p->ranges[i].n_blocks };
	bs_progress_begin(&b->progress, "reading", 0);
	r = bs_pack_write(extents, p->n_ranges, &o, m->pack_fd, &m->hot.head_len, &len, err);
	bs_progress_end(&b->progress, r < 0);
	return r;
}

static int describe_image(struct ctl_hot *c, struct bs_hot *hot, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	char text[BS_DIGEST_TEXT_LEN];
	int r = bs_repo_get_manifest(c->repo, bs_digest_text(&c->a.digest, text), &m, err);

	if (r == 0)
		hot->image = (struct bs_descriptor){ c->a.digest, m.len };
	return r;
}

static int build(struct building *b, const char *workload, const struct bs_strv *from,
		 uint32_t level, bool replace, struct bs_error *err)
{
	ctl_automade m = { .pack_fd = -EBADF };
	bs_auto(profile) struct bs_profile *p = NULL;
	void *profile = NULL;
	struct bs_hot other;
	int r = bs_workload_check(workload, err);

	if (r < 0)
		return r;
	if (!replace && bs_hot_find(b->c->repo, &b->c->a.digest, workload, 0, &other, NULL) == 0)
		return bs_fail(err, -EEXIST,
			       "%s: workload '%s' has a hot pack: --replace puts this one in its "
			       "place",
			       b->c->repo->name, workload);
	r = read_all_from(b->c, from, &p, err);
	if (r == 0)
		r = describe_image(b->c, &m.hot, err);
	if (r == 0)
		r = bs_profile_write(p, &profile, &m.profile_len, err);
	m.profile = profile;
	if (r == 0)
		r = write_pack(b, p, level, &m, err);
	if (r < 0)
		return r;
	(void)snprintf(m.hot.workload, sizeof(m.hot.workload), "%s", workload);
	return ctl_hot_publish(b->c, &m, replace, err);
}

int ctl_hot_build(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	bool replace = false, quiet = false;
	bs_autostrv from = { 0 };
	uint32_t level = 9;
	const struct bs_option options[] = {
		{ "from", 0, BS_OPTION_LIST, &from, "FILE",
		  "a profile, or a list of paths; of several: all" },
		{ "replace", 0, BS_OPTION_FLAG, &replace, NULL,
		  "put it in the place of one that is there" },
		{ "level", 0, BS_OPTION_U32, &level, "N", "of zstd, 1 to 19 (default 9)" },
		CTL_HOT_OPTIONS(&c),
		{ "quiet", 'q', BS_OPTION_FLAG, &quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = {
		"bootseerctl hot build REF WORKLOAD --from FILE [OPTION]...",
		"Makes a hot pack without a recorded start, and publishes it: of a profile, or\n"
		"of files, which are taken whole and in that order.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct building b = { .c = &c };
	struct bs_error err = BS_ERROR_INIT;
	const char *args[2];
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r == 0 && from.n == 0)
		r = bs_fail(&err, -EINVAL,
			    "say of what: --from FILE, a profile or a list of files");
	if (r == 0 && (level < 1 || level > 19))
		r = bs_fail(&err, -EINVAL, "--level is 1 to 19");
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (ctl_hot_reach(&c, args[0], true, &err) < 0)
		return ctl_fail(&err);
	bs_progress_init(&b.progress, quiet);
	b.f = bs_framer_new(0);
	b.packed = malloc(BS_FRAME_DATA_MAX);
	r = b.f && b.packed ? build(&b, args[1], &from, level, replace, &err)
			    : bs_fail(&err, -ENOMEM, "out of memory");
	(void)bs_framer_free(b.f);
	free(b.packed);
	return r < 0 ? ctl_fail(&err) : 0;
}
