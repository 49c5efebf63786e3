/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerctl ckpt: mount, umount, ls. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/ctl-ckpt.h"
#include "cmd/ctl.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "kern/mountfd.h"
#include "kern/mountinfo.h"

#define OPTIONS_MAX 32768u
#define JSON_MAX (8u << 20)
#define REPLY_GRACE_NS (15 * BS_NS_PER_S)
#define FSTYPE "fuse.bootseer-hdfs"

bool ctl_ckpt_is_url(const char *text)
{
	return bs_str_after(text, "hdfs://") || bs_str_after(text, "webhdfs://") ||
	       bs_str_after(text, "swebhdfs://");
}

/* --- options --------------------------------------------------------------------------------- */

static int join(const struct bs_conf *conf, const char *own, struct bs_buf *b)
{
	for (size_t i = 0; i < conf->ckpt_options.n; i++)
		(void)bs_buf_addf(b, "%s,", conf->ckpt_options.v[i]);
	if (conf->ckpt_user[0])
		(void)bs_buf_addf(b, "user=%s,", conf->ckpt_user);
	return bs_buf_adds(b, own ? own : "");
}

int ctl_ckpt_options(const struct ctl_ckpt_how *how, char **ret, struct bs_error *err)
{
	bs_autobuf b = BS_BUF_INIT(OPTIONS_MAX);
	struct bs_conf conf;
	int r = bs_conf_read(how->config, &conf, err);

	if (r == 0 && (r = join(&conf, how->options, &b)) < 0)
		(void)bs_fail_errno(err, r, "put the options together");
	bs_conf_done(&conf);
	if (r < 0)
		return r;
	*ret = strdup(bs_buf_str(&b));
	return *ret ? 0 : bs_fail(err, -ENOMEM, "out of memory");
}

int ctl_ckpt_connect(const struct ctl_ckpt_how *how, const char *url, const char *extra,
		     struct bs_mount_options *o, struct bs_mounted **ret, struct bs_error *err)
{
	bs_autofree char *options = NULL, *all = NULL;
	int r = ctl_ckpt_options(how, &options, err);

	if (r < 0)
		return r;
	all = bs_strf("%s%s%s", options, extra ? "," : "", extra ? extra : "");
	if (!all)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_mount_options_parse(all, false, o, err);
	return r < 0 ? r : bs_mounted_connect(url, o, ret, err);
}

/* --- mount ----------------------------------------------------------------------------------- */

static int get_mount(const struct ctl_ckpt_how *how, const char *source,
		     const struct bs_mount_options *o, const char *options, struct bs_error *err)
{
	const uint64_t wait = (o->deadline_ns ? o->deadline_ns : 60 * BS_NS_PER_S);
	bs_automsg m, reply;
	int r;

	bs_msg_init(&m, BS_MSG_CKPT_MOUNT, 1);
	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	if (bs_msg_add_text(&m, BS_TAG_SOURCE, source) < 0 ||
	    bs_msg_add_text(&m, BS_TAG_OPTIONS, options) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_READ_ONLY, o->read_only) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_WAIT_NS, wait) < 0)
		return bs_fail(err, -E2BIG, "the options are too long");
	r = ctl_node_ask(how->config, true, &m, wait + REPLY_GRACE_NS, &reply, err);
	if (r < 0)
		return r;
	r = bs_msg_take_fd(&reply, 0);
	return r < 0 ? bs_fail(err, -EPROTO, "bootseerd sent no mount") : r;
}

static int mount_at(const struct ctl_ckpt_how *how, const char *source, const char *dir,
		    struct bs_error *err)
{
	bs_autofree char *options = NULL;
	bs_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), mnt = -EBADF;
	struct bs_mount_options o;
	uint64_t attrs;
	int r;

	if (at < 0)
		return bs_fail_errno(err, -errno, "open the directory '%s'", dir);
	r = ctl_ckpt_options(how, &options, err);
	if (r == 0)
		r = bs_mount_options_parse(options, false, &o, err);
	if (r < 0)
		return r;
	mnt = r = get_mount(how, source, &o, options, err);
	attrs = (o.noexec ? MOUNT_ATTR_NOEXEC : 0) | (o.noatime ? MOUNT_ATTR_NOATIME : 0);
	if (r >= 0 && attrs && (r = bs_mountfd_restrict(mnt, attrs)) < 0)
		(void)bs_fail_errno(err, r, "set the mount's flags");
	bs_mount_options_done(&o);
	return r < 0 ? r : bs_mountfd_attach(mnt, at, "", err);
}

