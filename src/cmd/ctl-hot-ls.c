/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The packs of an image: those that refer to its artifact, and the one under each tag. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/ctl-hot.h"
#include "hot/profile.h"
#include "image/manifest.h"
#include "image/tree.h"
#include "net/repo.h"

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

#define WIDTH_MIN 32 /* of the column of names */

struct listed {
	struct bs_hot hot; /* only its digest counts when it could not be read */
	bool read;
	bool ours;    /* a pack of this image, or nothing at all: it may be removed */
	bool current; /* a start finds it */
	char workload[BS_WORKLOAD_MAX + 1];
};

struct list {
	struct listed *packs;
	size_t n, cap;
};

static void list_done(struct list *l)
{
	free(l->packs);
}
#define autolist __attribute__((cleanup(list_done))) struct list

static bool has(const struct list *l, const struct bs_digest *d)
{
	for (size_t i = 0; i < l->n; i++)
		if (bs_digest_eq(&l->packs[i].hot.digest, d))
			return true;
	return false;
}

static int add(struct list *l, const struct listed *p, struct bs_error *err)
{
	if (bs_grow(&l->packs, &l->cap, l->n + 1, sizeof(*l->packs)) < 0)
		return bs_fail(err, -ENOMEM, "hot packs: out of memory");
	l->packs[l->n++] = *p;
	return 0;
}

/*
 * Whether what could not be read is meant to be a pack of the image. The list alone does not
 * say: who wrote it may want others to remove something else.
 */
static bool is_ours(struct ctl_hot *c, const char *digest)
{
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	struct bs_link subject;

	return bs_repo_get_manifest(c->repo, digest, &m, NULL) == 0 &&
	       bs_document_parse(&m, &d, NULL) == 0 && d.artifact_type &&
	       bs_streq(d.artifact_type, BS_HOT_TYPE) &&
	       bs_link_parse(bs_json_get(d.json, "subject"), "subject", &subject, NULL) == 0 &&
	       bs_digest_eq(&subject.d.digest, &c->a.digest);
}

/* What is listed and is none is told of, and the others are shown. */
static int add_link(struct ctl_hot *c, struct list *l, const struct bs_link *link,
		    struct bs_error *err)
{
	const char *workload = bs_json_str(bs_json_get(link->annotations, BS_ANNOTATION_WORKLOAD));
	struct listed p = { .hot.digest = link->d.digest };
	struct bs_error why = BS_ERROR_INIT;
	char text[BS_DIGEST_TEXT_LEN];
	int r;

	if (!link->artifact_type || !bs_streq(link->artifact_type, BS_HOT_TYPE) ||
	    has(l, &link->d.digest))
		return 0;
	if (workload && bs_workload_ok(workload))
		(void)snprintf(p.workload, sizeof(p.workload), "%s", workload);
	r = ctl_hot_read(c, bs_digest_text(&link->d.digest, text), &p.hot, &why);
	p.read = r == 0;
	p.ours = r == 0 || r == -ENOENT || is_ours(c, text);
	if (r == 0)
		(void)snprintf(p.workload, sizeof(p.workload), "%s", p.hot.workload);
	else
		bs_log_warning("%s: %s", text, bs_error_text(&why));
	return add(l, &p, err);
}

/* Which one is found under its workload's tag. */
static void mark_current(struct ctl_hot *c, struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct listed *p = &l->packs[i];
		bool asked = !p->read;
		struct bs_hot h;

		for (size_t k = 0; k < i && !asked; k++)
			asked = l->packs[k].read && bs_streq(l->packs[k].workload, p->workload);
		if (asked || bs_hot_find(c->repo, &c->a.digest, p->workload, &h, NULL) < 0)
			continue;
		for (size_t k = i; k < l->n; k++)
			l->packs[k].current |= bs_digest_eq(&l->packs[k].hot.digest, &h.digest);
	}
}

static int read_list(struct ctl_hot *c, struct list *l, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	int r = bs_repo_get_referrers(c->repo, &c->a.digest, &m, err);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = bs_document_parse(&m, &d, err);
	for (size_t i = 0; r == 0 && i < d.n; i++)
		r = add_link(c, l, &d.links[i], err);
	return r;
}

/* --- ls -------------------------------------------------------------------------------------- */

/* As wide as the longest name. */
static int workload_width(const struct list *l)
{
	size_t width = WIDTH_MIN;

	for (size_t i = 0; i < l->n; i++)
		width = BS_MAX(width, strlen(l->packs[i].workload));
	return (int)width;
}

static void show_pack(const struct listed *p, const struct bs_profile *profile, int width)
{
	char text[BS_DIGEST_TEXT_LEN], a[BS_HUMAN_LEN] = "?", b[BS_HUMAN_LEN] = "?", runs[16] = "?";

	if (profile) {
		(void)snprintf(runs, sizeof(runs), "%u", profile->n_runs);
		(void)bs_human_bytes(bs_profile_blocks(profile, 0) * BS_BLOCK_SIZE, a);
	}
	if (p->read)
		(void)bs_human_bytes(p->hot.pack.size, b);
	printf("%-*s  %4s  %9s  %9s  %-7s  %s\n", width, p->workload[0] ? p->workload : "?", runs,
	       a, b, p->current ? "current" : "old", bs_digest_text(&p->hot.digest, text));
}

