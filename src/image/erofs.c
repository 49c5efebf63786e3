/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The metadata image: superblock and device table in the first block, then all inodes
 * in the order of the tree, then the blocks of directories and long symlinks.
 *
 * The first pass gives each inode its place, the second writes the inodes, the third
 * the blocks; each goes over the entries in order, so the output is written front to
 * back. An inode with inline data lies within one block with it, the kernel wants that.
 */
#include "config.h"

#include "image/erofs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/erofsdisk.h"

#define OUT_SIZE (1u << 20)
#define DEVICE_OFFSET (EROFS_SUPER_OFFSET + (uint32_t)sizeof(struct erofs_super))
#define INODES_OFFSET (DEVICE_OFFSET + (uint32_t)sizeof(struct erofs_device))

static_assert(DEVICE_OFFSET % sizeof(struct erofs_device) == 0, "counted in device slots");
static_assert(INODES_OFFSET % EROFS_SLOT == 0, "counted in inode slots");

struct writer {
	const struct bs_tree *t;
	struct erofs_place *places;
	uint64_t inodes_end;
	uint64_t data_blocks; /* behind the inodes */
	int fd;
	int error; /* of the output; sticks */
	uint8_t *out;
	size_t out_len;
	uint64_t out_pos;	      /* of out[0] in the image */
	uint8_t *scratch;	      /* one xattr */
	uint8_t block[BS_BLOCK_SIZE]; /* of a directory */
};

/* How an inode lies, from its place alone. */
struct shape {
	enum erofs_layout layout;
	uint32_t xattr_size;
	uint32_t inline_len;
	uint32_t n_blocks; /* of its own, behind the inodes */
	struct erofs_chunks chunks;
};

/* --- the first pass ------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint64_t content_size(const struct writer *w, uint32_t i)
{
	const struct bs_tree_entry *e = &w->t->entries[i];

	return S_ISDIR(e->mode) ? w->places[i].dir_size : e->size;
}

/*
 * Gives the shape of inode i and where it begins when it cannot begin before pos.
 * Beginning at its own place gives the same shape again.
 */
static uint64_t shape_at(const struct writer *w, uint32_t i, uint64_t pos, struct shape *ret)
{
	const struct bs_tree_entry *e = &w->t->entries[i];
	uint64_t size = content_size(w, i), start = round_up(pos, EROFS_SLOT);
	uint32_t left = BS_BLOCK_SIZE - (uint32_t)(start % BS_BLOCK_SIZE), head, tail;
	struct shape s = { .layout = EROFS_PLAIN, .xattr_size = bs_erofs_xattr_size(w->t, e) };

	head = (uint32_t)sizeof(struct erofs_inode) + s.xattr_size;
	tail = (uint32_t)(size % BS_BLOCK_SIZE);
	if (S_ISREG(e->mode) && size) {
		s.layout = EROFS_CHUNKS;
		s.chunks = bs_erofs_chunks(w->t, e);
	} else if (S_ISDIR(e->mode) || S_ISLNK(e->mode)) {
		bool fits = tail && head + tail <= BS_BLOCK_SIZE;

		/* skipping the rest of this block may cost more than a block for the tail */
		if (fits && (head + tail <= left || left + tail <= BS_BLOCK_SIZE)) {
			s.layout = EROFS_INLINE;
			s.inline_len = tail;
			if (head + tail > left)
				start += left;
		}
		s.n_blocks = (uint32_t)(size / BS_BLOCK_SIZE) +
			     (tail && s.layout == EROFS_PLAIN ? 1 : 0);
	}
	if (s.layout != EROFS_INLINE && left < sizeof(struct erofs_inode))
		start += left;
	*ret = s;
	return start;
}

static uint64_t end_of(uint64_t start, const struct shape *s)
{
	uint64_t end = start + sizeof(struct erofs_inode) + s->xattr_size;

	if (s->layout == EROFS_CHUNKS)
		return round_up(end, sizeof(struct erofs_index)) +
		       s->chunks.n * sizeof(struct erofs_index);
	return end + s->inline_len;
}

