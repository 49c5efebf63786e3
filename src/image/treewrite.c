/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Writing a tree. Entries are kept as they will be on disk; extents wait in a pool of
 * their own, since content may be placed after its entry was added.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/error.h"
#include "image/format.h"
#include "image/tree.h"
#include "image/treecheck.h"

#define COMPRESSION_LEVEL 9

struct side {
	uint32_t name_off;
	uint32_t name_len;
	size_t first_extent; /* in the pool */
};

struct bs_tree_writer {
	struct bs_disk_entry *entries;
	struct side *sides; /* one for each entry */
	uint32_t n_entries;
	size_t cap_entries, cap_sides;
	struct bs_tree_extent *pool;
	size_t n_pool, cap_pool;
	uint64_t blob_end; /* behind the last block that an extent names */
	uint32_t *value_lens;
	size_t n_xattrs, cap_xattrs;
	struct bs_tree_xattr *sorted; /* of the entry in hand */
	size_t cap_sorted;
	struct bs_buf names, targets, xattrs;
};

struct bs_tree_writer *bs_tree_writer_new(void)
{
	struct bs_tree_writer *w = calloc(1, sizeof(*w));

	if (w)
		w->names = w->targets = w->xattrs = BS_BUF_INIT(BS_TREE_BYTES_MAX);
	return w;
}

struct bs_tree_writer *bs_tree_writer_free(struct bs_tree_writer *w)
{
	if (!w)
		return NULL;
	free(w->entries);
	free(w->sides);
	free(w->pool);
	free(w->value_lens);
	free(w->sorted);
	bs_buf_done(&w->names);
	bs_buf_done(&w->targets);
	bs_buf_done(&w->xattrs);
	free(w);
	return NULL;
}

static bool is_inode(const struct bs_tree_writer *w, uint32_t i)
{
	return w->entries[i].link == 0;
}

static bool is_directory(const struct bs_tree_writer *w, uint32_t i)
{
	return is_inode(w, i) && S_ISDIR(le16toh(w->entries[i].mode));
}

static const char *check_place(const struct bs_tree_writer *w, const struct bs_tree_entry *e)
{
	const char *wrong;
	int64_t elder;

	if (w->n_entries == 0)
		return e->parent || e->name_len || !S_ISDIR(e->mode)
			       ? "the first entry is not the root directory"
			       : NULL;
	wrong = bs_tree_check_name(e->name, e->name_len);
	if (wrong)
		return wrong;
	if (e->parent >= w->n_entries || !is_directory(w, e->parent))
		return "its parent is not a directory before it";
	elder = bs_tree_elder(w->entries, w->n_entries, e->parent);
	if (elder < 0)
		return "it is not in path order";
	if (elder != e->parent) {
		const struct side *s = &w->sides[elder];
		size_t n = BS_MIN(s->name_len, (uint32_t)e->name_len);
		int c = memcmp(w->names.data + s->name_off, e->name, n);

		if (c > 0 || (c == 0 && s->name_len >= e->name_len))
			return "its name does not come after its elder sibling's";
	}
	return NULL;
}

static const char *check_attributes(const struct bs_tree_writer *w, const struct bs_tree_entry *e)
{
	if (e->inode != w->n_entries) {
		if (e->inode > w->n_entries || !is_inode(w, e->inode) || is_directory(w, e->inode))
			return "it is a hard link to something else than an earlier inode";
		return NULL;
	}
	if (S_ISLNK(e->mode) && memchr(e->target, 0, BS_MIN(e->size, (uint64_t)BS_TREE_TARGET_MAX)))
		return "its symlink target has a NUL";
	if (e->n_xattrs > UINT16_MAX)
		return "it has too many xattrs";
	return bs_tree_check_inode(e);
}