static void pack_json(struct bs_jsonw *w, const struct listed *p, const struct bs_profile *profile)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "digest", bs_digest_text(&p->hot.digest, text));
	if (p->workload[0])
		bs_jsonw_kstr(w, "workload", p->workload);
	bs_jsonw_kbool(w, "current", p->current);
	if (p->read)
		bs_jsonw_ku64(w, "packBytes", p->hot.pack.size);
	if (profile) {
		uint64_t blocks = bs_profile_blocks(profile, 0);

		bs_jsonw_ku64(w, "recordings", profile->n_runs);
		bs_jsonw_ku64(w, "blocks", blocks);
		bs_jsonw_ku64(w, "bytes", blocks * BS_BLOCK_SIZE);
	}
	bs_jsonw_end(w);
}

static int ls(struct ctl_hot *c, struct bs_error *err)
{
	struct bs_jsonw *w;
	autolist l = { 0 };
	int r = read_list(c, &l, err), width;

	if (r < 0)
		return r;
	width = workload_width(&l);
	mark_current(c, &l);
	w = c->json ? bs_jsonw_new(true) : NULL;
	if (c->json && !w)
		return bs_fail(err, -ENOMEM, "hot packs: out of memory");
	if (w)
		bs_jsonw_array(w);
	else
		printf("%-*s  %4s  %9s  %9s  %-7s  %s\n", width, "WORKLOAD", "RUNS", "HOT", "PACK",
		       "", "DIGEST");
	for (size_t i = 0; i < l.n; i++) {
		bs_auto(profile) struct bs_profile *profile = NULL;
		struct bs_error why = BS_ERROR_INIT;
		char text[BS_DIGEST_TEXT_LEN];

		if (l.packs[i].read && ctl_hot_profile(c, &l.packs[i].hot, &profile, &why) < 0)
			bs_log_warning("%s: %s", bs_digest_text(&l.packs[i].hot.digest, text),
				       bs_error_text(&why));
		if (w)
			pack_json(w, &l.packs[i], profile);
		else
			show_pack(&l.packs[i], profile, width);
	}
	if (!w)
		return 0;
	bs_jsonw_end(w);
	return ctl_hot_print(w) < 0 ? bs_fail(err, -ENOMEM, "hot packs: out of memory") : 0;
}

int ctl_hot_ls(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	const struct bs_option options[] = { CTL_HOT_OPTIONS(&c), CTL_HOT_JSON(&c) };
	const struct bs_usage usage = {
		"bootseerctl hot ls REF [OPTION]...",
		"Lists the hot packs of a converted image: workload, recordings, bytes that are\n"
		"hot, bytes of the pack, and the digest of its manifest. A start streams the\n"
		"current one of its workload.\n",
		options,
		BS_ARRAY_LEN(options),
		1,
		1
	};
	struct bs_error err = BS_ERROR_INIT;
	const char *args[1];
	int r = ctl_hot_begin(&c, &usage, argc, argv, args, true);

	if (r >= 0)
		return r;
	return ls(&c, &err) < 0 ? ctl_fail(&err) : 0;
}

/* --- rm -------------------------------------------------------------------------------------- */

static int remove_one(struct ctl_hot *c, const struct bs_digest *d, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	int r = bs_repo_delete_manifest(c->repo, d, &c->a.digest, err);

	if (r < 0 && r != -ENOENT) /* gone: what mentioned it is, too, by now */
		return r;
	printf("removed %s\n", bs_digest_text(d, text));
	return 0;
}

/* All of a workload: the current one and those that it replaced. */
static int remove_workload(struct ctl_hot *c, const char *workload, struct bs_error *err)
{
	struct listed p = { 0 };
	bool found = false;
	autolist l = { 0 };
	int r = read_list(c, &l, err);

	if (r == 0 && bs_hot_find(c->repo, &c->a.digest, workload, &p.hot, NULL) == 0 &&
	    !has(&l, &p.hot.digest)) {
		(void)snprintf(p.workload, sizeof(p.workload), "%s", workload);
		p.ours = true;
		r = add(&l, &p, err);
	}
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		if (!l.packs[i].ours || !bs_streq(l.packs[i].workload, workload))
			continue;
		found = true;
		r = remove_one(c, &l.packs[i].hot.digest, err);
	}
	return r == 0 && !found ? ctl_hot_find(c, workload, &p.hot, err) : r;
}

static int remove_digest(struct ctl_hot *c, const struct bs_digest *d, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	bool ours = false;
	struct bs_hot h;
	autolist l = { 0 };
	int r = read_list(c, &l, err);

	for (size_t i = 0; i < l.n; i++)
		ours |= l.packs[i].ours && bs_digest_eq(&l.packs[i].hot.digest, d);
	if (r == 0 && !ours)
		r = ctl_hot_find(c, bs_digest_text(d, text), &h, err);
	return r < 0 ? r : remove_one(c, d, err);
}

int ctl_hot_rm(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	const struct bs_option options[] = { CTL_HOT_OPTIONS(&c) };
	const struct bs_usage usage = {
		"bootseerctl hot rm REF WORKLOAD|DIGEST [OPTION]...",
		"Removes the hot packs of a workload, or that one. The next start on a node that\n"
		"has none of them is recorded again. The blobs are left to the registry's own\n"
		"clearing up; in an OCI layout they stay.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	struct bs_digest d;
	const char *args[2];
	int r = ctl_hot_begin(&c, &usage, argc, argv, args, false);

	if (r >= 0)
		return r;
	r = bs_digest_parse(args[1], strlen(args[1]), &d) == 0 ? remove_digest(&c, &d, &err)
							       : remove_workload(&c, args[1], &err);
	return r < 0 ? ctl_fail(&err) : 0;
}
