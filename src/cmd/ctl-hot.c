/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cmd/ctl-hot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "hot/pack.h"
#include "hot/profile.h"
#include "image/open.h"
#include "image/table.h"
#include "net/repo.h"

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

void ctl_hot_done(struct ctl_hot *c)
{
	(void)bs_image_free(c->image);
	(void)bs_repo_unref(c->repo);
	bs_ref_done(&c->ref);
	ctl_net_done(&c->net);
}

int ctl_hot_open(struct ctl_hot *c, struct bs_error *err)
{
	return bs_image_open(c->repo, &c->a, &c->image, err);
}

int ctl_hot_reach(struct ctl_hot *c, const char *ref, bool open, struct bs_error *err)
{
	bs_autofree char *reference = NULL;
	int r = bs_ref_parse(ref, &c->ref, err);

	if (r < 0)
		return r;
	reference = bs_ref_reference(&c->ref);
	r = reference ? ctl_repo_open(&c->net, &c->ref, false, &c->repo, err)
		      : bs_fail_errno(err, -ENOMEM, "reference");
	if (r == 0)
		r = ctl_not_there(&c->ref,
				  bs_artifact_find(c->repo, reference, c->platform, &c->a, err),
				  err);
	return r == 0 && open ? ctl_hot_open(c, err) : r;
}

int ctl_hot_begin(struct ctl_hot *c, const struct bs_usage *u, int argc, char **argv,
		  const char **args, bool open)
{
	struct bs_error err = BS_ERROR_INIT;
	unsigned int n;
	int r = bs_options_parse(u, argc, argv, args, &n, &err);

	if (r != 0)
		return ctl_usage(u, r, &err);
	return ctl_hot_reach(c, args[0], open, &err) < 0 ? ctl_fail(&err) : -1;
}

int ctl_hot_read(struct ctl_hot *c, const char *text, struct bs_hot *ret, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	struct bs_hot h;
	int r = bs_repo_get_manifest(c->repo, text, &m, err);

	if (r == 0)
		r = bs_hot_parse(&m, &h, err);
	if (r == 0 && !bs_digest_eq(&h.image.digest, &c->a.digest))
		r = bs_fail(err, -EBADMSG, "hot pack: it is of another image");
	if (r == 0)
		*ret = h;
	return r;
}

/* What is no pack of the image, or none at all: which it is, and where the right ones are. */
static int by_digest(struct ctl_hot *c, const char *text, struct bs_hot *ret, struct bs_error *err)
{
	int r = ctl_hot_read(c, text, ret, err);
	bs_autofree char *where = NULL;
	struct bs_error why;

	if (r != -EBADMSG && r != -ENOENT)
		return r;
	why = *err;
	where = bs_ref_text(&c->ref, false);
	return bs_fail(err, r,
		       "%s has no hot pack of the image with the digest %s (%s); 'bootseerctl hot "
		       "ls %s' lists those there are",
		       c->repo->name, text, bs_error_text(&why), where ? where : "REF");
}

int ctl_hot_find(struct ctl_hot *c, const char *name, struct bs_hot *ret, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;
	int r;

	if (bs_digest_parse(name, strlen(name), &d) == 0)
		return by_digest(c, name, ret, err);
	r = bs_workload_check(name, err);
	if (r < 0)
		return r;
	r = bs_hot_find(c->repo, &c->a.digest, name, 0, ret, err);
	if (r == -ENOENT)
		return bs_fail(err, r,
			       "%s: image %s has no hot pack of workload '%s'; 'bootseerctl hot "
			       "ls' lists those there are",
			       c->repo->name, bs_digest_text(&c->a.digest, text), name);
	return r;
}

int ctl_hot_profile(struct ctl_hot *c, const struct bs_hot *hot, struct bs_profile **ret,
		    struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	int r = bs_repo_get_blob_mem(c->repo, &hot->profile.digest, hot->profile.size,
				     BS_PROFILE_DATA_MAX, &bytes, err);

	return r < 0 ? r
		     : bs_profile_read(bytes, (size_t)hot->profile.size, &c->a.table.digest,
				       c->image->table->blob_blocks, ret, err);
}

int ctl_hot_head(struct ctl_hot *c, const struct bs_hot *hot, struct bs_pack **ret,
		 struct bs_error *err)
{
	bs_autofree char *head = NULL;
	int r = bs_hot_read_head(c->repo, hot, &head, err);

	return r < 0 ? r
		     : bs_hot_use_head(hot, head, c->image->table, &c->a.table.digest, ret, err);
}

int ctl_hot_print(struct bs_jsonw *w)
{
	bs_autobuf out = BS_BUF_INIT(1u << 30);

	if (bs_jsonw_finish(w, &out) < 0)
		return -ENOMEM;
	(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

int ctl_hot(int argc, char **argv)
{
	static const struct ctl_command commands[] = {
		{ "ls", ctl_hot_ls, "list the hot packs of an image" },
		{ "show", ctl_hot_show, "what a hot pack has, and of which files" },
		{ "diff", ctl_hot_diff, "what two hot packs share" },
		{ "verify", ctl_hot_verify, "fetch and prove a hot pack" },
		{ "build", ctl_hot_build, "make one from a profile or a list of files" },
		{ "trace", ctl_hot_trace, "run a command, and make one of what it reads" },
		{ "ready", ctl_hot_ready, "end the recording of a container, which is ready" },
		{ "push", ctl_hot_push, "publish one that the node has made" },
		{ "rm", ctl_hot_rm, "remove one" },
	};

	return ctl_dispatch("bootseerctl hot", commands, BS_ARRAY_LEN(commands), argc, argv);
}
