/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A recording by hand: a bundle, a cache and a bootseerd of their own in a temporary
 * directory; the command is run there as any container is, and the pack that comes of it
 * is published from that cache. Nothing of the machine's own node is used.
 *
 *   DIR/bootseer.conf   DIR/bundle   DIR/run   DIR/cache   DIR/oci (the runtime's state)
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/rmtree.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cmd/ctl-hot.h"
#include "ctl/client.h"
#include "ctl/conf.h"
#include "ctl/program.h"
#include "image/open.h"

#define COMMAND_MAX 1024u
#define START_NS (10 * BS_NS_PER_S) /* of the daemon */
#define STOP_NS (20 * BS_NS_PER_S)
#define BUILD_NS (600 * BS_NS_PER_S) /* behind the window: the pack is made */
#define LOOK_MS 200
#define END_MS 1000 /* between the end of a container and that of its runtime */
#define LOG_MAX (64u << 10)

struct trace {
	struct ctl_hot *c;
	const char *window; /* as it was given */
	uint64_t window_ns;
	bool replace;
	const char *const *command; /* n_command words; none: the image's own */
	unsigned int n_command;
	char *dir;
	int dirfd;
	char *bootseerd, *bootseer; /* the programs */
	char name[32];		    /* of the container, and of the workload while it is recorded */
	struct bs_child daemon, run;
	int signals;
};

/* --- preparing ------------------------------------------------------------------------------- */

/* Of the user's own configuration, where docker keeps what logged in. */
static char *docker_config(const struct bs_conf *own)
{
	const char *dir = secure_getenv("DOCKER_CONFIG"), *home = secure_getenv("HOME");
	bs_autofree char *path = own->docker_config[0] ? strdup(own->docker_config)
				 : dir		       ? bs_strf("%s/config.json", dir)
				       : bs_strf("%s/.docker/config.json", home ? home : "/root");

	return path && access(path, R_OK) == 0 ? bs_take(&path) : NULL;
}

static int write_conf(const struct trace *t, const struct bs_conf *own, struct bs_error *err)
{
	const struct bs_ref *ref = &t->c->ref;
	bs_autofree char *docker = docker_config(own);
	bs_autofree char *layout = ref->kind == BS_REF_LAYOUT ? realpath(ref->dir, NULL)
				   : ref->kind == BS_REF_HDFS ? strdup(ref->dir)
							      : NULL;
	bs_autobuf b = BS_BUF_INIT(1u << 20);
	int r;

	if (layout && strpbrk(layout, " \t\n,;#"))
		return bs_fail(err, -EINVAL,
			       "layout '%s': a directory whose path has blanks, commas or the like "
			       "cannot be traced: give it another name",
			       layout);
	(void)bs_buf_addf(&b, "[runtime]\nruntime = %s\n", own->runtime);
	(void)bs_buf_addf(&b,
			  "[node]\nrun_dir = %s/run\ncache_dir = %s/cache\ndaemon = %s\n"
			  "autostart = no\nkeep_mounts = 1s\n",
			  t->dir, t->dir, t->bootseerd);
	if (own->user[0])
		(void)bs_buf_addf(&b, "user = %s\n", own->user);
	(void)bs_buf_adds(&b, "[fetch]\nbackground = no\n");
	if (ref->kind == BS_REF_REGISTRY && t->c->net.plain_http)
		(void)bs_buf_addf(&b, "plain_http = %s\n", ref->host);
	if (ref->kind == BS_REF_REGISTRY && !t->c->net.tls_verify)
		(void)bs_buf_addf(&b, "insecure = %s\n", ref->host);
	if (ref->kind == BS_REF_HDFS) {
		for (size_t i = 0; i < own->hdfs_options.n; i++)
			(void)bs_buf_addf(&b, "hdfs_options = %s\n", own->hdfs_options.v[i]);
		if (t->c->net.hdfs_options)
			(void)bs_buf_addf(&b, "hdfs_options = %s\n", t->c->net.hdfs_options);
	}
	if (own->ca_file[0])
		(void)bs_buf_addf(&b, "ca_file = %s\n", own->ca_file);
	if (own->proxy[0])
		(void)bs_buf_addf(&b, "proxy = %s\n", own->proxy);
	(void)bs_buf_addf(&b, "[hot]\nrecord = annotated\nrecord_window = %s\npublish = no\n",
			  t->window);
	if (docker)
		(void)bs_buf_addf(&b, "[auth]\ndocker_config = %s\n", docker);
	(void)bs_buf_adds(&b, "[policy]\nfallback = fail\n");
	if (layout)
		(void)bs_buf_addf(&b, "%s = %s\n",
				  ref->kind == BS_REF_HDFS ? "allow_hdfs" : "allow_dirs", layout);
	r = b.error ? b.error
		    : bs_atomicfile_write(t->dirfd, "bootseer.conf", b.data, b.len, 0644, false);
	return r < 0 ? bs_fail_errno(err, r, "write '%s/bootseer.conf'", t->dir) : 0;
}

static int edit_config(const struct trace *t, struct bs_json *spec)
{
	struct bs_json *annotations = bs_json_make(spec, "annotations", BS_JSON_OBJECT);
	struct bs_json *process = bs_json_get(spec, "process"), *args;
	int r;

	if (!annotations || !process)
		return -ENOMEM;
	r = bs_json_set(annotations, "dev.bootseer.workload", bs_json_new_str(t->name));
	if (r == 0)
		r = bs_json_set(annotations, "dev.bootseer.record", bs_json_new_str("yes"));
	if (r < 0 || t->n_command == 0)
		return r;
	bs_json_remove(process, "args");
	args = bs_json_make(process, "args", BS_JSON_ARRAY);
	for (unsigned int i = 0; args && r == 0 && i < t->n_command; i++)
		r = bs_json_append(args, bs_json_new_str(t->command[i]));
	return args ? r : -ENOMEM;
}

static int write_bundle(const struct trace *t, struct bs_error *err)
{
	bs_auto(json) struct bs_json *spec = NULL;
	bs_autobuf out = BS_BUF_INIT(16u << 20);
	bs_autofree char *text = NULL;
	bs_autofd int bundle = -EBADF;
	size_t len;
	int r = ctl_bundle_text(t->c->image, &t->c->ref, &text, &len, err);

	if (r == 0)
		r = bs_json_parse("config.json", text, len, len, &spec, err);
	if (r < 0)
		return r;
	r = edit_config(t, spec);
	if (r == 0)
		r = bs_json_write(spec, &out);
	bundle = r < 0 ? r : bs_mkdir_open(t->dirfd, "bundle", 0755);
	if (bundle >= 0 && mkdirat(bundle, "rootfs", 0755) < 0)
		r = -errno;
	else
		r = bundle < 0 ? bundle
			       : bs_atomicfile_write(bundle, "config.json", out.data, out.len, 0644,
						     false);
	return r < 0 ? bs_fail_errno(err, r, "make a bundle in '%s'", t->dir) : 0;
}

static int make_dir(struct trace *t, struct bs_error *err)
{
	const char *tmp = secure_getenv("TMPDIR") ?: "/var/tmp";
	bs_autofd int cache = -EBADF;

	t->dir = bs_strf("%s/bootseer-trace-XXXXXX", tmp);
	if (!t->dir)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (!mkdtemp(t->dir)) {
		int r = bs_fail_errno(err, -errno, "make a directory in '%s'", tmp);

		free(bs_take(&t->dir));
		return r;
	}
	t->dirfd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* the worker, which is not root, passes through */
	if (t->dirfd < 0 || fchmod(t->dirfd, 0711) < 0)
		return bs_fail_errno(err, -errno, "'%s'", t->dir);
	cache = bs_mkdir_open(t->dirfd, "cache", 0755);
	return cache < 0 ? bs_fail_errno(err, cache, "'%s/cache'", t->dir) : 0;
}

/* --- running --------------------------------------------------------------------------------- */

/* It is asked to end, and killed when it does not. */
static void end_child(struct bs_child *c, int with)
{
	int status;

	if (c->pidfd < 0)
		return;
	(void)kill(c->pid, with);
	(void)bs_spawn_wait(c, bs_clock_ns() + STOP_NS, &status);
}

static int start_daemon(struct trace *t, struct bs_error *err)
{
	bs_autofree char *run = bs_strf("%s/run", t->dir);
	bs_autofree char *conf = bs_strf("%s/bootseer.conf", t->dir);
	bs_autofd int log = openat(t->dirfd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
				   0600);
	const char *argv[] = { t->bootseerd, "--config", conf, NULL };
	const struct bs_client_options o = { .run_dir = run, .timeout_ns = BS_NS_PER_S };
	const uint64_t deadline_ns = bs_clock_ns() + START_NS;
	struct bs_spawn s = BS_SPAWN_INIT;
	int r;

	if (!conf || !run || log < 0)
		return bs_fail_errno(err, log < 0 ? -EIO : -ENOMEM, "start bootseerd");
	s.argv = argv;
	s.stdio[1] = s.stdio[2] = log;
	s.new_session = s.die_with_parent = true;
	r = bs_spawn_start(&s, &t->daemon, err);
	while (r == 0) {
		struct pollfd p = { .fd = t->daemon.pidfd, .events = POLLIN };
		bs_autofd int sock = bs_client_connect(&o, err);

		if (sock >= 0)
			return 0;
		if (poll(&p, 1, LOOK_MS / 4) > 0 || bs_clock_ns() > deadline_ns)
			r = bs_fail(err, -EIO, "bootseerd does not start");
	}
	return r;
}

/* The runtime beside us, with the words given. */
static int start_runtime(struct trace *t, const char *verb, const char *const *rest, bool shown,
			 struct bs_child *ret, struct bs_error *err)
{
	bs_autofree char *root = bs_strf("%s/oci", t->dir);
	const char *argv[10] = { t->bootseer, "--root", root, verb };
	struct bs_spawn s = BS_SPAWN_INIT;

	if (!root)
		return bs_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < 5 && rest[i]; i++)
		argv[4 + i] = rest[i];
	s.argv = argv;
	for (int i = 0; shown && i < 3; i++)
		s.stdio[i] = i;
	return bs_spawn_start(&s, ret, err);
}

