/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/near.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

#define NEAR 32u	   /* units on each side that are looked at */
#define AFTER_FIRST 8u	   /* where nothing was read yet */
#define AFTER_EACH 2u	   /* more for each that was */
#define LATELY 256u	   /* units brought along: then the older count half */
#define ENOUGH_BROUGHT 16u /* to judge by */
#define USEFUL_PERCENT 30u /* from there on windows are whole */

static bool test(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void set(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= UINT64_C(1) << (i % 64);
}

int bs_near_init(struct bs_near *n, uint32_t n_units)
{
	size_t words = bs_div_up(n_units, 64);

	*n = (struct bs_near){ .n_units = n_units };
	n->read = calloc(BS_MAX(words, (size_t)1), sizeof(*n->read));
	n->unasked = calloc(BS_MAX(words, (size_t)1), sizeof(*n->unasked));
	if (n->read && n->unasked)
		return 0;
	bs_near_done(n);
	return -ENOMEM;
}

void bs_near_done(struct bs_near *n)
{
	free(n->read);
	free(n->unasked);
	*n = (struct bs_near){ 0 };
}

void bs_near_read(struct bs_near *n, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++) {
		set(n->read, i);
		if (!test(n->unasked, i))
			continue;
		n->unasked[i / 64] &= ~(UINT64_C(1) << (i % 64));
		n->useful++;
	}
}

void bs_near_brought(struct bs_near *n, uint32_t unit)
{
	set(n->unasked, unit);
	if (++n->brought < LATELY)
		return;
	n->brought /= 2;
	n->useful /= 2;
}

static uint32_t n_read_near(const struct bs_near *n, uint32_t unit)
{
	uint32_t from = unit - BS_MIN(unit, NEAR), to = BS_MIN(unit + NEAR, n->n_units - 1);
	uint32_t count = 0;

	for (uint32_t i = from; i <= to; i++)
		count += test(n->read, i);
	return count;
}

void bs_near_window(const struct bs_near *n, uint32_t unit, uint32_t *ret_after,
		    uint32_t *ret_before)
{
	uint32_t after = AFTER_FIRST + AFTER_EACH * n_read_near(n, unit);
	uint32_t whole = n->brought * USEFUL_PERCENT, useful = n->useful * 100;

	after = BS_MIN(after, BS_NEAR_AFTER_MAX);
	if (n->brought >= ENOUGH_BROUGHT && useful < whole)
		after = after * useful / whole;
	*ret_after = BS_MAX(after, 1u);
	*ret_before = after / 2;
}
