/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "cmd/ctl-hot.h"
#include "hot/heat.h"
#include "hot/pack.h"
#include "hot/profile.h"
#include "image/open.h"
#include "image/tree.h"

#define FILES_SHOWN 40u
#define PATH_SHOWN_MAX 65536u

/* The path of an entry, of a very long one the end; malloc'ed. */
static char *path_of(const struct bs_tree *t, uint32_t entry, size_t *ret_len)
{
	char *buf = malloc(PATH_SHOWN_MAX);
	size_t at = PATH_SHOWN_MAX;

	if (!buf)
		return NULL;
	for (uint32_t i = entry; i != 0; i = t->entries[i].parent) {
		const struct bs_tree_entry *e = &t->entries[i];
		const size_t slash = i != entry;

		if (at < e->name_len + slash)
			break;
		if (slash)
			buf[--at] = '/';
		at -= e->name_len;
		memcpy(buf + at, e->name, e->name_len);
	}
	*ret_len = PATH_SHOWN_MAX - at;
	memmove(buf, buf + at, *ret_len);
	return buf;
}

static void print_path(const struct bs_tree *t, uint32_t entry)
{
	size_t len = 0;
	bs_autofree char *path = path_of(t, entry, &len), *shown = NULL;

	shown = path ? bs_str_shown(path, len) : NULL;
	printf("  %s\n", shown ? shown : "?");
}

static void path_json(struct bs_jsonw *w, const struct bs_tree *t, uint32_t entry)
{
	size_t len = 0;
	bs_autofree char *path = path_of(t, entry, &len);

	bs_jsonw_key(w, "path");
	bs_jsonw_bytes(w, path ? path : "", path ? len : 0);
}

/* Whole blocks, but no more than the file has. */
static uint64_t bytes_of(const struct bs_tree *t, uint32_t entry, uint64_t blocks)
{
	return BS_MIN(blocks * BS_BLOCK_SIZE, t->entries[entry].size);
}

static struct bs_heat *heat_of_profile(const struct bs_profile *p)
{
	bs_autofree struct bs_extent *e = calloc(p->n_ranges + (size_t)1, sizeof(*e));

	for (uint32_t i = 0; e && i < p->n_ranges; i++)
		e[i] = (struct bs_extent){ p->ranges[i].block, p->ranges[i].n_blocks };
	return e ? bs_heat_new(e, p->n_ranges) : NULL;
}

/* --- show ------------------------------------------------------------------------------------ */

struct shown {
	struct bs_hot hot;
	struct bs_profile *profile;
	struct bs_pack *pack;
	struct bs_heat *heat;
	uint64_t blocks; /* of the profile */
	uint64_t packed; /* of them, in the pack */
	struct bs_heat_file *files;
	size_t n_files;
};

static void shown_done(struct shown *s)
{
	(void)bs_profile_free(s->profile);
	(void)bs_pack_free(s->pack);
	(void)bs_heat_free(s->heat);
	free(s->files);
}
#define autoshown __attribute__((cleanup(shown_done))) struct shown

static int count(struct ctl_hot *c, struct shown *s)
{
	bs_auto(heat) struct bs_heat *packed = bs_heat_new(s->pack->extents, s->pack->n_extents);
	bs_auto(heat) struct bs_heat *both = NULL;

	s->heat = heat_of_profile(s->profile);
	both = packed && s->heat ? bs_heat_both(s->heat, packed) : NULL;
	if (!both)
		return -ENOMEM;
	s->blocks = bs_heat_blocks(s->heat);
	s->packed = bs_heat_blocks(both);
	return bs_heat_files(s->heat, c->image->tree, &s->files, &s->n_files);
}

