/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What is known of checkpoint mounts (ckpts.c) when the supervisor dies: files and kept descriptors. */
#include "config.h"

#include "daemon/ckpts.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"

#define RECORD_MAX (1u << 20)
#define FDINFO_MAX 4096u

struct ckpt *ckpt_new(struct super *s, const char *id)
{
	struct ckpt *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	(void)snprintf(c->id, sizeof(c->id), "%s", id);
	c->mnt = c->link.fd = c->process.pidfd = c->fuse_fd = c->memory_fd = -EBADF;
	bs_list_init(&c->asks);
	bs_list_append(&s->ckpts, &c->all);
	return c;
}

struct ckpt *ckpt_find(struct super *s, const char *id)
{
	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		if (bs_streq(c->id, id))
			return c;
	}
	return NULL;
}

/* What is kept of each, in names "ckpt-WHAT:ID". */
static const struct {
	const char *what;
	size_t at; /* of the descriptor in struct ckpt */
} kept[] = {
	{ "link", offsetof(struct ckpt, link.fd) }, { "pid", offsetof(struct ckpt, process.pidfd) },
	{ "fuse", offsetof(struct ckpt, fuse_fd) }, { "memory", offsetof(struct ckpt, memory_fd) },
	{ "mount", offsetof(struct ckpt, mnt) },
};
static_assert(BS_ARRAY_LEN(kept) == CKPT_KEPT_MAX, "what the keeper has room for");

static int *kept_fd(struct ckpt *c, size_t i)
{
	return (int *)((char *)c + kept[i].at);
}

static void kept_name(const struct ckpt *c, size_t i, char name[KEPT_NAME_LEN])
{
	(void)snprintf(name, KEPT_NAME_LEN, CKPTS_KEPT "%s:%s", kept[i].what, c->id);
}

void ckpt_keep(struct super *s, struct ckpt *c,
	       void (*put)(struct super *s, const char *name, int fd))
{
	char name[KEPT_NAME_LEN];

	for (size_t i = 0; i < BS_ARRAY_LEN(kept); i++) {
		const int *fd = kept_fd(c, i);

		if (*fd < 0 || (fd == &c->mnt && c->for_nobody))
			continue;
		kept_name(c, i, name);
		put(s, name, *fd);
	}
}

void ckpt_drop(struct super *s, struct ckpt *c, int *fd)
{
	char name[KEPT_NAME_LEN];

	for (size_t i = 0; *fd >= 0 && i < BS_ARRAY_LEN(kept); i++) {
		if (kept_fd(c, i) != fd)
			continue;
		kept_name(c, i, name);
		kept_drop(s, name);
	}
	*fd = bs_close(*fd);
}

void ckpt_drop_names(struct super *s, const struct ckpt *c)
{
	char name[KEPT_NAME_LEN];

	for (size_t i = 0; i < BS_ARRAY_LEN(kept); i++) {
		kept_name(c, i, name);
		kept_drop(s, name);
	}
}

void ckpts_keep_all(struct super *s, void (*put)(struct super *s, const char *name, int fd))
{
	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);

		if (c->state != STARTING)
			ckpt_keep(s, c, put);
	}
}

/* --- the record ---------------------------------------------------------------------------- */

int ckpt_describe(struct bs_json *v, const struct ckpt *c)
{
	struct bs_json *holders = bs_json_make(v, "holders", BS_JSON_ARRAY);
	int r = holders ? 0 : -ENOMEM;

	if (r == 0)
		r = bs_json_set(v, "source", bs_json_new_str(c->source));
	if (r == 0)
		r = bs_json_set(v, "options", bs_json_new_str(c->options));
	if (r == 0)
		r = bs_json_set(v, "read_only", bs_json_new_bool(c->read_only));
	if (r == 0)
		r = bs_json_set(v, "for_nobody", bs_json_new_bool(c->for_nobody));
	if (r == 0)
		r = bs_json_set(v, "server", bs_json_new_u64(c->generation));
	for (size_t i = 0; r == 0 && i < c->holders.n; i++)
		r = bs_json_append(holders, bs_json_new_str(c->holders.v[i]));
	return r;
}

