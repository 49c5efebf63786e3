/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/stubtar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "image/artifact.h"
#include "image/nodes.h"
#include "image/spool.h"
#include "image/stub.h"

#define TAR_MAX (BS_STUB_VOLUMES_MAX + (64u << 20))
#define PIECE (64u << 10)

static la_ssize_t to_buf(struct archive *a, void *cookie, const void *data, size_t len)
{
	struct bs_buf *b = cookie;

	if (bs_buf_add(b, data, len) < 0) {
		archive_set_error(a, EFBIG, "the stub's layer is too large");
		return -1;
	}
	return (la_ssize_t)len;
}

struct writer {
	struct archive *a;
	struct archive_entry *e;
	struct bs_map first; /* inode → its first node that was written */
	struct bs_buf path;  /* of the directory that is being written, with slash */
	char *piece;
};

static int fail(struct writer *w, struct bs_error *err)
{
	return bs_fail(err, -EFBIG, "write the stub's layer: %s", archive_error_string(w->a));
}

static int put_header(struct writer *w, struct bs_error *err)
{
	/* a warning is about characters of names, which are bytes to us */
	return archive_write_header(w->a, w->e) < ARCHIVE_WARN ? fail(w, err) : 0;
}

static int put_data(struct writer *w, const void *data, size_t len, struct bs_error *err)
{
	return archive_write_data(w->a, data, len) == (la_ssize_t)len ? 0 : fail(w, err);
}

static int put_content(struct writer *w, const struct bs_inode *i, struct bs_error *err)
{
	for (uint64_t off = 0; off < i->size;) {
		size_t n = (size_t)BS_MIN(i->size - off, (uint64_t)PIECE);
		int r = bs_spool_read(i->spool, i->spool_off + off, w->piece, n, err);

		if (r == 0)
			r = put_data(w, w->piece, n, err);
		if (r < 0)
			return r;
		off += n;
	}
	return 0;
}

static int by_xattr_name(const void *a, const void *b)
{
	return -strcmp((*(const struct bs_tree_xattr *const *)a)->name,
		       (*(const struct bs_tree_xattr *const *)b)->name);
}

/* libarchive writes them in the reverse order of adding. */
static int set_xattrs(struct writer *w, const struct bs_inode *i)
{
	const struct bs_tree_xattr **v;

	if (i->xattrs.n == 0)
		return 0;
	v = calloc(i->xattrs.n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t k = 0; k < i->xattrs.n; k++)
		v[k] = &i->xattrs.v[k];
	qsort(v, i->xattrs.n, sizeof(*v), by_xattr_name);
	for (size_t k = 0; k < i->xattrs.n; k++)
		archive_entry_xattr_add_entry(w->e, v[k]->name, v[k]->value, v[k]->value_len);
	free(v);
	return 0;
}

static int set_attributes(struct writer *w, const struct bs_inode *i, const char *path)
{
	archive_entry_clear(w->e);
	archive_entry_copy_pathname(w->e, path);
	archive_entry_set_mode(w->e, i->mode);
	archive_entry_set_uid(w->e, i->uid);
	archive_entry_set_gid(w->e, i->gid);
	archive_entry_set_mtime(w->e, i->mtime_s, (long)i->mtime_ns);
	if (S_ISREG(i->mode))
		archive_entry_set_size(w->e, (la_int64_t)i->size);
	if (S_ISLNK(i->mode))
		archive_entry_copy_symlink(w->e, i->target);
	if (S_ISCHR(i->mode) || S_ISBLK(i->mode)) {
		archive_entry_set_rdevmajor(w->e, i->rdev_major);
		archive_entry_set_rdevminor(w->e, i->rdev_minor);
	}
	return set_xattrs(w, i);
}

static char *full_path(const struct bs_node *n)
{
	bs_autobuf out = BS_BUF_INIT(BS_TREE_BYTES_MAX);
	size_t depth = 0;

	for (const struct bs_node *up = n; up->parent; up = up->parent)
		depth++;
	for (; depth > 0; depth--) {
		const struct bs_node *at = n;

		for (size_t i = 1; i < depth; i++)
			at = at->parent;
		(void)bs_buf_addf(&out, "%s%s", out.len ? "/" : "", at->name);
	}
	return bs_buf_take(&out);
}

static int put_link(struct writer *w, const struct bs_node *n, const struct bs_node *first,
		    const char *path, struct bs_error *err)
{
	bs_autofree char *target = full_path(first);

	if (!target || set_attributes(w, n->inode, path) < 0)
		return bs_fail_errno(err, -ENOMEM, "hard link");
	archive_entry_copy_hardlink(w->e, target);
	archive_entry_unset_size(w->e);
	return put_header(w, err);
}

static int put_node(struct writer *w, struct bs_node *n, const char *path, struct bs_error *err)
{
	struct bs_inode *i = n->inode;
	int r;

	if (i->refs > 1) {
		const struct bs_node *first = bs_map_get(&w->first, &n->inode, sizeof(n->inode));

		if (first)
			return put_link(w, n, first, path, err);
		if (bs_map_put(&w->first, &n->inode, sizeof(n->inode), n) < 0)
			return bs_fail_errno(err, -ENOMEM, "hard links");
	}
	if (set_attributes(w, i, path) < 0)
		return bs_fail_errno(err, -ENOMEM, "attributes");
	r = put_header(w, err);
	return r == 0 && S_ISREG(i->mode) ? put_content(w, i, err) : r;
}