static int load(struct ctl_hot *c, const char *name, struct shown *s, struct bs_error *err)
{
	int r = ctl_hot_find(c, name, &s->hot, err);

	if (r == 0)
		r = ctl_hot_profile(c, &s->hot, &s->profile, err);
	if (r == 0)
		r = ctl_hot_head(c, &s->hot, &s->pack, err);
	if (r < 0)
		return r;
	r = count(c, s);
	return r < 0 ? bs_fail_errno(err, r, "hot pack") : 0;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void show_numbers(struct ctl_hot *c, const struct shown *s)
{
	const uint64_t blob = c->image->tree->blob_blocks;
	char text[BS_DIGEST_TEXT_LEN], a[BS_HUMAN_LEN], b[BS_HUMAN_LEN];

	printf("workload   %s\n", s->hot.workload);
	printf("image      %s\n", bs_digest_text(&c->a.digest, text));
	printf("manifest   %s\n", bs_digest_text(&s->hot.digest, text));
	printf("recorded   %u run%s of at most %s\n", s->profile->n_runs,
	       s->profile->n_runs == 1 ? "" : "s",
	       bs_clock_human(s->profile->window_ms * BS_NS_PER_MS, a, sizeof(a)));
	printf("hot        %s of %s (%.1f %%): %" PRIu64 " blocks in %u ranges of %zu files\n",
	       bs_human_bytes(s->blocks * BS_BLOCK_SIZE, a),
	       bs_human_bytes(blob * BS_BLOCK_SIZE, b), 100 * ratio(s->blocks, blob), s->blocks,
	       s->profile->n_ranges, s->n_files);
	printf("pack       %s in %u segments, 1:%.2f, head %s\n",
	       bs_human_bytes(s->hot.pack.size, a), s->pack->n_segments,
	       ratio((uint64_t)s->pack->n_blocks * BS_BLOCK_SIZE, s->hot.pack.size),
	       bs_human_bytes(s->hot.head_len, b));
	if (s->packed != s->blocks || s->packed != s->pack->n_blocks)
		printf("note       the pack has %u blocks, %" PRIu64 " of those recorded\n",
		       s->pack->n_blocks, s->packed);
}

static void show_files(struct ctl_hot *c, const struct shown *s, uint32_t most)
{
	const struct bs_tree *t = c->image->tree;
	const size_t n = most ? BS_MIN((size_t)most, s->n_files) : s->n_files;
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN], at[BS_HUMAN_LEN];

	printf("\n%9s  %9s  %9s  %s\n", "FIRST USE", "HOT", "SIZE", "FILE");
	for (size_t i = 0; i < n; i++) {
		const struct bs_heat_file *f = &s->files[i];

		printf("%9s  %9s  %9s",
		       bs_clock_human(s->profile->ranges[f->first].at_ms * BS_NS_PER_MS, at,
				      sizeof(at)),
		       bs_human_bytes(bytes_of(t, f->entry, f->blocks), a),
		       bs_human_bytes(t->entries[f->entry].size, b));
		print_path(t, f->entry);
	}
	if (n < s->n_files)
		printf("and %zu more: --files 0 shows all\n", s->n_files - n);
}

/* What this machine's bootseerd knows of the pack's use, if there is one. */
static void show_node(struct ctl_hot *c, const struct shown *s, const char *config)
{
	bs_auto(json) struct bs_json *status = NULL;
	char text[BS_DIGEST_TEXT_LEN], artifact[BS_DIGEST_TEXT_LEN];

	if (ctl_status_fetch(config, &status, NULL) == 0)
		ctl_status_use(status, bs_digest_text(&c->a.digest, text), s->hot.workload,
			       bs_digest_text(&s->hot.digest, artifact));
}

static int show_json(struct ctl_hot *c, const struct shown *s, uint32_t most)
{
	const size_t n = most ? BS_MIN((size_t)most, s->n_files) : s->n_files;
	struct bs_jsonw *w = bs_jsonw_new(true);
	char text[BS_DIGEST_TEXT_LEN];

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "workload", s->hot.workload);
	bs_jsonw_kstr(w, "artifact", bs_digest_text(&c->a.digest, text));
	bs_jsonw_kstr(w, "digest", bs_digest_text(&s->hot.digest, text));
	bs_jsonw_ku64(w, "recordings", s->profile->n_runs);
	bs_jsonw_ku64(w, "windowMs", s->profile->window_ms);
	bs_jsonw_ku64(w, "ranges", s->profile->n_ranges);
	bs_jsonw_ku64(w, "blocks", s->blocks);
	bs_jsonw_ku64(w, "bytes", s->blocks * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "blobBytes", c->image->tree->blob_blocks * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "packBytes", s->hot.pack.size);
	bs_jsonw_ku64(w, "packHeadBytes", s->hot.head_len);
	bs_jsonw_ku64(w, "packSegments", s->pack->n_segments);
	bs_jsonw_ku64(w, "packBlocks", s->pack->n_blocks);
	bs_jsonw_ku64(w, "nFiles", s->n_files);
	bs_jsonw_key(w, "files");
	bs_jsonw_array(w);
	for (size_t i = 0; i < n; i++) {
		const struct bs_heat_file *f = &s->files[i];

		bs_jsonw_object(w);
		path_json(w, c->image->tree, f->entry);
		bs_jsonw_ku64(w, "size", c->image->tree->entries[f->entry].size);
		bs_jsonw_ku64(w, "hotBytes", bytes_of(c->image->tree, f->entry, f->blocks));
		bs_jsonw_ku64(w, "firstMs", s->profile->ranges[f->first].at_ms);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	return ctl_hot_print(w);
}

