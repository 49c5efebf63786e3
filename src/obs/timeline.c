/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "obs/timeline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define LINE_MAX_BYTES 4096 /* one write of so much to a file in append mode does not mix */
#define ID_MAX 255

const struct bs_span_name bs_timeline_names[BS_SPAN_MAX] = {
	[BS_SPAN_CREATE] = { "create", "bootseer's part of create, until the runtime is started" },
	[BS_SPAN_CONFIG] = { "config", "config.json and the marker read and judged" },
	[BS_SPAN_DAEMON_START] = { "daemon-start", "bootseerd started" },
	[BS_SPAN_RESOLVE] = { "resolve", "a tag asked for (text: the digest that it means)" },
	[BS_SPAN_ACQUIRE] = { "acquire",
			      "bootseerd asked for the image's mount, until it gave it" },
	[BS_SPAN_PREPARE] = { "prepare", "bootseerd's worker made the image ready to be mounted" },
	[BS_SPAN_MANIFEST] = { "manifest", "the artifact's manifest found and fetched" },
	[BS_SPAN_TREE] = { "tree", "tree fetched and verified (bytes: compressed)" },
	[BS_SPAN_TABLE] = { "table", "frame table fetched and verified (bytes: its size)" },
	[BS_SPAN_METADATA] = { "metadata", "EROFS metadata written (bytes: its size)" },
	[BS_SPAN_MOUNT] = { "mount", "EROFS mounted" },
	[BS_SPAN_SWAP] = { "swap", "the container's overlay put together and in place" },
	[BS_SPAN_HOT] = { "hot-pack", "the hot pack streamed into the cache (bytes: that came)" },
	[BS_SPAN_HOT_USE] = { "hot-use",
			      "what was read of the pack, and beside it (bytes: fetched)" },
	[BS_SPAN_UNPACK] = { "unpack", "the whole image fetched and unpacked (bytes: of content)" },
	[BS_SPAN_CKPT] = { "ckpt-mount", "a checkpoint mounted (text: where, or what failed)" },
	[BS_SPAN_CKPT_LOAD] = { "ckpt-load", "reads of a checkpoint, first to last (bytes: read)" },
	[BS_SPAN_RUNTIME] = { "runtime", "the wrapped runtime (runc) made the container" },
	[BS_SPAN_DELETE] = { "delete", "bootseer's part of delete" },
	[BS_MARK_RECORDING] = { "recording",
				"what the start reads begins to be recorded, for a pack" },
	[BS_MARK_FIRST_READ] = { "first-read", "the kernel asked for the first block" },
	[BS_MARK_CKPT_READ] = { "ckpt-read", "the first read of a checkpoint" },
	[BS_MARK_FIRST_FRAME] = { "first-frame", "the first frame came from a source" },
	[BS_MARK_LAST_FRAME] = { "last-frame", "the image is complete on this node" },
	[BS_MARK_FALLBACK] = { "fallback", "the start is not lazy (text: why)" },
};

static void put_line(struct bs_timeline *t, struct bs_jsonw *w)
{
	bs_autobuf line = BS_BUF_INIT(LINE_MAX_BYTES);

	if (bs_jsonw_finish(w, &line) == 0 && bs_buf_adds(&line, "\n") == 0)
		(void)!write(t->fd, line.data, line.len);
}

static struct bs_jsonw *start_line(struct bs_timeline *t, const char *event)
{
	struct bs_jsonw *w = t->fd >= 0 ? bs_jsonw_new(false) : NULL;

	if (!w)
		return NULL;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "event", event);
	return w;
}

static void end_line(struct bs_timeline *t, struct bs_jsonw *w, const char *text)
{
	bs_jsonw_ku64(w, "pid", (uint64_t)getpid());
	bs_jsonw_kstr(w, "program", t->program);
	if (text) {
		bs_jsonw_key(w, "text");
		bs_jsonw_bytes(w, text, strnlen(text, LINE_MAX_BYTES / 8));
	}
	bs_jsonw_end(w);
	put_line(t, w);
}

