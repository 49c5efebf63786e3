/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * blob ─▶ libarchive "raw" (gzip, zstd) ─▶ SHA-256, a window of the last bytes
 *      ─▶ libarchive tar ─▶ entries, spool
 * The window is for image/tarhead, which looks at the headers themselves.
 */
#include "config.h"

#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "image/nodes.h"
#include "image/spool.h"
#include "image/tarhead.h"

#define WINDOW_SIZE (4u << 20)
/* kept when the window is full: more than the longest extension headers of libarchive, 1 MiB each
 */
#define WINDOW_KEEP (2560u << 10)
#define LINK_MAX_BYTES 65536u

static void archive_free_at(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a);
}

#define auto_archive __attribute__((cleanup(archive_free_at))) struct archive

struct reader {
	struct archive *raw, *tar;
	bs_layer_input *input;
	void *cookie;
	int input_result; /* what stopped the input */
	struct bs_sha256 *hash;
	uint8_t *window; /* [window_at, window_at + window_len) of the uncompressed bytes */
	uint64_t window_at;
	size_t window_len;
	struct bs_layer *l;
};

void bs_layer_forget_entries(struct bs_layer *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->entries[i].path);
		free(l->entries[i].link);
		bs_inode_unref(l->entries[i].inode);
	}
	free(l->entries);
	l->entries = NULL;
	l->n = l->cap = 0;
}

struct bs_layer *bs_layer_free(struct bs_layer *l)
{
	if (!l)
		return NULL;
	bs_layer_forget_entries(l);
	bs_spool_free(l->spool);
	free(l->name);
	free(l);
	return NULL;
}

/* --- the stream ------------------------------------------------------------------------------ */

static la_ssize_t raw_read(struct archive *a, void *cookie, const void **ret)
{
	struct reader *rd = cookie;
	ssize_t n = rd->input(rd->cookie, ret);

	if (n < 0) {
		rd->input_result = (int)n;
		archive_set_error(a, (int)-n, "%s", strerror((int)-n));
		return -1;
	}
	return n;
}

/* Puts the bytes into the window and gives them from there. */
static const uint8_t *window_add(struct reader *rd, const void *data, size_t n)
{
	uint8_t *at;

	if (n > WINDOW_SIZE - WINDOW_KEEP)
		return NULL;
	if (rd->window_len + n > WINDOW_SIZE) {
		size_t drop = rd->window_len - WINDOW_KEEP;

		memmove(rd->window, rd->window + drop, WINDOW_KEEP);
		rd->window_at += drop;
		rd->window_len = WINDOW_KEEP;
	}
	at = rd->window + rd->window_len;
	memcpy(at, data, n);
	rd->window_len += n;
	return at;
}

/* The next uncompressed bytes: count, 0 at the end, -1. */
static ssize_t next_bytes(struct reader *rd, const void **ret)
{
	const void *data;
	la_int64_t off;
	size_t n;
	int r;

	do
		r = archive_read_data_block(rd->raw, &data, &n, &off);
	while (r == ARCHIVE_OK && n == 0);
	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK)
		return -1;
	bs_sha256_update(rd->hash, data, n);
	rd->l->bytes += n;
	*ret = data;
	return (ssize_t)n;
}

static la_ssize_t tar_read(struct archive *a, void *cookie, const void **ret)
{
	struct reader *rd = cookie;
	const void *data;
	ssize_t n = next_bytes(rd, &data);

	if (n > 0) {
		*ret = window_add(rd, data, (size_t)n);
		if (!*ret)
			n = -1;
	}
	if (n < 0)
		archive_set_error(a, EIO, "%s",
				  archive_error_string(rd->raw) ? archive_error_string(rd->raw)
								: "cannot be decompressed");
	return n;
}

static int open_raw(struct reader *rd, bool packed, struct bs_error *err)
{
	struct archive_entry *e;
	int r;

	archive_read_support_format_raw(rd->raw);
	archive_read_support_format_empty(rd->raw);
	if (packed) {
		archive_read_support_filter_gzip(rd->raw);
		archive_read_support_filter_zstd(rd->raw);
	}
	r = archive_read_open(rd->raw, rd, NULL, raw_read, NULL);
	if (r == ARCHIVE_OK)
		r = archive_read_next_header(rd->raw, &e);
	if (r == ARCHIVE_EOF)
		return 1;
	if (r != ARCHIVE_OK)
		return bs_fail(err, -EBADMSG, "%s", archive_error_string(rd->raw));
	return 0;
}

