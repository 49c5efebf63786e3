/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/pack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/encoder.h"
#include "image/frames.h"
#include "image/nodes.h"
#include "image/samefile.h"
#include "image/spool.h"
#include "image/table.h"
#include "image/tree.h"

/* bootseer-image(5), "Packing" */
#define SMALL_MAX 65536u
#define CUT_MIN_BLOCKS 8u
#define CUT_MODULUS 8u
#define GRANULES_MAX (UINT64_C(1) << 18)
#define BLOB_BLOCKS_MAX UINT64_C(0xffffffff)

struct extents {
	struct bs_tree_extent *v;
	size_t n, cap;
};

struct packer {
	const struct bs_pack_options *o;
	struct bs_encoder *enc;
	struct bs_tree_writer *tree;
	struct bs_samefile same;
	uint8_t *frame;	       /* the encoder's buffer, NULL: none taken */
	uint32_t frame_blocks; /* filled with small files */
	uint64_t blob_blocks;
	struct bs_framer *framer; /* only for the hash of single blocks */
	uint8_t *piece;		  /* a frame's worth, to read into */
	struct extents extents;
	uint64_t shared_bytes;
	uint32_t n_entries;
};

/* --- frames ---------------------------------------------------------------------------------- */

static int need_frame(struct packer *p, struct bs_error *err)
{
	return p->frame ? 0 : bs_encoder_buffer(p->enc, &p->frame, err);
}

static int push(struct packer *p, uint32_t n_blocks, struct bs_error *err)
{
	p->frame = NULL;
	p->frame_blocks = 0;
	return bs_encoder_push(p->enc, n_blocks, err);
}

static int end_frame(struct packer *p, struct bs_error *err)
{
	return p->frame_blocks ? push(p, p->frame_blocks, err) : 0;
}

static int take_blocks(struct packer *p, uint64_t n, uint64_t *ret_first, struct bs_error *err)
{
	if (n > BLOB_BLOCKS_MAX - p->blob_blocks)
		return bs_fail(err, -EFBIG, "the files of the image have more than 16 TiB");
	*ret_first = p->blob_blocks;
	p->blob_blocks += n;
	return 0;
}

static int add_extent(struct packer *p, uint64_t file_block, uint64_t blob_block, uint64_t n,
		      struct bs_error *err)
{
	struct extents *x = &p->extents;
	struct bs_tree_extent *last = x->n ? &x->v[x->n - 1] : NULL;

	if (last && last->file_block + last->n_blocks == file_block &&
	    last->blob_block + last->n_blocks == blob_block) {
		last->n_blocks += n;
		return 0;
	}
	if (bs_grow(&x->v, &x->cap, x->n + 1, sizeof(*x->v)) < 0)
		return bs_fail_errno(err, -ENOMEM, "extents");
	x->v[x->n++] = (struct bs_tree_extent){ file_block, blob_block, n };
	return 0;
}

static bool cut_behind(struct packer *p, const uint8_t *last_block)
{
	struct bs_digest leaf;

	bs_frame_leaves(p->framer, last_block, 1, &leaf);
	return leaf.b[0] % CUT_MODULUS == 0;
}

/* --- contents -------------------------------------------------------------------------------- */

static int place_small(struct packer *p, const struct bs_inode *i, struct bs_error *err)
{
	uint32_t n = (uint32_t)bs_div_up(i->size, BS_BLOCK_SIZE);
	struct bs_digest digest;
	uint64_t first;
	uint8_t *at;
	int r;

	memset(p->piece + (size_t)(n - 1) * BS_BLOCK_SIZE, 0, BS_BLOCK_SIZE);
	r = bs_spool_read(i->spool, i->spool_off, p->piece, (size_t)i->size, err);
	if (r < 0)
		return r;
	bs_digest_of(p->piece, (size_t)i->size, &digest);
	if (bs_samefile_small(&p->same, &digest, &first)) {
		p->shared_bytes += i->size;
		return add_extent(p, 0, first, n, err);
	}
	if (p->frame_blocks + n > BS_FRAME_BLOCKS_MAX) {
		r = end_frame(p, err);
		if (r < 0)
			return r;
	}
	r = need_frame(p, err);
	if (r == 0)
		r = take_blocks(p, n, &first, err);
	if (r == 0)
		r = bs_samefile_small_add(&p->same, &digest, first, err);
	if (r == 0)
		r = add_extent(p, 0, first, n, err);
	if (r < 0)
		return r;
	at = p->frame + (size_t)p->frame_blocks * BS_BLOCK_SIZE;
	memcpy(at, p->piece, (size_t)n * BS_BLOCK_SIZE);
	p->frame_blocks += n;
	if (p->frame_blocks >= CUT_MIN_BLOCKS &&
	    cut_behind(p, at + (size_t)(n - 1) * BS_BLOCK_SIZE))
		return end_frame(p, err);
	return 0;
}