void bs_timeline_open(struct bs_timeline *t, int run_dirfd, const char *id, const char *program)
{
	bs_autofree char *name = bs_strf("%s.jsonl", id);
	bs_autofd int dir = -EBADF;
	struct bs_jsonw *w;
	struct stat st;

	*t = BS_TIMELINE_NONE;
	t->program = program;
	if (!name || strlen(id) > ID_MAX || !bs_path_name_ok(id, strlen(id)))
		return;
	dir = bs_mkdir_open(run_dirfd, "timeline", 0700);
	if (dir < 0)
		return;
	t->fd = openat(dir, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->fd < 0 || fstat(t->fd, &st) < 0 || st.st_size > 0)
		return;
	w = start_line(t, "clock");
	if (!w)
		return;
	bs_jsonw_ku64(w, "boot_ns", bs_clock_ns());
	bs_jsonw_ku64(w, "wall_ns", bs_clock_wall_ns());
	bs_jsonw_kstr(w, "id", id);
	bs_jsonw_end(w);
	put_line(t, w);
}

void bs_timeline_begin(struct bs_timeline *t, int run_dirfd, const char *id, const char *program)
{
	bs_autofree char *path = bs_strf("timeline/%s.jsonl", id);

	/* unlinked, not cut: who still writes to the old one writes to nothing */
	if (path && bs_path_name_ok(id, strlen(id)))
		(void)unlinkat(run_dirfd, path, 0);
	bs_timeline_open(t, run_dirfd, id, program);
}

void bs_timeline_done(struct bs_timeline *t)
{
	t->fd = bs_close(t->fd);
}

struct aged {
	char name[256];
	int64_t mtime_s;
};

static int oldest_first(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	return x->mtime_s < y->mtime_s ? -1 : x->mtime_s > y->mtime_s;
}

void bs_timeline_prune(int run_dirfd)
{
	int fd = openat(run_dirfd, "timeline", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bs_autofree struct aged *all = NULL;
	const struct dirent *de;
	size_t n = 0, cap = 0;
	struct stat st;

	if (!d) {
		(void)bs_close(fd);
		return;
	}
	while ((de = readdir(d))) {
		if (de->d_name[0] == '.' || bs_grow(&all, &cap, n + 1, sizeof(*all)) < 0 ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(all[n].name, sizeof(all[n].name), "%s", de->d_name);
		all[n++].mtime_s = st.st_mtim.tv_sec;
	}
	if (n > BS_TIMELINES_MAX) {
		qsort(all, n, sizeof(*all), oldest_first);
		for (size_t i = 0; i < n - BS_TIMELINES_MAX / 2; i++)
			(void)unlinkat(dirfd(d), all[i].name, 0);
	}
	(void)closedir(d);
}

void bs_timeline_past(struct bs_timeline *t, enum bs_span name, uint64_t start_ns, uint64_t end_ns,
		      uint64_t bytes, const char *text)
{
	struct bs_jsonw *w = start_line(t, "span");

	if (!w)
		return;
	bs_jsonw_kstr(w, "name", bs_timeline_names[name].name);
	bs_jsonw_ku64(w, "start_ns", start_ns);
	bs_jsonw_ku64(w, "end_ns", end_ns);
	if (bytes)
		bs_jsonw_ku64(w, "bytes", bytes);
	end_line(t, w, text);
}

void bs_timeline_span(struct bs_timeline *t, enum bs_span name, uint64_t start_ns, uint64_t bytes,
		      const char *text)
{
	bs_timeline_past(t, name, start_ns, bs_clock_ns(), bytes, text);
}

void bs_timeline_mark(struct bs_timeline *t, enum bs_span name, uint64_t at_ns, const char *text)
{
	struct bs_jsonw *w = start_line(t, "mark");

	if (!w)
		return;
	bs_jsonw_kstr(w, "name", bs_timeline_names[name].name);
	bs_jsonw_ku64(w, "at_ns", at_ns);
	end_line(t, w, text);
}
