/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/ctl.h"
#include "cmd/progress.h"
#include "image/artifact.h"
#include "image/convert.h"
#include "image/manifest.h"
#include "net/repo.h"

struct options {
	struct ctl_net net;
	struct bs_strv platforms;
	const char *stub_tag, *config, *tmp;
	uint32_t jobs, level;
	bool json, quiet;
};

static void options_done(struct options *o)
{
	bs_strv_done(&o->platforms);
	ctl_net_done(&o->net);
}

/* --- showing --------------------------------------------------------------------------------- */

static void on_begin(void *cookie, enum bs_convert_phase phase, const char *platform,
		     uint64_t total)
{
	static const char *const names[] = { "reading", "packing", "sending" };
	bs_autofree char *what = bs_strf("%s %s", names[phase], platform);

	_Static_assert(BS_ARRAY_LEN(names) == BS_CONVERT_PHASE_MAX, "a name for each phase");
	bs_progress_begin(cookie, what ? what : names[phase], total);
}

static void on_progress(void *cookie, uint64_t done)
{
	bs_progress_set(cookie, done);
}

static void on_note(void *cookie, const char *text)
{
	bs_progress_note(cookie, text);
}

static void write_one(struct bs_jsonw *w, const struct bs_converted *v)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "platform", v->platform);
	if (v->has_source)
		bs_jsonw_kstr(w, "source", bs_digest_text(&v->source, text));
	bs_jsonw_kstr(w, "artifact", bs_digest_text(&v->artifact, text));
	bs_jsonw_kstr(w, "stub", bs_digest_text(&v->stub, text));
	bs_jsonw_ku64(w, "entries", v->entries);
	bs_jsonw_ku64(w, "frames", v->frames);
	bs_jsonw_ku64(w, "layersBytes", v->layers_bytes);
	bs_jsonw_ku64(w, "filesBytes", v->files_bytes);
	bs_jsonw_ku64(w, "sharedBytes", v->shared_bytes);
	bs_jsonw_ku64(w, "dataBytes", v->data_bytes);
	bs_jsonw_ku64(w, "treeBytes", v->tree_bytes);
	bs_jsonw_ku64(w, "tableBytes", v->table_bytes);
	bs_jsonw_end(w);
}

static int print_json(const char *repository, const char *tag, const struct bs_converted_list *l)
{
	bs_autobuf out = BS_BUF_INIT(16u << 20);
	struct bs_jsonw *w = bs_jsonw_new(true);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "repository", repository);
	bs_jsonw_kstr(w, "stubTag", tag);
	bs_jsonw_kstr(w, "stub", bs_digest_text(&l->stub, text));
	bs_jsonw_key(w, "images");
	bs_jsonw_array(w);
	for (size_t i = 0; i < l->n; i++)
		write_one(w, &l->v[i]);
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	if (bs_jsonw_finish(w, &out) < 0)
		return -ENOMEM;
	(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

static void print_text(const char *repository, const char *tag, const struct bs_converted_list *l)
{
	char text[BS_DIGEST_TEXT_LEN], files[32], data[32];

	for (size_t i = 0; i < l->n; i++) {
		const struct bs_converted *v = &l->v[i];

		printf("%s  %s  %u names, %s of files in %s\n", v->platform,
		       bs_digest_text(&v->artifact, text), v->entries,
		       bs_human_bytes(v->files_bytes, files), bs_human_bytes(v->data_bytes, data));
	}
	printf("stub  %s  %s:%s\n", bs_digest_text(&l->stub, text), repository, tag);
}

/* --- doing ----------------------------------------------------------------------------------- */

/* As many as the process may run on at once. */
static unsigned int cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned int)CPU_COUNT(&set);
	return 1;
}

/* What the marker says: an absolute directory, so that it means the same from anywhere. */
static char *repository_of(const struct bs_ref *dst)
{
	bs_autofree char *full = NULL;

	if (dst->kind == BS_REF_REGISTRY)
		return bs_strf("%s/%s", dst->host, dst->name);
	if (dst->kind == BS_REF_HDFS)
		return bs_strf("%s", dst->dir);
	full = realpath(dst->dir, NULL);
	return bs_strf("oci:%s", full ? full : dst->dir);
}

static int stub_tag(const struct options *o, const struct bs_ref *src, const struct bs_ref *dst,
		    char **ret, struct bs_error *err)
{
	const char *tag = dst->tag ? dst->tag : src->tag ? src->tag : "latest";

	*ret = o->stub_tag ? strdup(o->stub_tag) : bs_strf("%s" BS_STUB_TAG_SUFFIX, tag);
	if (!*ret)
		return bs_fail_errno(err, -ENOMEM, "tag");
	if (dst->has_digest)
		return bs_fail(err, -EINVAL, "the destination is a tag, not a digest");
	return 0;
}

static int open_source(struct options *o, const struct bs_ref *src, struct bs_convert *c,
		       char **ret_config, struct bs_error *err)
{
	size_t len;
	int r;

	if (src->kind != BS_REF_ROOTFS)
		return ctl_repo_open(&o->net, src, false, &c->src, err);
	c->rootfs = src->dir;
	if (!o->config)
		return 0;
	r = bs_read_file_at(AT_FDCWD, o->config, 0, BS_CONFIG_MAX, ret_config, &len);
	if (r < 0)
		return bs_fail_errno(err, r, "image config '%s'", o->config);
	c->config = *ret_config;
	return 0;
}

