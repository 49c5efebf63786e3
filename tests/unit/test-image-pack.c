/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/frames.h"
#include "image/layer.h"
#include "image/layers.h"
#include "image/nodes.h"
#include "image/pack.h"
#include "image/spool.h"
#include "image/table.h"
#include "image/tree.h"
#include "tarbuild.h"

#define K 1024u

struct image {
	struct tar tar;
	struct bs_layer *layer;
	struct bs_nodes nodes;
	struct bs_packed packed;
	struct bs_tree *tree;
	struct bs_table *table;
};

static void image_done(struct image *i)
{
	bs_nodes_done(&i->nodes);
	bs_layer_free(i->layer);
	tar_done(&i->tar);
	bs_packed_done(&i->packed);
	bs_tree_free(i->tree);
	bs_table_free(i->table);
}

#define autoimage __attribute__((cleanup(image_done))) struct image
#define IMAGE_INIT ((struct image){ .tar = TAR_INIT, .packed = BS_PACKED_INIT })

/* Bytes that do not compress, the same for the same seed. */
static char *noise(size_t len, unsigned int seed)
{
	char *p = malloc(len);
	uint64_t x = seed * UINT64_C(2862933555777941757) + 3037000493;

	for (size_t i = 0; i < len; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		p[i] = (char)(x >> 56);
	}
	return p;
}

static void add_noise(struct image *i, const char *name, size_t len, unsigned int seed)
{
	bs_autofree char *data = noise(len, seed);

	tar_add(&i->tar, name, '0', "", data, len);
}