static int open_tar(struct reader *rd, struct bs_error *err)
{
	archive_read_support_format_tar(rd->tar);
	archive_read_support_format_empty(rd->tar);
	if (archive_read_open(rd->tar, rd, NULL, tar_read, NULL) != ARCHIVE_OK)
		return bs_fail(err, -EBADMSG, "no tar archive: %s", archive_error_string(rd->tar));
	return 0;
}

/* --- one entry ------------------------------------------------------------------------------- */

/* "./a//b/../c/" becomes "a/c" as containerd does it; above the root is nothing. */
static int clean_name(const char *raw, char **ret, struct bs_error *err)
{
	size_t len = strlen(raw), at = 0;
	bs_autofree char *out = malloc(len + 1);

	if (!out)
		return bs_fail_errno(err, -ENOMEM, "name");
	if (len == 0)
		return bs_fail(err, -EINVAL, "an empty name");
	for (const char *p = raw; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			if (at == 0)
				return bs_fail(err, -EINVAL, "the name leads out of the root");
			while (at > 0 && out[--at] != '/')
				;
		} else if (n > BS_TREE_NAME_MAX) {
			return bs_fail(err, -EINVAL, "a name of %zu bytes, the most is %u", n,
				       BS_TREE_NAME_MAX);
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (at > 0)
				out[at++] = '/';
			memcpy(out + at, p, n);
			at += n;
		}
		p += n;
		p += strspn(p, "/");
	}
	out[at] = 0;
	*ret = bs_take(&out);
	return 0;
}

/*
 * What a kernel keeps on that type of file, and of that what containerd sets:
 * trusted.* is the node's, not the image's.
 */
static bool xattr_counts(const char *name, mode_t mode)
{
	if (bs_str_after(name, "user."))
		return S_ISREG(mode) || S_ISDIR(mode);
	if (bs_streq(name, "system.posix_acl_access"))
		return !S_ISLNK(mode);
	if (bs_streq(name, "system.posix_acl_default"))
		return S_ISDIR(mode);
	return bs_str_after(name, "security.") != NULL;
}

static int take_xattrs(struct bs_inode *i, struct archive_entry *e, struct bs_error *err)
{
	const char *name;
	const void *value;
	size_t len;

	archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
		int r = 0;

		if (name && !bs_xset_get(&i->xattrs, name))
			r = bs_xset_put(&i->xattrs, name, strlen(name), value, len);
		if (r < 0)
			return bs_fail_errno(err, r, "extended attribute '%.64s'", name);
	}
	for (size_t k = i->xattrs.n; k-- > 0;)
		if (!xattr_counts(i->xattrs.v[k].name, i->mode) ||
		    !strchr(i->xattrs.v[k].name, '.')[1])
			bs_xset_remove(&i->xattrs, i->xattrs.v[k].name);
	return 0;
}

static int set_owner(struct bs_inode *i, struct archive_entry *e, struct bs_error *err)
{
	la_int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);

	/* 2^32 - 1 is "no id" to the kernel */
	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return bs_fail(err, -EINVAL, "owner %lld:%lld is not possible", (long long)uid,
			       (long long)gid);
	i->uid = (uint32_t)uid;
	i->gid = (uint32_t)gid;
	return 0;
}

static int set_device(struct bs_inode *i, struct archive_entry *e, struct bs_error *err)
{
	unsigned long long major = archive_entry_rdevmajor(e), minor = archive_entry_rdevminor(e);

	if (major >= 1u << 12 || minor >= 1u << 20)
		return bs_fail(err, -EINVAL, "device %llu:%llu is not possible", major, minor);
	i->rdev_major = (uint32_t)major;
	i->rdev_minor = (uint32_t)minor;
	return 0;
}

static int set_target(struct bs_inode *i, struct archive_entry *e, struct bs_error *err)
{
	const char *target = archive_entry_symlink(e);

	if (!target || !target[0] || strlen(target) > BS_TREE_TARGET_MAX)
		return bs_fail(err, -EINVAL, "the symlink's target is %s",
			       target && target[0] ? "too long" : "empty");
	i->target = strdup(target);
	return i->target ? 0 : bs_fail_errno(err, -ENOMEM, "symlink");
}

static int take_content(struct reader *rd, struct bs_inode *i, struct archive_entry *e,
			struct bs_error *err)
{
	la_int64_t size = archive_entry_size(e), off;
	const void *data;
	size_t n;
	int r;