static int write_svg(struct ctl_hot *c, const struct shown *s, const char *file,
		     struct bs_error *err)
{
	bs_autofree char *where = bs_ref_text(&c->ref, false), *svg = NULL, *title = NULL;
	bs_autofd int fd = -EBADF;
	size_t len;
	int r;

	title = bs_strf("hot pack of %s of %s", s->hot.workload, where ? where : "the image");
	if (!title)
		return bs_fail(err, -ENOMEM, "picture: out of memory");
	r = ctl_hot_svg(s->profile, title, &svg, &len, err);
	if (r < 0)
		return r;
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	r = fd < 0 ? -errno : bs_write_full(fd, svg, len);
	return r < 0 ? bs_fail_errno(err, r, "write '%s'", file) : 0;
}

#define FILES_OPTION(N)                                                                            \
	{                                                                                          \
		"files", 0, BS_OPTION_U32, N, "N",                                                 \
			"show so many files, 0: all (default: 40, JSON: all)"                      \
	}
#define FILES_DEFAULT UINT32_MAX

static uint32_t files_wanted(const struct ctl_hot *c, uint32_t files)
{
	if (files != FILES_DEFAULT)
		return files;
	return c->json ? 0 : FILES_SHOWN;
}

int ctl_hot_show(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	uint32_t files = FILES_DEFAULT;
	const char *svg = NULL, *config = NULL;
	const struct bs_option options[] = {
		CTL_HOT_OPTIONS(&c),
		FILES_OPTION(&files),
		{ "svg", 0, BS_OPTION_TEXT, &svg, "FILE",
		  "also write a picture: blocks over time and in order" },
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "of this node, see bootseer.conf(5)" },
		CTL_HOT_JSON(&c),
	};
	const struct bs_usage usage = {
		"bootseerctl hot show REF WORKLOAD|DIGEST [OPTION]...",
		"Shows what a hot pack has, and of which files, in the order of first use. A\n"
		"block that several files have counts for each of them. Where this node started\n"
		"the workload: what that did with its pack, too.\n",
		options,
		BS_ARRAY_LEN(options),
		2,
		2
	};
	struct bs_error err = BS_ERROR_INIT;
	autoshown s = { 0 };
	const char *args[2];
	int r = ctl_hot_begin(&c, &usage, argc, argv, args, true);

	if (r >= 0)
		return r;
	r = load(&c, args[1], &s, &err);
	if (r == 0 && svg)
		r = write_svg(&c, &s, svg, &err);
	if (r < 0)
		return ctl_fail(&err);
	if (c.json)
		return show_json(&c, &s, files_wanted(&c, files)) < 0;
	show_numbers(&c, &s);
	show_node(&c, &s, config);
	show_files(&c, &s, files_wanted(&c, files));
	return 0;
}

/* --- diff ------------------------------------------------------------------------------------ */

struct compared {
	uint32_t entry;
	uint64_t a, b, both; /* blocks: only in the one, only in the other */
};

struct compare {
	struct bs_heat *a, *b, *both;
	struct compared *files;
	size_t n;
};

static void compare_done(struct compare *d)
{
	(void)bs_heat_free(d->a);
	(void)bs_heat_free(d->b);
	(void)bs_heat_free(d->both);
	free(d->files);
}
#define autocompare __attribute__((cleanup(compare_done))) struct compare

static int by_difference(const void *x, const void *y)
{
	const struct compared *f = x, *g = y;

	if (f->a + f->b != g->a + g->b)
		return f->a + f->b > g->a + g->b ? -1 : 1;
	if (f->both != g->both)
		return f->both > g->both ? -1 : 1;
	return (f->entry > g->entry) - (f->entry < g->entry);
}

static int compare_files(const struct bs_tree *t, struct compare *d)
{
	size_t cap = 0;

	for (uint32_t i = 0; i < t->n_entries; i++) {
		struct compared f = { .entry = i };

		if (t->entries[i].inode != i || t->entries[i].n_extents == 0)
			continue;
		f.both = bs_heat_of_file(d->both, t, i);
		f.a = bs_heat_of_file(d->a, t, i) - f.both;
		f.b = bs_heat_of_file(d->b, t, i) - f.both;
		if (f.a + f.b + f.both == 0)
			continue;
		if (bs_grow(&d->files, &cap, d->n + 1, sizeof(*d->files)) < 0)
			return -ENOMEM;
		d->files[d->n++] = f;
	}
	if (d->n > 0)
		qsort(d->files, d->n, sizeof(*d->files), by_difference);
	return 0;
}