static bool kept(const struct trace *t, const char *what)
{
	char tag[BS_HOT_TAG_LEN], hex[BS_DIGEST_TEXT_LEN];
	const struct bs_digest *image = &t->c->a.digest;
	bs_autofree char *path =
		bs_strf("cache/images/%s/hot-%s.%s", bs_digest_hex(image, hex),
			bs_hot_tag(image, t->name, tag) + strlen(BS_HOT_TAG_PREFIX), what);

	return path && faccessat(t->dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int command_ended(struct trace *t, struct bs_error *err)
{
	int status, code, r = bs_spawn_wait(&t->run, 0, &status);

	if (r < 0)
		return bs_fail_errno(err, r, "wait for the command");
	code = bs_spawn_exit_code(status);
	if (code != 0)
		return bs_fail(err, -ECANCELED, "the command ended with exit code %d: no hot pack",
			       code);
	if (!kept(t, "workload"))
		return bs_fail(err, -ENODATA, "the command was not recorded");
	return 0;
}

/* There is a pack: of the window, or because the command has ended, which may be just now. */
static int check_command(struct trace *t, struct bs_error *err)
{
	struct pollfd p = { .fd = t->run.pidfd, .events = POLLIN };

	return p.fd >= 0 && poll(&p, 1, END_MS) > 0 ? command_ended(t, err) : 0;
}

/* Until the pack is there: made of what was read within the window, or until the command's end. */
static int await_pack(struct trace *t, struct bs_error *err)
{
	const uint64_t deadline_ns = bs_clock_ns() + t->window_ns + BUILD_NS;
	int r = 0;

	while (r == 0) {
		struct pollfd p[] = { { .fd = t->signals, .events = POLLIN },
				      { .fd = t->daemon.pidfd, .events = POLLIN },
				      { .fd = t->run.pidfd, .events = POLLIN } };

		/* the pack is renamed into place before the manifest */
		if (kept(t, "pack") && kept(t, "json"))
			return check_command(t, err);
		if (poll(p, BS_ARRAY_LEN(p), LOOK_MS) < 0 && errno != EINTR)
			r = bs_fail_errno(err, -errno, "poll");
		else if (p[0].revents)
			r = bs_fail(err, -EINTR, "interrupted: no hot pack");
		else if (p[1].revents)
			r = bs_fail(err, -EIO, "bootseerd has ended");
		else if (p[2].revents)
			r = command_ended(t, err);
		else if (bs_clock_ns() > deadline_ns)
			r = bs_fail(err, -ETIMEDOUT, "no hot pack was made");
	}
	return r;
}

static int record(struct trace *t, struct bs_error *err)
{
	bs_autofree char *bundle = bs_strf("%s/bundle", t->dir);
	const char *const rest[] = { "--bundle", bundle, t->name, NULL };
	int r = bundle ? start_daemon(t, err) : bs_fail(err, -ENOMEM, "out of memory");

	if (r == 0)
		r = start_runtime(t, "run", rest, true, &t->run, err);
	return r < 0 ? r : await_pack(t, err);
}

/* What cannot be published is not lost: the profile is all of it that cannot be made again. */
static int keep_profile(const struct trace *t, const char *ref, const struct ctl_hot_made *m, int r,
			struct bs_error *err)
{
	bs_autofree char *path = bs_strf("%s.profile", t->dir);
	const struct bs_error why = *err;
	bs_autofd int fd = -EBADF;

	fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || bs_write_full(fd, m->profile, m->profile_len) < 0)
		return r;
	return bs_fail(err, r,
		       "%s; the recording is kept: 'bootseerctl hot build %s %s --from %s%s' "
		       "publishes it",
		       bs_error_text(&why), ref, m->hot.workload, path,
		       t->replace ? " --replace" : "");
}

static int publish(struct trace *t, const char *ref, const char *workload, struct bs_error *err)
{
	ctl_automade m = { .pack_fd = -EBADF };
	bs_autofd int cache = openat(t->dirfd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = cache < 0 ? bs_fail_errno(err, -errno, "'%s/cache'", t->dir)
			  : ctl_hot_read_kept(cache, &t->c->a.digest, t->name, &m, err);

	if (r == 0)
		r = ctl_hot_prove(t->c, &m, err);
	if (r < 0)
		return r;
	(void)snprintf(m.hot.workload, sizeof(m.hot.workload), "%s", workload);
	r = ctl_hot_publish(t->c, &m, t->replace, err);
	return r < 0 ? keep_profile(t, ref, &m, r, err) : 0;
}

/* --- the end --------------------------------------------------------------------------------- */

static void end_container(struct trace *t)
{
	const char *const rest[] = { "--force", t->name, NULL };
	struct bs_child c = { .pidfd = -EBADF };
	int status;

	if (t->run.pidfd < 0)
		return;
	if (start_runtime(t, "delete", rest, false, &c, NULL) == 0)
		(void)bs_spawn_wait(&c, bs_clock_ns() + STOP_NS, &status);
	end_child(&t->run, SIGTERM);
}

static void show_log(const struct trace *t)
{
	bs_autofree char *text = NULL;
	size_t len;

	if (bs_read_file_at(t->dirfd, "log", O_NOFOLLOW, LOG_MAX, &text, &len) < 0)
		return;
	for (char *line = text; *line;) {
		size_t n = strcspn(line, "\n");

		bs_log_error("%.*s", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

static void trace_done(struct trace *t)
{
	end_container(t);
	end_child(&t->daemon, SIGTERM);
	(void)bs_close(t->signals);
	(void)bs_close(t->dirfd);
	if (t->dir && bs_rmtree(AT_FDCWD, t->dir) < 0)
		bs_log_warning("'%s' could not be removed", t->dir);
	free(t->dir);
	free(t->bootseerd);
	free(t->bootseer);
}

static int prepare(struct trace *t, const struct bs_conf *own, struct bs_error *err)
{
	bs_autofree char *conf = NULL;
	sigset_t set;
	int r = make_dir(t, err);

	if (r < 0)
		return r;
	(void)snprintf(t->name, sizeof(t->name), "trace-%d-%" PRIx64, getpid(), bs_clock_wall_ns());
	conf = bs_strf("%s/bootseer.conf", t->dir);
	if (!conf || setenv("BOOTSEER_CONFIG", conf, 1) < 0)
		return bs_fail(err, -ENOMEM, "out of memory");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (t->signals < 0)
		return bs_fail_errno(err, -errno, "signalfd");
	return write_conf(t, own, err);
}

static int trace(struct trace *t, const char *ref, const char *workload, const char *config,
		 struct bs_error *err)
{
	struct bs_hot other;
	struct bs_conf own;
	int r = bs_conf_read(config, &own, err);

	if (r == 0)
		r = bs_program_find("bootseerd", &own, NULL, &t->bootseerd, err);
	if (r == 0)
		r = bs_program_find("bootseer", NULL, NULL, &t->bootseer, err);
	if (r == 0)
		r = bs_ref_parse(ref, &t->c->ref, err);
	if (r == 0)
		r = prepare(t, &own, err);
	bs_conf_done(&own);
	bs_ref_done(&t->c->ref);
	if (r == 0)
		r = ctl_hot_reach(t->c, ref, true, err);
	if (r < 0)
		return r;
	if (!t->replace && bs_hot_find(t->c->repo, &t->c->a.digest, workload, 0, &other, NULL) == 0)
		return bs_fail(err, -EEXIST,
			       "workload '%s' has a hot pack: --replace puts another in its place",
			       workload);
	/* before all that takes minutes */
	r = ctl_hot_try_push(t->c, err);
	if (r == 0)
		r = write_bundle(t, err);
	if (r < 0)
		return r;
	r = record(t, err);
	end_container(t);
	if (r < 0 && r != -EINTR && r != -ECANCELED)
		show_log(t);
	return r < 0 ? r : publish(t, ref, workload, err);
}

int ctl_hot_trace(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	struct trace t = { .c = &c,
			   .window = "30s",
			   .dirfd = -EBADF,
			   .signals = -EBADF,
			   .daemon.pidfd = -EBADF,
			   .run.pidfd = -EBADF };
	const char *args[2 + COMMAND_MAX], *config = NULL;
	const struct bs_option options[] = {
		{ "window", 0, BS_OPTION_TEXT, &t.window, "D", "record for so long (default 30s)" },
		{ "replace", 0, BS_OPTION_FLAG, &t.replace, NULL,
		  "put it in the place of one that is there" },
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "take runtime, user, proxy, ca_file, docker_config" },
		CTL_HOT_OPTIONS(&c),
	};
	const struct bs_usage usage = {
		"bootseerctl hot trace REF WORKLOAD [OPTION]... [-- COMMAND...]",
		"Runs a command (default: the image's) in a container of the image, records what\n"
		"it reads, and publishes the hot pack. As root; the node's bootseerd is not "
		"used.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		BS_ARRAY_LEN(args)
	};
	struct bs_error err = BS_ERROR_INIT;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, args, &n, &err);

	if (r == 0 && (bs_parse_duration(t.window, &t.window_ns) < 0 || t.window_ns < BS_NS_PER_S))
		r = bs_fail(&err, -EINVAL, "--window: '%s' is no duration from 1s on, as 30s",
			    t.window);
	if (r == 0)
		r = bs_workload_check(args[1], &err);
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	t.command = args + 2;
	t.n_command = n - 2;
	r = geteuid() == 0 ? trace(&t, args[0], args[1], config, &err)
			   : bs_fail(&err, -EPERM, "containers are started as root");
	trace_done(&t);
	return r < 0 ? ctl_fail(&err) : 0;
}