static void record_name(const struct ckpt *c, char name[ID_LEN + 8])
{
	(void)snprintf(name, ID_LEN + 8, "%s.json", c->id);
}

int ckpt_write_record(struct super *s, const struct ckpt *c)
{
	bs_auto(json) struct bs_json *v = bs_json_new(BS_JSON_OBJECT);
	bs_autobuf out = BS_BUF_INIT(RECORD_MAX);
	char name[ID_LEN + 8];
	int r = v ? ckpt_describe(v, c) : -ENOMEM;

	record_name(c, name);
	if (r == 0)
		r = bs_json_write(v, &out);
	if (r == 0)
		r = bs_atomicfile_write(s->ckpts_fd, name, bs_buf_str(&out), out.len, 0600, false);
	return r;
}

static bool is_true(const struct bs_json *v, const char *key)
{
	const struct bs_json *b = bs_json_get(v, key);

	return bs_json_is(b, BS_JSON_BOOL) && b->truth;
}

static int read_record(struct super *s, struct ckpt *c)
{
	bs_auto(json) struct bs_json *v = NULL;
	bs_autofree char *text = NULL;
	const struct bs_json *holders;
	const char *source, *options;
	uint64_t generation = 0;
	char name[ID_LEN + 8];
	size_t len;
	int r;

	record_name(c, name);
	r = bs_read_file_at(s->ckpts_fd, name, O_NOFOLLOW, RECORD_MAX, &text, &len);
	if (r == 0)
		r = bs_json_parse(name, text, len, RECORD_MAX, &v, NULL);
	if (r < 0)
		return r;
	source = bs_json_str(bs_json_get(v, "source"));
	options = bs_json_str(bs_json_get(v, "options"));
	holders = bs_json_get(v, "holders");
	if (!source || !options)
		return -EBADMSG;
	c->source = strdup(source);
	c->options = strdup(options);
	c->read_only = is_true(v, "read_only");
	c->for_nobody = is_true(v, "for_nobody");
	(void)bs_json_u64(bs_json_get(v, "server"), &generation);
	c->generation = (uint32_t)generation;
	r = c->source && c->options ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < bs_json_n(holders); i++) {
		const char *holder = bs_json_str(bs_json_at(holders, i));

		r = holder ? bs_strv_add(&c->holders, holder) : -EBADMSG;
	}
	return r;
}

void ckpt_remove_record(struct super *s, const struct ckpt *c)
{
	char name[ID_LEN + 8];

	record_name(c, name);
	(void)unlinkat(s->ckpts_fd, name, 0);
}

/* --- taking over from a supervisor that died ----------------------------------------------------- */

/* 0: it has ended. */
static pid_t pid_of(int pidfd)
{
	bs_autofree char *text = NULL;
	char path[64];
	const char *at;
	uint32_t pid;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (bs_read_file_at(AT_FDCWD, path, 0, FDINFO_MAX, &text, &len) < 0)
		return 0;
	at = strstr(text, "\nPid:");
	if (!at)
		return 0;
	at += strlen("\nPid:");
	at += strspn(at, " \t");
	text[(size_t)(at - text) + strcspn(at, "\n")] = '\0';
	return bs_parse_u32(at, &pid) < 0 ? 0 : (pid_t)pid; /* "-1": another's namespace, or gone */
}

bool ckpts_is_of_process(const char *kept_name)
{
	return bs_str_after(kept_name, CKPTS_KEPT "link:") ||
	       bs_str_after(kept_name, CKPTS_KEPT "pid:");
}

