/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerctl timeline ID: one container's start as a list of bars. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "cmd/ctl.h"
#include "ctl/conf.h"
#include "obs/timeline.h"

#define FILE_MAX (4u << 20)
#define LINE_MAX_BYTES 8192u
#define EVENTS_MAX 4096u
#define BAR 40u
#define TEXT_LEN 1024u
#define SUFFIX ".jsonl"
#define ID_BEGIN_MIN 12u /* a shorter one may be the name of another container */

struct event {
	char name[32];
	char program[32];
	char text[TEXT_LEN];
	uint64_t start_ns, end_ns; /* equal: a mark */
	uint64_t bytes;
};

struct timeline {
	struct event *events;
	size_t n, cap;
	uint64_t wall_ns, boot_ns; /* of the clock line */
};

static uint64_t number(const struct bs_json *v, const char *key)
{
	uint64_t n = 0;

	(void)bs_json_u64(bs_json_get(v, key), &n);
	return n;
}

static void copy_text(char *to, size_t size, const struct bs_json *v, const char *key)
{
	const char *s = bs_json_str(bs_json_get(v, key));

	(void)snprintf(to, size, "%s", s ? s : "");
}

/* A line that is no event of ours is passed over: the file only tells, nothing depends on it. */
static int read_line(struct timeline *t, const char *line, size_t len)
{
	bs_auto(json) struct bs_json *v = NULL;
	const char *kind;
	struct event *e;

	if (t->n == EVENTS_MAX || bs_json_parse("line", line, len, LINE_MAX_BYTES, &v, NULL) < 0)
		return 0;
	kind = bs_json_str(bs_json_get(v, "event"));
	if (kind && bs_streq(kind, "clock")) {
		t->wall_ns = number(v, "wall_ns");
		t->boot_ns = number(v, "boot_ns");
		return 0;
	}
	if (!kind || (!bs_streq(kind, "span") && !bs_streq(kind, "mark")))
		return 0;
	if (bs_grow(&t->events, &t->cap, t->n + 1, sizeof(*t->events)) < 0)
		return -ENOMEM;
	e = &t->events[t->n++];
	*e = (struct event){ .bytes = number(v, "bytes") };
	e->start_ns = number(v, bs_streq(kind, "span") ? "start_ns" : "at_ns");
	e->end_ns = bs_streq(kind, "span") ? number(v, "end_ns") : e->start_ns;
	copy_text(e->name, sizeof(e->name), v, "name");
	copy_text(e->program, sizeof(e->program), v, "program");
	copy_text(e->text, sizeof(e->text), v, "text");
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	/* what contains comes before what is contained */
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static void bar(const struct event *e, uint64_t from, uint64_t span, char out[BAR + 1])
{
	size_t a = (size_t)((e->start_ns - from) * (BAR - 1) / span);
	size_t z = (size_t)((e->end_ns - from) * (BAR - 1) / span);

	memset(out, ' ', BAR);
	out[BAR] = '\0';
	for (size_t i = a; i <= z && i < BAR; i++)
		out[i] = '=';
	if (e->start_ns == e->end_ns)
		out[a < BAR ? a : BAR - 1] = '*';
}

/* Marks of a completion that came long after would flatten everything else: the bars end with the spans and the first marks. */
static uint64_t last_end(const struct timeline *t)
{
	uint64_t end = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!bs_streq(t->events[i].name, "last-frame") &&
		    !bs_streq(t->events[i].name, "delete"))
			end = BS_MAX(end, t->events[i].end_ns);
	}
	return end;
}

/* What it means, but for what is said of the format; then its own text. */
static void show_text(const struct event *e)
{
	for (size_t i = 0; i < BS_SPAN_MAX; i++) {
		const char *meaning = bs_timeline_names[i].meaning;
		const char *format = strstr(meaning, " (text");

		if (!bs_streq(bs_timeline_names[i].name, e->name))
			continue;
		format = format ? format : strstr(meaning, " (bytes");
		(void)printf("  %.*s", (int)(format ? (size_t)(format - meaning) : strlen(meaning)),
			     meaning);
	}
	(void)printf("%s%s\n", e->text[0] ? ": " : "", e->text);
}

