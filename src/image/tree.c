/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reading a tree. The bytes are hostile: sizes are compared with each other before
 * anything is allocated by them, and names, targets, xattrs and extents are taken in
 * the order of the entries, so that nothing in the input can point anywhere.
 */
#include "config.h"

#include "image/tree.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/error.h"
#include "base/mem.h"
#include "image/format.h"
#include "image/treecheck.h"

/* What is still to be taken of one part of strings. */
struct cursor {
	const char *p, *end;
};

struct reader {
	struct bs_tree *tree;
	const struct bs_disk_entry *entries;
	const struct bs_disk_extent *extents;
	const uint32_t *value_lens;
	struct cursor names, targets, xattrs;
	uint32_t n_xattrs, n_extents; /* taken so far */
	uint32_t blob_next;	      /* the block behind the last extent */
};

struct bs_tree *bs_tree_free(struct bs_tree *t)
{
	if (!t)
		return NULL;
	free(t->entries);
	free(t->xattrs);
	free(t->extents);
	free(t->strings);
	free(t);
	return NULL;
}

/* A string of at most max bytes with its NUL; NULL when there is none. */
static const char *take_string(struct cursor *c, size_t max, size_t *ret_len)
{
	size_t left = (size_t)(c->end - c->p);
	const char *s = c->p, *nul = memchr(s, 0, BS_MIN(left, max + 1));

	if (!nul)
		return NULL;
	*ret_len = (size_t)(nul - s);
	c->p = nul + 1;
	return s;
}

static const char *read_name(struct reader *r, uint32_t i, struct bs_tree_entry *e)
{
	const struct bs_tree_entry *parent;
	const char *wrong;
	int64_t elder;
	size_t len;

	e->parent = le32toh(r->entries[i].parent);
	e->name = take_string(&r->names, BS_TREE_NAME_MAX, &len);
	if (!e->name)
		return "its name has no end within 255 bytes";
	e->name_len = (uint8_t)len;
	if (i == 0)
		return e->parent || len ? "the root has a name or a parent" : NULL;
	wrong = bs_tree_check_name(e->name, len);
	if (wrong)
		return wrong;
	if (e->parent >= i)
		return "its parent is not before it";
	parent = &r->tree->entries[e->parent];
	if (parent->inode != e->parent || !S_ISDIR(parent->mode))
		return "its parent is not a directory";
	elder = bs_tree_elder(r->entries, i, e->parent);
	if (elder < 0)
		return "it is not in path order";
	if (elder != e->parent && strcmp(r->tree->entries[elder].name, e->name) >= 0)
		return "its name does not come after its elder sibling's";
	return NULL;
}

static const char *read_link(struct reader *r, uint32_t i, struct bs_tree_entry *e)
{
	const struct bs_disk_entry *d = &r->entries[i];
	static const struct bs_disk_entry zero;
	const size_t head = offsetof(struct bs_disk_entry, mode);
	struct bs_tree_entry *inode;

	e->inode = le32toh(d->link);
	if (e->inode >= i)
		return "it is a hard link to no earlier entry";
	inode = &r->tree->entries[e->inode];
	if (inode->inode != e->inode)
		return "it is a hard link to a hard link";
	if (S_ISDIR(inode->mode))
		return "it is a hard link to a directory";
	if (memcmp(&d->mode, &zero.mode, sizeof(*d) - head) != 0)
		return "it is a hard link with attributes of its own";
	inode->nlink++;
	return NULL;
}

static const char *read_xattrs(struct reader *r, struct bs_tree_entry *e)
{
	struct bs_tree_xattr *before = NULL;
	uint64_t bytes = 0;

	if (e->n_xattrs > r->tree->n_xattrs - r->n_xattrs)
		return "it has more xattrs than there are";
	e->first_xattr = r->n_xattrs;
	for (uint32_t k = 0; k < e->n_xattrs; k++) {
		struct bs_tree_xattr *x = &r->tree->xattrs[r->n_xattrs];
		const char *wrong;
		size_t len;

		x->name = take_string(&r->xattrs, BS_TREE_NAME_MAX, &len);
		if (!x->name)
			return "an xattr's name has no end within 255 bytes";
		x->name_len = (uint8_t)len;
		x->value_len = le32toh(r->value_lens[r->n_xattrs++]);
		wrong = bs_tree_check_xattr(x, before);
		if (wrong)
			return wrong;
		if (x->value_len > (size_t)(r->xattrs.end - r->xattrs.p))
			return "an xattr's value is cut off";
		x->value = (const uint8_t *)r->xattrs.p;
		r->xattrs.p += x->value_len;
		bytes += len + x->value_len;
		if (bytes > BS_TREE_XATTRS_MAX)
			return "its xattrs take more than 65536 bytes";
		before = x;
	}
	return NULL;
}