/* Strings children together; backwards, so that each list is in order. */
static void link_children(struct writer *w)
{
	for (uint32_t i = w->t->n_entries - 1; i > 0; i--) {
		struct erofs_place *parent = &w->places[w->t->entries[i].parent];

		w->places[i].next = parent->first_child;
		parent->first_child = i;
	}
}

static int lay_out(struct writer *w, struct bs_error *err)
{
	const struct bs_tree *t = w->t;
	uint64_t pos = INODES_OFFSET, blocks = 0;

	link_children(w);
	for (uint32_t i = 0; i < t->n_entries; i++) {
		struct shape s;
		uint64_t dir_size = 0;

		if (t->entries[i].inode != i)
			continue;
		if (S_ISDIR(t->entries[i].mode))
			dir_size = bs_erofs_dir_size(t, w->places, i);
		if (dir_size == UINT64_MAX)
			return bs_fail(err, -EFBIG, "erofs: directory '%s' is too large",
				       t->entries[i].name);
		w->places[i].dir_size = (uint32_t)dir_size;
		pos = shape_at(w, i, pos, &s);
		w->places[i].slot = (uint32_t)(pos / EROFS_SLOT);
		pos = end_of(pos, &s);
		blocks += s.n_blocks;
		if (pos + blocks * BS_BLOCK_SIZE > BS_EROFS_META_MAX - BS_BLOCK_SIZE)
			return bs_fail(err, -EFBIG,
				       "erofs: the metadata does not fit into %llu bytes at entry "
				       "%u, '%s'",
				       (unsigned long long)BS_EROFS_META_MAX, i,
				       t->entries[i].name);
	}
	w->inodes_end = round_up(pos, BS_BLOCK_SIZE);
	w->data_blocks = blocks;
	return 0;
}

/* --- output ---------------------------------------------------------------------------------- */

/* CRC-32C without the final inversion, as the kernel has it in the superblock. */
static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

/* The sum covers the first block from the superblock on, with zero for itself. */
static void sum_superblock(uint8_t *image)
{
	uint8_t *super = image + EROFS_SUPER_OFFSET;
	uint32_t sum = htole32(crc32c(~0u, super, BS_BLOCK_SIZE - EROFS_SUPER_OFFSET));

	memcpy(super + offsetof(struct erofs_super, checksum), &sum, sizeof(sum));
}

static void flush(struct writer *w)
{
	if (w->out_pos == 0 && w->out_len >= BS_BLOCK_SIZE)
		sum_superblock(w->out);
	if (!w->error)
		w->error = bs_write_full(w->fd, w->out, w->out_len);
	w->out_pos += w->out_len;
	w->out_len = 0;
}

static void put(struct writer *w, const void *from, size_t len)
{
	const uint8_t *p = from;

	while (len) {
		size_t n = BS_MIN(len, OUT_SIZE - w->out_len);

		memcpy(w->out + w->out_len, p, n);
		w->out_len += n;
		p += n;
		len -= n;
		if (w->out_len == OUT_SIZE)
			flush(w);
	}
}

static void put_zeros_to(struct writer *w, uint64_t pos)
{
	static const uint8_t zeros[BS_BLOCK_SIZE];

	while (w->out_pos + w->out_len < pos) {
		uint64_t gap = pos - w->out_pos - w->out_len;

		put(w, zeros, BS_MIN(gap, (uint64_t)sizeof(zeros)));
	}
}

/* --- superblock ------------------------------------------------------------------------------ */

/*
 * overlayfs tells its lower filesystems apart by their UUIDs, and so needs one; the
 * number in its text is that of the layout, since overlayfs keeps inode numbers.
 */
