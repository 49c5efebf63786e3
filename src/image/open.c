/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/open.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "image/frames.h"
#include "image/manifest.h"
#include "image/table.h"
#include "image/tree.h"
#include "net/repo.h"

#define TABLE_BYTES_MAX ((size_t)BS_TABLE_FRAMES_MAX * 36 + 4096)
#define SYMLINKS_MAX 40u
#define ATTEMPTS 4u

struct bs_image *bs_image_free(struct bs_image *i)
{
	if (!i)
		return NULL;
	bs_repo_unref(i->repo);
	bs_tree_free(i->tree);
	bs_table_free(i->table);
	bs_json_free(i->config);
	free(i->config_text);
	free(i);
	return NULL;
}

static int get(struct bs_image *i, const struct bs_descriptor *d, size_t max, const char *what,
	       char **ret, struct bs_error *err)
{
	int r = bs_repo_get_blob_mem(i->repo, &d->digest, d->size, max, ret, err);

	return r < 0 ? bs_error_context(err, "%s", what) : 0;
}

static int open_parts(struct bs_image *i, struct bs_error *err)
{
	bs_autofree char *tree = NULL, *table = NULL;
	int r = get(i, &i->a.tree, BS_TREE_BYTES_MAX, "tree", &tree, err);

	if (r == 0)
		r = bs_tree_read(tree, (size_t)i->a.tree.size, &i->tree, err);
	if (r == 0)
		r = get(i, &i->a.table, TABLE_BYTES_MAX, "table", &table, err);
	if (r == 0)
		r = bs_table_read(table, (size_t)i->a.table.size, &i->table, err);
	if (r == 0)
		r = get(i, &i->a.config, BS_CONFIG_MAX, "config", &i->config_text, err);
	if (r == 0)
		r = bs_json_parse("image config", i->config_text, (size_t)i->a.config.size,
				  BS_CONFIG_MAX, &i->config, err);
	if (r < 0)
		return r;
	if (i->table->blob_blocks != i->tree->blob_blocks || i->table->data_len != i->a.data.size)
		return bs_fail(err, -EBADMSG, "tree, table and data do not belong together");
	return 0;
}

int bs_image_open(struct bs_repo *repo, const struct bs_artifact *a, struct bs_image **ret,
		  struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_auto(image) struct bs_image *i = calloc(1, sizeof(*i));
	int r;

	err = err ? err : &own;
	if (!i)
		return bs_fail_errno(err, -ENOMEM, "image");
	i->repo = bs_repo_ref(repo);
	i->a = *a;
	r = open_parts(i, err);
	if (r < 0)
		return bs_error_context(err, "converted image in '%s'", repo->name);
	*ret = bs_take(&i);
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

/* One pass over the tree for each component: few names are ever asked for. */
static int64_t child(const struct bs_tree *t, uint32_t dir, const char *name, size_t len)
{
	for (uint32_t i = dir + 1; i < t->n_entries; i++)
		if (t->entries[i].parent == dir && t->entries[i].name_len == len &&
		    memcmp(t->entries[i].name, name, len) == 0)
			return i;
	return -ENOENT;
}

static const struct bs_tree_entry *inode_of(const struct bs_tree *t, uint32_t i)
{
	return &t->entries[t->entries[i].inode];
}

int64_t bs_image_lookup(const struct bs_image *img, const char *path)
{
	const struct bs_tree *t = img->tree;
	bs_autofree char *rest = strdup(path);
	unsigned int links = 0;
	uint32_t at = 0;
	char *p = rest;

	while (p && *(p += strspn(p, "/"))) {
		size_t len = strcspn(p, "/");
		int64_t next;

		if (len == 1 && p[0] == '.') {
			p += len;
			continue;
		}
		if (len == 2 && p[0] == '.' && p[1] == '.') {
			at = t->entries[at].parent;
			p += len;
			continue;
		}
		if (!S_ISDIR(inode_of(t, at)->mode))
			return -ENOTDIR;
		next = child(t, at, p, len);
		if (next < 0)
			return next;
		p += len;
		if (S_ISLNK(inode_of(t, (uint32_t)next)->mode)) {
			const char *target = inode_of(t, (uint32_t)next)->target;
			char *joined = ++links > SYMLINKS_MAX ? NULL : bs_strf("%s/%s", target, p);

			if (!joined)
				return links > SYMLINKS_MAX ? -ELOOP : -ENOMEM;
			if (target[0] == '/')
				at = 0;
			free(rest);
			p = rest = joined;
			continue;
		}
		at = (uint32_t)next;
	}
	return rest ? (int64_t)at : -ENOMEM;
}

/* --- contents -------------------------------------------------------------------------------- */

static int read_range(struct bs_image *i, uint64_t off, size_t len, void *buf, struct bs_error *err)
{
	for (unsigned int attempt = 1;; attempt++) {
		struct bs_range rg = { .blob = i->a.data.digest,
				       .off = off,
				       .len = len,
				       .buf = buf,
				       .lane = BS_LANE_DEMAND };

		if (bs_repo_read_wait(i->repo, &rg) == 0)
			return 0;
		if (attempt == ATTEMPTS || rg.result == -ENOENT || rg.result == -EACCES)
			return bs_fail(err, rg.result, "data of the image in '%s': %s",
				       i->repo->name, rg.text);
	}
}

int bs_image_read_frame(struct bs_image *i, struct bs_framer *f, uint32_t n, void *packed,
			void *out, struct bs_error *err)
{
	const struct bs_frame *fr = &i->table->frames[n];
	int r = read_range(i, fr->off, fr->len, packed, err);

	if (r < 0)
		return r;
	r = bs_frame_decode(f, fr, packed, out);
	return r < 0 ? bs_fail(err, r, "frame %u of the image is broken", n) : 0;
}

static int read_block(struct bs_image *i, struct bs_framer *f, uint64_t block, uint8_t *frame,
		      uint8_t *packed, uint64_t *have, struct bs_error *err)
{
	uint32_t n = bs_table_find(i->table, block);
	int r;

	if (*have == i->table->frames[n].first_block)
		return 0;
	r = bs_image_read_frame(i, f, n, packed, frame, err);
	if (r == 0)
		*have = i->table->frames[n].first_block;
	return r;
}

static int read_content(struct bs_image *i, const struct bs_tree_entry *e, char *text, size_t len,
			struct bs_error *err)
{
	bs_auto(framer) struct bs_framer *f = bs_framer_new(0);
	bs_autofree uint8_t *frame = malloc(BS_FRAME_BYTES_MAX),
			    *packed = malloc(BS_FRAME_DATA_MAX);
	uint64_t have = UINT64_MAX;

	if (!f || !frame || !packed)
		return bs_fail_errno(err, -ENOMEM, "file");
	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_tree_extent *x = &i->tree->extents[e->first_extent + k];

		for (uint64_t b = 0; b < x->n_blocks; b++) {
			uint64_t off = (x->file_block + b) * BS_BLOCK_SIZE;
			int r;

			if (off >= len)
				return 0;
			r = read_block(i, f, x->blob_block + b, frame, packed, &have, err);
			if (r < 0)
				return r;
			memcpy(text + off, frame + (x->blob_block + b - have) * BS_BLOCK_SIZE,
			       (size_t)BS_MIN((uint64_t)BS_BLOCK_SIZE, len - off));
		}
	}
	return 0;
}

