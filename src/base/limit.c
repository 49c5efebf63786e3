/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/limit.h"

#include "base/clock.h"
#include "base/mem.h"

void bs_limit_init(struct bs_limit *l, uint64_t rate, uint64_t burst, uint64_t now_ns)
{
	*l = (struct bs_limit){ .rate = rate, .burst = burst, .tokens = burst, .at_ns = now_ns };
}

static void refill(struct bs_limit *l, uint64_t now_ns)
{
	uint64_t passed = now_ns > l->at_ns ? now_ns - l->at_ns : 0;
	unsigned __int128 add = (unsigned __int128)passed * l->rate / BS_NS_PER_S;

	if (add == 0)
		return; /* keep at_ns: fractions of a token add up */
	l->tokens = add > l->burst - l->tokens ? l->burst : l->tokens + (uint64_t)add;
	l->at_ns = now_ns;
}

bool bs_limit_take(struct bs_limit *l, uint64_t n, uint64_t now_ns)
{
	if (l->rate == 0)
		return true;
	refill(l, now_ns);
	n = BS_MIN(n, l->burst);
	if (l->tokens < n) {
		l->refused++;
		return false;
	}
	l->tokens -= n;
	l->refused = 0;
	return true;
}

uint64_t bs_limit_wait_ns(struct bs_limit *l, uint64_t n, uint64_t now_ns)
{
	if (l->rate == 0)
		return 0;
	refill(l, now_ns);
	n = BS_MIN(n, l->burst);
	if (l->tokens >= n)
		return 0;
	return (uint64_t)((unsigned __int128)(n - l->tokens) * BS_NS_PER_S / l->rate) + 1;
}
