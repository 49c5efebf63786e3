/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The warmer in a child, on a directory of files in the place of an image's mount; what
 * it read is what the page cache has. Wants root and a disk.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/rmtree.h"
#include "daemon/warm.h"
#include "hot/warmlist.h"
#include "kern/caps.h"

#define PAGES 512u /* of a file */

static char top[] = "/var/tmp/test-warm-XXXXXX";
static int dir = -EBADF;
static int records = -EBADF; /* ours */
static pid_t child;
static struct bs_warmlist list;

static int make_top(void **state)
{
	(void)strcpy(top + strlen(top) - 6, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bs_warmlist_init(&list);
	return dir < 0 ? -1 : 0;
}

static int remove_top(void **state)
{
	dir = bs_close(dir);
	records = bs_close(records);
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
		child = 0;
	}
	return bs_rmtree(AT_FDCWD, top);
}

static void put(const char *path, mode_t mode, uid_t uid)
{
	bs_autofd int fd = openat(dir, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static char page[4096] = "x";

	assert_true(fd >= 0);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(bs_write_full(fd, page, sizeof(page)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fchown(fd, uid, uid), 0);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* How many of the pages [from, to) are cached. */
static unsigned int cached(const char *path, unsigned int from, unsigned int to)
{
	bs_autofd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, PAGES * 4096, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char in[PAGES];
	unsigned int n = 0;

	assert_true(map != MAP_FAILED);
	assert_int_equal(mincore(map, PAGES * 4096, in), 0);
	assert_int_equal(munmap(map, PAGES * 4096), 0);
	for (unsigned int i = from; i < to; i++)
		n += in[i] & 1;
	return n;
}

/* What is in flight when the warmer ends comes a little later. */
static void expect_cached(const char *path, unsigned int from, unsigned int to, unsigned int want)
{
	unsigned int n = cached(path, from, to);

	for (unsigned int i = 0; i < 200 && n != want; i++) {
		(void)poll(NULL, 0, 10);
		n = cached(path, from, to);
	}
	assert_int_equal(n, want);
}

/* In the child, afterwards: can it do more than exit? */
static bool is_free(void)
{
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 ||
	       bs_path_open_in_root(AT_FDCWD, "/etc/passwd", O_RDONLY, 0) >= 0 ||
	       socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || kill(getppid(), 0) >= 0 ||
	       unlink("a") >= 0 || fork() >= 0;
}

static void start(uint64_t for_ns, uint64_t bytes_max)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	records = pair[0];
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)close(pair[0]);
		/* a fork of the supervisor has what that has */
		if (bs_caps_bound(BS_ROLE_SUPERVISOR) < 0 || bs_caps_limit(BS_ROLE_SUPERVISOR) < 0)
			_exit(3);
		if (bs_warm_run_within(pair[1], dir, for_ns, bytes_max) < 0)
			_exit(1);
		_exit(is_free() ? 2 : 0);
	}
	(void)close(pair[1]);
}

static void add(const char *path, unsigned int page, unsigned int n)
{
	assert_int_equal(bs_warmlist_add(&list, path, page * 4096, n * 4096), 0);
}

static void send_bytes(const void *data, size_t len)
{
	assert_int_equal(send(records, data, len, MSG_NOSIGNAL), len);
}

static void send_list(void)
{
	send_bytes(list.data, list.len);
	bs_warmlist_init(&list);
}