static int put_marker(struct writer *w, const char *marker, size_t len, struct bs_error *err)
{
	struct bs_inode dir = { .mode = S_IFDIR | 0755 };
	struct bs_inode file = { .mode = S_IFREG | 0644, .size = len };
	int r;

	(void)set_attributes(w, &dir, ".bootseer/");
	r = put_header(w, err);
	if (r < 0)
		return r;
	(void)set_attributes(w, &file, BS_MARKER_PATH);
	r = put_header(w, err);
	return r < 0 ? r : put_data(w, marker, len, err);
}

/* Depth first; volumes are small, and so is the depth that a C stack must bear. */
static int put_tree(struct writer *w, struct bs_node *dir, unsigned int depth, struct bs_error *err)
{
	bs_autofree struct bs_node **v = NULL;
	size_t n, len = w->path.len;
	int r = 0;

	v = bs_node_sorted(dir, &n);
	if (!v)
		return bs_fail_errno(err, -ENOMEM, "directory");
	for (size_t i = 0; r == 0 && i < n; i++) {
		bool is_dir = S_ISDIR(v[i]->inode->mode);

		if (!v[i]->marked || (!dir->parent && bs_streq(v[i]->name, ".bootseer")))
			continue;
		w->path.len = len;
		if (bs_buf_addf(&w->path, "%s%s", v[i]->name, is_dir ? "/" : "") < 0)
			return bs_fail_errno(err, -EFBIG, "the stub's paths");
		r = put_node(w, v[i], bs_buf_str(&w->path), err);
		if (r == 0 && is_dir && depth > 0)
			r = put_tree(w, v[i], depth - 1, err);
	}
	w->path.len = len;
	return r;
}

static int write_tar(struct writer *w, struct bs_nodes *t, const char *marker, size_t marker_len,
		     struct bs_buf *tar, struct bs_error *err)
{
	int r;

	archive_write_set_format_pax(w->a);
	archive_write_set_bytes_in_last_block(w->a, 1);
	if (archive_write_set_options(w->a, "pax:hdrcharset=BINARY,pax:xattrheader=SCHILY") <
		    ARCHIVE_WARN ||
	    archive_write_open(w->a, tar, NULL, to_buf, NULL) != ARCHIVE_OK)
		return fail(w, err);
	if (set_attributes(w, t->root->inode, "./") < 0)
		return bs_fail_errno(err, -ENOMEM, "attributes");
	r = put_header(w, err);
	if (r == 0)
		r = put_marker(w, marker, marker_len, err);
	if (r == 0)
		r = put_tree(w, t->root, 1000, err);
	if (r == 0 && archive_write_close(w->a) != ARCHIVE_OK)
		r = fail(w, err);
	return r;
}

static int compress(const struct bs_buf *tar, struct bs_buf *out, struct bs_error *err)
{
	struct writer w = { .a = archive_write_new(), .e = archive_entry_new() };
	int r = 0;

	if (!w.a || !w.e) {
		r = bs_fail_errno(err, -ENOMEM, "the stub's layer");
	} else {
		archive_write_set_format_raw(w.a);
		archive_write_add_filter_gzip(w.a);
		archive_write_set_bytes_in_last_block(w.a, 1);
		archive_entry_set_filetype(w.e, AE_IFREG);
		archive_entry_copy_pathname(w.e, "layer");
		if (archive_write_set_options(w.a, "gzip:compression-level=9,gzip:!timestamp") !=
			    ARCHIVE_OK ||
		    archive_write_open(w.a, out, NULL, to_buf, NULL) != ARCHIVE_OK)
			r = fail(&w, err);
		if (r == 0)
			r = put_header(&w, err);
		if (r == 0)
			r = put_data(&w, tar->data, tar->len, err);
		if (r == 0 && archive_write_close(w.a) != ARCHIVE_OK)
			r = fail(&w, err);
	}
	archive_entry_free(w.e);
	archive_write_free(w.a);
	return r;
}

int bs_stubtar_write(struct bs_nodes *t, const char *marker, size_t marker_len, struct bs_buf *out,
		     struct bs_digest *ret_diff_id, struct bs_error *err)
{
	bs_autobuf tar = BS_BUF_INIT(TAR_MAX);
	struct writer w = { .a = archive_write_new(),
			    .e = archive_entry_new(),
			    .path = BS_BUF_INIT(1u << 20),
			    .piece = malloc(PIECE) };
	int r;

	bs_map_init(&w.first);
	if (!w.a || !w.e || !w.piece)
		r = bs_fail_errno(err, -ENOMEM, "the stub's layer");
	else
		r = write_tar(&w, t, marker, marker_len, &tar, err);
	bs_map_done(&w.first);
	bs_buf_done(&w.path);
	archive_entry_free(w.e);
	archive_write_free(w.a);
	free(w.piece);
	if (r < 0)
		return r;
	bs_digest_of(tar.data, tar.len, ret_diff_id);
	return compress(&tar, out, err);
}
