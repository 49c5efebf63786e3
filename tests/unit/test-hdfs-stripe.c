/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Arithmetic of stripes, manifests and sums. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "hdfs/manifest.h"
#include "hdfs/stripe.h"

#define MIB (UINT64_C(1) << 20)
#define UNIT ((uint32_t)MIB)
#define ID_A "0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210"

static void units_have_the_bytes_of_the_file(void **state)
{
	static const uint64_t lens[] = { 0, 1, MIB - 1, MIB, MIB + 1, 7 * MIB, BS_STRIPE_SIZE_MAX };

	for (size_t i = 0; i < BS_ARRAY_LEN(lens); i++) {
		uint64_t n = bs_stripe_units(lens[i], UNIT), sum;

		sum = n ? (n - 1) * UNIT + bs_stripe_unit_len(lens[i], UNIT, n - 1) : 0;
		assert_int_equal(sum, lens[i]);
		assert_int_equal(bs_stripe_unit_len(lens[i], UNIT, n), 0);
		assert_int_equal(bs_stripe_unit_len(lens[i], UNIT, UINT64_MAX), 0);
	}
}

static void units_are_bounded(void **state)
{
	assert_false(bs_stripe_unit_ok(0));
	assert_false(bs_stripe_unit_ok(MIB - 1));
	assert_true(bs_stripe_unit_ok(MIB));
	assert_false(bs_stripe_unit_ok(MIB + 1));
	assert_true(bs_stripe_unit_ok(1024 * MIB));
	assert_false(bs_stripe_unit_ok(1025 * MIB));
	assert_false(bs_stripe_unit_ok(UINT64_MAX));
}

/* Every slot's end is within its file, and the files have all bytes. */
static void files_have_all_slots(void **state)
{
	for (uint32_t files = 1; files <= 9; files++) {
		for (uint64_t len = 1; len <= 20 * MIB; len += MIB / 2 + 17) {
			uint64_t sum = 0, n = bs_stripe_units(len, UNIT);
			uint32_t used = 0;

			for (uint32_t k = 0; k < files; k++) {
				uint64_t one = bs_stripe_file_len(len, files, UNIT, k);

				sum += one;
				used += one > 0;
			}
			assert_int_equal(sum, len);
			assert_int_equal(used, bs_stripe_files_used(len, files, UNIT));
			for (uint64_t s = 0; s < n; s++) {
				struct bs_stripe_at at = bs_stripe_slot(s, files, UNIT);

				assert_true(at.file < files);
				assert_true(at.off + bs_stripe_unit_len(len, UNIT, s) <=
					    bs_stripe_file_len(len, files, UNIT, at.file));
			}
		}
	}
}

static void files_are_the_same_for_each_datanode(void **state)
{
	assert_int_equal(bs_stripe_files(0), 1);
	assert_int_equal(bs_stripe_files(1), 2);
	assert_int_equal(bs_stripe_files(4), 8);
	assert_int_equal(bs_stripe_files(8), 16);
	assert_int_equal(bs_stripe_files(9), 9);
	assert_int_equal(bs_stripe_files(16), 16);
	assert_int_equal(bs_stripe_files(17), 16);
	assert_int_equal(bs_stripe_files(UINT64_MAX), 16);
}

static void a_time_of_access_says_the_size(void **state)
{
	uint64_t size = 7;

	assert_false(bs_stripe_atime_size(0, &size));
	assert_false(bs_stripe_atime_size(UINT64_C(1796026765303), &size));
	assert_false(bs_stripe_atime_size(UINT64_MAX, &size));
	assert_false(bs_stripe_atime_size(bs_stripe_atime(BS_STRIPE_SIZE_MAX) + 1, &size));
	assert_int_equal(size, 7);
	assert_true(bs_stripe_atime_size(bs_stripe_atime(0), &size));
	assert_int_equal(size, 0);
	assert_true(bs_stripe_atime_size(bs_stripe_atime(BS_STRIPE_SIZE_MAX), &size));
	assert_int_equal(size, BS_STRIPE_SIZE_MAX);
	assert_true(bs_stripe_atime(BS_STRIPE_SIZE_MAX) < INT64_MAX / 2 + INT64_MAX / 4);
}

/* --- manifests ------------------------------------------------------------------------------- */

static struct bs_stripes simple(void)
{
	struct bs_stripes s = { .size = 5 * MIB + 1,
				.generation = 1,
				.unit = UNIT,
				.writer = ID_B,
				.n_segments = 1,
				.segments = { { ID_A, 5 * MIB + 1, 8, 0xdeadbeef } },
				.n_map = 1,
				.map = { { 0, 6, 0, 0 } } };

	return s;
}

