/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerctl ckpt: ls URL, info, verify, gc. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/human.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cmd/ctl-ckpt.h"
#include "cmd/ctl.h"
#include "cmd/progress.h"
#include "hdfs/ckpt.h"
#include "hdfs/manifest.h"

#define JSON_MAX (64u << 20)
#define CHUNK_BYTES ((size_t)64 << 20) /* at least a unit at a time, so that its sum is checked */
#define DEPTH_MAX 64

/* --- ls -------------------------------------------------------------------------------------- */

static uint32_t stripes_of(const struct bs_stripes *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_segments; i++)
		n += s->segments[i].files;
	return n;
}

static void show_entry(const struct bs_hdfs_status *s, const char *stripes)
{
	bs_autofree char *name = bs_str_shown(s->name, strlen(s->name));
	char time[BS_CLOCK_RFC3339_LEN];

	(void)printf("%c%04o  %-10s %-10s %14" PRIu64 "  %.19sZ  %8s  %s\n",
		     s->type == BS_HDFS_DIRECTORY ? 'd'
		     : s->type == BS_HDFS_SYMLINK ? 'l'
						  : '-',
		     s->mode, s->owner, s->group, s->len,
		     bs_clock_rfc3339(s->mtime_ms * BS_NS_PER_MS, time), stripes,
		     name ? name : "?");
}

static void put_entry(struct bs_jsonw *w, const struct bs_hdfs_status *s, int striped,
		      const struct bs_stripes *m)
{
	bs_jsonw_object(w);
	bs_jsonw_key(w, "name");
	bs_jsonw_bytes(w, s->name, strlen(s->name));
	bs_jsonw_kstr(w, "type", s->type == BS_HDFS_DIRECTORY ? "directory" : "file");
	bs_jsonw_ku64(w, "bytes", s->len);
	bs_jsonw_ku64(w, "mtime_ms", s->mtime_ms);
	if (striped > 0) {
		bs_jsonw_ku64(w, "stripes", stripes_of(m));
		bs_jsonw_ku64(w, "unit", m->unit);
	}
	bs_jsonw_end(w);
}

static int list_all(struct bs_ckpt *c, const char *dir, const struct bs_hdfs_list *l,
		    struct bs_jsonw *w, struct bs_error *err)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct bs_hdfs_status *s = &l->v[i];
		bs_autofree char *path = bs_strf("%s/%s", dir[1] ? dir : "", s->name);
		struct bs_stripes m;
		char text[16] = "";
		int striped = 0;

		if (!path)
			return bs_fail(err, -ENOMEM, "out of memory");
		if (s->type == BS_HDFS_FILE)
			striped = bs_ckpt_manifest(c, path, &m, err);
		if (striped < 0 && striped != -ENOENT) /* removed meanwhile */
			return striped;
		if (striped > 0)
			(void)snprintf(text, sizeof(text), "%u", stripes_of(&m));
		if (w)
			put_entry(w, s, striped, &m);
		else
			show_entry(s, striped > 0 ? text : "-");
	}
	return 0;
}

static int print_json(struct bs_jsonw *w)
{
	bs_autobuf out = BS_BUF_INIT(JSON_MAX);

	if (bs_jsonw_finish(w, &out) < 0)
		return 1;
	(void)puts(bs_buf_str(&out));
	return 0;
}

int ctl_ckpt_ls_url(const struct ctl_ckpt_how *how, const char *url)
{
	bs_auto(mounted) struct bs_mounted *m = NULL;
	struct bs_jsonw *w = how->json ? bs_jsonw_new(true) : NULL;
	struct bs_mount_options o = { 0 };
	struct bs_hdfs_list l = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	int r = ctl_ckpt_connect(how, url, "ro", &o, &m, &err);

	if (w)
		bs_jsonw_array(w);
	if (r == 0)
		r = bs_ckpt_list(bs_mounted_ckpt(m), bs_mounted_path(m), &l, &err);
	if (r == 0)
		r = list_all(bs_mounted_ckpt(m), bs_mounted_path(m), &l, w, &err);
	if (w)
		bs_jsonw_end(w);
	bs_hdfs_list_done(&l);
	bs_mount_options_done(&o);
	if (r == 0)
		return w ? print_json(w) : how->json;
	(void)bs_jsonw_free(w);
	return ctl_fail(&err);
}