void ckpts_adopt(struct super *s, const char *name, int fd)
{
	const char *rest = bs_str_after(name, CKPTS_KEPT), *id = rest ? strchr(rest, ':') : NULL;
	char own[KEPT_NAME_LEN];
	struct ckpt *c = NULL;

	if (id && strlen(id + 1) == ID_LEN) {
		c = ckpt_find(s, id + 1);
		if (!c)
			c = ckpt_new(s, id + 1);
	}
	for (size_t i = 0; c && fd >= 0 && i < BS_ARRAY_LEN(kept); i++) {
		kept_name(c, i, own);
		if (*kept_fd(c, i) < 0 && bs_streq(own, name))
			*kept_fd(c, i) = bs_take_fd(&fd);
	}
	(void)bs_close(fd);
	if (c && c->link.fd >= 0)
		c->link.ready = ckpt_link_ready;
	if (c && c->process.pidfd >= 0 && !c->process.pid)
		c->process.pid = pid_of(c->process.pidfd);
}

/* Nobody knows what it serves to whom: as for nobody in particular, who unmounts it ends it. */
static int without_record(struct super *s, struct ckpt *c)
{
	free(c->source);
	free(c->options);
	c->source = strdup("?");
	c->options = strdup("");
	bs_strv_done(&c->holders);
	c->for_nobody = true;
	ckpt_drop(s, c, &c->mnt);
	ckpt_drop(s, c, &c->fuse_fd); /* the next one's generation is not known */
	return c->source && c->options ? 0 : -ENOMEM;
}

/* One whose server was ended with all other processes. */
static int start_one(struct super *s, struct ckpt *c)
{
	if (c->fuse_fd < 0 || c->memory_fd < 0)
		return -ENODATA;
	bs_log_warning("the server of '%s' (%s) was ended, starting another; files that were "
		       "being written are lost",
		       c->source, c->id);
	c->started_ns = bs_clock_ns();
	ckpt_go_on(s, c);
	return 0;
}

/*
 * A server that lives is neither killed nor told to end for what whoever kept it has lost: it
 * is only less than it was.
 */
static int settle_one(struct super *s, struct ckpt *c, bool none_lives)
{
	int r = read_record(s, c);

	c->state = SERVING;
	if (none_lives)
		return r == 0 ? start_one(s, c) : r;
	if (r < 0)
		bs_log_error("what is known of checkpoint mount %s cannot be read (%s); its server "
			     "goes on until it is unmounted",
			     c->id, strerrorname_np(-r));
	if (r < 0)
		r = without_record(s, c);
	if (r == 0 && c->link.fd < 0 && c->process.pidfd < 0)
		r = -ENODATA;
	/* one that cannot be spoken to: its end is seen all the same */
	if (r == 0 && c->link.fd < 0) {
		c->link = (struct watch){ bs_dup(c->process.pidfd), ckpt_link_ready };
		r = c->link.fd < 0 ? c->link.fd : 0;
	}
	if (r == 0)
		r = super_watch(s, &c->link);
	if (r < 0)
		return r;
	if (c->fuse_fd < 0 || c->memory_fd < 0)
		bs_log_warning("'%s' (%s): when its server dies no other can go on", c->source,
			       c->id);
	if (c->holders.n == 0 && !c->for_nobody)
		ckpt_end(s, c); /* it was ending, or nobody had it yet */
	return 0;
}

void ckpts_settle(struct super *s, bool none_lives)
{
	const struct dirent *e;
	DIR *d;

	bs_list_for_each(it, &s->ckpts) {
		struct ckpt *c = bs_list_entry(it, struct ckpt, all);
		int r = settle_one(s, c, none_lives);

		if (r == 0)
			continue;
		bs_log_error("checkpoint mount %s was not taken over (%s)", c->id,
			     strerrorname_np(-r));
		ckpt_let_go(s, c);
	}
	d = bs_opendir_at(s->ckpts_fd, ".");
	while (d && (e = readdir(d))) {
		char id[ID_LEN + 1] = "";

		if (strlen(e->d_name) >= ID_LEN)
			memcpy(id, e->d_name, ID_LEN);
		if (e->d_name[0] != '.' && !ckpt_find(s, id))
			(void)unlinkat(s->ckpts_fd, e->d_name, 0);
	}
	if (d)
		(void)closedir(d);
}
