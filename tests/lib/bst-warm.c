/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * bst-warm record DIR LIST -- COMMAND...: runs COMMAND with the mount at DIR as its root and
 *   writes which pages of which files of it are cached afterwards, files in the order of
 *   first use: what a recording is, when the kernel reads nothing ahead.
 * bst-warm run DIR -- COMMAND...: only runs it.
 * bst-warm play DIR TREE LIST -- COMMAND...: runs it, with a warmer that is told LIST as the
 *   worker does it: by blocks of the blob, in segments of 1 MiB, through the index of the
 *   image's TREE. Says on standard error what the index took. Without COMMAND it only warms.
 * bst-warm cached DIR FILE...: writes to standard output what is cached of the files.
 *
 * Lists have a line for each run of pages: the first, how many, and the file.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "daemon/warm.h"
#include "hot/pack.h"
#include "hot/warmlist.h"
#include "image/tree.h"
#include "rootfs/hotfiles.h"

static void die(const char *what)
{
	(void)fprintf(stderr, "bst-warm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static pid_t start(const char *dir, char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	if (chroot(dir) < 0 || chdir("/") < 0)
		die(dir);
	(void)execvp(argv[0], argv);
	die(argv[0]);
	return -1;
}

static int wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* --- record --------------------------------------------------------------------------------- */

static void write_cached(const char *path, const char *name, FILE *list)
{
	bs_autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	bs_autofree unsigned char *in = NULL;
	struct stat st;
	size_t pages;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return;
	pages = ((size_t)st.st_size + 4095) / 4096;
	in = malloc(pages);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (!in || map == MAP_FAILED || mincore(map, (size_t)st.st_size, in) < 0)
		die(path);
	for (size_t i = 0, n; i < pages; i += n) {
		for (n = 1; i + n < pages && (in[i + n] & 1) == (in[i] & 1);)
			n++;
		if (in[i] & 1)
			(void)fprintf(list, "%zu %zu %s\n", i, n, name);
	}
	(void)munmap(map, (size_t)st.st_size);
}

/* Adds the file that was opened, unless it was before. */
static void note(struct bs_map *seen, struct bs_strv *order, const char *dir, int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t n = readlink(bs_path_of_fd(fd, link), path, sizeof(path) - 1);
	const char *name;

	if (n <= 0)
		return;
	path[n] = '\0';
	name = bs_str_after(path, dir);
	if (!name || *name != '/' || bs_map_get(seen, path, (size_t)n))
		return;
	if (bs_strv_add(order, path) < 0 ||
	    bs_map_put(seen, order->v[order->n - 1], (size_t)n, order) < 0)
		die("remember a file");
}

static void note_all(int fan, struct bs_map *seen, struct bs_strv *order, const char *dir)
{
	union {
		struct fanotify_event_metadata first;
		char bytes[65536];
	} events;
	ssize_t len;

	while ((len = read(fan, &events, sizeof(events))) > 0) {
		const struct fanotify_event_metadata *e = &events.first;

		for (; FAN_EVENT_OK(e, len); e = FAN_EVENT_NEXT(e, len)) {
			note(seen, order, dir, e->fd);
			(void)bs_close(e->fd);
		}
	}
}

static int record(const char *dir, const char *list_file, char **argv)
{
	int fan = fanotify_init(FAN_CLASS_NOTIF | FAN_UNLIMITED_QUEUE | FAN_NONBLOCK | FAN_CLOEXEC,
				O_RDONLY | O_CLOEXEC);
	FILE *list = fopen(list_file, "we");
	bs_autostrv order = { 0 };
	struct bs_map seen;
	int status, rc;
	pid_t pid;

	if (fan < 0 || !list ||
	    fanotify_mark(fan, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, dir) < 0)
		die("fanotify");
	bs_map_init(&seen);
	pid = start(dir, argv);
	while ((rc = waitpid(pid, &status, WNOHANG)) == 0) {
		note_all(fan, &seen, &order, dir);
		(void)usleep(1000);
	}
	note_all(fan, &seen, &order, dir);
	(void)bs_close(fan);
	for (size_t i = 0; i < order.n; i++)
		write_cached(order.v[i], order.v[i] + strlen(dir) + 1, list);
	bs_map_done(&seen);
	if (fclose(list) != 0)
		die(list_file);
	return rc > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* --- play ----------------------------------------------------------------------------------- */

struct blocks {
	struct bs_extent *extents;
	size_t n, cap;
};

static void add_extent(struct blocks *b, uint64_t block, uint64_t n)
{
	if (bs_grow(&b->extents, &b->cap, b->n + 1, sizeof(*b->extents)) < 0)
		die("memory");
	b->extents[b->n++] = (struct bs_extent){ .block = (uint32_t)block,
						 .n_blocks = (uint32_t)n };
}

static void add_pages(struct blocks *b, const struct bs_tree *t, const struct bs_tree_entry *e,
		      uint64_t page, uint64_t n)
{
	for (uint32_t i = 0; i < e->n_extents; i++) {
		const struct bs_tree_extent *x = &t->extents[e->first_extent + i];
		uint64_t from = BS_MAX(page, x->file_block);
		uint64_t to = BS_MIN(page + n, x->file_block + x->n_blocks);

		if (from < to)
			add_extent(b, x->blob_block + (from - x->file_block), to - from);
	}
}

static void add_entries(const struct bs_tree *t, struct bs_strv *paths, struct bs_map *by_path)
{
	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];
		const char *above = paths->n ? paths->v[e->parent] : "";

		if (bs_strv_addf(paths, "%s%s%s", above, *above ? "/" : "", e->name) < 0 ||
		    bs_map_put(by_path, paths->v[i], strlen(paths->v[i]), &t->entries[e->inode]) <
			    0)
			die("memory");
	}
}