static uint64_t granule_of(uint64_t size)
{
	uint64_t granule = BS_FRAME_BYTES_MAX;

	while (bs_div_up(size, granule) > GRANULES_MAX)
		granule *= 2;
	return granule;
}

static bool all_zero(const uint8_t *b, size_t len)
{
	return b[0] == 0 && memcmp(b, b + 1, len - 1) == 0;
}

/* The first piece of [off, end) that is not all zeros; end when there is none. */
static int first_data(struct packer *p, const struct bs_inode *i, uint64_t off, uint64_t end,
		      uint64_t *ret, struct bs_error *err)
{
	while (off < end) {
		uint64_t data = bs_spool_next_data(i->spool, i->spool_off + off,
						   i->spool_off + end);
		size_t len;
		int r;

		/* on to the piece where the next data is */
		off += (data - i->spool_off - off) / BS_FRAME_BYTES_MAX * BS_FRAME_BYTES_MAX;
		if (data >= i->spool_off + end)
			break;
		len = (size_t)BS_MIN(end - off, (uint64_t)BS_FRAME_BYTES_MAX);
		r = bs_spool_read(i->spool, i->spool_off + off, p->piece, len, err);
		if (r < 0)
			return r;
		if (!all_zero(p->piece, len)) {
			*ret = off;
			return 0;
		}
		off += len;
	}
	*ret = end;
	return 0;
}

/* [off, end) of the file, frame by frame. */
static int place_frames(struct packer *p, const struct bs_inode *i, uint64_t off, uint64_t end,
			struct bs_error *err)
{
	while (off < end) {
		size_t len = (size_t)BS_MIN(end - off, (uint64_t)BS_FRAME_BYTES_MAX);
		uint32_t n = (uint32_t)bs_div_up(len, BS_BLOCK_SIZE);
		uint64_t first;
		int r = need_frame(p, err);

		if (r == 0)
			r = bs_spool_read(i->spool, i->spool_off + off, p->frame, len, err);
		if (r == 0)
			r = take_blocks(p, n, &first, err);
		if (r == 0)
			r = add_extent(p, off / BS_BLOCK_SIZE, first, n, err);
		if (r < 0)
			return r;
		memset(p->frame + len, 0, (size_t)n * BS_BLOCK_SIZE - len);
		r = push(p, n, err);
		if (r < 0)
			return r;
		if (p->o->progress)
			p->o->progress(p->o->cookie, len);
		off += len;
	}
	return 0;
}

static int place_large(struct packer *p, const struct bs_inode *i, struct bs_error *err)
{
	uint64_t granule = granule_of(i->size), off = 0;
	int r = end_frame(p, err);

	while (r == 0 && off < i->size) {
		uint64_t end, data;

		r = first_data(p, i, off, i->size, &data, err);
		if (r < 0)
			return r;
		/* granules without data are holes */
		if (p->o->progress)
			p->o->progress(p->o->cookie,
				       BS_MIN(data / granule * granule, i->size) - off);
		off = data < i->size ? data / granule * granule : i->size;
		end = BS_MIN(off + granule, i->size);
		r = place_frames(p, i, off, end, err);
		off = end;
	}
	return r;
}

static int place(struct packer *p, const struct bs_inode *i, struct bs_error *err)
{
	const struct bs_tree_extent *v;
	size_t n;
	int r;

	p->extents.n = 0;
	if (i->size == 0)
		return 0;
	if (i->size <= SMALL_MAX) {
		if (p->o->progress)
			p->o->progress(p->o->cookie, i->size);
		return place_small(p, i, err);
	}
	r = bs_samefile_large(&p->same, i, &v, &n, err);
	if (r < 0)
		return r;
	if (r == 0) {
		r = place_large(p, i, err);
		if (r == 0)
			r = bs_samefile_large_add(&p->same, i, p->extents.v, p->extents.n, err);
		return r;
	}
	p->shared_bytes += i->size;
	if (p->o->progress)
		p->o->progress(p->o->cookie, i->size);
	for (size_t k = 0; k < n; k++) {
		r = add_extent(p, v[k].file_block, v[k].blob_block, v[k].n_blocks, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- entries --------------------------------------------------------------------------------- */

static int add_inode(struct packer *p, struct bs_node *node, uint32_t parent, struct bs_error *err)
{
	struct bs_inode *i = node->inode;
	struct bs_tree_entry e = { .parent = parent,
				   .inode = p->n_entries,
				   .name = node->name,
				   .name_len = node->name_len,
				   .mode = i->mode,
				   .uid = i->uid,
				   .gid = i->gid,
				   .rdev_major = i->rdev_major,
				   .rdev_minor = i->rdev_minor,
				   .mtime_s = i->mtime_s,
				   .mtime_ns = i->mtime_ns,
				   .n_xattrs = (uint32_t)i->xattrs.n };
	int64_t at;
	int r;

	p->extents.n = 0;
	if (S_ISREG(i->mode)) {
		e.size = i->size;
		r = place(p, i, err);
		if (r < 0)
			return r;
		e.n_extents = (uint32_t)p->extents.n;
	} else if (S_ISLNK(i->mode)) {
		e.target = i->target;
		e.size = strlen(i->target);
	}
	at = bs_tree_writer_add(p->tree, &e, i->xattrs.v, p->extents.v, err);
	if (at < 0)
		return (int)at;
	i->entry = (uint32_t)at;
	return 0;
}

static int add_name(struct packer *p, struct bs_node *node, uint32_t parent, struct bs_error *err)
{
	struct bs_tree_entry e = { .parent = parent,
				   .inode = node->inode->entry,
				   .name = node->name,
				   .name_len = node->name_len };
	char path[256];
	int64_t at;
	int r = 0;

	if (node->inode->entry == UINT32_MAX) {
		r = add_inode(p, node, parent, err);
	} else {
		at = bs_tree_writer_add(p->tree, &e, NULL, NULL, err);
		r = at < 0 ? (int)at : 0;
	}
	if (r < 0)
		return bs_error_context(err, "'%s'", bs_node_path(node, path, sizeof(path)));
	p->n_entries++;
	return 0;
}

/* The children of one directory and how far they are done. */
struct level {
	struct bs_node **v;
	size_t n, at;
	uint32_t dir; /* the directory's entry */
};

struct stack {
	struct level *v;
	size_t n, cap;
};

static int descend(struct stack *s, const struct bs_node *dir, struct bs_error *err)
{
	struct level l = { .dir = dir->inode->entry };

	l.v = bs_node_sorted(dir, &l.n);
	if (!l.v || bs_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v)) < 0) {
		free(l.v);
		return bs_fail_errno(err, -ENOMEM, "directory");
	}
	s->v[s->n++] = l;
	return 0;
}

static void stack_done(struct stack *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].v);
	free(s->v);
}

