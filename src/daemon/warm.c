/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "daemon/program.h"
#include "hot/warmlist.h"
#include "kern/memory.h"
#include "kern/mountfd.h"
#include "kern/sandbox.h"

#define STEP_BYTES (128u << 10) /* the kernel takes no more at once while it reads nothing ahead */
#define FLIGHT_BYTES (1u << 20) /* asked for and not seen to be there; a fault waits behind them */
#define FLIGHT_STEPS 64u
#define FILES_MAX 16u		    /* open at once */
#define LOOK_NS (50 * BS_NS_PER_MS) /* between two looks at the memory */
#define SPARE_SHARE 16u		    /* this part of the node's memory is to stay available */
#define ROOM_BYTES (16u << 20)	    /* and so much of our control group */
#define PRESSURE_PERCENT_MAX 10u    /* of the time, somebody waits for memory */
#define ALARM_S 2u		    /* after its time, when it does not end by itself */
#define NICE 5
#define SPACE_BYTES (4u << 20) /* that we may still map */

struct file {
	char path[PATH_MAX]; /* "": none */
	int fd;		     /* -EBADF: it is none to be read */
	uint64_t size;
	uint64_t used; /* when */
};

struct step {
	struct file *file;
	uint64_t last; /* byte of it */
	uint32_t bytes;
};

static struct {
	int records, root;
	uint64_t end_ns, look_ns;
	uint64_t left; /* bytes that we may still read */
	struct bs_memory memory;
	struct file files[FILES_MAX];
	uint64_t clock; /* of struct file's used */
	struct step flight[FLIGHT_STEPS];
	unsigned int first_step, n_steps;
	uint32_t flight_bytes;
	uint64_t bytes, runs, refused; /* for the log */
	const char *ended;	       /* why; NULL: it goes on */
	uint8_t list[BS_WARMLIST_BYTES_MAX + 1];
} warm;

/* --- what is in flight ------------------------------------------------------------------------ */

/* Waits for the oldest step's last page, which is there or on its way. */
static void land_one(void)
{
	const struct step *s = &warm.flight[warm.first_step];
	char byte;

	(void)bs_pread_full(s->file->fd, &byte, 1, s->last); /* a failure is the reader's to see */
	warm.flight_bytes -= s->bytes;
	warm.first_step = (warm.first_step + 1) % FLIGHT_STEPS;
	warm.n_steps--;
}

static void launch(struct file *f, uint64_t off, uint32_t bytes)
{
	while (warm.n_steps == FLIGHT_STEPS ||
	       (warm.n_steps > 0 && warm.flight_bytes + bytes > FLIGHT_BYTES))
		land_one();
	if (posix_fadvise(f->fd, (off_t)off, bytes, POSIX_FADV_WILLNEED) != 0)
		return;
	warm.flight[(warm.first_step + warm.n_steps++) % FLIGHT_STEPS] =
		(struct step){ .file = f, .last = off + bytes - 1, .bytes = bytes };
	warm.flight_bytes += bytes;
	warm.bytes += bytes;
}

static bool in_flight(const struct file *f)
{
	for (unsigned int i = 0; i < warm.n_steps; i++) {
		if (warm.flight[(warm.first_step + i) % FLIGHT_STEPS].file == f)
			return true;
	}
	return false;
}

/* --- files ------------------------------------------------------------------------------------ */

/*
 * Only what is a regular file is opened: to open others may do something. Between the
 * two nothing can change, the mount is read-only; were it otherwise, there are no devices.
 */
