/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerctl doctor: what this machine can do, what is wrong and what helps. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/spawn.h"
#include "cmd/ctl.h"
#include "ctl/client.h"
#include "ctl/conf.h"
#include "hdfs/store.h"
#include "image/erofs.h"
#include "image/tree.h"
#include "kern/probe.h"
#include "net/repo.h"

#define SPACE_WANTED (UINT64_C(1) << 30)

enum verdict { GOOD, WEAK, BAD };

struct finding {
	const char *what;
	enum verdict verdict;
	char detail[BS_ERROR_MSG_MAX];
	const char *remedy; /* with WEAK: what is done instead */
};

#define FINDINGS_MAX 16u

struct doctor {
	struct finding findings[FINDINGS_MAX];
	size_t n;
};

/* r < 0: err says what is wrong, which is verdict, against which remedy helps. */
static void note(struct doctor *d, const char *what, int r, const struct bs_error *err,
		 enum verdict verdict, const char *remedy)
{
	struct finding *f = &d->findings[d->n++];

	*f = (struct finding){ .what = what };
	if (r >= 0)
		return;
	f->verdict = verdict;
	f->remedy = remedy;
	(void)snprintf(f->detail, sizeof(f->detail), "%s", bs_error_text(err));
}

static void probe(struct doctor *d, const char *what, int (*fn)(struct bs_error *err),
		  enum verdict verdict, const char *remedy)
{
	struct bs_error err = BS_ERROR_INIT;
	int r = fn(&err);

	note(d, what, r, &err, verdict, remedy);
}

/* The smallest image there is: a root directory and a blob of one block. */
static int write_image(int meta, int blob, struct bs_error *err)
{
	static const char zeros[BS_BLOCK_SIZE];
	const struct bs_tree_entry root = { .name = "", .mode = 040755 };
	bs_auto(tree_writer) struct bs_tree_writer *w = bs_tree_writer_new();
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofree void *bytes = NULL;
	uint64_t size;
	size_t len;
	int r;

	if (!w)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (bs_tree_writer_add(w, &root, NULL, NULL, err) < 0)
		return err->code;
	if ((r = bs_tree_writer_finish(w, 1, &bytes, &len, err)) < 0 ||
	    (r = bs_tree_read(bytes, len, &t, err)) < 0 ||
	    (r = bs_erofs_write(t, meta, &size, err)) < 0)
		return r;
	r = bs_write_full(blob, zeros, sizeof(zeros));
	return r < 0 ? bs_fail_errno(err, r, "write") : 0;
}

static void check_file_backed(struct doctor *d, const struct bs_conf *conf)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int dir = bs_mkdir_open(AT_FDCWD, conf->cache_dir, 0711);
	bs_autofd int meta = -EBADF, blob = -EBADF;
	char a[32], b[32];
	int r = dir;

	if (dir >= 0) {
		meta = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		blob = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		r = meta < 0 || blob < 0 ? -errno : 0;
	}
	if (r < 0)
		(void)bs_fail_errno(&err, r, "write in '%s'", conf->cache_dir);
	else
		r = write_image(meta, blob, &err);
	if (r == 0)
		r = bs_probe_erofs_files(bs_path_of_fd(meta, a), bs_path_of_fd(blob, b), &err);
	note(d, "mounting images of the cache", r, &err, BAD,
	     "put [node] cache_dir on ext4, xfs or btrfs, or load the loop module; "
	     "until then images are unpacked");
}

static void check_space(struct doctor *d, const struct bs_conf *conf)
{
	struct bs_error err = BS_ERROR_INIT;
	struct statvfs st;
	int r = 0;

	if (statvfs(conf->cache_dir, &st) < 0)
		r = bs_fail_errno(&err, -errno, "look at '%s'", conf->cache_dir);
	else if ((uint64_t)st.f_bavail * st.f_frsize < SPACE_WANTED)
		r = bs_fail(&err, -ENOSPC, "less than 1 GiB is free at '%s'", conf->cache_dir);
	note(d, "space for the cache", r, &err, WEAK,
	     "what does not fit is fetched again at each read");
}

static void check_user(struct doctor *d, const struct bs_conf *conf)
{
	struct bs_error err = BS_ERROR_INIT;
	const char *name = conf->user && *conf->user ? conf->user : "nobody";
	const struct passwd *pw = getpwnam(name);
	int r = 0;

	if (!pw)
		r = bs_fail(&err, -ENOENT, "user '%s' ([node] user) does not exist", name);
	else if (pw->pw_uid == 0)
		r = bs_fail(&err, -EINVAL, "user '%s' ([node] user) is root", name);
	note(d, "the worker's user", r, &err, BAD, "make a system user and name it there");
}

static void check_runtime(struct doctor *d, const struct bs_conf *conf)
{
	const char *const argv[] = { conf->runtime, "--version", NULL };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_spawn s = BS_SPAWN_INIT;
	bs_autofree char *out = NULL;
	int r;

	s.argv = argv;
	r = bs_spawn_capture(&s, NULL, 0, bs_clock_ns() + 10 * BS_NS_PER_S, 65536, &out, NULL,
			     &err);
	if (r > 0)
		r = bs_fail(&err, -EIO, "'%s --version' failed", conf->runtime);
	note(d, "the wrapped runtime", r, &err, BAD, "install runc, or set [runtime] runtime");
}