/* The list as the worker has it: blocks of the blob in the order of need. */
static void read_list(const char *list_file, const struct bs_tree *t, struct blocks *b)
{
	FILE *list = fopen(list_file, "re");
	bs_autostrv paths = { 0 };
	struct bs_map by_path;
	char path[PATH_MAX];
	uint64_t page, n;

	if (!list)
		die(list_file);
	bs_map_init(&by_path);
	add_entries(t, &paths, &by_path);
	while (fscanf(list, "%" SCNu64 " %" SCNu64 " %4095[^\n]", &page, &n, path) == 3) {
		const struct bs_tree_entry *e = bs_map_get(&by_path, path, strlen(path));

		if (e)
			add_pages(b, t, e, page, n);
	}
	(void)fclose(list);
	bs_map_done(&by_path);
}

struct told {
	int socket;
	struct bs_warmlist list;
};

static void send_list(struct told *t)
{
	if (!bs_warmlist_empty(&t->list) &&
	    send(t->socket, t->list.data, t->list.len, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		die("send");
	bs_warmlist_init(&t->list);
}

static int tell(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	struct told *t = cookie;
	int r = bs_warmlist_add(&t->list, path, off, len);

	if (r == -E2BIG) {
		send_list(t);
		r = bs_warmlist_add(&t->list, path, off, len);
	}
	return r;
}

static void tell_all(struct told *t, const struct bs_hotfiles *h, const struct blocks *b)
{
	bs_warmlist_init(&t->list);
	for (size_t i = 0, k; i < b->n; i = k) {
		uint64_t blocks = 0;

		for (k = i; k < b->n && blocks < BS_PACK_SEGMENT_BLOCKS; k++)
			blocks += b->extents[k].n_blocks;
		if (bs_hotfiles_runs(h, b->extents + i, k - i, tell, t) < 0)
			die("runs");
		send_list(t);
	}
}

static struct bs_hotfiles *make_index(const char *tree_file, const char *list_file,
				      struct blocks *b)
{
	bs_autofree char *bytes = NULL;
	bs_auto(tree) struct bs_tree *t = NULL;
	struct bs_hotfiles *h = NULL;
	uint64_t begin, read, made;
	size_t len;

	if (bs_read_file_at(AT_FDCWD, tree_file, 0, 1u << 30, &bytes, &len) < 0)
		die(tree_file);
	begin = bs_clock_ns();
	if (bs_tree_read(bytes, len, &t, NULL) < 0)
		die(tree_file);
	read = bs_clock_ns();
	if (bs_hotfiles_new(t, &h) < 0)
		die("index");
	made = bs_clock_ns();
	read_list(list_file, t, b);
	(void)fprintf(stderr,
		      "index of %" PRIu32 " inodes, %" PRIu32 " extents: %.1f ms to read the tree, "
		      "%.1f ms to make it, %zu KiB\n",
		      t->n_inodes, t->n_extents, (double)(read - begin) / 1e6,
		      (double)(made - read) / 1e6, bs_hotfiles_bytes(h) / 1024);
	return h;
}

static int play(const char *dir, const char *tree_file, const char *list_file, char **argv)
{
	bs_autofd int mnt = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bs_auto(hotfiles) struct bs_hotfiles *h = NULL;
	struct blocks b = { 0 };
	static struct told told;
	pid_t warmer, pid;
	int pair[2], rc;
	uint64_t begin;

	h = make_index(tree_file, list_file, &b);
	if (mnt < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die(dir);
	(void)fflush(NULL);
	begin = bs_clock_ns();
	warmer = fork();
	if (warmer == 0) {
		(void)close(pair[0]);
		_exit(bs_warm_run(pair[1], mnt));
	}
	(void)close(pair[1]);
	pid = argv ? start(dir, argv) : -1;
	told.socket = pair[0];
	tell_all(&told, h, &b);
	(void)close(pair[0]);
	if (wait_for(warmer) != 0)
		die("warmer");
	(void)fprintf(stderr, "warmer: %.3f s\n", (double)(bs_clock_ns() - begin) / 1e9);
	rc = argv ? wait_for(pid) : 0;
	(void)fprintf(stderr, "command: %.3f s\n", (double)(bs_clock_ns() - begin) / 1e9);
	free(b.extents);
	return rc;
}

static int show_cached(const char *dir, int n, char **names)
{
	for (int i = 0; i < n; i++) {
		bs_autofree char *path = bs_strf("%s/%s", dir, names[i]);

		if (!path)
			die("memory");
		write_cached(path, names[i], stdout);
	}
	return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
	int words = 1;

	bs_log_init("bst-warm", BS_LOG_DEBUG);
	while (words < argc && !bs_streq(argv[words], "--"))
		words++;
	if (words + 1 < argc) {
		char **command = argv + words + 1;

		if (words == 3 && bs_streq(argv[1], "run"))
			return wait_for(start(argv[2], command));
		if (words == 4 && bs_streq(argv[1], "record"))
			return record(argv[2], argv[3], command);
		if (words == 5 && bs_streq(argv[1], "play"))
			return play(argv[2], argv[3], argv[4], command);
	}
	if (argc == 5 && bs_streq(argv[1], "play"))
		return play(argv[2], argv[3], argv[4], NULL);
	if (argc > 3 && bs_streq(argv[1], "cached"))
		return show_cached(argv[2], argc - 3, argv + 3);
	(void)fprintf(stderr, "usage: bst-warm record DIR LIST | run DIR | play DIR TREE LIST "
			      "-- COMMAND...\n       bst-warm cached DIR FILE...\n");
	return 2;
}
