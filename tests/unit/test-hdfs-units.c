/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The tree below is this test: it holds back every read until it is told how that ends. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "hdfs/units.h"

#define UNIT ((uint64_t)1 << 20)
#define READS_MAX 64

static struct bs_ckpt_read *started[READS_MAX];
static unsigned int n_started, n_ready, n_failed, n_late, n_closed;

void bs_ckpt_read_start(struct bs_ckpt_file *f, struct bs_ckpt_read *r)
{
	assert_true(n_started < READS_MAX);
	started[n_started++] = r;
}

static char byte_at(uint64_t off)
{
	return (char)(off / 4096 * 7 + off % 251);
}

/* Ends the first read that was started. */
static void land(int error)
{
	struct bs_ckpt_read *r = started[0];

	assert_true(n_started > 0);
	memmove(started, started + 1, --n_started * sizeof(started[0]));
	for (size_t i = 0; error == 0 && i < r->len; i++)
		((char *)r->buf)[i] = byte_at(r->off + i);
	r->result = error ? error : (ssize_t)r->len;
	r->done(r);
}

static void land_all(void)
{
	while (n_started > 0)
		land(0);
}

static void on_ready(struct bs_units_read *r)
{
	n_ready++;
	n_failed += r->failed;
	n_late += r->timed_out;
}

static void on_closed(struct bs_units_handle *h)
{
	n_closed++;
}

static struct bs_units_handle handle;

static int begin(void **state)
{
	n_started = n_ready = n_failed = n_late = n_closed = 0;
	handle = (struct bs_units_handle){ .refs = 1, .closed = on_closed };
	return 0;
}

static enum bs_units_answer read_at(struct bs_units *u, struct bs_units_read *r, uint64_t off,
				    size_t len)
{
	*r = (struct bs_units_read){ .off = off, .len = len, .ready = on_ready };
	return bs_units_read(u, &handle, r);
}

static void check_bytes(const struct bs_units_read *r)
{
	uint64_t off = r->off;
	size_t len = 0;

	for (unsigned int i = 0; i < r->n_iov; i++) {
		const char *p = r->iov[i].iov_base;

		for (size_t k = 0; k < r->iov[i].iov_len; k++)
			assert_int_equal(p[k], byte_at(off++));
		len += r->iov[i].iov_len;
	}
	assert_int_equal(len, r->len);
}

/* Reads to the end of it, whatever it takes; false: for oneself. */
static bool read_whole(struct bs_units *u, uint64_t off, size_t len)
{
	struct bs_units_read r;
	unsigned int before = n_ready;
	enum bs_units_answer a = read_at(u, &r, off, len);

	if (a == BS_UNITS_DIRECT)
		return false;
	while (a == BS_UNITS_WAIT && n_ready == before)
		land(0);
	assert_int_equal(n_ready, before + 1);
	assert_false(r.failed);
	check_bytes(&r);
	bs_units_done(&r);
	return true;
}

static void one_who_reads_on_has_every_unit_fetched_once(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(8 * UNIT);
	struct bs_units *u = bs_units_new(p, 20 * UNIT + 5, UNIT, 4);
	struct bs_unitpool_stats s;
	uint64_t off;

	for (off = 0; off < 20 * UNIT + 5; off += UNIT / 2)
		assert_true(read_whole(u, off, (size_t)BS_MIN(UNIT / 2, 20 * UNIT + 5 - off)));
	bs_unitpool_stats(p, &s);
	assert_int_equal(s.fetched, 21);
	assert_true(s.ahead >= 18);
	assert_int_equal(s.bytes, 0); /* all was read */
	assert_true(s.peak <= 8 * UNIT);
	(void)bs_units_free(u);
	bs_unitpool_free(p);
	bs_units_handle_put(&handle);
	assert_int_equal(n_closed, 1);
}

static void memory_is_bounded_and_who_waits_comes_first(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(3 * UNIT);
	struct bs_units *a = bs_units_new(p, 50 * UNIT, UNIT, 16);
	struct bs_units *b = bs_units_new(p, UNIT, UNIT, 16);
	struct bs_unitpool_stats s;
	struct bs_units_read r;

	assert_true(read_whole(a, 0, UNIT));
	assert_true(read_whole(a, UNIT, UNIT));
	land_all();
	bs_unitpool_stats(p, &s);
	assert_true(s.bytes <= 3 * UNIT);
	/* the other file's is demanded: something that nobody has read yet makes room */
	assert_int_equal(read_at(b, &r, 0, 10), BS_UNITS_WAIT);
	land_all();
	assert_int_equal(n_failed, 0);
	bs_units_done(&r);
	/* with all of it on its way there is no room */
	(void)bs_units_free(a);
	a = bs_units_new(p, 50 * UNIT, UNIT, 16);
	assert_true(read_whole(a, 0, UNIT));
	assert_int_equal(read_at(a, &r, UNIT, UNIT), BS_UNITS_WAIT);
	assert_true(n_started > 0);
	bs_unitpool_stats(p, &s);
	assert_true(s.bytes <= 3 * UNIT && s.peak <= 3 * UNIT);
	land_all();
	bs_units_done(&r);
	(void)bs_units_free(a);
	(void)bs_units_free(b);
	bs_unitpool_stats(p, &s);
	assert_int_equal(s.bytes, 0);
	bs_unitpool_free(p);
}

