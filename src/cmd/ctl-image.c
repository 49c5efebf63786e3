/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "cmd/ctl.h"
#include "cmd/progress.h"
#include "hot/store.h"
#include "image/artifact.h"
#include "image/manifest.h"
#include "image/open.h"
#include "image/table.h"
#include "image/tree.h"
#include "net/repo.h"

/* What info, verify and ls have in common. */
struct look {
	struct ctl_net net;
	const char *platform;
	bool json, quiet;
	struct bs_ref ref;
	bool has_ref;
	struct bs_repo *repo;
};

static void look_done(struct look *l)
{
	bs_repo_unref(l->repo);
	bs_ref_done(&l->ref);
	ctl_net_done(&l->net);
}

#define autolook __attribute__((cleanup(look_done))) struct look
#define PLATFORM_OPTION(L)                                                                         \
	{                                                                                          \
		"platform", 0, BS_OPTION_TEXT, &(L)->platform, "P",                                \
			"of an image for several (default: this machine's)"                        \
	}

/* Options and REF, then the repository; -1: go on, else the exit code. */
static int look_begin(struct look *l, const struct bs_usage *u, int argc, char **argv)
{
	struct bs_error err = BS_ERROR_INIT;
	const char *args[1];
	unsigned int n;
	int r = bs_options_parse(u, argc, argv, args, &n, &err);

	l->has_ref = r == 0 && n > 0;
	if (l->has_ref)
		r = bs_ref_parse(args[0], &l->ref, &err);
	if (r != 0)
		return ctl_usage(u, r, &err);
	if (!l->has_ref) /* the command has another meaning without one */
		return -1;
	return ctl_repo_open(&l->net, &l->ref, false, &l->repo, &err) < 0 ? ctl_fail(&err) : -1;
}

static int open_image(struct look *l, struct bs_image **ret, struct bs_error *err)
{
	bs_autofree char *reference = bs_ref_reference(&l->ref);
	struct bs_artifact a;
	int r = reference ? bs_artifact_find(l->repo, reference, l->platform, &a, err)
			  : bs_fail_errno(err, -ENOMEM, "reference");

	return r < 0 ? ctl_not_there(&l->ref, r, err) : bs_image_open(l->repo, &a, ret, err);
}

/* --- info ------------------------------------------------------------------------------------ */

struct totals {
	uint64_t files, bytes;
};

static struct totals count(const struct bs_tree *t)
{
	struct totals sum = { 0 };

	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];

		if (e->inode == i && (e->mode & 0170000) == 0100000) {
			sum.files++;
			sum.bytes += e->size;
		}
	}
	return sum;
}

static char *platform_of(const struct bs_image *i)
{
	const char *os = bs_json_str(bs_json_get(i->config, "os"));
	const char *arch = bs_json_str(bs_json_get(i->config, "architecture"));

	return bs_strf("%s/%s", os ? os : "unknown", arch ? arch : "unknown");
}

static void info_text(const struct bs_image *i, const char *platform)
{
	struct totals sum = count(i->tree);
	char text[BS_DIGEST_TEXT_LEN], a[32], b[32];

	printf("artifact   %s\n", bs_digest_text(&i->a.digest, text));
	if (i->a.has_subject)
		printf("source     %s\n", bs_digest_text(&i->a.subject.digest, text));
	printf("platform   %s\n", platform);
	printf("names      %u, inodes %u, files %llu\n", i->tree->n_entries, i->tree->n_inodes,
	       (unsigned long long)sum.files);
	printf("files      %s in %s of data, %u frames\n", bs_human_bytes(sum.bytes, a),
	       bs_human_bytes(i->a.data.size, b), i->table->n_frames);
	printf("tree       %s, table %s\n", bs_human_bytes(i->a.tree.size, a),
	       bs_human_bytes(i->a.table.size, b));
}

static void info_part(struct bs_jsonw *w, const char *name, const struct bs_descriptor *d)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_key(w, name);
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "digest", bs_digest_text(&d->digest, text));
	bs_jsonw_ku64(w, "size", d->size);
	bs_jsonw_end(w);
}