static int load_heat(struct ctl_hot *c, const char *name, struct bs_heat **ret,
		     struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p = NULL;
	struct bs_hot hot;
	int r = ctl_hot_find(c, name, &hot, err);

	if (r == 0)
		r = ctl_hot_profile(c, &hot, &p, err);
	if (r < 0)
		return bs_error_context(err, "%s", name);
	*ret = heat_of_profile(p);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "profile: out of memory");
}

static void compare_text(struct ctl_hot *c, const struct compare *d, uint32_t most)
{
	const struct bs_tree *t = c->image->tree;
	const size_t n = most ? BS_MIN((size_t)most, d->n) : d->n;
	const uint64_t both = bs_heat_blocks(d->both);
	char x[BS_HUMAN_LEN], y[BS_HUMAN_LEN], z[BS_HUMAN_LEN];

	printf("%10s  %10s  %10s  %s\n", "1ST ONLY", "2ND ONLY", "BOTH", "FILE");
	printf("%10s  %10s  %10s  (all)\n",
	       bs_human_bytes((bs_heat_blocks(d->a) - both) * BS_BLOCK_SIZE, x),
	       bs_human_bytes((bs_heat_blocks(d->b) - both) * BS_BLOCK_SIZE, y),
	       bs_human_bytes(both * BS_BLOCK_SIZE, z));
	for (size_t i = 0; i < n; i++) {
		const struct compared *f = &d->files[i];

		printf("%10s  %10s  %10s", bs_human_bytes(bytes_of(t, f->entry, f->a), x),
		       bs_human_bytes(bytes_of(t, f->entry, f->b), y),
		       bs_human_bytes(bytes_of(t, f->entry, f->both), z));
		print_path(t, f->entry);
	}
	if (n < d->n)
		printf("and %zu more: --files 0 shows all\n", d->n - n);
}

static int compare_json(struct ctl_hot *c, const struct compare *d, uint32_t most)
{
	const struct bs_tree *t = c->image->tree;
	const size_t n = most ? BS_MIN((size_t)most, d->n) : d->n;
	const uint64_t both = bs_heat_blocks(d->both);
	struct bs_jsonw *w = bs_jsonw_new(true);

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "firstOnlyBytes", (bs_heat_blocks(d->a) - both) * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "secondOnlyBytes", (bs_heat_blocks(d->b) - both) * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "bothBytes", both * BS_BLOCK_SIZE);
	bs_jsonw_ku64(w, "nFiles", d->n);
	bs_jsonw_key(w, "files");
	bs_jsonw_array(w);
	for (size_t i = 0; i < n; i++) {
		const struct compared *f = &d->files[i];

		bs_jsonw_object(w);
		path_json(w, t, f->entry);
		bs_jsonw_ku64(w, "firstOnlyBytes", bytes_of(t, f->entry, f->a));
		bs_jsonw_ku64(w, "secondOnlyBytes", bytes_of(t, f->entry, f->b));
		bs_jsonw_ku64(w, "bothBytes", bytes_of(t, f->entry, f->both));
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	return ctl_hot_print(w);
}

int ctl_hot_diff(int argc, char **argv)
{
	ctl_autohot c = { .net = CTL_NET_INIT };
	uint32_t files = FILES_DEFAULT;
	const struct bs_option options[] = { CTL_HOT_OPTIONS(&c), FILES_OPTION(&files),
					     CTL_HOT_JSON(&c) };
	const struct bs_usage usage = {
		"bootseerctl hot diff REF WORKLOAD|DIGEST WORKLOAD|DIGEST [OPTION]...",
		"Shows what two recordings of an image share and what only one of them needs,\n"
		"and for each file, those that differ most first.\n",
		options,
		BS_ARRAY_LEN(options),
		3,
		3
	};
	struct bs_error err = BS_ERROR_INIT;
	autocompare d = { 0 };
	const char *args[3];
	int r = ctl_hot_begin(&c, &usage, argc, argv, args, true);

	if (r >= 0)
		return r;
	r = load_heat(&c, args[1], &d.a, &err);
	if (r == 0)
		r = load_heat(&c, args[2], &d.b, &err);
	if (r < 0)
		return ctl_fail(&err);
	d.both = bs_heat_both(d.a, d.b);
	if (!d.both || compare_files(c.image->tree, &d) < 0) {
		(void)bs_fail(&err, -ENOMEM, "out of memory");
		return ctl_fail(&err);
	}
	if (c.json)
		return compare_json(&c, &d, files_wanted(&c, files)) < 0;
	compare_text(&c, &d, files_wanted(&c, files));
	return 0;
}