static int by_name(const void *a, const void *b)
{
	const struct bs_tree_xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Sorts into w->sorted; NULL also when there is no memory, which *ret then says. */
static const char *sort_xattrs(struct bs_tree_writer *w, const struct bs_tree_xattr *xattrs,
			       uint32_t n, int *ret)
{
	uint64_t bytes = 0;

	*ret = 0;
	if (n == 0)
		return NULL;
	*ret = bs_grow(&w->sorted, &w->cap_sorted, n, sizeof(*w->sorted));
	if (*ret < 0)
		return NULL;
	memcpy(w->sorted, xattrs, n * sizeof(*xattrs));
	qsort(w->sorted, n, sizeof(*w->sorted), by_name);
	for (uint32_t i = 0; i < n; i++) {
		const char *wrong = bs_tree_check_xattr(&w->sorted[i],
							i ? &w->sorted[i - 1] : NULL);

		if (wrong)
			return wrong;
		bytes += w->sorted[i].name_len + (uint64_t)w->sorted[i].value_len;
	}
	return bytes > BS_TREE_XATTRS_MAX ? "its xattrs take more than 65536 bytes" : NULL;
}

/* Adds to the end of the pool, joining what is one; *ret_n is the number then, or as sort_xattrs.
 */
static const char *add_extents(struct bs_tree_writer *w, const struct bs_tree_extent *extents,
			       uint32_t n, uint64_t size, uint32_t *ret_n, int *ret)
{
	struct bs_tree_extent *to, *before = NULL;
	uint64_t blob_end = w->blob_end;
	uint32_t kept = 0;

	*ret_n = 0;
	*ret = n ? bs_grow(&w->pool, &w->cap_pool, w->n_pool + n, sizeof(*w->pool)) : 0;
	if (*ret < 0 || n == 0)
		return NULL;
	to = w->pool + w->n_pool;
	for (uint32_t i = 0; i < n; i++) {
		const struct bs_tree_extent *x = &extents[i];
		const char *wrong = bs_tree_check_extent(x, NULL, size, BS_TREE_BLOB_MAX);

		if (wrong)
			return wrong;
		blob_end = BS_MAX(blob_end, x->blob_block + x->n_blocks);
		if (before && x->file_block == before->file_block + before->n_blocks &&
		    x->blob_block == before->blob_block + before->n_blocks) {
			before->n_blocks += x->n_blocks;
			continue;
		}
		wrong = bs_tree_check_extent(x, before, size, BS_TREE_BLOB_MAX);
		if (wrong)
			return wrong;
		before = &to[kept++];
		*before = *x;
	}
	w->n_pool += kept;
	w->blob_end = blob_end;
	*ret_n = kept;
	return NULL;
}

static void encode(struct bs_disk_entry *d, const struct bs_tree_entry *e, uint32_t index,
		   uint32_t n_extents)
{
	memset(d, 0, sizeof(*d));
	d->parent = htole32(e->parent);
	if (e->inode != index) {
		d->link = htole32(e->inode);
		return;
	}
	d->mode = htole16((uint16_t)e->mode);
	d->n_xattrs = htole16((uint16_t)e->n_xattrs);
	d->n_extents = htole32(n_extents);
	d->uid = htole32(e->uid);
	d->gid = htole32(e->gid);
	d->rdev = htole32(e->rdev_major << 20 | e->rdev_minor);
	d->mtime_ns = htole32(e->mtime_ns);
	d->mtime_s = htole64((uint64_t)e->mtime_s);
	d->size = htole64(e->size);
}

/* The strings of an entry; a failure leaves its buffer failed for good. */
static int add_strings(struct bs_tree_writer *w, const struct bs_tree_entry *e, uint32_t n_xattrs)
{
	bs_buf_add(&w->names, e->name, e->name_len);
	bs_buf_add(&w->names, "", 1);
	if (e->inode == w->n_entries && S_ISLNK(e->mode)) {
		bs_buf_add(&w->targets, e->target, e->size);
		bs_buf_add(&w->targets, "", 1);
	}
	for (uint32_t i = 0; i < n_xattrs; i++) {
		const struct bs_tree_xattr *x = &w->sorted[i];

		bs_buf_add(&w->xattrs, x->name, x->name_len + (size_t)1);
		bs_buf_add(&w->xattrs, x->value, x->value_len);
		w->value_lens[w->n_xattrs + i] = htole32(x->value_len);
	}
	return w->names.error	  ? w->names.error
	       : w->targets.error ? w->targets.error
				  : w->xattrs.error;
}

static int grow(struct bs_tree_writer *w, uint32_t n_xattrs)
{
	int r = bs_grow(&w->entries, &w->cap_entries, w->n_entries + (size_t)1,
			sizeof(*w->entries));

	if (r >= 0)
		r = bs_grow(&w->sides, &w->cap_sides, w->n_entries + (size_t)1, sizeof(*w->sides));
	if (r >= 0 && n_xattrs)
		r = bs_grow(&w->value_lens, &w->cap_xattrs, w->n_xattrs + n_xattrs,
			    sizeof(*w->value_lens));
	return r;
}

static int fail(struct bs_error *err, int code, const struct bs_tree_entry *e)
{
	if (code == -ENOMEM)
		return bs_fail(err, code, "tree: out of memory");
	return bs_fail(err, -EFBIG, "tree: '%.*s' does not fit: more than %llu bytes", e->name_len,
		       e->name, (unsigned long long)BS_TREE_BYTES_MAX);
}

int64_t bs_tree_writer_add(struct bs_tree_writer *w, const struct bs_tree_entry *e,
			   const struct bs_tree_xattr *xattrs, const struct bs_tree_extent *extents,
			   struct bs_error *err)
{
	bool inode = e->inode == w->n_entries;
	uint32_t n_xattrs = inode ? e->n_xattrs : 0, n_extents = 0, index = w->n_entries;
	const char *wrong = check_place(w, e);
	struct side s;
	int r = 0;

	if (index >= BS_TREE_ENTRIES_MAX)
		return bs_fail(err, -EFBIG, "tree: more than %u entries", BS_TREE_ENTRIES_MAX);
	if (!wrong)
		wrong = check_attributes(w, e);
	if (!wrong)
		wrong = sort_xattrs(w, xattrs, n_xattrs, &r);
	if (!wrong && r >= 0)
		r = grow(w, n_xattrs);
	s = (struct side){ (uint32_t)w->names.len, e->name_len, w->n_pool };
	if (!wrong && r >= 0 && inode)
		wrong = add_extents(w, extents, e->n_extents, e->size, &n_extents, &r);
	if (wrong)
		return bs_fail(err, -EINVAL, "tree: entry %u '%.*s': %s", index, e->name_len,
			       e->name, wrong);
	if (r >= 0)
		r = add_strings(w, e, n_xattrs);
	if (r < 0)
		return fail(err, r, e);
	encode(&w->entries[index], e, index, n_extents);
	w->sides[index] = s;
	w->n_xattrs += n_xattrs;
	w->n_entries++;
	return index;
}

int bs_tree_writer_set_extents(struct bs_tree_writer *w, uint32_t entry,
			       const struct bs_tree_extent *extents, uint32_t n,
			       struct bs_error *err)
{
	struct bs_disk_entry *d = entry < w->n_entries ? &w->entries[entry] : NULL;
	size_t first = w->n_pool;
	const char *wrong;
	uint32_t kept;
	int r;

	if (!d || !is_inode(w, entry) || !S_ISREG(le16toh(d->mode)))
		return bs_fail(err, -EINVAL, "tree: entry %u is no regular file", entry);
	wrong = add_extents(w, extents, n, le64toh(d->size), &kept, &r);
	if (wrong)
		return bs_fail(err, -EINVAL, "tree: entry %u: %s", entry, wrong);
	if (r < 0)
		return bs_fail(err, r, "tree: out of memory");
	w->sides[entry].first_extent = first;
	d->n_extents = htole32(kept);
	return 0;
}

static uint8_t *put(uint8_t *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
	return to + len;
}

static uint8_t *put_extents(const struct bs_tree_writer *w, uint8_t *to)
{
	uint32_t blob_next = 0;

	for (uint32_t i = 0; i < w->n_entries; i++) {
		const struct bs_tree_extent *x = w->pool + w->sides[i].first_extent;
		uint64_t n_blocks = bs_tree_blocks(le64toh(w->entries[i].size)), at = 0;

		for (uint32_t k = le32toh(w->entries[i].n_extents); k > 0; k--, x++) {
			struct bs_disk_extent d = {
				.hole_blocks = htole64(x->file_block - at),
				.blob_delta = htole32((uint32_t)x->blob_block - blob_next),
			};

			at = x->file_block + x->n_blocks;
			blob_next = (uint32_t)(x->blob_block + x->n_blocks);
			d.n_blocks = at == n_blocks ? 0 : htole32((uint32_t)x->n_blocks);
			to = put(to, &d, sizeof(d));
		}
	}
	return to;
}

/* The uncompressed form. */
static uint8_t *assemble(const struct bs_tree_writer *w, uint64_t n_extents, uint64_t blob_blocks,
			 size_t len)
{
	struct bs_disk_tree h = {
		.version = htole32(BS_DISK_VERSION),
		.n_entries = htole32(w->n_entries),
		.n_xattrs = htole32((uint32_t)w->n_xattrs),
		.n_extents = htole32((uint32_t)n_extents),
		.blob_blocks = htole64(blob_blocks),
		.names_len = htole64(w->names.len),
		.targets_len = htole64(w->targets.len),
		.xattrs_len = htole64(w->xattrs.len),
	};
	uint8_t *out = malloc(len), *to = out;

	if (!out)
		return NULL;
	memcpy(h.magic, BS_DISK_TREE_MAGIC, sizeof(h.magic));
	to = put(to, &h, sizeof(h));
	to = put(to, w->entries, w->n_entries * sizeof(*w->entries));
	to = put_extents(w, to);
	to = put(to, w->value_lens, w->n_xattrs * sizeof(*w->value_lens));
	to = put(to, w->names.data, w->names.len);
	to = put(to, w->targets.data, w->targets.len);
	(void)put(to, w->xattrs.data, w->xattrs.len);
	return out;
}

static int compress(const void *data, size_t len, void **ret, size_t *ret_len, struct bs_error *err)
{
	size_t cap = ZSTD_compressBound(len), n;
	bs_autofree void *out = malloc(cap);

	if (!out)
		return bs_fail(err, -ENOMEM, "tree: out of memory");
	n = ZSTD_compress(out, cap, data, len, COMPRESSION_LEVEL);
	if (ZSTD_isError(n))
		return bs_fail(err, -ENOMEM, "tree: compress: %s", ZSTD_getErrorName(n));
	*ret = realloc(out, n);
	if (!*ret)
		*ret = out;
	(void)bs_take(&out);
	*ret_len = n;
	return 0;
}

int bs_tree_writer_finish(struct bs_tree_writer *w, uint64_t blob_blocks, void **ret,
			  size_t *ret_len, struct bs_error *err)
{
	bs_autofree uint8_t *plain = NULL;
	uint64_t n_extents = 0, len;

	if (w->n_entries == 0)
		return bs_fail(err, -EINVAL, "tree: it has no root");
	if (blob_blocks > BS_TREE_BLOB_MAX)
		return bs_fail(err, -EFBIG, "tree: a blob of 2^32 blocks or more");
	if (w->blob_end > blob_blocks)
		return bs_fail(err, -EINVAL, "tree: an extent ends behind the blob");
	for (uint32_t i = 0; i < w->n_entries; i++)
		n_extents += le32toh(w->entries[i].n_extents);
	len = sizeof(struct bs_disk_tree) + w->n_entries * sizeof(struct bs_disk_entry) +
	      n_extents * sizeof(struct bs_disk_extent) + w->n_xattrs * sizeof(uint32_t) +
	      w->names.len + w->targets.len + w->xattrs.len;
	if (len > BS_TREE_BYTES_MAX)
		return bs_fail(err, -EFBIG, "tree: %llu bytes are more than %llu",
			       (unsigned long long)len, (unsigned long long)BS_TREE_BYTES_MAX);
	plain = assemble(w, n_extents, blob_blocks, len);
	if (!plain)
		return bs_fail(err, -ENOMEM, "tree: out of memory");
	return compress(plain, len, ret, ret_len, err);
}