/* Closes the socket and waits; the exit code. */
static int end(void)
{
	int status;

	records = bs_close(records);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void what_is_listed_is_cached(void **state)
{
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	put("a", 0644, 0);
	put("d/b", 0, 1234); /* nobody but its owner could */
	expect_cached("a", 0, PAGES, 0);
	start(BS_WARM_NS_MAX, UINT64_MAX);
	add("a", 3, 1);
	add("a", 100, 200); /* of several steps */
	send_list();
	add("d/b", PAGES - 2, 100); /* beyond its end */
	add("d/b", PAGES + 1, 1);
	send_list();
	assert_int_equal(end(), 0);
	expect_cached("a", 3, 4, 1);
	expect_cached("a", 100, 300, 200);
	expect_cached("a", 0, PAGES, 201);
	expect_cached("d/b", PAGES - 2, PAGES, 2);
	expect_cached("d/b", 0, PAGES, 2);
}

/* More files than are kept open, small steps in flight, and back to the first. */
static void many_files(void **state)
{
	char name[8];

	for (unsigned int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		put(name, 0600, 0);
		add(name, i, 1);
	}
	for (unsigned int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		add(name, 100, 2);
	}
	start(BS_WARM_NS_MAX, UINT64_MAX);
	send_list();
	assert_int_equal(end(), 0);
	for (unsigned int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		expect_cached(name, i, i + 1, 1);
		expect_cached(name, 100, 102, 2);
	}
}

static void make_socket(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	bs_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.30s/%.30s", top, name);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
}

static void only_files_beneath_are_read(void **state)
{
	put("outside", 0600, 0);
	put("file", 0600, 0);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	assert_int_equal(symlinkat("file", dir, "link"), 0);
	assert_int_equal(symlinkat("/proc/self/fd", dir, "d/fds"), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(mknodat(dir, "device", S_IFCHR | 0600, makedev(1, 9)), 0);
	make_socket("socket");
	start(BS_WARM_NS_MAX, UINT64_MAX);
	add("link", 0, 1);
	add("d", 0, 1);
	add("d/fds/0", 0, 1);
	add("fifo", 0, 1);
	add("device", 0, 1);
	add("socket", 0, 1);
	add("absent", 0, 1);
	add("file/below", 0, 1);
	send_list();
	add("file", 7, 1);
	send_list();
	assert_int_equal(end(), 0);
	expect_cached("file", 0, PAGES, 1);
	expect_cached("file", 7, 8, 1);
}

static void no_list_ends_it(void **state)
{
	put("a", 0600, 0);
	start(BS_WARM_NS_MAX, UINT64_MAX);
	add("a", 0, 1);
	list.data[0] ^= 1;
	send_list();
	assert_int_equal(end(), 1);
	expect_cached("a", 0, PAGES, 0);
}

static void too_long_a_datagram_ends_it(void **state)
{
	static uint8_t bytes[BS_WARMLIST_BYTES_MAX + 100];

	start(BS_WARM_NS_MAX, UINT64_MAX);
	send_bytes(bytes, sizeof(bytes));
	assert_int_equal(end(), 1);
}

static void it_reads_no_more_than_it_may(void **state)
{
	int status;

	put("a", 0600, 0);
	start(BS_WARM_NS_MAX, 150 * 4096);
	add("a", 0, 100);
	add("a", 200, 100);
	send_list();
	/* of itself */
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_cached("a", 0, 100, 100);
	expect_cached("a", 200, 300, 50);
}

static void its_time_is_over(void **state)
{
	int status;

	start(50 * BS_NS_PER_MS, UINT64_MAX);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The value of a line of /proc/PID/status of the child. */
static void status_of(const char *name, char *ret, size_t size)
{
	char path[64], text[4096], *line;
	bs_autofd int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = bs_read_full(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	line = strstr(text, name);
	assert_non_null(line);
	line += strlen(name);
	line += strspn(line, ":\t ");
	line[strcspn(line, "\n")] = '\0';
	(void)snprintf(ret, size, "%s", line);
}

static void expect_status(const char *name, const char *want)
{
	char got[64];

	status_of(name, got, sizeof(got));
	if (strcmp(got, want) != 0)
		fail_msg("%s is '%s', not '%s'", name, got, want);
}

static void it_is_shut_in(void **state)
{
	char path[64], score[16], seccomp[8] = "";
	struct stat root, top_dir;
	bs_autofd int fd = -EBADF;
	ssize_t n;

	start(BS_WARM_NS_MAX, UINT64_MAX);
	for (unsigned int i = 0; i < 500 && strcmp(seccomp, "2") != 0; i++) {
		(void)poll(NULL, 0, 10);
		status_of("Seccomp", seccomp, sizeof(seccomp));
	}
	assert_string_equal(seccomp, "2");
	expect_status("NoNewPrivs", "1");
	expect_status("Groups", "");
	expect_status("CapEff", "0000000000000004"); /* CAP_DAC_READ_SEARCH */
	expect_status("CapPrm", "0000000000000004");
	expect_status("CapBnd", "0000000000000004");
	expect_status("CapInh", "0000000000000000");
	expect_status("CapAmb", "0000000000000000");
	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)child);
	assert_int_equal(stat(path, &root), 0);
	assert_int_equal(fstat(dir, &top_dir), 0);
	assert_true(root.st_ino == top_dir.st_ino);
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = bs_read_full(fd, score, sizeof(score) - 1);
	assert_int_equal(n, 5);
	assert_memory_equal(score, "1000\n", 5);
	assert_int_equal(end(), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_top, remove_top)
	const struct CMUnitTest tests[] = {
		CASE(what_is_listed_is_cached),
		CASE(many_files),
		CASE(only_files_beneath_are_read),
		CASE(no_list_ends_it),
		CASE(too_long_a_datagram_ends_it),
		CASE(it_reads_no_more_than_it_may),
		CASE(its_time_is_over),
		CASE(it_is_shut_in),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