static int convert(struct options *o, const struct bs_ref *src, const struct bs_ref *dst,
		   struct bs_error *err)
{
	bs_autofree char *tag = NULL, *ref = bs_ref_reference(src), *config = NULL;
	bs_autofree char *repository = NULL;
	bs_auto(repo) struct bs_repo *from = NULL, *to = NULL;
	struct bs_progress progress;
	const struct bs_convert_watch watch = { on_begin, on_progress, on_note, &progress };
	struct bs_convert c = { .ref = ref,
				.platforms = &o->platforms,
				.jobs = o->jobs,
				.level = (int)o->level,
				.tmp = o->tmp,
				.watch = &watch };
	struct bs_converted_list list;
	int r;

	bs_progress_init(&progress, o->quiet);
	if (!ref)
		return bs_fail_errno(err, -ENOMEM, "reference");
	r = stub_tag(o, src, dst, &tag, err);
	if (r == 0)
		r = open_source(o, src, &c, &config, err);
	from = c.src;
	if (r == 0)
		r = ctl_repo_open(&o->net, dst, true, &to, err);
	if (r < 0)
		return r;
	repository = repository_of(dst);
	if (!repository)
		return bs_fail_errno(err, -ENOMEM, "repository");
	c.dst = to;
	c.dst_repository = repository;
	c.stub_tag = tag;
	r = bs_convert_run(&c, &list, err);
	bs_progress_end(&progress, r < 0);
	if (r < 0)
		return r;
	if (!o->json)
		print_text(repository, tag, &list);
	else if (print_json(repository, tag, &list) < 0)
		r = bs_fail_errno(err, -ENOMEM, "result");
	bs_converted_list_done(&list);
	return r;
}

static int check_options(const struct options *o, struct bs_error *err)
{
	if (o->level > 19) /* 0: none was given */
		return bs_fail(err, -EINVAL, "--level: %u is not from 1 to 19", o->level);
	if (o->jobs == 0)
		return bs_fail(err, -EINVAL, "--jobs: there must be one or more");
	if (o->stub_tag && !bs_ref_tag_ok(o->stub_tag))
		return bs_fail(err, -EINVAL,
			       "--stub-tag: '%s' is no tag (at most 128 of A-Z a-z 0-9 _ . -)",
			       o->stub_tag);
	for (size_t i = 0; i < o->platforms.n; i++) {
		if (!strchr(o->platforms.v[i], '/'))
			return bs_fail(err, -EINVAL,
				       "--platform: '%s' is not OS/ARCH, as linux/arm64",
				       o->platforms.v[i]);
	}
	return 0;
}

int ctl_image_convert(int argc, char **argv)
{
	__attribute__((cleanup(options_done))) struct options o = { .net = CTL_NET_INIT,
								    .jobs = cores() };
	const struct bs_option options[] = {
		{ "stub-tag", 0, BS_OPTION_TEXT, &o.stub_tag, "TAG",
		  "the stub image's tag (default TAG-bootseer)" },
		{ "platform", 0, BS_OPTION_LIST, &o.platforms, "P",
		  "only this of an index (OS/ARCH), may be repeated" },
		{ "config", 0, BS_OPTION_TEXT, &o.config, "FILE",
		  "with rootfs: the image config, as JSON" },
		{ "jobs", 'j', BS_OPTION_U32, &o.jobs, "N", "threads (default: one a core)" },
		{ "level", 0, BS_OPTION_U32, &o.level, "N", "zstd level, 1 to 19 (default 9)" },
		{ "tmp", 0, BS_OPTION_TEXT, &o.tmp, "DIR",
		  "for temporary files (default $TMPDIR or /var/tmp)" },
		CTL_NET_OPTIONS(&o.net),
		{ "json", 0, BS_OPTION_FLAG, &o.json, NULL, "print the result as JSON" },
		{ "quiet", 'q', BS_OPTION_FLAG, &o.quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = {
		"bootseerctl image convert SRC DST [OPTION]...",
		"Converts an image for lazy loading and puts it, with its stub image, into DST.\n"
		"SRC: docker://HOST/NAME[:TAG|@DIGEST], oci:DIR[:TAG], or rootfs:DIR.\n"
		"DST: docker://HOST/NAME[:TAG] or oci:DIR[:TAG].\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	struct bs_ref src = { 0 }, dst = { 0 };
	const char *args[2];
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r == 0)
		r = check_options(&o, &err);
	if (r == 0)
		r = bs_ref_parse(args[0], &src, &err);
	if (r == 0)
		r = bs_ref_parse(args[1], &dst, &err);
	if (r == 0 && o.config && src.kind != BS_REF_ROOTFS)
		r = bs_fail(&err, -EINVAL, "--config is only for a rootfs: source");
	if (r != 0)
		r = ctl_usage(&usage, r, &err);
	else
		r = convert(&o, &src, &dst, &err) < 0 ? ctl_fail(&err) : 0;
	bs_ref_done(&src);
	bs_ref_done(&dst);
	return r;
}