static void a_unit_that_fails_fails_nobody(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(8 * UNIT);
	struct bs_units *u = bs_units_new(p, 4 * UNIT, UNIT, 4);
	struct bs_units_read one, two;
	struct bs_unitpool_stats s;

	assert_int_equal(read_at(u, &one, 0, 100), BS_UNITS_WAIT);
	assert_int_equal(read_at(u, &two, 50, 100), BS_UNITS_WAIT);
	assert_int_equal(n_started, 1); /* one fetch for both */
	land(-EIO);
	assert_int_equal(n_ready, 2);
	assert_int_equal(n_failed, 2);
	assert_int_equal(n_late, 0);
	bs_unitpool_stats(p, &s);
	assert_int_equal(s.bytes, 0);
	assert_true(read_whole(u, 0, 100)); /* tried again */
	(void)bs_units_free(u);
	bs_unitpool_free(p);
}

static void of_two_units_one_fails(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(8 * UNIT);
	struct bs_units *u = bs_units_new(p, 4 * UNIT, UNIT, 1);
	struct bs_units_read r;

	assert_true(read_whole(u, 0, 300000));
	assert_int_equal(read_at(u, &r, UNIT - 100, 200), BS_UNITS_WAIT);
	while (n_started > 1)
		land(0);
	land(-ETIMEDOUT);
	assert_int_equal(n_failed, 1);
	assert_int_equal(n_late, 1);
	(void)bs_units_free(u);
	bs_unitpool_free(p);
}

static void freed_while_it_is_fetched_and_read(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(8 * UNIT);
	struct bs_units *u = bs_units_new(p, 4 * UNIT, UNIT, 4);
	struct bs_units_read waits, has;
	struct bs_unitpool_stats s;

	assert_int_equal(read_at(u, &has, 0, 10), BS_UNITS_WAIT);
	land_all();
	assert_int_equal(n_ready, 1);
	assert_int_equal(read_at(u, &waits, UNIT - 5, 10), BS_UNITS_DIRECT);
	assert_int_equal(read_at(u, &waits, 0, 300000), BS_UNITS_HIT);
	bs_units_done(&waits);
	assert_int_equal(read_at(u, &waits, 300000, 900000), BS_UNITS_WAIT);
	(void)bs_units_free(u);
	bs_units_handle_put(&handle);
	assert_int_equal(n_closed, 0); /* what is fetched has it */
	land_all();
	assert_int_equal(n_ready, 3);
	check_bytes(&has);
	bs_units_done(&has);
	if (!waits.failed)
		bs_units_done(&waits);
	assert_int_equal(n_closed, 1);
	bs_unitpool_stats(p, &s);
	assert_int_equal(s.bytes, 0);
	bs_unitpool_free(p);
}

static void who_jumps_and_reads_much_has_all_fetched_once(void **state)
{
	static const uint64_t order[] = { 24, 6, 30, 12, 0, 18 };
	struct bs_unitpool *p = bs_unitpool_new(64 * UNIT);
	struct bs_units *u = bs_units_new(p, 36 * UNIT, UNIT, 8);
	struct bs_unitpool_stats s;

	for (size_t i = 0; i < BS_ARRAY_LEN(order); i++) {
		for (uint64_t off = 0; off < 6 * UNIT; off += UNIT / 2) {
			uint64_t at = order[i] * UNIT + off;
			struct bs_units_read r;

			if (read_at(u, &r, at, UNIT / 2) == BS_UNITS_DIRECT)
				continue;
			land_all();
			bs_units_done(&r);
		}
	}
	bs_unitpool_stats(p, &s);
	assert_true(s.fetched <= 36);
	(void)bs_units_free(u);
	bs_unitpool_free(p);
}

static void nobody_has_it_open(void **state)
{
	struct bs_unitpool *p = bs_unitpool_new(8 * UNIT);
	struct bs_units *u = bs_units_new(p, 100 * UNIT, UNIT, 2);

	assert_true(read_whole(u, 0, UNIT));
	bs_units_idle(u);
	bs_units_handle_put(&handle);
	land_all(); /* and nothing is started after it */
	assert_int_equal(n_started, 0);
	assert_int_equal(n_closed, 1);
	bs_units_idle(u);
	bs_units_idle(NULL);
	assert_null(bs_units_free(NULL));
	(void)bs_units_free(u);
	bs_unitpool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_who_reads_on_has_every_unit_fetched_once, begin),
		cmocka_unit_test_setup(memory_is_bounded_and_who_waits_comes_first, begin),
		cmocka_unit_test_setup(a_unit_that_fails_fails_nobody, begin),
		cmocka_unit_test_setup(of_two_units_one_fails, begin),
		cmocka_unit_test_setup(freed_while_it_is_fetched_and_read, begin),
		cmocka_unit_test_setup(who_jumps_and_reads_much_has_all_fetched_once, begin),
		cmocka_unit_test_setup(nobody_has_it_open, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
