/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * mount.bootseer-hdfs(8): what mount(8) calls for the type bootseer-hdfs. This process is
 * root's, mounts, and reads no foreign byte; the one that serves is a child that shut itself
 * in (kern/sandbox.h) and stays until the mount is gone.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/nofile.h"
#include "base/spawn.h"
#include "base/str.h"
#include "ctl/conf.h"
#include "daemon/user.h"
#include "hdfs/mount.h"
#include "kern/fusedev.h"
#include "kern/mountfd.h"
#include "kern/sandbox.h"

#define LINK_FD 3 /* where the child finds its end of the link, and the FUSE device */
#define FUSE_FD 4
#define READAHEAD_KIB 1024u
#define EXIT_USAGE 2
#define EXIT_MOUNT 32 /* as mount(8) has it */

static const char help[] =
	"usage: mount.bootseer-hdfs SOURCE DIR [-fnsv] [-o OPTION,...]\n"
	"\n"
	"Mounts a directory of an HDFS: SOURCE is hdfs://NAMESERVICE/PATH,\n"
	"webhdfs://HOST:PORT/PATH or swebhdfs://HOST:PORT/PATH. Usually run by mount(8).\n"
	"\n"
	"  -o OPTION,...   ro, rw, user=NAME, layout=striped|plain, unit=SIZE, conf=DIR;\n"
	"                  all of them: mount.bootseer-hdfs(8)\n"
	"  -f              only look at the arguments\n"
	"  -s              leave out options that are not known\n"
	"  -n, -v          taken for mount(8)'s sake\n"
	"  --help          this text\n"
	"  --version       the version\n"
	"\n"
	"umount(8) ends it.\n";

struct arguments {
	const char *source, *dir, *options;
	bool fake, sloppy;
};

struct serving {
	const struct arguments *a;
	const struct bs_mount_options *o;
	uid_t uid;
	gid_t gid;
	pid_t parent; /* to die with; 0: not */
};

static int parse(int argc, char **argv, struct arguments *a)
{
	enum { HELP = 256, SHOW_VERSION };
	static const struct option table[] = { { "help", no_argument, NULL, HELP },
					       { "version", no_argument, NULL, SHOW_VERSION },
					       { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "o:fnsvN:t:", table, NULL)) >= 0) {
		switch (c) {
		case 'o':
			a->options = optarg;
			break;
		case 'f':
			a->fake = true;
			break;
		case 's':
			a->sloppy = true;
			break;
		case 'n':
		case 'v':
		case 'N':
		case 't':
			break;
		case HELP:
			(void)fputs(help, stdout);
			exit(0);
		case SHOW_VERSION:
			(void)puts("mount.bootseer-hdfs " PACKAGE_VERSION);
			exit(0);
		default:
			return -EINVAL;
		}
	}
	if (argc - optind != 2)
		return -EINVAL;
	a->source = argv[optind];
	a->dir = argv[optind + 1];
	return 0;
}

/* --- the child --------------------------------------------------------------------------------- */

static int serve(void *cookie)
{
	const struct serving *s = cookie;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_mounted *m = NULL;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(0077);
	if (chdir("/") < 0)
		return 1;
	bs_nofile_raise();
	r = bs_sandbox_enter_worker(s->uid, s->gid, s->parent, &err);
	if (r == 0)
		r = bs_mounted_start(s->a->source, s->o, FUSE_FD, NULL, &m, &err);
	err.code = r;
	if (bs_write_full(LINK_FD, &err, sizeof(err)) < 0 || r < 0)
		return 1;
	(void)close(LINK_FD);
	bs_mounted_join(m);
	return 0;
}

/* --- the mount --------------------------------------------------------------------------------- */

/* What the child says of its start. */
static int wait_ready(int link, struct bs_error *err)
{
	struct bs_error said = BS_ERROR_INIT;
	ssize_t n = bs_read_full(link, &said, sizeof(said));

	if (n != (ssize_t)sizeof(said))
		return bs_fail(err, -EIO, "the serving process ended");
	said.msg[sizeof(said.msg) - 1] = '\0';
	if (said.code < 0)
		return bs_fail(err, said.code, "%s", bs_error_text(&said));
	return 0;
}

