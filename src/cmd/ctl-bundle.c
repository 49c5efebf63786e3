/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cmd/ctl.h"
#include "cmd/spec.h"
#include "image/artifact.h"
#include "image/open.h"
#include "image/userdb.h"
#include "net/repo.h"

/* "SOURCE@DIGEST" as the runtime takes it; a layout's directory absolute. */
static char *image_name(const struct bs_ref *ref, const struct bs_artifact *a)
{
	bs_autofree char *repository = bs_ref_text(ref, true);
	char digest[BS_DIGEST_TEXT_LEN];

	if (ref->kind == BS_REF_LAYOUT) {
		bs_autofree char *full = realpath(ref->dir, NULL);

		return bs_strf("oci:%s@%s", full ? full : ref->dir,
			       bs_digest_text(&a->digest, digest));
	}
	return repository ? bs_strf("%s@%s", repository, bs_digest_text(&a->digest, digest)) : NULL;
}

static int find_user(struct bs_image *i, struct bs_user *ret, struct bs_error *err)
{
	const char *spec = bs_json_str(bs_json_find(i->config, "config.User"));
	bs_autofree char *passwd = NULL, *group = NULL;
	int r = bs_image_read_text(i, "etc/passwd", BS_USERDB_MAX, &passwd, err);

	if (r == 0)
		r = bs_image_read_text(i, "etc/group", BS_USERDB_MAX, &group, err);
	return r < 0 ? r : bs_userdb_find(passwd, group, spec ? spec : "", ret, err);
}

static int write_bundle(const char *dir, const char *text, size_t len, struct bs_error *err)
{
	bs_autofd int fd = bs_mkdir_open(AT_FDCWD, dir, 0755);
	int r;

	if (fd < 0)
		return bs_fail_errno(err, fd, "bundle '%s'", dir);
	if (faccessat(fd, "config.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return bs_fail(
			err, -EEXIST,
			"bundle '%s' has a config.json: remove it, or name another directory", dir);
	if (mkdirat(fd, "rootfs", 0755) < 0 && errno != EEXIST)
		return bs_fail_errno(err, -errno, "bundle '%s': rootfs", dir);
	r = bs_atomicfile_write(fd, "config.json", text, len, 0644, false);
	return r < 0 ? bs_fail_errno(err, r, "bundle '%s': config.json", dir) : 0;
}

int ctl_bundle_text(struct bs_image *image, const struct bs_ref *ref, char **ret, size_t *ret_len,
		    struct bs_error *err)
{
	bs_autofree char *name = image_name(ref, &image->a);
	struct bs_user user = { 0 };
	int r;

	if (!name)
		return bs_fail_errno(err, -ENOMEM, "reference");
	r = find_user(image, &user, err);
	if (r == 0)
		r = ctl_spec_make(image->config, &user, name, ret, ret_len, err);
	bs_user_done(&user);
	return r;
}

static int make_bundle(struct ctl_net *net, const struct bs_ref *ref, const char *dir,
		       const char *platform, struct bs_error *err)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	bs_auto(image) struct bs_image *image = NULL;
	bs_autofree char *reference = bs_ref_reference(ref), *text = NULL;
	struct bs_artifact a;
	size_t len = 0;
	int r = reference ? ctl_repo_open(net, ref, false, &repo, err)
			  : bs_fail_errno(err, -ENOMEM, "reference");

	if (r == 0)
		r = bs_artifact_find(repo, reference, platform, &a, err);
	if (r == 0)
		r = bs_image_open(repo, &a, &image, err);
	if (r == 0)
		r = ctl_bundle_text(image, ref, &text, &len, err);
	return r < 0 ? r : write_bundle(dir, text, len, err);
}

int ctl_bundle(int argc, char **argv)
{
	ctl_autonet net = CTL_NET_INIT;
	const char *platform = NULL, *args[2];
	const struct bs_option options[] = {
		{ "platform", 0, BS_OPTION_TEXT, &platform, "P",
		  "of an image for several (default: this machine's)" },
		CTL_NET_OPTIONS(&net),
	};
	const struct bs_usage usage = {
		"bootseerctl bundle REF DIR [OPTION]...",
		"Makes DIR a runtime bundle of a converted image: config.json from the image's\n"
		"config, and an empty rootfs, which the runtime fills.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	struct bs_ref ref = { 0 };
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r == 0)
		r = bs_ref_parse(args[0], &ref, &err);
	if (r != 0)
		r = ctl_usage(&usage, r, &err);
	else
		r = make_bundle(&net, &ref, args[1], platform, &err) < 0 ? ctl_fail(&err) : 0;
	bs_ref_done(&ref);
	return r;
}