static void a_manifest_comes_back(void **state)
{
	struct bs_stripes s = simple(), back;
	char bytes[BS_STRIPES_BYTES], again[BS_STRIPES_BYTES];
	uint64_t slot = 9, n;

	assert_int_equal(bs_stripes_write(&s, bytes), 0);
	assert_true(bs_stripes_is(bytes, sizeof(bytes)));
	assert_false(bs_stripes_is(bytes, sizeof(bytes) - 1));
	assert_int_equal(bytes[sizeof(bytes) - 1], '\n');
	assert_int_equal(bs_stripes_read(bytes, sizeof(bytes), &back, NULL), 0);
	assert_int_equal(back.size, s.size);
	assert_string_equal(back.segments[0].id, ID_A);
	assert_int_equal(back.segments[0].sums, 0xdeadbeef);
	assert_int_equal(bs_stripes_write(&back, again), 0);
	assert_memory_equal(bytes, again, sizeof(bytes));
	assert_non_null(bs_stripes_find(&back, 5, &slot, &n));
	assert_int_equal(slot, 5);
	assert_int_equal(n, 1);
	assert_null(bs_stripes_find(&back, 6, &slot, &n));
}

static int read_text(const char *text)
{
	char bytes[BS_STRIPES_BYTES];
	struct bs_stripes s;

	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, text, strlen(text));
	return bs_stripes_read(bytes, sizeof(bytes), &s, NULL);
}

#define HEAD "{\"bootseer\":\"stripe\",\"version\":1,"
#define SEGMENT(ID, LEN, FILES)                                                                    \
	"{\"id\":\"" ID "\",\"len\":" LEN ",\"files\":" FILES ",\"sums\":\"00000000\"}"
#define BODY(SIZE, UNIT, SEGMENTS, MAP)                                                            \
	HEAD "\"size\":" SIZE ",\"unit\":" UNIT ",\"generation\":1,\"writer\":\"" ID_B             \
	     "\",\"segments\":[" SEGMENTS "],\"map\":[" MAP "]}"

static void what_cannot_be_is_refused(void **state)
{
	static const char *const bad[] = {
		HEAD "}",
		HEAD "\"size\":0",
		BODY("-1", "1048576", "", ""),
		BODY("9223372036854775808", "1048576", "", ""),
		BODY("18446744073709551616", "1048576", "", ""),
		BODY("1125899906842625", "1048576", "", ""),
		BODY("1", "0", "", ""),
		BODY("1", "1048577", "", ""),
		BODY("1", "4294967296", "", ""),
		BODY("1.0", "1048576", "", ""),
		BODY("1", "1048576", SEGMENT("../../../../etc/passwd/aaaaaaaaa", "1", "1"),
		     "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT("/123456789abcdef0123456789abcdef", "1", "1"),
		     "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT("0123456789ABCDEF0123456789ABCDEF", "1", "1"),
		     "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT("0123", "1", "1"), "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "0", "1"), "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "0"), "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "257"), "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1125899906842624", "1"), "[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), ""),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,1,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,4294967296,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,0,1]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,2,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[1,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,0,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,0,0],[0,1,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,18446744073709551615,0,0]"),
		BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[18446744073709551615,1,0,0]"),
		BODY("2097152", "1048576", SEGMENT(ID_A, "1", "1") "," SEGMENT(ID_A, "1", "1"),
		     "[0,1,0,0],[1,1,1,0]"),
		BODY("1", "1048576", "1", ""),
		BODY("1", "1048576", "", "") "x",
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		int r = read_text(bad[i]);

		if (r != -EBADMSG)
			print_message("%s: %d\n", bad[i], r);
		assert_int_equal(r, -EBADMSG);
	}
	assert_int_equal(read_text("{\"bootseer\":\"stripe\",\"version\":2}"), -EPROTONOSUPPORT);
	assert_int_equal(read_text(BODY("1", "1048576", "", "")), 0);
	assert_int_equal(read_text(BODY("1", "1048576", SEGMENT(ID_A, "1", "1"), "[0,1,0,0]")), 0);
}

static void a_full_manifest_fits(void **state)
{
	struct bs_stripes s = { .size = BS_STRIPE_SIZE_MAX,
				.generation = BS_STRIPE_SIZE_MAX,
				.unit = 1024 * UNIT,
				.writer = ID_B,
				.n_segments = BS_STRIPES_SEGMENTS_MAX,
				.n_map = BS_STRIPES_MAP_MAX };
	char bytes[BS_STRIPES_BYTES];

	for (uint32_t i = 0; i < s.n_segments; i++) {
		s.segments[i] = (struct bs_segment){ ID_A, BS_STRIPE_SIZE_MAX, 256, ~0u };
		s.segments[i].id[0] = "0123456789abcdef"[i];
	}
	for (uint32_t i = 0; i < s.n_map; i++)
		s.map[i] = (struct bs_stripes_run){ 900000 + 2 * i, 1, i % 16, 900000 + i };
	assert_int_equal(bs_stripes_write(&s, bytes), 0);
}

