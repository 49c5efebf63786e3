/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cmd/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "hdfs/store.h"
#include "net/auth.h"
#include "net/layout.h"
#include "net/loop.h"
#include "net/repo.h"

static void help(const char *prefix, const struct ctl_command *commands, size_t n, FILE *f)
{
	fprintf(f, "usage: %s COMMAND [ARGUMENT]...\ncommands:\n", prefix);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "  %-18s%s\n", commands[i].name, commands[i].summary);
	fprintf(f, "'%s COMMAND --help' tells more about each.\n", prefix);
}

int ctl_dispatch(const char *prefix, const struct ctl_command *commands, size_t n, int argc,
		 char **argv)
{
	if (argc < 2) {
		help(prefix, commands, n, stderr);
		return 2;
	}
	if (bs_streq(argv[1], "--help") || bs_streq(argv[1], "-h")) {
		help(prefix, commands, n, stdout);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		if (bs_streq(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	bs_log_error("unknown command '%s'; '%s --help' lists them", argv[1], prefix);
	return 2;
}

int ctl_usage(const struct bs_usage *u, int r, const struct bs_error *err)
{
	if (r > 0)
		return 0;
	bs_log_error("%s", bs_error_text(err));
	fprintf(stderr, "usage: %s\n", u->synopsis);
	return 2;
}

int ctl_fail(const struct bs_error *err)
{
	bs_log_error("%s", bs_error_text(err));
	return 1;
}

/* --- repositories ---------------------------------------------------------------------------- */

void ctl_net_done(struct ctl_net *n)
{
	n->hdfs = bs_stores_free(n->hdfs);
	n->loop = bs_loop_free(n->loop);
}

/* cookie: the repository as "HOST/NAME", kept by the process to its end. */
static int credentials(void *cookie, const char *host, char **ret_user, char **ret_secret,
		       struct bs_error *err)
{
	const struct bs_auth_options o = { 0 };

	return bs_auth_find(&o, host, cookie, ret_user, ret_secret, err);
}

static int open_registry(struct ctl_net *n, const struct bs_ref *ref, struct bs_repo **ret,
			 struct bs_error *err)
{
	static struct bs_strv names;
	struct bs_registry_options o = { .tls_verify = n->tls_verify,
					 .plain_http = n->plain_http,
					 .credentials = credentials };

	if (!n->loop) {
		int r = bs_loop_new(&(struct bs_loop_options){ 0 }, &n->loop, err);

		if (r < 0)
			return r;
	}
	o.loop = n->loop;
	if (bs_strv_addf(&names, "%s/%s", ref->host, ref->name) < 0)
		return bs_fail_errno(err, -ENOMEM, "registry");
	o.credentials_cookie = names.v[names.n - 1];
	return bs_registry_open(&o, ref->host, ref->name, ret, err);
}

static int open_layout(const struct bs_ref *ref, bool create, struct bs_repo **ret,
		       struct bs_error *err)
{
	bs_autofd int fd = -EBADF;

	if (create)
		fd = bs_mkdir_open(AT_FDCWD, ref->dir, 0755);
	else
		fd = open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!create && fd < 0)
		fd = -errno;
	if (fd < 0)
		return bs_fail_errno(err, fd, "OCI layout '%s'", ref->dir);
	return bs_layout_open(fd, ref->dir, create, ret, err);
}

static int make_hdfs(struct ctl_net *n, struct bs_error *err)
{
	bs_autofree char *node = NULL, *all = NULL;
	struct bs_stores_options o = { 0 };
	struct bs_conf conf;
	int r = bs_conf_read(NULL, &conf, err);

	if (r == 0) {
		node = bs_conf_hdfs_options(&conf);
		all = bs_strf("%s,%s", node ? node : "", n->hdfs_options ? n->hdfs_options : "");
		o.options = all;
		o.hot_replication = conf.hot_replication;
		r = node && all ? bs_stores_new(&o, &n->hdfs, err)
				: bs_fail_errno(err, -ENOMEM, "HDFS");
	}
	bs_conf_done(&conf);
	return r;
}

static int open_hdfs(struct ctl_net *n, const struct bs_ref *ref, bool create, struct bs_repo **ret,
		     struct bs_error *err)
{
	int r = n->hdfs ? 0 : make_hdfs(n, err);

	return r < 0 ? r : bs_stores_open(n->hdfs, ref->dir, create, ret, err);
}

int ctl_not_there(const struct bs_ref *ref, int r, struct bs_error *err)
{
	bs_autofree char *where = r == -ENOENT && err ? bs_ref_text(ref, true) : NULL;
	struct bs_error why;

	if (!where || strstr(bs_error_text(err), "bootseerctl"))
		return r;
	why = *err;
	return bs_fail(err, r, "%s; 'bootseerctl image ls %s' lists what is there",
		       bs_error_text(&why), where);
}

int ctl_repo_open(struct ctl_net *n, const struct bs_ref *ref, bool create, struct bs_repo **ret,
		  struct bs_error *err)
{
	switch (ref->kind) {
	case BS_REF_REGISTRY:
		return open_registry(n, ref, ret, err);
	case BS_REF_LAYOUT:
		return open_layout(ref, create, ret, err);
	case BS_REF_HDFS:
		return open_hdfs(n, ref, create, ret, err);
	case BS_REF_ROOTFS:
	case BS_REF_KIND_MAX:
	default:
		return bs_fail(err, -EINVAL,
			       "'rootfs:%s' is no repository; give docker://, oci: or hdfs://",
			       ref->dir);
	}
}