static const char *read_extents(struct reader *r, struct bs_tree_entry *e)
{
	uint64_t n_blocks = bs_tree_blocks(e->size), at = 0;
	struct bs_tree_extent *before = NULL;

	if (e->n_extents > r->tree->n_extents - r->n_extents)
		return "it has more extents than there are";
	e->first_extent = r->n_extents;
	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_disk_extent *d = &r->extents[r->n_extents];
		struct bs_tree_extent *x = &r->tree->extents[r->n_extents++];
		const char *wrong;
		bool to_end = d->n_blocks == 0;

		if (le64toh(d->hole_blocks) >= n_blocks - at)
			return "an extent begins behind the file";
		x->file_block = at + le64toh(d->hole_blocks);
		x->blob_block = (uint32_t)(r->blob_next + le32toh(d->blob_delta));
		x->n_blocks = to_end ? n_blocks - x->file_block : le32toh(d->n_blocks);
		wrong = bs_tree_check_extent(x, before, e->size, r->tree->blob_blocks);
		if (wrong)
			return wrong;
		at = x->file_block + x->n_blocks;
		if (!to_end && at == n_blocks)
			return "its last extent's length is not written as 0";
		r->blob_next = (uint32_t)(x->blob_block + x->n_blocks);
		before = x;
	}
	return NULL;
}

static const char *read_inode(struct reader *r, uint32_t i, struct bs_tree_entry *e)
{
	const struct bs_disk_entry *d = &r->entries[i];
	const char *wrong;
	size_t len;

	e->inode = i;
	e->mode = le16toh(d->mode);
	e->uid = le32toh(d->uid);
	e->gid = le32toh(d->gid);
	e->rdev_major = le32toh(d->rdev) >> 20;
	e->rdev_minor = le32toh(d->rdev) & BS_TREE_MINOR_MAX;
	e->mtime_s = (int64_t)le64toh(d->mtime_s);
	e->mtime_ns = le32toh(d->mtime_ns);
	e->size = le64toh(d->size);
	e->n_xattrs = le16toh(d->n_xattrs);
	e->n_extents = le32toh(d->n_extents);
	wrong = bs_tree_check_inode(e);
	if (wrong)
		return wrong;
	e->nlink = 1;
	if (S_ISDIR(e->mode)) {
		e->nlink = 2;
		if (i != 0)
			r->tree->entries[e->parent].nlink++;
	} else if (i == 0) {
		return "the root is not a directory";
	} else if (S_ISLNK(e->mode)) {
		e->target = take_string(&r->targets, BS_TREE_TARGET_MAX, &len);
		if (!e->target || len != e->size)
			return "its symlink target does not have its size";
	}
	r->tree->n_inodes++;
	wrong = read_xattrs(r, e);
	return wrong ? wrong : read_extents(r, e);
}

static const char *read_entry(struct reader *r, uint32_t i)
{
	struct bs_tree_entry *e = &r->tree->entries[i];
	const char *wrong;

	memset(e, 0, sizeof(*e));
	wrong = read_name(r, i, e);
	if (wrong)
		return wrong;
	return r->entries[i].link ? read_link(r, i, e) : read_inode(r, i, e);
}

/* Splits the len bytes at h into parts; the sum of all must be len exactly. */
static const char *split(struct reader *r, const struct bs_disk_tree *h, size_t len)
{
	struct bs_tree *t = r->tree;
	uint64_t fixed = sizeof(*h) + (uint64_t)t->n_entries * sizeof(*r->entries) +
			 (uint64_t)t->n_extents * sizeof(*r->extents) +
			 (uint64_t)t->n_xattrs * sizeof(*r->value_lens);
	const uint64_t parts[] = { le64toh(h->names_len), le64toh(h->targets_len),
				   le64toh(h->xattrs_len), le64toh(h->extra_len) };
	uint64_t left = len;

	if (fixed > left)
		return "it is shorter than its head says";
	left -= fixed;
	for (size_t i = 0; i < BS_ARRAY_LEN(parts); i++) {
		if (parts[i] > left)
			return "it is shorter than its head says";
		left -= parts[i];
	}
	if (left)
		return "it is longer than its head says";
	if (parts[3] && !h->may)
		return "it has an extra part that no feature explains";
	r->entries = (const void *)(h + 1);
	r->extents = (const void *)(r->entries + t->n_entries);
	r->value_lens = (const void *)(r->extents + t->n_extents);
	r->names.p = (const void *)(r->value_lens + t->n_xattrs);
	r->names.end = r->targets.p = r->names.p + parts[0];
	r->targets.end = r->xattrs.p = r->targets.p + parts[1];
	r->xattrs.end = r->xattrs.p + parts[2];
	return NULL;
}