static int open_regular(const char *path, uint64_t *ret_size)
{
	bs_autofd int place = bs_path_open_beneath(warm.root, path, O_PATH | O_NOFOLLOW, 0);
	bs_autofd int fd = -EBADF;
	struct stat st;

	if (place < 0)
		return place;
	if (fstat(place, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	fd = bs_path_open_beneath(warm.root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
				  0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_size = (uint64_t)st.st_size;
	return bs_take_fd(&fd);
}

static struct file *file_at(const char *path)
{
	struct file *f = &warm.files[0];

	for (unsigned int i = 0; i < FILES_MAX; i++) {
		struct file *g = &warm.files[i];

		if (bs_streq(g->path, path)) {
			g->used = ++warm.clock;
			return g;
		}
		if (g->used < f->used)
			f = g;
	}
	while (in_flight(f))
		land_one();
	if (f->path[0])
		(void)bs_close(f->fd);
	memcpy(f->path, path, strlen(path) + 1); /* the list's are shorter than PATH_MAX */
	f->size = 0;
	f->fd = open_regular(path, &f->size);
	f->used = ++warm.clock;
	return f;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Whether to go on. */
static bool look(void)
{
	const uint64_t now = bs_clock_ns();
	struct bs_memory_state s;

	if (now >= warm.end_ns)
		warm.ended = "its time is over";
	if (warm.left == 0)
		warm.ended = "that is all that it may read";
	if (now < warm.look_ns || warm.ended)
		return !warm.ended;
	warm.look_ns = now + LOOK_NS;
	if (bs_memory_look(&warm.memory, &s) < 0)
		warm.ended = "the state of the memory cannot be read";
	else if (s.available < s.total / SPARE_SHARE || s.group_room < ROOM_BYTES ||
		 s.pressure_percent >= PRESSURE_PERCENT_MAX)
		warm.ended = "memory is short";
	return !warm.ended;
}

static void warm_run(const struct bs_warmlist_run *run)
{
	struct file *f = file_at(run->path);
	uint64_t off = run->off, end;

	warm.runs++;
	if (f->fd < 0) {
		warm.refused++;
		return;
	}
	end = BS_MIN(off + run->len, f->size);
	while (off < end && look()) {
		uint64_t bytes = BS_MIN(end - off, (uint64_t)STEP_BYTES);

		bytes = BS_MIN(bytes, warm.left);
		launch(f, off, (uint32_t)bytes);
		warm.left -= bytes;
		off += bytes;
	}
}

/* Waits for a list and works on it. -EBADMSG: it is none. */
static int take_list(void)
{
	const uint64_t now = bs_clock_ns();
	struct pollfd p = { .fd = warm.records, .events = POLLIN };
	struct bs_warmlist_reader reader;
	struct bs_warmlist_run run;
	ssize_t n;
	int r;

	if (now >= warm.end_ns) {
		warm.ended = "its time is over";
		return 0;
	}
	r = poll(&p, 1, (int)((warm.end_ns - now) / BS_NS_PER_MS + 1));
	if (r <= 0)
		return r == 0 || errno == EINTR ? 0 : -errno;
	n = recv(warm.records, warm.list, sizeof(warm.list), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno == ECONNRESET)) {
		warm.ended = "all lists were read";
		return 0;
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	r = bs_warmlist_open(&reader, warm.list, (size_t)n);
	while (r == 0 && look() && bs_warmlist_next(&reader, &run))
		warm_run(&run);
	return r;
}

/* --- setting up --------------------------------------------------------------------------------- */

/* Others come first, and when something has to go it is us. None of it must work. */
static void be_humble(void)
{
	const struct rlimit none = { 0, 0 };

	bs_program_oom_score(1000);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		      IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NR - 1));
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_NPROC, &none);
	(void)prctl(PR_SET_NAME, "bootseer-warm");
}

/* Ends us where we wait for the FUSE server, too: the default action is as good as SIGKILL. */
static int set_alarm(uint64_t for_ns, struct bs_error *err)
{
	sigset_t alarm_only;

	(void)sigemptyset(&alarm_only);
	(void)sigaddset(&alarm_only, SIGALRM);
	if (signal(SIGALRM, SIG_DFL) == SIG_ERR || sigprocmask(SIG_UNBLOCK, &alarm_only, NULL) < 0)
		return bs_fail_errno(err, -errno, "let the alarm through");
	(void)alarm((unsigned int)(for_ns / BS_NS_PER_S) + ALARM_S);
	return 0;
}

/* What is mapped is the program's; we need no more of it. */
static int limit_space(struct bs_error *err)
{
	bs_autofd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	struct rlimit space;
	char text[128];
	ssize_t n = fd < 0 ? -errno : bs_read_full(fd, text, sizeof(text) - 1);
	uint64_t pages;

	if (n < 0)
		return bs_fail_errno(err, (int)n, "read our size");
	text[n] = '\0';
	text[strcspn(text, " ")] = '\0';
	if (bs_parse_u64(text, &pages) < 0)
		return bs_fail(err, -EBADMSG, "our size is not a number");
	space.rlim_cur = space.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + SPACE_BYTES;
	if (setrlimit(RLIMIT_AS, &space) < 0)
		return bs_fail_errno(err, -errno, "limit our memory");
	return 0;
}

static int open_memory(struct bs_error *err)
{
	bs_autofd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bs_autofd int cgroup = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct bs_memory_state s;
	int r = bs_memory_open(proc, cgroup, &warm.memory);

	if (r == 0)
		r = bs_memory_look(&warm.memory, &s);
	if (r < 0)
		return bs_fail_errno(err, r, "look at the memory");
	/* what we bring in counts as free again: only this says how much it is at most */
	s.available = BS_MIN(s.available, s.group_room);
	warm.left = BS_MIN(warm.left, s.available / 2);
	return 0;
}

/*
 * A copy of the mount, so that we may forbid what a container may do. Kernels before
 * 6.15 copy no mount that is attached nowhere; there open_regular is what protects.
 */
static int open_root(int mnt, struct bs_error *err)
{
	int r;

	warm.root = bs_mountfd_clone(mnt, "", NULL);
	if (warm.root < 0) {
		warm.root = bs_dup(mnt);
		return warm.root < 0 ? bs_fail_errno(err, warm.root, "the mount") : 0;
	}
	r = bs_mountfd_restrict(warm.root, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV |
						   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return r < 0 ? bs_fail_errno(err, r, "restrict the mount") : 0;
}

static int set_up(int records, int mnt, uint64_t for_ns, struct bs_error *err)
{
	int r = open_root(mnt, err);

	warm.records = records;
	if (r == 0)
		r = open_memory(err);
	if (r == 0) {
		be_humble();
		r = set_alarm(for_ns, err);
	}
	if (r == 0)
		r = limit_space(err);
	return r < 0 ? r : bs_sandbox_enter_warmer(warm.root, err);
}

int bs_warm_run_within(int records, int mnt, uint64_t for_ns, uint64_t bytes_max)
{
	struct bs_error err = BS_ERROR_INIT;
	int r;

	for_ns = BS_MIN(for_ns, BS_WARM_NS_MAX);
	warm.end_ns = bs_clock_ns() + for_ns;
	warm.left = bytes_max;
	r = set_up(records, mnt, for_ns, &err);
	if (r < 0) {
		bs_log_warning("the warmer cannot begin: %s", bs_error_text(&err));
		return r;
	}
	while (r == 0 && !warm.ended)
		r = take_list();
	bs_log_debug("warmer: %" PRIu64 " KiB in %" PRIu64 " runs, %" PRIu64 " refused; %s",
		     warm.bytes / 1024, warm.runs, warm.refused,
		     warm.ended ? warm.ended : "what came was no list");
	return r;
}

int bs_warm_run(int records, int mnt)
{
	return bs_warm_run_within(records, mnt, BS_WARM_NS_MAX, UINT64_MAX) < 0;
}