/* --- info ------------------------------------------------------------------------------------ */

static void show_manifest(const struct bs_stripes *s)
{
	char a[BS_HUMAN_LEN];

	(void)printf("layout      striped, %u files in %u segments\n", stripes_of(s),
		     s->n_segments);
	(void)printf("unit        %s\n", bs_human_bytes(s->unit, a));
	(void)printf("generation  %" PRIu64 ", written by %s\n", s->generation, s->writer);
	for (uint32_t i = 0; i < s->n_segments; i++)
		(void)printf("segment     %s  %s in %u files\n", s->segments[i].id,
			     bs_human_bytes(s->segments[i].len, a), s->segments[i].files);
	for (uint32_t i = 0; i < s->n_map; i++)
		(void)printf("units       %" PRIu64 "-%" PRIu64 " at slot %" PRIu64
			     " of segment %u\n",
			     s->map[i].first, s->map[i].first + s->map[i].n - 1, s->map[i].slot,
			     s->map[i].segment);
}

static void put_manifest(struct bs_jsonw *w, const struct bs_stripes *s)
{
	bs_jsonw_kstr(w, "layout", "striped");
	bs_jsonw_ku64(w, "unit", s->unit);
	bs_jsonw_ku64(w, "generation", s->generation);
	bs_jsonw_kstr(w, "writer", s->writer);
	bs_jsonw_key(w, "segments");
	bs_jsonw_array(w);
	for (uint32_t i = 0; i < s->n_segments; i++) {
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "id", s->segments[i].id);
		bs_jsonw_ku64(w, "bytes", s->segments[i].len);
		bs_jsonw_ku64(w, "files", s->segments[i].files);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
	bs_jsonw_key(w, "map");
	bs_jsonw_array(w);
	for (uint32_t i = 0; i < s->n_map; i++) {
		bs_jsonw_object(w);
		bs_jsonw_ku64(w, "first", s->map[i].first);
		bs_jsonw_ku64(w, "units", s->map[i].n);
		bs_jsonw_ku64(w, "segment", s->map[i].segment);
		bs_jsonw_ku64(w, "slot", s->map[i].slot);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
}

static int show_info(const struct bs_hdfs_status *s, int striped, const struct bs_stripes *m,
		     bool json)
{
	char a[BS_HUMAN_LEN], time[BS_CLOCK_RFC3339_LEN];
	struct bs_jsonw *w;

	(void)bs_clock_rfc3339(s->mtime_ms * BS_NS_PER_MS, time);
	if (!json) {
		(void)printf("size        %s (%" PRIu64 " bytes)\n", bs_human_bytes(s->len, a),
			     s->len);
		(void)printf("owner       %s:%s, mode %04o\nmodified    %s\n", s->owner, s->group,
			     s->mode, time);
		if (striped > 0)
			show_manifest(m);
		else
			(void)printf("layout      plain, blocks of %s, %u replicas\n",
				     bs_human_bytes(s->block_size, a), s->replication);
		return 0;
	}
	w = bs_jsonw_new(true);
	if (!w)
		return 1;
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "bytes", s->len);
	bs_jsonw_kstr(w, "owner", s->owner);
	bs_jsonw_kstr(w, "group", s->group);
	bs_jsonw_ku64(w, "mode", s->mode);
	bs_jsonw_ku64(w, "mtime_ms", s->mtime_ms);
	if (striped > 0) {
		put_manifest(w, m);
	} else {
		bs_jsonw_kstr(w, "layout", "plain");
		bs_jsonw_ku64(w, "block_size", s->block_size);
		bs_jsonw_ku64(w, "replication", s->replication);
	}
	bs_jsonw_end(w);
	return print_json(w);
}