static void make_uuid(const struct bs_tree *t, uint8_t uuid[16])
{
	uint8_t text[16 + BS_SHA256_LEN] = "bootseer-erofs-1";
	struct bs_digest d;

	memcpy(text + 16, t->digest.b, BS_SHA256_LEN);
	bs_digest_of(text, sizeof(text), &d);
	memcpy(uuid, d.b, 16);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8, RFC 9562 */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static void put_super(struct writer *w)
{
	struct erofs_super s = {
		.magic = htole32(EROFS_MAGIC),
		.feature_compat = htole32(EROFS_COMPAT_SB_CHKSUM | EROFS_COMPAT_MTIME),
		.blkszbits = 12,
		.root_nid = htole16((uint16_t)w->places[0].slot),
		.inos = htole64(w->t->n_inodes),
		.blocks = htole32((uint32_t)(w->inodes_end / BS_BLOCK_SIZE + w->data_blocks)),
		.feature_incompat = htole32(EROFS_INCOMPAT_CHUNKED_FILE |
					    EROFS_INCOMPAT_DEVICE_TABLE),
		.extra_devices = htole16(1),
		.devt_slotoff = htole16(DEVICE_OFFSET / sizeof(struct erofs_device)),
	};
	struct erofs_device d = { .blocks = htole32((uint32_t)w->t->blob_blocks) };

	make_uuid(w->t, s.uuid);
	put_zeros_to(w, EROFS_SUPER_OFFSET);
	put(w, &s, sizeof(s));
	put(w, &d, sizeof(d));
}

/* --- the second pass ------------------------------------------------------------------------- */

static void put_xattrs(struct writer *w, const struct bs_tree_entry *e)
{
	struct erofs_xattr_header head = { 0 };

	if (e->n_xattrs == 0)
		return;
	put(w, &head, sizeof(head));
	for (uint32_t i = 0; i < e->n_xattrs; i++)
		put(w, w->scratch,
		    bs_erofs_xattr_put(&w->t->xattrs[e->first_xattr + i], w->scratch));
}

static void put_indexes(struct writer *w, const struct bs_tree_entry *e,
			const struct erofs_chunks *c)
{
	const struct bs_tree_extent *x = w->t->extents + e->first_extent, *end = x + e->n_extents;

	put_zeros_to(w, round_up(w->out_pos + w->out_len, sizeof(struct erofs_index)));
	for (uint64_t k = 0; k < c->n && !w->error; k++) {
		struct erofs_index index = { .blkaddr = htole32(EROFS_NULL_ADDR) };
		uint64_t block = k << c->bits;

		while (x < end && x->file_block + x->n_blocks <= block)
			x++;
		if (x < end && x->file_block <= block) {
			index.device_id = htole16(EROFS_BLOB_DEVICE);
			index.blkaddr = htole32(
				(uint32_t)(x->blob_block + (block - x->file_block)));
		}
		put(w, &index, sizeof(index));
	}
}

static void put_inline(struct writer *w, uint32_t i, uint32_t len)
{
	const struct bs_tree_entry *e = &w->t->entries[i];
	struct erofs_walk walk;
	uint32_t n = w->places[i].dir_size / BS_BLOCK_SIZE;

	if (S_ISLNK(e->mode)) {
		put(w, e->target, len);
		return;
	}
	bs_erofs_walk(&walk, w->t, w->places, i);
	do
		(void)bs_erofs_dir_block(&walk, w->block); /* all but the last are not inline */
	while (n--);
	put(w, w->block, len);
}

static uint32_t encode_device(const struct bs_tree_entry *e)
{
	return (e->rdev_minor & 0xff) | e->rdev_major << 8 | (e->rdev_minor & ~0xffu) << 12;
}

/* data_block: where its own blocks begin. */
static void put_inode(struct writer *w, uint32_t i, const struct shape *s, uint32_t data_block)
{
	const struct bs_tree_entry *e = &w->t->entries[i];
	struct erofs_inode d = {
		.format = htole16((uint16_t)s->layout),
		.mode = htole16((uint16_t)e->mode),
		.size = htole64(content_size(w, i)),
		.ino = htole32(i + 1),
		.uid = htole32(e->uid),
		.gid = htole32(e->gid),
		.mtime = htole64((uint64_t)e->mtime_s),
		.mtime_nsec = htole32(e->mtime_ns),
		.nlink = htole32(e->nlink),
	};

	if (s->xattr_size)
		d.xattr_icount = htole16(
			(uint16_t)((s->xattr_size - sizeof(struct erofs_xattr_header)) / 4 + 1));
	if (S_ISCHR(e->mode) || S_ISBLK(e->mode))
		d.u = htole32(encode_device(e));
	else if (s->layout == EROFS_CHUNKS)
		d.u = htole32(EROFS_CHUNK_INDEXES | s->chunks.bits);
	else if (s->n_blocks)
		d.u = htole32(data_block);
	put(w, &d, sizeof(d));
	put_xattrs(w, e);
	if (s->layout == EROFS_CHUNKS)
		put_indexes(w, e, &s->chunks);
	if (s->layout == EROFS_INLINE)
		put_inline(w, i, s->inline_len);
}

static void put_inodes(struct writer *w)
{
	uint32_t data_block = (uint32_t)(w->inodes_end / BS_BLOCK_SIZE);

	for (uint32_t i = 0; i < w->t->n_entries && !w->error; i++) {
		uint64_t at = (uint64_t)w->places[i].slot * EROFS_SLOT;
		struct shape s;

		if (w->t->entries[i].inode != i)
			continue;
		put_zeros_to(w, at);
		(void)shape_at(w, i, at, &s);
		put_inode(w, i, &s, data_block);
		data_block += s.n_blocks;
	}
	put_zeros_to(w, w->inodes_end);
}

/* --- the third pass -------------------------------------------------------------------------- */

static void put_dir_blocks(struct writer *w, uint32_t i, uint32_t n_blocks)
{
	struct erofs_walk walk;

	bs_erofs_walk(&walk, w->t, w->places, i);
	while (n_blocks--) {
		(void)bs_erofs_dir_block(&walk, w->block);
		put(w, w->block, sizeof(w->block));
	}
}

static void put_blocks(struct writer *w)
{
	for (uint32_t i = 0; i < w->t->n_entries && !w->error; i++) {
		const struct bs_tree_entry *e = &w->t->entries[i];
		struct shape s;

		if (e->inode != i || !(S_ISDIR(e->mode) || S_ISLNK(e->mode)))
			continue;
		(void)shape_at(w, i, (uint64_t)w->places[i].slot * EROFS_SLOT, &s);
		if (s.n_blocks == 0)
			continue;
		if (S_ISDIR(e->mode)) {
			put_dir_blocks(w, i, s.n_blocks);
			continue;
		}
		put(w, e->target, e->size);
		put_zeros_to(w, round_up(w->out_pos + w->out_len, BS_BLOCK_SIZE));
	}
}

static int write_image(struct writer *w, struct bs_error *err)
{
	int r = lay_out(w, err);

	if (r < 0)
		return r;
	put_super(w);
	put_inodes(w);
	put_blocks(w);
	flush(w);
	if (w->error)
		return bs_fail_errno(err, w->error, "erofs: write the metadata image");
	return 0;
}

static void writer_done(struct writer *w)
{
	free(w->places);
	free(w->out);
	free(w->scratch);
}

int bs_erofs_write(const struct bs_tree *t, int fd, uint64_t *ret_bytes, struct bs_error *err)
{
	__attribute__((cleanup(writer_done))) struct writer w = { .t = t, .fd = fd };
	int r;

	if (t->blob_blocks > UINT32_MAX)
		return bs_fail(err, -EFBIG, "erofs: a blob of 2^32 blocks or more");
	w.places = calloc(t->n_entries, sizeof(*w.places));
	w.out = malloc(OUT_SIZE);
	w.scratch = malloc(BS_EROFS_XATTR_BYTES);
	if (!w.places || !w.out || !w.scratch)
		return bs_fail(err, -ENOMEM, "erofs: out of memory");
	r = write_image(&w, err);
	if (r < 0)
		return r;
	*ret_bytes = w.out_pos;
	return 0;
}
