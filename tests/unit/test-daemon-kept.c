/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What a supervisor takes over from a keeper or a service manager that has not all of it. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "daemon/ckpts.h"
#include "daemon/hots.h"
#include "daemon/keeper.h"
#include "daemon/super.h"
#include "daemon/systemd.h"
#include "kern/bdi.h"

#define DIGEST "sha256:0123456789012345678901234567890123456789012345678901234567890123"
/* a service manager lets no name hold a ':' */
#define DIGEST_IN_NAME "sha256@0123456789012345678901234567890123456789012345678901234567890123"
#define FIRST_FD 3

static void begin(struct super *s)
{
	const int epoll = epoll_create1(EPOLL_CLOEXEC);

	memset(s, 0, sizeof(*s));
	/* out of the way of what a service manager gives */
	s->epoll = fcntl(epoll, F_DUPFD_CLOEXEC, 100);
	assert_true(s->epoll >= 0);
	(void)bs_close(epoll);
	s->fuse_fd = s->fuse_mnt = -EBADF;
	s->listen.fd = s->keeper.fd = s->worker.fd = s->old_worker.fd = -EBADF;
	s->keeper_process.pidfd = -EBADF;
	bs_list_init(&s->images);
	bs_list_init(&s->pending);
	bs_list_init(&s->recorded);
	bs_list_init(&s->hots);
	bs_list_init(&s->ckpts);
}

static void end(struct super *s)
{
	bs_list_for_each(it, &s->images) {
		struct held_image *i = bs_list_entry(it, struct held_image, all);

		(void)bs_close(i->mnt);
		pending_done(&i->mount);
		bs_list_remove(&i->all);
		free(i);
	}
	(void)bs_close(s->fuse_fd);
	(void)bs_close(s->fuse_mnt);
	(void)bs_close(s->listen.fd);
	(void)bs_close(s->keeper.fd);
	(void)bs_close(s->keeper_process.pidfd);
	(void)bs_close(s->epoll);
}

/* names: "a b c", each a descriptor of its own. */
static void hand_over(int link, const char *names)
{
	bs_autostrv list = { 0 };
	bs_automsg end;

	assert_int_equal(bs_strv_split(&list, names, " "), 0);
	for (size_t i = 0; i < list.n; i++) {
		bs_autofd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		bs_automsg m;

		bs_msg_init(&m, BS_MSG_KEPT, 0);
		assert_int_equal(bs_msg_add_text(&m, BS_TAG_NAME, list.v[i]), 0);
		assert_int_equal(bs_msg_add_fd(&m, fd), 0);
		assert_int_equal(bs_msg_send(link, &m), 0);
	}
	bs_msg_init(&end, BS_MSG_KEPT, 0);
	assert_int_equal(bs_msg_send(link, &end), 0);
}