	if (size < 0)
		return bs_fail(err, -EINVAL, "its size is negative");
	r = bs_spool_reserve(rd->l->spool, (uint64_t)size, &i->spool_off, err);
	if (r < 0)
		return r;
	i->size = (uint64_t)size;
	i->spool = size ? rd->l->spool : NULL;
	while ((r = archive_read_data_block(rd->tar, &data, &n, &off)) == ARCHIVE_OK) {
		if (off < 0 || off > size || n > (uint64_t)(size - off))
			return bs_fail(err, -EBADMSG, "its data is longer than its size");
		r = bs_spool_write(rd->l->spool, i->spool_off + (uint64_t)off, data, n, err);
		if (r < 0)
			return r;
	}
	if (r != ARCHIVE_EOF)
		return bs_fail(err, -EBADMSG, "%s", archive_error_string(rd->tar));
	return 0;
}

static int type_mode(char type, mode_t *ret, struct bs_error *err)
{
	switch (type) {
	case '0':
	case '1': /* a hard link takes only the attributes */
	case '7':
	case 'S':
		*ret = S_IFREG;
		return 0;
	case '2':
		*ret = S_IFLNK;
		return 0;
	case '3':
		*ret = S_IFCHR;
		return 0;
	case '4':
		*ret = S_IFBLK;
		return 0;
	case '5':
		*ret = S_IFDIR;
		return 0;
	case '6':
		*ret = S_IFIFO;
		return 0;
	default:
		return bs_fail(err, -EINVAL, "unknown type 0x%02x of entry",
			       (unsigned int)(unsigned char)type);
	}
}

static int fill_inode(struct reader *rd, struct bs_inode *i, const struct bs_tarhead *head,
		      struct archive_entry *e, struct bs_error *err)
{
	mode_t type = 0;
	int r = type_mode(head->type, &type, err);

	if (r < 0)
		return r;
	/* archives older than POSIX mark directories by a slash */
	if (type == S_IFREG && head->type == '0' && archive_entry_filetype(e) == AE_IFDIR)
		type = S_IFDIR;
	i->mode = type | (type == S_IFLNK ? 0777u : (archive_entry_perm(e) & 07777u));
	i->mtime_s = head->has_mtime ? head->mtime_s : archive_entry_mtime(e);
	i->mtime_ns = head->has_mtime ? head->mtime_ns : (uint32_t)archive_entry_mtime_nsec(e);
	r = set_owner(i, e, err);
	if (r == 0)
		r = take_xattrs(i, e, err);
	if (r == 0 && (type == S_IFCHR || type == S_IFBLK))
		r = set_device(i, e, err);
	if (r == 0 && type == S_IFLNK)
		r = set_target(i, e, err);
	return r;
}

/* Turns "dir/.wh.name" into what it means; kind says which. */
static int whiteout(char *path, enum bs_layer_kind *kind, struct bs_error *err)
{
	char *base = strrchr(path, '/');
	const char *hidden;

	base = base ? base + 1 : path;
	hidden = bs_str_after(base, ".wh.");
	if (!hidden)
		return 0;
	if (bs_streq(hidden, ".wh..opq")) {
		*kind = BS_LAYER_OPAQUE;
		base[base > path ? -1 : 0] = 0;
		return 0;
	}
	if (!bs_path_name_ok(hidden, strlen(hidden)))
		return bs_fail(err, -EINVAL, "a whiteout of nothing");
	*kind = BS_LAYER_WHITEOUT;
	memmove(base, hidden, strlen(hidden) + 1);
	return 0;
}

static int take_link(struct bs_layer_entry *le, struct archive_entry *e, struct bs_error *err)
{
	const char *link = archive_entry_hardlink(e);

	if (!link || !link[0] || strlen(link) > LINK_MAX_BYTES)
		return bs_fail(err, -EINVAL, "a hard link to nothing");
	le->kind = BS_LAYER_LINK;
	le->link = strdup(link);
	return le->link ? 0 : bs_fail_errno(err, -ENOMEM, "hard link");
}

static int read_head(struct reader *rd, struct bs_tarhead *head, struct bs_xset *xattrs,
		     struct bs_error *err)
{
	la_int64_t at = archive_read_header_position(rd->tar);

	if (at < 0 || (uint64_t)at < rd->window_at || (uint64_t)at > rd->window_at + rd->window_len)
		return bs_fail(err, -EFBIG, "more extension headers than can be kept");
	return bs_tarhead_read(rd->window + ((uint64_t)at - rd->window_at),
			       rd->window_len - (size_t)((uint64_t)at - rd->window_at), head,
			       xattrs, err);
}

static int fill_entry(struct reader *rd, struct bs_layer_entry *le, const char *name,
		      struct archive_entry *e, struct bs_error *err)
{
	struct bs_tarhead head;
	int r = read_head(rd, &head, &le->inode->xattrs, err);