static void show(struct timeline *t, const char *id)
{
	char when[BS_CLOCK_RFC3339_LEN], line[BAR + 1], at[16], took[16], bytes[BS_HUMAN_LEN];
	uint64_t from, end;

	if (t->n == 0) {
		(void)printf("%s: nothing is recorded\n", id);
		return;
	}
	qsort(t->events, t->n, sizeof(*t->events), by_start);
	from = t->events[0].start_ns;
	end = BS_MAX(last_end(t), from + 1);
	(void)printf("%s  %s\n", id, bs_clock_rfc3339(t->wall_ns + (from - t->boot_ns), when));
	for (size_t i = 0; i < t->n; i++) {
		struct event e = t->events[i];

		e.end_ns = BS_MIN(e.end_ns, end);
		e.start_ns = BS_MIN(e.start_ns, end);
		bar(&e, from, end - from, line);
		e = t->events[i];
		(void)printf("%9s |%s| %-13s %9s",
			     bs_clock_human(e.start_ns - from, at, sizeof(at)), line, e.name,
			     e.start_ns == e.end_ns
				     ? ""
				     : bs_clock_human(e.end_ns - e.start_ns, took, sizeof(took)));
		if (e.bytes)
			(void)printf("  %s", bs_human_bytes(e.bytes, bytes));
		show_text(&e);
	}
}

/* Engines show the first 12 digits of their ids. NULL: no file, or several, begin so. */
static char *complete_id(int run_fd, const char *begin)
{
	bs_autofd int fd = openat(run_fd, "timeline", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 && strlen(begin) >= ID_BEGIN_MIN ? fdopendir(fd) : NULL;
	bs_autofree char *found = NULL;
	unsigned int n = 0;

	if (!d)
		return NULL;
	(void)bs_take_fd(&fd); /* closedir closes it */
	for (struct dirent *e; (e = readdir(d));) {
		if (!bs_str_after(e->d_name, begin) || !bs_str_ends(e->d_name, SUFFIX))
			continue;
		free(bs_take(&found));
		found = strndup(e->d_name, strlen(e->d_name) - strlen(SUFFIX));
		n++;
	}
	(void)closedir(d);
	return n == 1 ? bs_take(&found) : NULL;
}

static int no_timeline(const char *run_dir, const char *id, struct bs_error *err)
{
	return bs_fail(err, -ENOENT,
		       "no timeline of '%s' in '%s': give the container's id, of which engines "
		       "show the first 12 digits",
		       id, run_dir);
}

/* ret_id: the whole of an id of which only the beginning was given. */
static int read_timeline(const char *run_dir, const char *id, char **ret_id, char **ret,
			 struct bs_error *err)
{
	bs_autofd int dir = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bs_autofree char *name = bs_strf("timeline/%s" SUFFIX, id), *whole = NULL;
	int r;

	if (!name || !bs_path_name_ok(id, strlen(id)))
		return bs_fail(err, -EINVAL, "'%s' is no container id", id);
	if (dir < 0 && errno == ENOENT)
		return no_timeline(run_dir, id, err);
	if (dir < 0)
		return bs_fail_errno(err, -errno, "open run directory '%s'%s", run_dir,
				     errno == EACCES ? " (which only root may)" : "");
	r = bs_read_file_at(dir, name, O_NOFOLLOW, FILE_MAX, ret, NULL);
	if (r == -ENOENT) {
		whole = complete_id(dir, id);
		if (!whole)
			return no_timeline(run_dir, id, err);
		free(bs_take(&name));
		name = bs_strf("timeline/%s" SUFFIX, whole);
		r = name ? bs_read_file_at(dir, name, O_NOFOLLOW, FILE_MAX, ret, NULL) : -ENOMEM;
	}
	if (r < 0)
		return bs_fail_errno(err, r, "read the timeline of '%s' in '%s'", id, run_dir);
	*ret_id = whole ? bs_take(&whole) : strdup(id);
	return *ret_id ? 0 : bs_fail_errno(err, -ENOMEM, "id");
}

int ctl_timeline(int argc, char **argv)
{
	const char *config = NULL, *id = NULL;
	bool json = false;
	const struct bs_option options[] = {
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
		{ "json", 0, BS_OPTION_FLAG, &json, NULL, "the recorded lines as they are" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl timeline ID [OPTION]...",
		.text = "Shows where the time of a container's start went.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	bs_autofree char *text = NULL, *whole = NULL;
	struct bs_error err = BS_ERROR_INIT;
	struct timeline t = { 0 };
	struct bs_conf conf;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &id, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (bs_conf_read(config, &conf, &err) < 0)
		return ctl_fail(&err);
	r = read_timeline(conf.run_dir, id, &whole, &text, &err);
	bs_conf_done(&conf);
	if (r < 0)
		return ctl_fail(&err);
	if (json) {
		(void)fputs(text, stdout);
		return 0;
	}
	for (const char *line = text; *line && r == 0; line += strspn(line, "\n")) {
		size_t len = strcspn(line, "\n");

		r = read_line(&t, line, len);
		line += len;
	}
	show(&t, whole);
	free(t.events);
	return 0;
}