int ctl_ckpt_info(int argc, char **argv)
{
	struct ctl_ckpt_how how = { 0 };
	const struct bs_option options[] = {
		CTL_CKPT_OPTIONS(&how),
		{ "json", 0, BS_OPTION_FLAG, &how.json, NULL, "as JSON" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt info URL [OPTION]...",
		.text = "Shows how a file lies on HDFS: its manifest, when it is striped.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	bs_auto(mounted) struct bs_mounted *m = NULL;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_mount_options o = { 0 };
	struct bs_hdfs_status s = { 0 };
	struct bs_stripes stripes;
	const char *url;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &url, &n, &err), striped = 0;

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	r = ctl_ckpt_connect(&how, url, "ro", &o, &m, &err);
	if (r == 0)
		r = bs_ckpt_stat(bs_mounted_ckpt(m), bs_mounted_path(m), &s, &err);
	if (r == 0)
		striped = r = bs_ckpt_manifest(bs_mounted_ckpt(m), bs_mounted_path(m), &stripes,
					       &err);
	r = r < 0 ? ctl_fail(&err) : show_info(&s, striped, &stripes, how.json);
	bs_hdfs_status_done(&s);
	bs_mount_options_done(&o);
	return r;
}

/* --- verify ---------------------------------------------------------------------------------- */

struct verifying {
	struct bs_ckpt *c;
	struct bs_progress progress;
	char *buf;
	uint64_t files, bytes, bad;
};

static int verify_bytes(struct verifying *v, struct bs_ckpt_file *f, struct bs_error *err)
{
	const uint64_t unit = BS_MAX(bs_ckpt_unit(f), UINT64_C(1));
	const size_t chunk = CHUNK_BYTES / unit ? (size_t)(CHUNK_BYTES / unit * unit) : CHUNK_BYTES;
	const uint64_t size = bs_ckpt_size(f);

	for (uint64_t off = 0; off < size;) {
		ssize_t n = bs_ckpt_pread(f, v->buf, chunk, off, err);

		if (n <= 0)
			return n < 0 ? (int)n : bs_fail(err, -EIO, "it ends at %" PRIu64, off);
		off += (uint64_t)n;
		v->bytes += (uint64_t)n;
		bs_progress_set(&v->progress, v->bytes);
	}
	return 0;
}

static void verify_file(struct verifying *v, const char *path)
{
	bs_autofree char *shown = bs_str_shown(path, strlen(path));
	struct bs_error err = BS_ERROR_INIT;
	struct bs_ckpt_file *f;
	int r = bs_ckpt_open(v->c, path, 0, 0, &f, &err);

	if (r == 0) {
		r = verify_bytes(v, f, &err);
		(void)bs_ckpt_close(f, NULL);
	}
	v->files++;
	if (r == 0)
		return;
	v->bad++;
	bs_log_error("'%s': %s", shown ? shown : "?", bs_error_text(&err));
}

static int verify_dir(struct verifying *v, const char *dir, int depth, struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	int r = depth > DEPTH_MAX ? bs_fail(err, -ELOOP, "directories are nested too deep")
				  : bs_ckpt_list(v->c, dir, &l, err);

	for (size_t i = 0; r == 0 && i < l.n; i++) {
		bs_autofree char *path = bs_strf("%s/%s", dir[1] ? dir : "", l.v[i].name);

		if (!path)
			r = bs_fail(err, -ENOMEM, "out of memory");
		else if (l.v[i].type == BS_HDFS_DIRECTORY)
			r = verify_dir(v, path, depth + 1, err);
		else if (l.v[i].type == BS_HDFS_FILE)
			verify_file(v, path);
	}
	bs_hdfs_list_done(&l);
	return r;
}

static int verify(struct verifying *v, const char *path, struct bs_error *err)
{
	struct bs_hdfs_status s = { 0 };
	int r = bs_ckpt_stat(v->c, path, &s, err);

	if (r < 0)
		return r;
	bs_progress_begin(&v->progress, "reading", s.type == BS_HDFS_FILE ? s.len : 0);
	if (s.type == BS_HDFS_DIRECTORY)
		r = verify_dir(v, path, 0, err);
	else
		verify_file(v, path);
	bs_progress_end(&v->progress, r < 0 || v->bad > 0);
	bs_hdfs_status_done(&s);
	return r;
}

int ctl_ckpt_verify(int argc, char **argv)
{
	struct ctl_ckpt_how how = { 0 };
	bool quiet = false;
	const struct bs_option options[] = {
		CTL_CKPT_OPTIONS(&how),
		{ "quiet", 'q', BS_OPTION_FLAG, &quiet, NULL, "show no progress" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt verify URL [OPTION]...",
		.text = "Reads a file, or all files below a directory, and checks the sums of\n"
			"HDFS and of the stripes.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	bs_auto(mounted) struct bs_mounted *m = NULL;
	bs_autofree char *buf = malloc(CHUNK_BYTES);
	struct verifying v = { .buf = buf };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_mount_options o = { 0 };
	struct bs_ckpt_stats st;
	char a[BS_HUMAN_LEN];
	const char *url;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &url, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	r = buf ? 0 : bs_fail(&err, -ENOMEM, "out of memory");
	if (r == 0)
		r = ctl_ckpt_connect(&how, url, "ro", &o, &m, &err);
	bs_progress_init(&v.progress, quiet);
	if (r == 0) {
		v.c = bs_mounted_ckpt(m);
		r = verify(&v, bs_mounted_path(m), &err);
	}
	if (r == 0) {
		bs_ckpt_stats(v.c, &st);
		(void)printf("%" PRIu64 " files, %s read, %" PRIu64
			     " sums of units checked, %" PRIu64 " wrong; %" PRIu64
			     " files cannot be read\n",
			     v.files, bs_human_bytes(v.bytes, a), st.sums_checked, st.sums_wrong,
			     v.bad);
	}
	bs_mount_options_done(&o);
	return r < 0 ? ctl_fail(&err) : v.bad > 0;
}

/* --- gc -------------------------------------------------------------------------------------- */

int ctl_ckpt_gc(int argc, char **argv)
{
	struct ctl_ckpt_how how = { 0 };
	const char *lease = NULL;
	bool one = false;
	const struct bs_option options[] = {
		CTL_CKPT_OPTIONS(&how),
		{ "lease", 0, BS_OPTION_TEXT, &lease, "TIME",
		  "how long a writer may be silent (default 1h)" },
		{ "one", '1', BS_OPTION_FLAG, &one, NULL, "not in the directories below" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl ckpt gc URL [OPTION]...",
		.text = "Removes what dead writers and replaced files left below a directory.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	bs_auto(mounted) struct bs_mounted *m = NULL;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_mount_options o = { 0 };
	struct bs_ckpt_gc gc = { 0 };
	char a[BS_HUMAN_LEN];
	const char *url;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &url, &n, &err);

	if (r == 0 && lease && (bs_parse_duration(lease, &gc.lease_ns) < 0 || gc.lease_ns == 0))
		r = bs_fail(&err, -EINVAL, "option --lease: '%s' is no time, as 90s, 10m or 2h",
			    lease);
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	gc.recursive = !one;
	r = ctl_ckpt_connect(&how, url, NULL, &o, &m, &err);
	if (r == 0)
		r = bs_ckpt_gc(bs_mounted_ckpt(m), bs_mounted_path(m), &gc, &err);
	if (r == 0)
		(void)printf("%" PRIu64 " segments with %s removed, %" PRIu64
			     " kept: in use, or too young\n",
			     gc.segments, bs_human_bytes(gc.bytes, a), gc.kept);
	bs_mount_options_done(&o);
	return r < 0 ? ctl_fail(&err) : 0;
}