	if (r == 0)
		r = fill_inode(rd, le->inode, &head, e, err);
	if (r == 0)
		r = clean_name(name, &le->path, err);
	if (r == 0)
		r = whiteout(le->path, &le->kind, err);
	if (r < 0)
		return r;
	if (le->kind == BS_LAYER_ADD && head.type == '1')
		return take_link(le, e, err);
	/* overlayfs reads a character device 0:0 as a whiteout, so that is what it is */
	if (le->kind == BS_LAYER_ADD && S_ISCHR(le->inode->mode) && le->inode->rdev_major == 0 &&
	    le->inode->rdev_minor == 0)
		le->kind = BS_LAYER_WHITEOUT;
	if (!le->path[0] && (le->kind == BS_LAYER_WHITEOUT ||
			     (le->kind == BS_LAYER_ADD && !S_ISDIR(le->inode->mode))))
		return bs_fail(err, -EINVAL, "it takes the place of the root directory");
	if (le->kind == BS_LAYER_ADD && S_ISREG(le->inode->mode))
		return take_content(rd, le->inode, e, err);
	return 0;
}

static int take_entry(struct reader *rd, struct archive_entry *e, struct bs_error *err)
{
	struct bs_layer *l = rd->l;
	const char *name = archive_entry_pathname(e);
	struct bs_layer_entry *le;
	int r;

	if (l->n >= BS_TREE_ENTRIES_MAX)
		return bs_fail(err, -EFBIG, "more than %u entries", BS_TREE_ENTRIES_MAX);
	if (bs_grow(&l->entries, &l->cap, l->n + 1, sizeof(*l->entries)) < 0)
		return bs_fail_errno(err, -ENOMEM, "entry");
	le = &l->entries[l->n];
	*le = (struct bs_layer_entry){ .inode = bs_inode_new() };
	l->n++;
	if (!le->inode)
		return bs_fail_errno(err, -ENOMEM, "entry");
	r = fill_entry(rd, le, name ? name : "", e, err);
	if (r < 0)
		return bs_error_context(err, "entry %zu '%.200s'", l->n, name ? name : "");
	return 0;
}

static int read_entries(struct reader *rd, struct bs_error *err)
{
	struct archive_entry *e;
	int r;

	while ((r = archive_read_next_header(rd->tar, &e)) != ARCHIVE_EOF) {
		/* a warning is about characters of names, which are bytes to us */
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return bs_fail(err, -EBADMSG, "behind entry %zu: %s", rd->l->n,
				       archive_error_string(rd->tar));
		r = take_entry(rd, e, err);
		if (r < 0)
			return r;
	}
	return bs_spool_flush(rd->l->spool, err);
}

/* What is behind the archive's end counts for the digest. */
static int drain(struct reader *rd, struct bs_error *err)
{
	const void *data;
	ssize_t n;

	while ((n = next_bytes(rd, &data)) > 0)
		;
	return n < 0 ? bs_fail(err, -EBADMSG, "%s", archive_error_string(rd->raw)) : 0;
}

static int parse(struct reader *rd, bool packed, struct bs_error *err)
{
	int r = open_raw(rd, packed, err);

	if (r != 0)
		return r < 0 ? r : 0; /* an empty blob is an empty layer */
	r = open_tar(rd, err);
	if (r == 0)
		r = read_entries(rd, err);
	return r < 0 ? r : drain(rd, err);
}

int bs_layer_parse(const char *name, bs_layer_input *input, void *cookie, bool packed,
		   const char *spool_dir, struct bs_layer **ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_auto(layer) struct bs_layer *l = calloc(1, sizeof(*l));
	bs_autofree uint8_t *window = malloc(WINDOW_SIZE);
	auto_archive *raw = archive_read_new(), *tar = archive_read_new();
	struct reader rd = {
		.raw = raw, .tar = tar, .input = input, .cookie = cookie, .window = window, .l = l
	};
	int r;

	err = err ? err : &own;
	rd.hash = bs_sha256_new();
	if (l)
		l->name = strdup(name);
	if (!l || !l->name || !window || !raw || !tar || !rd.hash) {
		bs_sha256_free(rd.hash);
		return bs_fail_errno(err, -ENOMEM, "%s", name);
	}
	r = bs_spool_new(spool_dir, &l->spool, err);
	if (r == 0)
		r = parse(&rd, packed, err);
	bs_sha256_final(rd.hash, &l->diff_id);
	bs_sha256_free(rd.hash);
	if (rd.input_result < 0)
		return bs_fail_errno(err, rd.input_result, "%s", name);
	if (r < 0)
		return bs_error_context(err, "%s", name);
	*ret = bs_take(&l);
	return 0;
}