int bs_image_read_text(struct bs_image *i, const char *path, size_t max, char **ret,
		       struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	const struct bs_tree_entry *e = NULL;
	bs_autofree char *text = NULL;
	int64_t at = bs_image_lookup(i, path);
	size_t len = 0;
	int r;

	err = err ? err : &own;
	if (at >= 0)
		e = inode_of(i->tree, (uint32_t)at);
	if (e && S_ISREG(e->mode))
		len = (size_t)BS_MIN(e->size, (uint64_t)max);
	text = calloc(1, len + 1);
	if (!text)
		return bs_fail_errno(err, -ENOMEM, "'%s' of the image", path);
	r = len ? read_content(i, e, text, len, err) : 0;
	if (r < 0)
		return bs_error_context(err, "'%s' of the image", path);
	*ret = bs_take(&text);
	return 0;
}

/* --- proof ----------------------------------------------------------------------------------- */

struct verify {
	struct bs_image *i;
	struct bs_framer *f;
	uint32_t frame; /* the next one */
	size_t have;	/* bytes of it */
	uint8_t *packed, *blocks;
	void (*progress)(void *cookie, uint64_t bytes);
	void *cookie;
	struct bs_error err;
};

static int verify_sink(void *cookie, const void *data, size_t len)
{
	struct verify *v = cookie;
	const uint8_t *p = data;

	if (v->progress)
		v->progress(v->cookie, len);
	while (len > 0) {
		const struct bs_frame *fr = &v->i->table->frames[v->frame];
		size_t n;

		if (v->frame == v->i->table->n_frames)
			return bs_fail(&v->err, -EBADMSG, "there is data behind the last frame");
		n = BS_MIN(len, fr->len - v->have);
		memcpy(v->packed + v->have, p, n);
		v->have += n;
		p += n;
		len -= n;
		if (v->have < fr->len)
			continue;
		if (bs_frame_decode(v->f, fr, v->packed, v->blocks) < 0)
			return bs_fail(&v->err, -EBADMSG,
				       "frame %u of %u is broken: convert the image again",
				       v->frame, v->i->table->n_frames);
		v->frame++;
		v->have = 0;
	}
	return 0;
}

int bs_image_verify(struct bs_image *i, void (*progress)(void *cookie, uint64_t bytes),
		    void *cookie, struct bs_error *err)
{
	struct verify v = { .i = i,
			    .f = bs_framer_new(0),
			    .packed = malloc(BS_FRAME_DATA_MAX),
			    .blocks = malloc(BS_FRAME_BYTES_MAX),
			    .progress = progress,
			    .cookie = cookie };
	int r;

	if (!v.f || !v.packed || !v.blocks)
		r = bs_fail_errno(err, -ENOMEM, "verify");
	else
		r = bs_repo_get_blob(i->repo, &i->a.data.digest, i->a.data.size, verify_sink, &v,
				     err);
	/* the frame says more than the transfer that was stopped for it */
	if (r < 0 && v.err.code && err)
		*err = v.err;
	if (r == 0 && (v.frame != i->table->n_frames || v.have))
		r = bs_fail(err, -EBADMSG, "data ends in frame %u of %u", v.frame,
			    i->table->n_frames);
	bs_framer_free(v.f);
	free(v.packed);
	free(v.blocks);
	return r;
}
