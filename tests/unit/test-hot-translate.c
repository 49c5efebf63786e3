/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hot/pack.h"
#include "hot/translate.h"
#include "image/table.h"

/* Frames of n blocks with a root that is one letter. */
static struct bs_table table_of(struct bs_frame *frames, const char *roots, const uint32_t *n)
{
	struct bs_table t = { .frames = frames, .n_frames = (uint32_t)strlen(roots) };

	for (uint32_t i = 0; i < t.n_frames; i++) {
		frames[i] = (struct bs_frame){ .first_block = t.blob_blocks, .n_blocks = n[i] };
		frames[i].root.b[0] = (uint8_t)roots[i];
		t.blob_blocks += n[i];
	}
	return t;
}

/* A: a 0-3, b 4-7, c 8-11, d 12-15. B: x 0-1, c 2-5, a 6-9, d (of another size) 10-12. */
static struct bs_frame frames_a[4], frames_b[4];
static struct bs_table a, b;

static int set_up(void **state)
{
	a = table_of(frames_a, "abcd", (const uint32_t[]){ 4, 4, 4, 4 });
	b = table_of(frames_b, "xcad", (const uint32_t[]){ 2, 4, 4, 3 });
	return 0;
}

static struct bs_pack pack_of(struct bs_pack_segment *segments, uint32_t n_segments,
			      struct bs_extent *extents, uint32_t n_extents)
{
	return (struct bs_pack){ .segments = segments,
				 .extents = extents,
				 .n_segments = n_segments,
				 .n_extents = n_extents,
				 .head_len = 100,
				 .len = 1000 };
}

static void common_frames_are_translated(void **state)
{
	/* c's second half and b; b's rest, d; a and c's begin */
	struct bs_extent e[] = { { 9, 3 }, { 4, 2 }, { 6, 2 }, { 13, 1 }, { 0, 4 }, { 8, 1 } };
	struct bs_pack_segment s[] = {
		{ .off = 100, .len = 10, .first_extent = 0, .n_extents = 2, .n_blocks = 5 },
		{ .off = 110, .len = 20, .first_extent = 2, .n_extents = 2, .n_blocks = 3 },
		{ .off = 130, .len = 30, .first_extent = 4, .n_extents = 2, .n_blocks = 5 },
	};
	const struct bs_pack p = pack_of(s, 3, e, 6);
	bs_autofree struct bs_pack_origin *o = NULL;
	bs_auto(pack) struct bs_pack *t = NULL;

	assert_int_equal(bs_pack_translate(&p, &a, &b, &t, &o), 0);
	assert_int_equal(t->n_segments, 3);
	assert_int_equal(t->head_len, 100);
	assert_int_equal(t->len, 1000);
	assert_int_equal(t->n_blocks, 8);
	assert_int_equal(t->n_extents, 3);
	assert_int_equal(t->segments[0].n_extents, 1);
	assert_int_equal(t->segments[0].n_blocks, 3);
	assert_int_equal(t->extents[0].block, 3);
	assert_int_equal(t->extents[0].n_blocks, 3);
	assert_int_equal(o[0].block, 9);
	assert_int_equal(o[0].in_segment, 0);
	assert_int_equal(t->segments[1].n_extents, 0);
	assert_int_equal(t->segments[1].off, 110);
	assert_int_equal(t->segments[2].first_extent, 1);
	assert_int_equal(t->segments[2].n_extents, 2);
	assert_int_equal(t->extents[1].block, 6);
	assert_int_equal(t->extents[1].n_blocks, 4);
	assert_int_equal(t->extents[2].block, 2);
	assert_int_equal(o[2].block, 8);
	assert_int_equal(o[2].in_segment, 4);
}

static void the_blocks_that_are_left_move_together(void **state)
{
	/* b's block first, so that what follows has to move; then one of a, and c from behind */
	struct bs_extent e[] = { { 4, 1 }, { 1, 2 }, { 5, 1 }, { 10, 2 } };
	struct bs_pack_segment s[] = { { .n_extents = 4, .n_blocks = 6 } };
	const struct bs_pack p = pack_of(s, 1, e, 4);
	bs_autofree uint8_t *blocks = malloc((size_t)6 * BS_BLOCK_BYTES);
	bs_autofree struct bs_pack_origin *o = NULL;
	bs_auto(pack) struct bs_pack *t = NULL;
	const uint8_t want[] = { 1, 2, 4, 5 };

	for (size_t i = 0; i < 6; i++)
		memset(blocks + i * BS_BLOCK_BYTES, (int)i, BS_BLOCK_BYTES);
	assert_int_equal(bs_pack_translate(&p, &a, &b, &t, &o), 0);
	assert_int_equal(t->n_blocks, 4);
	bs_pack_pick(t, o, 0, blocks);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(blocks[i * BS_BLOCK_BYTES], want[i]);
		assert_int_equal(blocks[(i + 1) * BS_BLOCK_BYTES - 1], want[i]);
	}
}

static void a_block_comes_once(void **state)
{
	struct bs_frame twice[2];
	const struct bs_table t2 = table_of(twice, "aa", (const uint32_t[]){ 4, 4 });
	struct bs_extent e[] = { { 0, 2 }, { 5, 2 } };
	struct bs_pack_segment s[] = { { .n_extents = 2, .n_blocks = 4 } };
	const struct bs_pack p = pack_of(s, 1, e, 2);
	bs_autofree struct bs_pack_origin *o = NULL;
	bs_auto(pack) struct bs_pack *t = NULL;

	assert_int_equal(bs_pack_translate(&p, &t2, &b, &t, &o), 0);
	assert_int_equal(t->n_blocks, 3);
	assert_int_equal(t->n_extents, 2);
	assert_int_equal(t->extents[0].block, 6);
	assert_int_equal(t->extents[0].n_blocks, 2);
	assert_int_equal(t->extents[1].block, 8);
	assert_int_equal(t->extents[1].n_blocks, 1);
	assert_int_equal(o[1].in_segment, 3);
}

static void where_nothing_is_common_there_is_none(void **state)
{
	struct bs_extent e[] = { { 4, 4 }, { 12, 4 } };
	struct bs_pack_segment s[] = { { .n_extents = 2, .n_blocks = 8 } };
	const struct bs_pack p = pack_of(s, 1, e, 2);
	bs_autofree struct bs_pack_origin *o = NULL;
	bs_auto(pack) struct bs_pack *t = NULL;

	assert_int_equal(bs_pack_translate(&p, &a, &b, &t, &o), -ENOENT);
	assert_null(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(common_frames_are_translated, set_up),
		cmocka_unit_test_setup(the_blocks_that_are_left_move_together, set_up),
		cmocka_unit_test_setup(a_block_comes_once, set_up),
		cmocka_unit_test_setup(where_nothing_is_common_there_is_none, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