static int print_json(struct bs_jsonw *w)
{
	bs_autobuf out = BS_BUF_INIT(64u << 20);

	if (bs_jsonw_finish(w, &out) < 0)
		return -ENOMEM;
	(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

static int info_json(const struct bs_image *i, const char *platform)
{
	struct totals sum = count(i->tree);
	struct bs_jsonw *w = bs_jsonw_new(true);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "artifact", bs_digest_text(&i->a.digest, text));
	if (i->a.has_subject)
		bs_jsonw_kstr(w, "source", bs_digest_text(&i->a.subject.digest, text));
	bs_jsonw_kstr(w, "platform", platform);
	bs_jsonw_ku64(w, "entries", i->tree->n_entries);
	bs_jsonw_ku64(w, "inodes", i->tree->n_inodes);
	bs_jsonw_ku64(w, "files", sum.files);
	bs_jsonw_ku64(w, "filesBytes", sum.bytes);
	bs_jsonw_ku64(w, "blobBytes", i->tree->blob_blocks * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "frames", i->table->n_frames);
	info_part(w, "config", &i->a.config);
	info_part(w, "tree", &i->a.tree);
	info_part(w, "table", &i->a.table);
	info_part(w, "data", &i->a.data);
	bs_jsonw_end(w);
	return print_json(w);
}

int ctl_image_info(int argc, char **argv)
{
	autolook l = { .net = CTL_NET_INIT };
	const struct bs_option options[] = {
		PLATFORM_OPTION(&l),
		CTL_NET_OPTIONS(&l.net),
		{ "json", 0, BS_OPTION_FLAG, &l.json, NULL, "print JSON" },
	};
	const struct bs_usage usage = {
		"bootseerctl image info REF [OPTION]...",
		"Shows what a converted image consists of. REF: the original's tag, the stub's\n"
		"tag or the artifact's digest.\n",
		options,
		BS_ARRAY_LEN(options),
		1,
		1
	};
	bs_auto(image) struct bs_image *i = NULL;
	bs_autofree char *platform = NULL;
	struct bs_error err = BS_ERROR_INIT;
	int r = look_begin(&l, &usage, argc, argv);

	if (r >= 0)
		return r;
	if (open_image(&l, &i, &err) < 0)
		return ctl_fail(&err);
	platform = platform_of(i);
	if (!platform)
		return 1;
	if (l.json)
		return info_json(i, platform) < 0;
	info_text(i, platform);
	return 0;
}

/* --- verify ---------------------------------------------------------------------------------- */

struct verifying {
	struct bs_progress progress;
	uint64_t done;
};

static void on_bytes(void *cookie, uint64_t bytes)
{
	struct verifying *v = cookie;

	v->done += bytes;
	bs_progress_set(&v->progress, v->done);
}

static int verified_json(const struct bs_image *i)
{
	struct bs_jsonw *w = bs_jsonw_new(true);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "artifact", bs_digest_text(&i->a.digest, text));
	bs_jsonw_ku64(w, "frames", i->table->n_frames);
	bs_jsonw_ku64(w, "dataBytes", i->a.data.size);
	bs_jsonw_kbool(w, "ok", true);
	bs_jsonw_end(w);
	return print_json(w);
}