static int ckpt_mount(int argc, char **argv)
{
	struct ctl_ckpt_how how = { 0 };
	const struct bs_option options[] = { CTL_CKPT_OPTIONS(&how) };
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt mount SOURCE DIR [OPTION]...",
		.text = "Mounts a directory of HDFS, hdfs://NAMESERVICE/PATH or\n"
			"webhdfs://HOST:PORT/PATH. bootseerd has it served.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 2,
		.max_args = 2,
	};
	struct bs_error err = BS_ERROR_INIT;
	const char *args[2];
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (mount_at(&how, args[0], args[1], &err) == 0)
		return 0;
	(void)bs_error_context(&err, "mount '%s'", args[0]);
	return ctl_fail(&err);
}

/* --- umount ---------------------------------------------------------------------------------- */

static int is_ours(const char *dir, struct bs_error *err)
{
	bs_autofd int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bs_automountinfo m = { 0 };
	bool is_root;
	uint64_t id;

	if (fd < 0)
		return bs_fail_errno(err, -errno, "open '%s'", dir);
	if (bs_mountinfo_id(fd, &id, &is_root) < 0 || !is_root || bs_mountinfo_find(id, &m) < 0 ||
	    !bs_streq(m.fstype, FSTYPE))
		return bs_fail(err, -EINVAL, "'%s' is no mount of a checkpoint", dir);
	return 0;
}

static int ckpt_umount(int argc, char **argv)
{
	bool lazy = false;
	const struct bs_option options[] = {
		{ "lazy", 'l', BS_OPTION_FLAG, &lazy, NULL, "also while files in it are open" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt umount DIR [OPTION]...",
		.text = "Unmounts what 'ckpt mount' has mounted; umount(8) does as well.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	struct bs_error err = BS_ERROR_INIT;
	const char *dir;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &dir, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (is_ours(dir, &err) < 0)
		return ctl_fail(&err);
	if (umount2(dir, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	(void)bs_fail_errno(&err, -errno, "unmount '%s'%s", dir,
			    errno == EBUSY ? " (files in it are open; see --lazy)" : "");
	return ctl_fail(&err);
}

/* --- ls -------------------------------------------------------------------------------------- */

static const char *text_of(const struct bs_json *v, const char *key)
{
	const char *text = bs_json_str(bs_json_get(v, key));

	return text ? text : "?";
}

static void show_mounts(const struct bs_json *list)
{
	for (size_t i = 0; i < bs_json_n(list); i++) {
		const struct bs_json *m = bs_json_at(list, i), *holders = bs_json_get(m, "holders");
		const char *source = text_of(m, "source");
		bs_autofree char *shown = bs_str_shown(source, strlen(source));
		uint64_t pid = 0;

		(void)bs_json_u64(bs_json_get(m, "pid"), &pid);
		(void)printf("%s  %-8s  process %-7llu %zu containers  %s  (%s)\n",
			     text_of(m, "id"), text_of(m, "state"), (unsigned long long)pid,
			     bs_json_n(holders), shown ? shown : "?", text_of(m, "options"));
	}
}

static int ls_mounts(const struct ctl_ckpt_how *how)
{
	bs_auto(json) struct bs_json *v = NULL;
	bs_autobuf out = BS_BUF_INIT(JSON_MAX);
	struct bs_error err = BS_ERROR_INIT;
	const struct bs_json *list;

	if (ctl_status_fetch(how->config, &v, &err) < 0)
		return ctl_fail(&err);
	list = bs_json_get(v, "checkpoints");
	if (!how->json)
		show_mounts(list);
	else if (!list || bs_json_write_pretty(list, &out) < 0)
		return 1;
	else
		(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

static int ckpt_ls(int argc, char **argv)
{
	struct ctl_ckpt_how how = { 0 };
	const struct bs_option options[] = {
		CTL_CKPT_OPTIONS(&how),
		{ "json", 0, BS_OPTION_FLAG, &how.json, NULL, "everything, as JSON" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt ls [URL] [OPTION]...",
		.text = "Lists the mounts that bootseerd has served; with a URL a directory of\n"
			"HDFS, with the stripes of its files.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.max_args = 1,
	};
	struct bs_error err = BS_ERROR_INIT;
	const char *url;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &url, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	return n == 0 ? ls_mounts(&how) : ctl_ckpt_ls_url(&how, url);
}

static const struct ctl_command commands[] = {
	{ "mount", ckpt_mount, "mount a directory of HDFS" },
	{ "umount", ckpt_umount, "unmount one" },
	{ "ls", ckpt_ls, "list mounts, or a directory of HDFS" },
	{ "info", ctl_ckpt_info, "how a file lies on HDFS" },
	{ "verify", ctl_ckpt_verify, "read files and check all sums" },
	{ "export", ctl_ckpt_export, "make a plain file of a striped one" },
	{ "import", ctl_ckpt_import, "make a striped file of a plain one" },
	{ "gc", ctl_ckpt_gc, "remove what dead writers left" },
};

int ctl_ckpt(int argc, char **argv)
{
	return ctl_dispatch("bootseerctl ckpt", commands, BS_ARRAY_LEN(commands), argc, argv);
}