static void changed_units_take_the_place_of_old_ones(void **state)
{
	struct bs_segment seg = { ID_B, 2 * MIB, 8, 1 };
	struct bs_stripes_run runs[] = { { .first = 2, .n = 1 }, { .first = 6, .n = 1 } };
	struct bs_stripes s = simple();
	uint64_t slot = 9, n;

	s.size = 7 * MIB;
	assert_int_equal(bs_stripes_add(&s, &seg, runs, 2), 0);
	assert_int_equal(s.n_segments, 2);
	assert_int_equal(s.n_map, 4);
	assert_string_equal(bs_stripes_find(&s, 1, &slot, &n)->id, ID_A);
	assert_int_equal(n, 1);
	assert_string_equal(bs_stripes_find(&s, 2, &slot, &n)->id, ID_B);
	assert_int_equal(slot, 0);
	assert_string_equal(bs_stripes_find(&s, 3, &slot, &n)->id, ID_A);
	assert_int_equal(slot, 3);
	assert_int_equal(n, 3);
	assert_string_equal(bs_stripes_find(&s, 6, &slot, &n)->id, ID_B);
	assert_int_equal(slot, 1);
	/* cut: the new segment goes, and later what is left */
	s.size = 2 * MIB;
	bs_stripes_cut(&s);
	assert_int_equal(s.n_segments, 1);
	assert_int_equal(s.n_map, 1);
	s.size = 0;
	bs_stripes_cut(&s);
	assert_int_equal(s.n_segments, 0);
}

static void what_is_covered_goes(void **state)
{
	struct bs_segment seg = { ID_B, 6 * MIB, 8, 1 };
	struct bs_stripes_run all = { .first = 0, .n = 6 };
	struct bs_stripes s = simple();

	assert_int_equal(bs_stripes_add(&s, &seg, &all, 1), 0);
	assert_int_equal(s.n_segments, 1);
	assert_string_equal(s.segments[0].id, ID_B);
}

static void too_many_pieces_are_told(void **state)
{
	struct bs_stripes_run runs[BS_STRIPES_MAP_MAX];
	struct bs_segment seg = { ID_B, BS_STRIPES_MAP_MAX * MIB, 8, 1 };
	struct bs_stripes s = simple();

	s.size = s.segments[0].len = 200 * MIB;
	s.map[0].n = 200;
	for (uint32_t i = 0; i < BS_STRIPES_MAP_MAX; i++)
		runs[i] = (struct bs_stripes_run){ .first = 2 * i + 1, .n = 1 };
	assert_int_equal(bs_stripes_add(&s, &seg, runs, BS_STRIPES_MAP_MAX), -E2BIG);
	s = simple();
	for (uint32_t i = 0; i < BS_STRIPES_SEGMENTS_MAX; i++) {
		struct bs_stripes_run one = { .first = 6 + i, .n = 1 };
		int r;

		seg.id[0] = "0123456789abcdef"[i];
		s.size = (7 + i) * MIB;
		r = bs_stripes_add(&s, &seg, &one, 1);
		assert_int_equal(r, i + 1 < BS_STRIPES_SEGMENTS_MAX ? 0 : -E2BIG);
	}
}

static void sums_are_checked(void **state)
{
	uint32_t crc[] = { 1, 0xffffffff, 3 }, back[3] = { 0 };
	char bytes[64];
	size_t len = bs_sums_bytes(3);
	uint32_t sum;

	assert_true(len <= sizeof(bytes));
	bs_sums_write(UNIT, crc, 3, bytes);
	sum = bs_crc32c(0, bytes, len);
	assert_int_equal(bs_sums_read(bytes, len, sum, UNIT, 3, back, NULL), 0);
	assert_memory_equal(crc, back, sizeof(crc));
	assert_int_equal(bs_sums_read(bytes, len, sum + 1, UNIT, 3, back, NULL), -EBADMSG);
	assert_int_equal(bs_sums_read(bytes, len, sum, 2 * UNIT, 3, back, NULL), -EBADMSG);
	assert_int_equal(bs_sums_read(bytes, len - 1, sum, UNIT, 3, back, NULL), -EBADMSG);
	assert_int_equal(bs_sums_read(bytes, len, sum, UNIT, 2, back, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(units_have_the_bytes_of_the_file),
		UNIT_TEST(units_are_bounded),
		UNIT_TEST(files_have_all_slots),
		UNIT_TEST(files_are_the_same_for_each_datanode),
		UNIT_TEST(a_time_of_access_says_the_size),
		UNIT_TEST(a_manifest_comes_back),
		UNIT_TEST(what_cannot_be_is_refused),
		UNIT_TEST(a_full_manifest_fits),
		UNIT_TEST(changed_units_take_the_place_of_old_ones),
		UNIT_TEST(what_is_covered_goes),
		UNIT_TEST(too_many_pieces_are_told),
		UNIT_TEST(sums_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