static int read_head(struct reader *r, size_t len, struct bs_error *err)
{
	const struct bs_disk_tree *h = r->tree->strings;
	struct bs_tree *t = r->tree;
	const char *wrong;

	if (len < sizeof(*h) || memcmp(h->magic, BS_DISK_TREE_MAGIC, sizeof(h->magic)) != 0)
		return bs_fail(err, -EBADMSG, "tree: it does not begin as one");
	if (le32toh(h->version) != BS_DISK_VERSION || (le32toh(h->must) & ~BS_DISK_MUST))
		return bs_fail(err, -EPROTONOSUPPORT,
			       "tree: its format (version %u, features %#x) is newer than this "
			       "program: upgrade bootseer",
			       le32toh(h->version), le32toh(h->must));
	t->n_entries = le32toh(h->n_entries);
	t->n_xattrs = le32toh(h->n_xattrs);
	t->n_extents = le32toh(h->n_extents);
	t->blob_blocks = le64toh(h->blob_blocks);
	if (t->n_entries > BS_TREE_ENTRIES_MAX)
		return bs_fail(err, -EFBIG, "tree: %u entries are more than %u", t->n_entries,
			       BS_TREE_ENTRIES_MAX);
	if (t->blob_blocks > BS_TREE_BLOB_MAX)
		return bs_fail(err, -EFBIG, "tree: a blob of 2^32 blocks or more");
	wrong = t->n_entries ? split(r, h, len) : "it has no root";
	return wrong ? bs_fail(err, -EBADMSG, "tree: %s", wrong) : 0;
}

static int parse(struct bs_tree *t, size_t len, struct bs_error *err)
{
	struct reader r = { .tree = t };
	int ret = read_head(&r, len, err);

	if (ret < 0)
		return ret;
	t->entries = malloc(t->n_entries * sizeof(*t->entries));
	t->xattrs = malloc((t->n_xattrs + (size_t)1) * sizeof(*t->xattrs));
	t->extents = malloc((t->n_extents + (size_t)1) * sizeof(*t->extents));
	if (!t->entries || !t->xattrs || !t->extents)
		return bs_fail(err, -ENOMEM, "tree: out of memory");
	for (uint32_t i = 0; i < t->n_entries; i++) {
		const char *wrong = read_entry(&r, i);

		if (wrong)
			return bs_fail(err, -EBADMSG, "tree: entry %u: %s", i, wrong);
	}
	if (r.names.p != r.names.end || r.targets.p != r.targets.end ||
	    r.xattrs.p != r.xattrs.end || r.n_xattrs != t->n_xattrs || r.n_extents != t->n_extents)
		return bs_fail(err, -EBADMSG, "tree: it has parts that belong to no entry");
	return 0;
}

/* Exactly one frame whose stated size is within bounds; decoded in one go, so no window is kept. */
static int unpack(struct bs_tree *t, const void *data, size_t len, size_t *ret_len,
		  struct bs_error *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(data, len);

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
	    ZSTD_getDictID_fromFrame(data, len) != 0 ||
	    ZSTD_findFrameCompressedSize(data, len) != len)
		return bs_fail(err, -EBADMSG, "tree: it is not one Zstandard frame of known size");
	if (size > BS_TREE_BYTES_MAX)
		return bs_fail(err, -EFBIG, "tree: %llu bytes are more than %llu", size,
			       (unsigned long long)BS_TREE_BYTES_MAX);
	t->strings = malloc(size ? size : 1);
	if (!t->strings)
		return bs_fail(err, -ENOMEM, "tree: out of memory");
	if (ZSTD_decompress(t->strings, size, data, len) != size)
		return bs_fail(err, -EBADMSG, "tree: its Zstandard frame is damaged");
	*ret_len = size;
	return 0;
}

uint64_t bs_tree_bytes(const void *data, size_t len)
{
	unsigned long long size = ZSTD_getFrameContentSize(data, len);

	return size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN
		       ? 0
		       : BS_MIN((uint64_t)size, BS_TREE_BYTES_MAX);
}

int bs_tree_read(const void *data, size_t len, struct bs_tree **ret, struct bs_error *err)
{
	bs_auto(tree) struct bs_tree *t = calloc(1, sizeof(*t));
	size_t size = 0;
	int r;

	if (!t)
		return bs_fail(err, -ENOMEM, "tree: out of memory");
	r = unpack(t, data, len, &size, err);
	if (r >= 0)
		r = parse(t, size, err);
	if (r < 0)
		return r;
	bs_digest_of(data, len, &t->digest);
	*ret = bs_take(&t);
	return 0;
}