int ctl_image_verify(int argc, char **argv)
{
	autolook l = { .net = CTL_NET_INIT };
	const char *config = NULL;
	bool cache = false;
	const struct bs_option options[] = {
		PLATFORM_OPTION(&l),
		CTL_NET_OPTIONS(&l.net),
		{ "cache", 0, BS_OPTION_FLAG, &cache, NULL,
		  "no REF: prove what the node's cache has" },
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "with --cache: see bootseer.conf(5)" },
		{ "json", 0, BS_OPTION_FLAG, &l.json, NULL, "print the result as JSON" },
		{ "quiet", 'q', BS_OPTION_FLAG, &l.quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = {
		"bootseerctl image verify REF|--cache [OPTION]...",
		"Fetches all parts of a converted image and proves every frame, or proves every\n"
		"frame in the node's cache; wrong ones are forgotten.\n",
		options,
		BS_ARRAY_LEN(options),
		0,
		1
	};
	bs_auto(image) struct bs_image *i = NULL;
	struct bs_error err = BS_ERROR_INIT;
	struct verifying v = { 0 };
	int r = look_begin(&l, &usage, argc, argv);

	if (r >= 0)
		return r;
	if (cache == l.has_ref)
		return ctl_usage(&usage, bs_fail(&err, -EINVAL, "give either REF or --cache"),
				 &err);
	if (cache)
		return ctl_node_verify(config, l.json);
	bs_progress_init(&v.progress, l.quiet);
	if (open_image(&l, &i, &err) < 0)
		return ctl_fail(&err);
	bs_progress_begin(&v.progress, "verifying", i->a.data.size);
	r = bs_image_verify(i, on_bytes, &v, &err);
	bs_progress_end(&v.progress, r < 0);
	if (r < 0) {
		bs_autofree char *where = bs_ref_text(&l.ref, false);

		(void)bs_error_context(&err, "%s", where ? where : "the image");
		return ctl_fail(&err);
	}
	if (l.json)
		return verified_json(i) < 0;
	printf("%u frames are right\n", i->table->n_frames);
	return 0;
}

/* --- ls -------------------------------------------------------------------------------------- */

static void on_tag(void *cookie, const char *tag)
{
	(void)bs_strv_add(cookie, tag);
}

/* What a tag is: "stub", "artifact", "hot pack", "image" and, for a converted one, the artifact. */
static const char *kind_of(struct look *l, const char *tag, struct bs_artifact *a, bool *has)
{
	struct bs_manifest m = { 0 };
	bs_autodocument d = { 0 };
	const char *kind = "other";

	*has = bs_artifact_find(l->repo, tag, l->platform, a, NULL) == 0;
	if (bs_repo_get_manifest(l->repo, tag, &m, NULL) == 0 &&
	    bs_document_parse(&m, &d, NULL) == 0) {
		if (d.artifact_type)
			kind = bs_streq(d.artifact_type, BS_ARTIFACT_TYPE) ? "artifact"
			       : bs_streq(d.artifact_type, BS_HOT_TYPE)	   ? "hot pack"
									   : "other";
		else if (bs_document_annotation(&d, BS_ANNOTATION_ARTIFACT))
			kind = "stub";
		else
			kind = d.is_index ? "index" : "image";
	}
	bs_manifest_done(&m);
	return kind;
}

static int ls(struct look *l, struct bs_error *err)
{
	struct bs_jsonw *w = l->json ? bs_jsonw_new(true) : NULL;
	bs_autostrv tags = { 0 };
	int r = bs_repo_list_tags(l->repo, on_tag, &tags, err);

	if (w)
		bs_jsonw_array(w);
	for (size_t i = 0; r == 0 && i < tags.n; i++) {
		char text[BS_DIGEST_TEXT_LEN] = "-";
		struct bs_artifact a;
		bool has;
		const char *kind = kind_of(l, tags.v[i], &a, &has);

		if (has)
			bs_digest_text(&a.digest, text);
		if (!w) {
			bs_autofree char *shown = bs_str_shown(tags.v[i], strlen(tags.v[i]));

			printf("%-32s  %-8s  %s\n", shown ? shown : "?", kind, text);
			continue;
		}
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "tag", tags.v[i]);
		bs_jsonw_kstr(w, "kind", kind);
		if (has)
			bs_jsonw_kstr(w, "artifact", text);
		bs_jsonw_end(w);
	}
	if (!w)
		return r;
	bs_jsonw_end(w);
	if (r < 0) {
		bs_jsonw_free(w);
		return r;
	}
	return print_json(w) < 0 ? bs_fail_errno(err, -ENOMEM, "list") : 0;
}

int ctl_image_ls(int argc, char **argv)
{
	autolook l = { .net = CTL_NET_INIT };
	const struct bs_option options[] = {
		PLATFORM_OPTION(&l),
		CTL_NET_OPTIONS(&l.net),
		{ "json", 0, BS_OPTION_FLAG, &l.json, NULL, "print JSON" },
	};
	const struct bs_usage usage = {
		"bootseerctl image ls REPOSITORY [OPTION]...",
		"Lists the tags of a repository (docker://HOST/NAME or oci:DIR), what each is,\n"
		"and the artifact of those that are converted.\n",
		options,
		BS_ARRAY_LEN(options),
		1,
		1
	};
	struct bs_error err = BS_ERROR_INIT;
	int r = look_begin(&l, &usage, argc, argv);

	if (r >= 0)
		return r;
	return ls(&l, &err) < 0 ? ctl_fail(&err) : 0;
}

int ctl_image(int argc, char **argv)
{
	static const struct ctl_command commands[] = {
		{ "convert", ctl_image_convert, "make the converted form of an image" },
		{ "info", ctl_image_info, "show what a converted image consists of" },
		{ "ls", ctl_image_ls, "list the tags of a repository" },
		{ "verify", ctl_image_verify, "fetch and prove all of a converted image" },
	};

	return ctl_dispatch("bootseerctl image", commands, BS_ARRAY_LEN(commands), argc, argv);
}
