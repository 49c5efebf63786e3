/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "hot/heat.h"
#include "image/tree.h"

#define FILES 40u
#define BLOCKS 3000u
#define EXTENTS_MAX 4000u

/* Files with extents anywhere, so that they share blocks; entry 0 is the root. */
static struct bs_tree_entry entries[FILES + 1];
static struct bs_tree_extent extents[3 * FILES];
static struct bs_tree tree = { .entries = entries,
			       .n_entries = FILES + 1,
			       .extents = extents,
			       .n_extents = 3 * FILES,
			       .blob_blocks = BLOCKS };
static uint32_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static int make_tree(void **state)
{
	for (uint32_t i = 0; i < FILES; i++) {
		entries[i + 1] = (struct bs_tree_entry){ .inode = i + 1,
							 .first_extent = 3 * i,
							 .n_extents = i % 4 };
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t n = 1 + any(60);

			if (i == 3) /* one that all others share with */
				n = 1 + any(BLOCKS);

			extents[3 * i + k].blob_block = any(BLOCKS - n + 1);
			extents[3 * i + k].n_blocks = n;
		}
	}
	return 0;
}

/* Disjoint ones in any order; where[b]: the place of block b's, or UINT32_MAX. */
static uint32_t make_extents(struct bs_extent *e, uint32_t *where)
{
	uint32_t n = 0, b = any(50);

	for (uint32_t i = 0; i < BLOCKS; i++)
		where[i] = UINT32_MAX;
	while (b < BLOCKS) {
		uint32_t len = 1 + any(9);

		len = BS_MIN(len, BLOCKS - b);
		e[n++] = (struct bs_extent){ b, len };
		b += len + any(30);
	}
	for (uint32_t i = n; i-- > 1;) {
		uint32_t k = any(i + 1);
		struct bs_extent old = e[i];

		e[i] = e[k];
		e[k] = old;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < e[i].n_blocks; k++)
			where[e[i].block + k] = i;
	return n;
}

static struct bs_heat_file count(const uint32_t *where, uint32_t entry)
{
	struct bs_heat_file f = { .entry = entry, .first = UINT32_MAX };

	for (uint32_t k = 0; k < entries[entry].n_extents; k++) {
		const struct bs_tree_extent *x = &extents[entries[entry].first_extent + k];

		for (uint64_t b = x->blob_block; b < x->blob_block + x->n_blocks; b++) {
			if (b >= BLOCKS || where[b] == UINT32_MAX)
				continue;
			f.blocks++;
			f.first = BS_MIN(f.first, where[b]);
		}
	}
	return f;
}

static void expect(const struct bs_heat *h, const uint32_t *where)
{
	bs_autofree struct bs_heat_file *files = NULL;
	size_t n, want = 0;

	assert_int_equal(bs_heat_files(h, &tree, &files, &n), 0);
	for (uint32_t i = 1; i <= FILES; i++) {
		struct bs_heat_file f = count(where, i);
		size_t at = 0;

		assert_int_equal(bs_heat_of_file(h, &tree, i), f.blocks);
		want += f.blocks > 0;
		while (at < n && files[at].entry != i)
			at++;
		assert_int_equal(at<n, f.blocks> 0);
		if (at < n)
			assert_memory_equal(&files[at], &f, sizeof(f));
	}
	assert_int_equal(n, want);
	for (size_t i = 1; i < n; i++)
		assert_true(files[i - 1].first <= files[i].first);
}

static void files_are_found_in_the_order_of_use(void **state)
{
	static struct bs_extent e[EXTENTS_MAX];
	static uint32_t where[BLOCKS];

	for (int round = 0; round < 200; round++) {
		bs_auto(heat) struct bs_heat *h = NULL;
		uint32_t n = make_extents(e, where), blocks = 0;

		for (uint32_t i = 0; i < n; i++)
			blocks += e[i].n_blocks;
		h = bs_heat_new(e, n);
		assert_int_equal(bs_heat_blocks(h), blocks);
		expect(h, where);
	}
}

static void what_two_have_is_in_the_order_of_the_first(void **state)
{
	static struct bs_extent e[EXTENTS_MAX];
	static uint32_t where[BLOCKS], other[BLOCKS];

	for (int round = 0; round < 200; round++) {
		bs_auto(heat) struct bs_heat *a = bs_heat_new(e, make_extents(e, where)), *b = NULL;
		bs_auto(heat) struct bs_heat *both = NULL;

		b = bs_heat_new(e, make_extents(e, other));
		both = bs_heat_both(a, b);
		for (uint32_t i = 0; i < BLOCKS; i++)
			where[i] = other[i] == UINT32_MAX ? UINT32_MAX : where[i];
		expect(both, where);
	}
}

static void nothing_is_in_an_empty_list(void **state)
{
	bs_auto(heat) struct bs_heat *h = bs_heat_new(NULL, 0), *both = bs_heat_both(h, h);
	bs_autofree struct bs_heat_file *files = NULL;
	size_t n;

	assert_int_equal(bs_heat_blocks(both), 0);
	assert_int_equal(bs_heat_files(h, &tree, &files, &n), 0);
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_found_in_the_order_of_use),
		cmocka_unit_test(what_two_have_is_in_the_order_of_the_first),
		cmocka_unit_test(nothing_is_in_an_empty_list),
	};

	return cmocka_run_group_tests(tests, make_tree, NULL);
}