static void from_keeper(struct super *s, const char *names, int *ret_keeper)
{
	int pair[2];

	begin(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	hand_over(pair[0], names);
	assert_int_equal(kept_adopt(s, pair[1], NULL), 0);
	*ret_keeper = pair[0];
}

static void from_manager(struct super *s, const char *names, unsigned int n)
{
	char text[16];

	begin(s);
	for (unsigned int i = 0; i < n; i++) {
		bs_autofd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		assert_true(fd >= 0);
		if (fd != FIRST_FD + (int)i)
			assert_int_equal(dup2(fd, FIRST_FD + (int)i), FIRST_FD + (int)i);
		else
			fd = -EBADF;
	}
	(void)snprintf(text, sizeof(text), "%d", (int)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%u", n);
	(void)setenv("LISTEN_FDS", text, 1);
	(void)setenv("LISTEN_FDNAMES", names, 1);
	bs_systemd_begin(true);
	assert_int_equal(kept_adopt_given(s, NULL), 0);
}

/* Whether there is a mount of the image to be given out. */
static bool has_image(struct super *s)
{
	const struct held_image *i = mounts_get(s, DIGEST, false);

	return i && i->mnt >= 0 && i->state == IMAGE_MOUNTED;
}

static void no_fuse(const struct super *s)
{
	assert_false(s->fuse_used);
	assert_true(s->fuse_fd < 0);
	assert_true(s->fuse_mnt < 0);
}

static void a_connection_without_its_mount_is_none(void **state)
{
	struct super s;
	int keeper;

	from_manager(&s, "fuse", 1);
	no_fuse(&s);
	end(&s);
	from_keeper(&s, "listen fuse", &keeper);
	no_fuse(&s);
	(void)bs_close(keeper);
	end(&s);
}

static void nor_a_mount_without_its_connection(void **state)
{
	struct super s;
	int keeper;

	from_manager(&s, "fuse-mount:lazy@" DIGEST_IN_NAME, 2);
	no_fuse(&s);
	assert_false(has_image(&s));
	end(&s);
	from_keeper(&s, "listen fuse-mount lazy:" DIGEST ":erofs-4711", &keeper);
	no_fuse(&s);
	assert_false(has_image(&s));
	(void)bs_close(keeper);
	end(&s);
	from_keeper(&s, "listen fuse-mount whole:" DIGEST, &keeper);
	no_fuse(&s);
	assert_true(has_image(&s));
	(void)bs_close(keeper);
	end(&s);
}

static void both_are_taken_over_in_any_order(void **state)
{
	struct super s;
	int keeper;

	from_keeper(&s, "lazy:" DIGEST " fuse-mount fuse listen", &keeper);
	assert_true(s.fuse_used);
	assert_true(s.fuse_fd >= 0 && s.fuse_mnt >= 0);
	assert_true(has_image(&s));
	(void)bs_close(keeper);
	end(&s);
	from_manager(&s, "fuse-mount:fuse", 2);
	assert_true(s.fuse_used);
	end(&s);
}

static void the_keeper_forgets_what_is_of_no_use(void **state)
{
	struct super s;
	bs_automsg m;
	int keeper;

	from_keeper(&s, "fuse listen", &keeper);
	bs_msg_init(&m, 0, 0);
	assert_int_equal(bs_msg_recv(keeper, &m), 0);
	assert_int_equal(m.type, BS_MSG_DROP);
	assert_string_equal(bs_msg_text(&m, BS_TAG_NAME, 0), "fuse");
	(void)bs_close(keeper);
	end(&s);
}

/* What a supervisor may have left at 0 is found again by the names. */
static void the_names_tell_of_readahead(void **state)
{
	static const struct bs_conf conf = { .record_window_ns = 1 };
	char name[KEPT_NAME_LEN];
	struct recorded_mount *r;
	struct super s;
	int keeper;

	from_keeper(&s, "listen", &keeper);
	s.conf = &conf;
	mounts_adopt(&s, "lazy:" DIGEST ":erofs-4711", -EBADF);
	assert_string_equal(mounts_kept_name(mounts_get(&s, DIGEST, false), name),
			    "lazy:" DIGEST ":erofs-4711");
	mounts_adopt(&s, "recorded:erofs-4712", -EBADF);
	r = bs_list_entry(s.recorded.next, struct recorded_mount, all);
	assert_string_equal(hots_recorded_name(r, name), "recorded:erofs-4712");
	hots_expire(&s, UINT64_MAX);
	assert_true(bs_list_empty(&s.recorded));
	(void)bs_close(keeper);
	end(&s);
}

static int hot_text(const char *before, const char *workload)
{
	char text[256];
	int fd = bs_memfd("hot");

	(void)snprintf(text, sizeof(text), "%s" DIGEST "\n%s\ndocker://a/b\ndocker://c/d\n", before,
		       workload);
	assert_int_equal(bs_pwrite_full(fd, text, strlen(text), 0), 0);
	return fd;
}

static unsigned int n_put;

static void put(struct super *s, const char *name, int fd)
{
	assert_true(fd >= 0);
	assert_non_null(bs_str_after(name, HOTS_KEPT));
	n_put++;
}

/* The HOT request of an adopted start: all that the one before us knew. */
static void asked_for(struct super *s, const char *workload, bool is_hot_only)
{
	uint64_t hot_only;

	bs_list_for_each(it, &s->pending) {
		const struct pending *p = bs_list_entry(it, struct pending, all);

		if (!p->open || !bs_streq(bs_msg_text(&p->request, BS_TAG_WORKLOAD, 0), workload))
			continue;
		assert_int_equal(p->request.type, BS_MSG_HOT);
		assert_string_equal(bs_msg_text(&p->request, BS_TAG_DIGEST, 0), DIGEST);
		assert_string_equal(bs_msg_text(&p->request, BS_TAG_SOURCE, 0), "docker://a/b");
		assert_string_equal(bs_msg_text(&p->request, BS_TAG_SOURCE, 1), "docker://c/d");
		hot_only = 0;
		(void)bs_msg_u64(&p->request, BS_TAG_HOT_ONLY, &hot_only);
		assert_int_equal(hot_only, is_hot_only);
		return;
	}
	fail_msg("nobody asks for workload %s", workload);
}

static void a_start_whose_pack_comes_is_gone_on_with(void **state)
{
	static const struct bs_conf conf = { .start_wait_ns = 1 };
	struct held_image *i;
	struct super s;
	int keeper;

	from_keeper(&s, "listen", &keeper);
	s.conf = &conf;
	mounts_adopt(&s, HOTS_KEPT "1", hot_text("", "train"));
	mounts_adopt(&s, HOTS_KEPT "2", hot_text("hot-only ", "serve"));
	mounts_adopt(&s, HOTS_KEPT "3", bs_memfd("nothing"));
	i = mounts_get(&s, DIGEST, false);
	assert_int_equal(i->n_hots, 2);
	n_put = 0;
	hots_keep_all(&s, put);
	assert_int_equal(n_put, 2);
	hots_new_worker(&s);
	asked_for(&s, "train", false);
	asked_for(&s, "serve", true);
	(void)bs_close(keeper);
	bs_list_for_each(it, &s.pending)
		bs_list_entry(it, struct pending, all)->open = false;
	hots_streaming(&s, DIGEST, "train", false);
	hots_streaming(&s, DIGEST, "serve", false);
	assert_int_equal(i->n_hots, 0);
	end(&s);
}

/* An image's readers must not go down with it each time. */
static void a_pack_that_kills_workers_is_left(void **state)
{
	static const struct bs_conf conf = { .start_wait_ns = 1 };
	struct held_image *i;
	struct super s;
	int keeper;

	from_keeper(&s, "listen", &keeper);
	s.conf = &conf;
	mounts_adopt(&s, HOTS_KEPT "1", hot_text("", "train"));
	i = mounts_get(&s, DIGEST, false);
	for (int n = 0; n < 3; n++) {
		hots_new_worker(&s);
		asked_for(&s, "train", false);
		bs_list_for_each(it, &s.pending)
			bs_list_entry(it, struct pending, all)->open = false;
	}
	hots_new_worker(&s);
	assert_int_equal(i->n_hots, 0);
	(void)bs_close(keeper);
	end(&s);
}

static void the_end_of_one_pack_is_not_that_of_another(void **state)
{
	struct held_image *i;
	struct super s;
	int keeper;

	from_keeper(&s, "listen", &keeper);
	mounts_adopt(&s, HOTS_KEPT "1", hot_text("", "train"));
	mounts_adopt(&s, HOTS_KEPT "2", hot_text("hot-only ", "serve"));
	i = mounts_get(&s, DIGEST, false);
	hots_streaming(&s, DIGEST, "train", true);
	hots_streaming(&s, DIGEST, "serve", true);
	hots_streaming(&s, DIGEST, "train", false);
	assert_int_equal(i->n_hots, 1);
	hots_streaming(&s, DIGEST, "serve", false);
	assert_int_equal(i->n_hots, 0);
	assert_true(i->to_warm); /* what came before there was a mount is read when there is */
	(void)bs_close(keeper);
	end(&s);
}

/* A lazy mount is told when all of it is there: it stays with those who have it. */
static void a_completed_mount_reads_ahead_further(void **state)
{
	char dir[] = "/tmp/test-kept-XXXXXX";
	uint32_t kib = 0;
	struct super s;
	int keeper;

	assert_non_null(mkdtemp(dir));
	from_keeper(&s, "listen", &keeper);
	s.bdi_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s.bdi_fd >= 0);
	assert_int_equal(mkdirat(s.bdi_fd, "erofs-4711", 0700), 0);
	(void)bs_close(openat(s.bdi_fd, "erofs-4711/read_ahead_kb", O_CREAT | O_WRONLY, 0600));
	mounts_adopt(&s, "lazy:" DIGEST ":erofs-4711", -EBADF);
	assert_int_equal(bs_bdi_get_readahead(s.bdi_fd, "erofs-4711", &kib), 0);
	assert_int_equal(kib, BS_BDI_READAHEAD_KIB);
	mounts_completed(&s, DIGEST);
	assert_int_equal(bs_bdi_get_readahead(s.bdi_fd, "erofs-4711", &kib), 0);
	assert_int_equal(kib, BS_BDI_WHOLE_KIB);
	(void)bs_close(s.bdi_fd);
	assert_int_equal(bs_rmtree(AT_FDCWD, dir), 0);
	(void)bs_close(keeper);
	end(&s);
}

/* --- mounts of checkpoints ---------------------------------------------------------------------- */

#define ID "0123456789abcdef"
#define RECORD                                                                                     \
	"{\"source\":\"hdfs://a/b\",\"options\":\"rw\",\"read_only\":false,\"for_nobody\":false,"  \
	"\"server\":3,\"holders\":[%s]}"

struct ckpt_case {
	struct super s;
	int keeper, server; /* the other ends */
	pid_t pid;	    /* that serves */
	char dir[32];
	struct ckpt *c;
};

static bool none_lives;

/* kept: which descriptors of one mount a keeper has; holders: NULL: there is no record. */
static void ckpt_begin(struct ckpt_case *k, const char *kept, const char *holders)
{
	int pair[2], pidfd;

	from_keeper(&k->s, "listen", &k->keeper);
	(void)snprintf(k->dir, sizeof(k->dir), "/tmp/test-kept-XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	k->s.ckpts_fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(k->s.ckpts_fd >= 0);
	if (holders) {
		bs_autofd int fd = openat(k->s.ckpts_fd, ID ".json", O_CREAT | O_WRONLY, 0600);

		assert_true(dprintf(fd, RECORD, holders) > 0);
	}
	k->pid = fork();
	assert_true(k->pid >= 0);
	if (k->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)pause();
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	k->server = pair[0];
	for (const char *w = kept; *w; w++) {
		static const char *const names[] = { "link", "pid", "fuse", "memory", "mount" };
		char name[KEPT_NAME_LEN];
		size_t i = (size_t)(strchr("lpfmM", *w) - "lpfmM");

		(void)snprintf(name, sizeof(name), CKPTS_KEPT "%s:" ID, names[i]);
		ckpts_adopt(&k->s, name,
			    i == 0   ? bs_dup(pair[1])
			    : i == 1 ? bs_dup(pidfd)
				     : open("/dev/null", O_RDWR | O_CLOEXEC));
	}
	(void)bs_close(pair[1]);
	(void)bs_close(pidfd);
	ckpts_settle(&k->s, none_lives);
	k->c = ckpt_find(&k->s, ID);
}

static bool lives(const struct ckpt_case *k)
{
	return waitpid(k->pid, NULL, WNOHANG) == 0;
}

/* Whether the server was told something. */
static bool told(const struct ckpt_case *k, short what)
{
	struct pollfd p = { .fd = k->server, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLIN | POLLHUP)) == what;
}

static void ckpt_done(struct ckpt_case *k)
{
	bs_list_for_each(it, &k->s.ckpts)
		ckpt_let_go(&k->s, bs_list_entry(it, struct ckpt, all));
	(void)kill(k->pid, SIGKILL);
	(void)waitpid(k->pid, NULL, 0);
	(void)bs_close(k->server);
	(void)bs_close(k->keeper);
	(void)bs_close(k->s.ckpts_fd);
	assert_int_equal(bs_rmtree(AT_FDCWD, k->dir), 0);
	end(&k->s);
}

/* Who kept it has lost some of it: who reads and writes through it loses nothing. */
static void a_server_that_lives_goes_on(void **state)
{
	static const char *const kept[] = { "lpfmM", "lpfm", "lpmM", "lpfM",
					    "lp",    "pfmM", "p",    "lfmM" };

	for (size_t i = 0; i < BS_ARRAY_LEN(kept); i++) {
		struct ckpt_case k;

		ckpt_begin(&k, kept[i], "\"one\",\"two\"");
		assert_non_null(k.c);
		assert_int_equal(k.c->state, SERVING);
		assert_int_equal(k.c->holders.n, 2);
		assert_string_equal(k.c->source, "hdfs://a/b");
		assert_true(lives(&k));
		if (strchr(kept[i], 'l'))
			assert_false(told(&k, POLLIN) || told(&k, POLLHUP));
		assert_int_equal(faccessat(k.s.ckpts_fd, ID ".json", F_OK, 0), 0);
		/* the last of its containers */
		ckpts_released(&k.s, "one");
		assert_int_equal(k.c->state, SERVING);
		ckpts_released(&k.s, "two");
		assert_int_equal(k.c->state, ENDING);
		if (strchr(kept[i], 'l'))
			assert_true(told(&k, POLLIN));
		assert_true(lives(&k));
		ckpt_done(&k);
	}
}

static void nor_is_it_ended_for_want_of_its_record(void **state)
{
	struct ckpt_case k;

	ckpt_begin(&k, "lpfmM", NULL);
	assert_non_null(k.c);
	assert_true(k.c->for_nobody);
	assert_true(k.c->mnt < 0 && k.c->fuse_fd < 0);
	assert_true(lives(&k) && !told(&k, POLLIN));
	ckpt_done(&k);
	/* nothing leads to it any more */
	ckpt_begin(&k, "fmM", "\"one\"");
	assert_null(k.c);
	assert_true(lives(&k));
	ckpt_done(&k);
}

static void one_that_nobody_has_is_told_to_end(void **state)
{
	struct ckpt_case k;

	ckpt_begin(&k, "lpfm", "");
	assert_int_equal(k.c->state, ENDING);
	assert_true(told(&k, POLLIN));
	assert_true(lives(&k));
	ckpt_done(&k);
}

/*
 * This program as the one that is started (daemon/program.h): the generation after that of the
 * record finds HDFS away, the next one serves until its link ends; one of a hundred is too full.
 */
static int be_server(void)
{
	uint64_t generation = 0;
	bs_automsg m, ready, last;

	bs_msg_init(&m, 0, 0);
	bs_msg_init(&ready, BS_MSG_READY, 0);
	bs_msg_init(&last, 0, 0);
	if (bs_msg_recv(FIRST_FD, &m) < 0 || bs_msg_u64(&m, BS_TAG_EPOCH, &generation) < 0)
		return 1;
	(void)bs_msg_add_u64(&ready, BS_TAG_RESULT,
			     generation == 4	 ? EHOSTUNREACH
			     : generation == 101 ? EOVERFLOW
						 : 0);
	if (bs_msg_send(FIRST_FD, &ready) < 0 || generation == 4 || generation == 101)
		return 1;
	return bs_msg_recv(FIRST_FD, &last) < 0;
}

/* One event of the mount. */
static void one_event(struct ckpt_case *k)
{
	struct epoll_event ev;

	do {
		assert_int_equal(epoll_wait(k->s.epoll, &ev, 1, 10000), 1);
	} while (ev.data.ptr != &k->c->link);
	ckpt_link_ready(&k->s, &k->c->link, ev.events);
	k->c = ckpt_find(&k->s, ID);
}

static void server_dies(struct ckpt_case *k)
{
	(void)kill(k->pid, SIGKILL);
	k->server = bs_close(k->server);
	one_event(k);
}

static void a_takeover_that_failed_is_tried_again(void **state)
{
	struct ckpt_case k;

	ckpt_begin(&k, "lpfmM", "\"one\"");
	server_dies(&k);
	assert_true(k.c->again && k.c->again_ns == 0);
	one_event(&k);
	assert_non_null(k.c);
	assert_true(k.c->again && k.c->again_ns > bs_clock_ns() && k.c->tries == 1);
	assert_true(ckpts_waiting(&k.s));
	ckpts_expire(&k.s, bs_clock_ns());
	assert_true(k.c->link.fd < 0);
	ckpts_expire(&k.s, k.c->again_ns);
	assert_int_equal(k.c->generation, 5);
	one_event(&k);
	assert_false(k.c->again);
	assert_int_equal(k.c->state, SERVING);
	assert_int_equal(k.c->holders.n, 1);
	ckpt_done(&k);
}

static void until_its_containers_are_gone(void **state)
{
	struct ckpt_case k;

	ckpt_begin(&k, "lpfmM", "\"one\"");
	server_dies(&k);
	one_event(&k);
	ckpts_released(&k.s, "one");
	ckpts_expire(&k.s, bs_clock_ns());
	assert_null(ckpt_find(&k.s, ID));
	ckpt_done(&k);
}

static void unless_it_would_fail_each_time(void **state)
{
	struct ckpt_case k;

	ckpt_begin(&k, "lpfmM", "\"one\"");
	k.c->generation = 100;
	server_dies(&k);
	one_event(&k);
	assert_null(k.c);
	ckpt_done(&k);
}

/* A service manager has the connections and no process. */
static void what_a_manager_held_is_served_again(void **state)
{
	struct ckpt_case k;

	assert_true(ckpts_is_of_process(CKPTS_KEPT "link:" ID));
	assert_true(ckpts_is_of_process(CKPTS_KEPT "pid:" ID));
	assert_false(ckpts_is_of_process(CKPTS_KEPT "fuse:" ID));
	assert_false(ckpts_is_of_process(CKPTS_KEPT "memory:" ID));
	assert_false(ckpts_is_of_process(CKPTS_KEPT "mount:" ID));
	none_lives = true;
	ckpt_begin(&k, "fmM", "\"one\"");
	assert_true(k.c->again);
	one_event(&k); /* the first one finds HDFS away */
	ckpts_expire(&k.s, k.c->again_ns);
	one_event(&k);
	assert_int_equal(k.c->state, SERVING);
	assert_int_equal(k.c->generation, 5);
	assert_int_equal(k.c->holders.n, 1);
	assert_false(k.c->again);
	ckpt_done(&k);
	/* not all of it, or nobody knows of what */
	ckpt_begin(&k, "fM", "\"one\"");
	assert_null(k.c);
	ckpt_done(&k);
	ckpt_begin(&k, "fmM", NULL);
	assert_null(k.c);
	ckpt_done(&k);
	none_lives = false;
}

static unsigned int count_fds(pid_t pid)
{
	char path[64];
	unsigned int n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

static unsigned int n_names;

static void count_name(struct super *s, const char *name, int fd)
{
	n_names++;
}

/* As many mounts as there may be, and as many images: the keeper has room for all of it. */
static void a_keeper_has_room_for_all_checkpoints(void **state)
{
	struct ckpt c = { .link.fd = 0, .process.pidfd = 0 };
	struct super s = { 0 };
	unsigned int before;
	struct rlimit l;
	int pair[2], status;
	pid_t pid;

	ckpt_keep(&s, &c, count_name);
	assert_int_equal(n_names, CKPT_KEPT_MAX);
	assert_true(BS_KEEPER_MAX >= 1024 + n_names * CKPTS_MAX);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	if (l.rlim_max < BS_KEEPER_MAX + 64)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)bs_close(pair[0]);
		_exit(bs_keeper_main(NULL, pair[1]));
	}
	(void)bs_close(pair[1]);
	before = count_fds(pid);
	for (unsigned int i = 0; i < BS_KEEPER_MAX + 10; i++) {
		char name[32];
		bs_automsg m;

		(void)snprintf(name, sizeof(name), "recorded:%u", i);
		bs_msg_init(&m, BS_MSG_KEEP, 0);
		assert_int_equal(bs_msg_add_text(&m, BS_TAG_NAME, name), 0);
		assert_int_equal(bs_msg_add_fd(&m, pair[0]), 0);
		assert_int_equal(bs_msg_send(pair[0], &m), 0);
	}
	for (int i = 0; i < 100 && count_fds(pid) < before - 1 + BS_KEEPER_MAX; i++)
		(void)poll(NULL, 0, 50);
	(void)poll(NULL, 0, 100);
	/* pair[0] may have been open there, too */
	assert_in_range(count_fds(pid), before - 1 + BS_KEEPER_MAX, before + BS_KEEPER_MAX);
	{
		bs_automsg m;

		bs_msg_init(&m, BS_MSG_QUIT, 0);
		assert_int_equal(bs_msg_send(pair[0], &m), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)bs_close(pair[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_names_tell_of_readahead),
		cmocka_unit_test(a_start_whose_pack_comes_is_gone_on_with),
		cmocka_unit_test(a_pack_that_kills_workers_is_left),
		cmocka_unit_test(the_end_of_one_pack_is_not_that_of_another),
		cmocka_unit_test(a_completed_mount_reads_ahead_further),
		cmocka_unit_test(a_connection_without_its_mount_is_none),
		cmocka_unit_test(nor_a_mount_without_its_connection),
		cmocka_unit_test(both_are_taken_over_in_any_order),
		cmocka_unit_test(the_keeper_forgets_what_is_of_no_use),
		cmocka_unit_test(a_server_that_lives_goes_on),
		cmocka_unit_test(nor_is_it_ended_for_want_of_its_record),
		cmocka_unit_test(one_that_nobody_has_is_told_to_end),
		cmocka_unit_test(a_keeper_has_room_for_all_checkpoints),
		cmocka_unit_test(a_takeover_that_failed_is_tried_again),
		cmocka_unit_test(what_a_manager_held_is_served_again),
		cmocka_unit_test(until_its_containers_are_gone),
		cmocka_unit_test(unless_it_would_fail_each_time),
	};

	if (argc > 1)
		return be_server();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