/* Others may not try what it is about: what they were refused would say nothing of the machine. */
static bool check_root(struct doctor *d)
{
	struct bs_error err = BS_ERROR_INIT;
	int r = geteuid() == 0 ? 0 : bs_fail(&err, -EPERM, "only root can try the rest");

	note(d, "root", r, &err, BAD, "run it as root, as bootseer and bootseerd are");
	return r == 0;
}

static void check_daemon(struct doctor *d, const struct bs_conf *conf)
{
	const struct bs_client_options o = { .run_dir = conf->run_dir, .timeout_ns = BS_NS_PER_S };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int sock = bs_client_connect(&o, &err);

	if (sock == -ENOTCONN && conf->autostart && conf->daemon[0] &&
	    access(conf->daemon, X_OK) < 0) {
		(void)bs_fail_errno(&err, -errno, "start '%s' ([node] daemon)", conf->daemon);
		note(d, "bootseerd", sock, &err, BAD, "mend that key, or leave it out");
		return;
	}
	note(d, "bootseerd", sock, &err, WEAK,
	     conf->autostart ? "it is started when it is needed"
			     : "start it, or set [node] autostart = yes");
}

/* Asks no cluster: whether each directory's NameNodes can be found, and the options are right. */
static void check_hdfs(struct doctor *d, const struct bs_conf *conf)
{
	bs_autofree char *options = bs_conf_hdfs_options(conf);
	const struct bs_stores_options o = { .options = options };
	bs_auto(stores) struct bs_stores *stores = NULL;
	struct bs_error err = BS_ERROR_INIT;
	int r;

	if (conf->allow_hdfs.n == 0 && conf->hdfs_options.n == 0)
		return;
	r = options ? bs_stores_new(&o, &stores, &err) : bs_fail(&err, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < conf->allow_hdfs.n; i++) {
		bs_auto(repo) struct bs_repo *repo = NULL;

		r = bs_stores_open(stores, conf->allow_hdfs.v[i], false, &repo, &err);
	}
	note(d, "images on HDFS", r, &err, BAD,
	     "mend 'hdfs_options' in [fetch], 'allow_hdfs' in [policy], or Hadoop's "
	     "configuration that 'conf' among the options names");
}

static void examine(struct doctor *d, const struct bs_conf *conf)
{
	if (!check_root(d))
		return;
	probe(d, "EROFS", bs_probe_erofs, BAD,
	      "load the erofs module; until then images are unpacked");
	probe(d, "FUSE", bs_probe_fuse, BAD,
	      "load the fuse module; until then images are unpacked");
	probe(d, "FUSE resend", bs_probe_fuse_resend, WEAK,
	      "Linux 6.9 has it; before, a killed worker's open reads may hang");
	probe(d, "overlay over detached mounts", bs_probe_overlay, WEAK,
	      "the layers are attached for a moment");
	probe(d, "openat2", bs_probe_openat2, BAD, "Linux 5.6 has it");
	probe(d, "pidfd", bs_probe_pidfd, BAD, "Linux 5.3 has it");
	check_user(d, conf);
	check_file_backed(d, conf);
	check_space(d, conf);
	check_runtime(d, conf);
	check_hdfs(d, conf);
	check_daemon(d, conf);
}

static const char *verdict_name(enum verdict v)
{
	return v == GOOD ? "ok" : v == WEAK ? "note" : "BAD";
}

static void show(const struct doctor *d)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->findings[i];

		(void)printf("%-4s  %s\n", verdict_name(f->verdict), f->what);
		if (f->verdict != GOOD)
			(void)printf("      %s\n      -> %s\n", f->detail, f->remedy);
	}
}

static int show_json(const struct doctor *d)
{
	bs_autobuf out = BS_BUF_INIT(1 << 20);
	struct bs_jsonw *w = bs_jsonw_new(true);

	if (!w)
		return 1;
	bs_jsonw_array(w);
	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->findings[i];

		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "check", f->what);
		bs_jsonw_kstr(w, "verdict", f->verdict == BAD ? "bad" : verdict_name(f->verdict));
		if (f->verdict != GOOD) {
			bs_jsonw_key(w, "detail");
			bs_jsonw_bytes(w, f->detail, strlen(f->detail));
			bs_jsonw_kstr(w, "remedy", f->remedy);
		}
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	if (bs_jsonw_finish(w, &out) < 0)
		return 1;
	(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

int ctl_doctor(int argc, char **argv)
{
	const char *config = NULL;
	bool json = false;
	const struct bs_option options[] = {
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
		{ "json", 0, BS_OPTION_FLAG, &json, NULL, "the findings as JSON" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl doctor [OPTION]...",
		.text = "Tries what this machine can do and says what is wrong and what helps.\n"
			"Exit code 1 when something is bad.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
	};
	struct bs_error err = BS_ERROR_INIT;
	struct doctor d = { 0 };
	struct bs_conf conf;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, NULL, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	r = bs_conf_read(config, &conf, &err);
	note(&d, "configuration", r, &err, BAD, "mend what is named");
	if (r == 0) {
		examine(&d, &conf);
		bs_conf_done(&conf);
	}
	if (json ? show_json(&d) : (show(&d), 0))
		return 1;
	for (size_t i = 0; i < d.n; i++) {
		if (d.findings[i].verdict == BAD)
			return 1;
	}
	return 0;
}