static void pack(struct image *i, unsigned int jobs)
{
	struct bs_pack_options o = { .jobs = jobs, .level = 1 };
	struct bs_error err = BS_ERROR_INIT;

	assert_int_equal(bs_nodes_init(&i->nodes), 0);
	if (tar_layer(&i->tar, &i->layer, &err) < 0 ||
	    bs_layers_apply(&i->nodes, i->layer, &err) < 0 ||
	    bs_pack(&i->nodes, &o, &i->packed, &err) < 0 ||
	    bs_tree_read(i->packed.tree, i->packed.tree_len, &i->tree, &err) < 0 ||
	    bs_table_read(i->packed.table, i->packed.table_len, &i->table, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(i->tree->blob_blocks == i->table->blob_blocks);
	assert_true(i->table->data_len == i->packed.data_len);
}

static const struct bs_tree_entry *entry(const struct image *i, const char *name)
{
	for (uint32_t k = 0; k < i->tree->n_entries; k++)
		if (strcmp(i->tree->entries[k].name, name) == 0)
			return &i->tree->entries[i->tree->entries[k].inode];
	fail_msg("no entry %s", name);
	return NULL;
}

static const struct bs_tree_extent *extents(const struct image *i, const char *name, uint32_t want)
{
	const struct bs_tree_entry *e = entry(i, name);

	assert_int_equal(e->n_extents, want);
	return &i->tree->extents[e->first_extent];
}

/* The file as a reader would put it together. */
static char *content(const struct image *i, const char *name)
{
	bs_auto(framer) struct bs_framer *f = bs_framer_new(0);
	const struct bs_tree_entry *e = entry(i, name);
	char *out = calloc(1, e->size + 4096);
	uint8_t packed[BS_FRAME_DATA_MAX], *blocks = malloc(BS_FRAME_BYTES_MAX);

	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_tree_extent *x = &i->tree->extents[e->first_extent + k];

		for (uint64_t b = 0; b < x->n_blocks; b++) {
			const struct bs_frame *fr =
				&i->table->frames[bs_table_find(i->table, x->blob_block + b)];

			assert_int_equal(bs_pread_full(i->packed.data_fd, packed, fr->len, fr->off),
					 fr->len);
			assert_int_equal(bs_frame_decode(f, fr, packed, blocks), 0);
			memcpy(out + (x->file_block + b) * 4096,
			       blocks + (x->blob_block + b - fr->first_block) * 4096, 4096);
		}
	}
	free(blocks);
	return out;
}

static void large_files_begin_frames_and_are_cut_at_128_kib(void **state)
{
	autoimage i = IMAGE_INIT;
	const struct bs_tree_extent *x;
	uint32_t first;

	tar_file(&i.tar, "a", "small");
	add_noise(&i, "b", 300 * K, 1);
	tar_file(&i.tar, "c", "small too");
	pack(&i, 2);
	x = extents(&i, "b", 1);
	assert_int_equal(x->n_blocks, 75);
	first = bs_table_find(i.table, x->blob_block);
	assert_true(i.table->frames[first].first_block == x->blob_block);
	assert_int_equal(i.table->frames[first].n_blocks, 32);
	assert_int_equal(i.table->frames[first + 1].n_blocks, 32);
	assert_int_equal(i.table->frames[first + 2].n_blocks, 11);
	assert_int_equal(i.table->n_frames, 5);
}

static void small_files_share_frames(void **state)
{
	autoimage i = IMAGE_INIT;
	bs_autofree char *text = NULL;
	char name[32];

	for (unsigned int k = 0; k < 400; k++) {
		(void)snprintf(name, sizeof(name), "f%03u", k);
		add_noise(&i, name, 1 + k * 37 % 9000, k);
	}
	pack(&i, 2);
	/* never more than 32 blocks, and seldom fewer than 8 */
	for (uint32_t k = 0; k + 1 < i.table->n_frames; k++)
		assert_in_range(i.table->frames[k].n_blocks, 8, 32);
	assert_true(i.table->n_frames > 20);
	text = content(&i, "f399");
	bs_autofree char *want = noise(1 + 399 * 37 % 9000, 399);
	assert_memory_equal(text, want, 1 + 399 * 37 % 9000);
}

static void frames_find_back_after_a_difference(void **state)
{
	autoimage a = IMAGE_INIT, b = IMAGE_INIT;
	unsigned int same = 0;
	char name[32];

	add_noise(&b, "a-new-one", 5 * K, 9999);
	for (unsigned int k = 0; k < 600; k++) {
		(void)snprintf(name, sizeof(name), "f%03u", k);
		add_noise(&a, name, 3000, k);
		add_noise(&b, name, 3000, k);
	}
	pack(&a, 1);
	pack(&b, 1);
	for (uint32_t k = 0; k < a.table->n_frames; k++)
		for (uint32_t n = 0; n < b.table->n_frames; n++)
			if (bs_digest_eq(&a.table->frames[k].root, &b.table->frames[n].root))
				same++;
	assert_true(same + 4 >= a.table->n_frames);
}

static void zeros_are_holes_by_granules(void **state)
{
	autoimage i = IMAGE_INIT;
	bs_autofree char *data = calloc(1, 1000 * K), *got = NULL;
	const struct bs_tree_extent *x;

	data[300 * K] = 'x'; /* in the third granule */
	data[900 * K] = 'y'; /* in the eighth, which is the last and short */
	tar_add(&i.tar, "f", '0', "", data, 1000 * K);
	memset(data, 0, 1000 * K);
	tar_add(&i.tar, "zeros", '0', "", data, 200 * K);
	tar_add(&i.tar, "small", '0', "", data, 64 * K);
	pack(&i, 2);
	x = extents(&i, "f", 2);
	assert_int_equal(x[0].file_block, 64);
	assert_int_equal(x[0].n_blocks, 32);
	assert_int_equal(x[1].file_block, 224);
	assert_int_equal(x[1].n_blocks, 26);
	(void)extents(&i, "zeros", 0);
	/* small files have no holes */
	(void)extents(&i, "small", 1);
	got = content(&i, "f");
	assert_int_equal(got[300 * K], 'x');
	assert_int_equal(got[900 * K], 'y');
}

static void equal_files_share_blocks(void **state)
{
	autoimage i = IMAGE_INIT;

	add_noise(&i, "a1", 5000, 1);
	add_noise(&i, "a2", 5000, 1);
	add_noise(&i, "b1", 200 * K, 2);
	add_noise(&i, "b2", 200 * K, 2);
	add_noise(&i, "b3", 200 * K, 3);
	pack(&i, 2);
	assert_true(extents(&i, "a1", 1)->blob_block == extents(&i, "a2", 1)->blob_block);
	assert_true(extents(&i, "b1", 1)->blob_block == extents(&i, "b2", 1)->blob_block);
	assert_true(extents(&i, "b1", 1)->blob_block != extents(&i, "b3", 1)->blob_block);
	assert_true(i.packed.shared_bytes == 5000 + 200 * K);
}

static void the_same_bytes_whatever_the_jobs(void **state)
{
	static const unsigned int jobs[] = { 1, 2, 4, 7 };
	struct bs_digest data[4], tree[4], table[4];

	for (int n = 0; n < 4; n++) {
		autoimage i = IMAGE_INIT;
		char name[32];

		for (unsigned int k = 0; k < 300; k++) {
			(void)snprintf(name, sizeof(name), "d%u/f%03u", k % 7, k);
			add_noise(&i, name, k * 997 % 200000, k);
		}
		pack(&i, jobs[n]);
		data[n] = i.packed.data;
		bs_digest_of(i.packed.tree, i.packed.tree_len, &tree[n]);
		bs_digest_of(i.packed.table, i.packed.table_len, &table[n]);
		assert_true(bs_digest_eq(&data[0], &data[n]));
		assert_true(bs_digest_eq(&tree[0], &tree[n]));
		assert_true(bs_digest_eq(&table[0], &table[n]));
	}
}

static void an_image_without_files(void **state)
{
	autoimage i = IMAGE_INIT;

	tar_file(&i.tar, "empty", "");
	tar_symlink(&i.tar, "s", "empty");
	pack(&i, 2);
	assert_int_equal(i.table->n_frames, 0);
	assert_true(i.packed.data_len == 0);
	assert_int_equal(i.tree->n_entries, 3);
}

static void a_full_disk_is_told(void **state)
{
	struct bs_error err;

	assert_int_equal(bs_spool_check_space("/var/tmp", UINT64_MAX, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "/var/tmp"));
	assert_non_null(strstr(err.msg, "--tmp"));
	assert_int_equal(bs_spool_check_space("/var/tmp", 1, &err), 0);
	assert_int_equal(bs_spool_check_space("/nonexistent", 1, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(large_files_begin_frames_and_are_cut_at_128_kib),
		UNIT_TEST(small_files_share_frames),
		UNIT_TEST(frames_find_back_after_a_difference),
		UNIT_TEST(zeros_are_holes_by_granules),
		UNIT_TEST(equal_files_share_blocks),
		UNIT_TEST(the_same_bytes_whatever_the_jobs),
		UNIT_TEST(an_image_without_files),
		UNIT_TEST(a_full_disk_is_told),
	};

	return cmocka_run_group_tests_name("image/pack", tests, NULL, NULL);
}