static int add_all(struct packer *p, struct bs_nodes *t, struct bs_error *err)
{
	__attribute__((cleanup(stack_done))) struct stack s = { 0 };
	int r = add_name(p, t->root, 0, err);

	if (r == 0)
		r = descend(&s, t->root, err);
	while (r == 0 && s.n > 0) {
		struct level *l = &s.v[s.n - 1];
		struct bs_node *node;

		if (l->at == l->n) {
			free(l->v);
			s.n--;
			continue;
		}
		node = l->v[l->at++];
		r = add_name(p, node, l->dir, err);
		if (r == 0 && S_ISDIR(node->inode->mode) && node->children)
			r = descend(&s, node, err);
	}
	return r;
}

/* --- all ------------------------------------------------------------------------------------- */

static void packer_done(struct packer *p)
{
	bs_encoder_free(p->enc);
	bs_tree_writer_free(p->tree);
	bs_samefile_done(&p->same);
	bs_framer_free(p->framer);
	free(p->piece);
	free(p->extents.v);
}

static int finish(struct packer *p, struct bs_packed *out, struct bs_error *err)
{
	struct bs_encoded enc = { 0 };
	int r = end_frame(p, err);

	if (r == 0)
		r = bs_encoder_finish(p->enc, &enc, err);
	if (r == 0)
		r = bs_table_write(enc.frames, enc.n_frames, &out->table, &out->table_len, err);
	free(enc.frames);
	if (r == 0)
		r = bs_tree_writer_finish(p->tree, p->blob_blocks, &out->tree, &out->tree_len, err);
	if (r < 0)
		return r;
	out->data_len = enc.data_len;
	out->data = enc.data;
	out->n_frames = enc.n_frames;
	out->n_entries = p->n_entries;
	out->blob_blocks = p->blob_blocks;
	out->shared_bytes = p->shared_bytes;
	return 0;
}

int bs_pack(struct bs_nodes *t, const struct bs_pack_options *o, struct bs_packed *ret,
	    struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	__attribute__((cleanup(packer_done))) struct packer p = { .o = o };
	bs_auto(spool) struct bs_spool *data = NULL;
	struct bs_packed out = BS_PACKED_INIT;
	int r;

	err = err ? err : &own;
	bs_samefile_init(&p.same);
	p.framer = bs_framer_new(1);
	p.piece = malloc(BS_FRAME_BYTES_MAX);
	p.tree = bs_tree_writer_new();
	if (!p.framer || !p.piece || !p.tree)
		return bs_fail_errno(err, -ENOMEM, "packing");
	r = bs_spool_new(o->tmp, &data, err);
	if (r == 0)
		r = bs_encoder_new(o->jobs, o->level, data->fd, data->dir, &p.enc, err);
	if (r == 0)
		r = add_all(&p, t, err);
	if (r == 0)
		r = finish(&p, &out, err);
	if (r < 0) {
		bs_packed_done(&out);
		return r;
	}
	out.data_fd = bs_take_fd(&data->fd);
	*ret = out;
	return 0;
}

void bs_packed_done(struct bs_packed *p)
{
	free(p->tree);
	free(p->table);
	p->data_fd = bs_close(p->data_fd);
	*p = BS_PACKED_INIT;
}