static int open_log(const struct bs_mount_options *o, struct bs_error *err)
{
	int fd;

	if (!o->log)
		return o->foreground ? bs_dup(STDERR_FILENO) : -EBADF;
	fd = open(o->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	return fd < 0 ? bs_fail_errno(err, -errno, "open the log '%s'", o->log) : fd;
}

static int start(const struct serving *s, int fuse_fd, struct bs_child *ret, struct bs_error *err)
{
	const char *const argv[] = { "mount.bootseer-hdfs", NULL };
	struct bs_spawn sp = BS_SPAWN_INIT;
	bs_autofd int ours = -EBADF, theirs = -EBADF, log = open_log(s->o, err);
	int pair[2], fds[2], r;

	if (log < 0 && s->o->log)
		return log;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return bs_fail_errno(err, -errno, "make a socket");
	ours = pair[0];
	theirs = fds[0] = pair[1];
	fds[1] = fuse_fd;
	sp.argv = argv;
	sp.run = serve;
	sp.cookie = (void *)(uintptr_t)s;
	sp.stdio[2] = log;
	sp.fds = fds;
	sp.n_fds = 2;
	sp.new_session = !s->o->foreground;
	sp.die_with_parent = s->o->foreground;
	r = bs_spawn_start(&sp, ret, err);
	if (r < 0)
		return r;
	theirs = bs_close(theirs);
	r = wait_ready(ours, err);
	if (r < 0) {
		(void)kill(ret->pid, SIGKILL);
		(void)bs_spawn_wait(ret, 0, &fds[0]);
	}
	return r;
}

static int mount_it(const struct arguments *a, const struct bs_mount_options *o,
		    struct bs_child *ret, struct bs_error *err)
{
	struct bs_conf conf = { .user = (char *)(uintptr_t)o->runas };
	const struct bs_fusedev_mount fm = {
		.subtype = "bootseer-hdfs",
		.source = a->source,
		.writable = !o->read_only,
		.attrs = (o->noexec ? MOUNT_ATTR_NOEXEC : 0) |
			 (o->noatime ? MOUNT_ATTR_NOATIME : 0),
	};
	struct serving s = { .a = a, .o = o, .parent = o->foreground ? getpid() : 0 };
	bs_autofd int dir = open(a->dir, O_PATH | O_DIRECTORY | O_CLOEXEC), dev = -EBADF,
		      mnt = -EBADF;
	int r, status;

	if (dir < 0)
		return bs_fail_errno(err, -errno, "open the directory '%s'", a->dir);
	r = bs_worker_user(&conf, &s.uid, &s.gid, err);
	if (r < 0)
		return r;
	dev = bs_fusedev_open(err);
	if (dev < 0)
		return dev;
	mnt = bs_fusedev_mount(dev, &fm, err);
	if (mnt < 0)
		return mnt;
	r = start(&s, dev, ret, err);
	if (r < 0)
		return r;
	(void)bs_fusedev_set_readahead(mnt, READAHEAD_KIB); /* slower with the kernel's own */
	r = bs_mountfd_attach(mnt, dir, "", err);
	if (r < 0) {
		(void)kill(ret->pid, SIGKILL);
		(void)bs_spawn_wait(ret, 0, &status);
	}
	return r;
}

static const char *ending; /* the directory, for a signal that ends us */

static void on_signal(int sig)
{
	(void)umount2(ending, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* In the foreground: until it is unmounted, which SIGTERM and SIGINT do. */
static int stay(const char *dir, struct bs_child *child)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	int status = 0;

	ending = dir;
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGINT, &sa, NULL);
	if (bs_spawn_wait(child, 0, &status) < 0)
		return EXIT_MOUNT;
	return bs_spawn_exit_code(status);
}

int main(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct bs_mount_options o = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_child child = { .pidfd = -EBADF };
	bs_autofree char *dir = NULL;
	int r;

	bs_log_init("mount.bootseer-hdfs", BS_LOG_INFO);
	if (parse(argc, argv, &a) < 0) {
		bs_log_error("bad arguments; see mount.bootseer-hdfs --help");
		return EXIT_USAGE;
	}
	if (bs_mount_options_parse(a.options, a.sloppy, &o, &err) < 0) {
		bs_log_error("%s; see mount.bootseer-hdfs(8)", bs_error_text(&err));
		return EXIT_USAGE;
	}
	dir = realpath(a.dir, NULL);
	r = dir ? 0 : bs_fail_errno(&err, -errno, "directory '%s'", a.dir);
	if (r == 0 && !a.fake) {
		a.dir = dir;
		r = mount_it(&a, &o, &child, &err);
	}
	if (r < 0) {
		bs_log_error("mount '%s': %s", a.source, bs_error_text(&err));
		bs_mount_options_done(&o);
		return EXIT_MOUNT;
	}
	r = o.foreground && !a.fake ? stay(dir, &child) : 0;
	bs_mount_options_done(&o);
	return r;
}
