/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/flows.h"

#include "base/clock.h"
#include "base/mem.h"

#define SAMPLE_NS (120 * BS_NS_PER_MS)
#define SAMPLE_BYTES (64u << 10)       /* of each: fewer say little */
#define SETTLE_NS (500 * BS_NS_PER_MS) /* then a sample begins all the same */
#define GUESS_NS (40 * BS_NS_PER_MS)   /* after the first byte there is some idea of the rate */
#define AGAIN_MIN_NS BS_NS_PER_S
#define AGAIN_MAX_NS (16 * BS_NS_PER_S)
#define SMOOTH 4u /* this part of what a sample differs is believed */

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)bytes * BS_NS_PER_S / BS_MAX(ns, UINT64_C(1)));
}

void bs_flows_begin(struct bs_flows *f, unsigned int max)
{
	*f = (struct bs_flows){ .max = max, .wait_ns = AGAIN_MIN_NS };
	f->now = f->enough = BS_MIN(BS_FLOWS_FIRST, max);
}

static void settle(struct bs_flows *f, uint64_t now_ns)
{
	f->since_ns = 0;
	f->settle_ns = now_ns + SETTLE_NS;
}

static bool try_more(struct bs_flows *f, uint64_t now_ns)
{
	if (f->now == f->max)
		return false;
	f->now = BS_MIN(f->now * 2, f->max);
	settle(f, now_ns);
	return true;
}

/* What a sample with f->now requests says. */
static bool learn(struct bs_flows *f, uint64_t now_ns, uint64_t rate)
{
	if (f->rate == 0 || (f->now > f->enough && rate > f->rate + f->rate / 8)) {
		f->rate = rate;
		f->enough = f->now;
		f->wait_ns = AGAIN_MIN_NS;
		return try_more(f, now_ns);
	}
	if (f->now > f->enough) {
		f->now = f->enough;
		f->again_ns = now_ns + f->wait_ns;
		f->wait_ns = BS_MIN(f->wait_ns * 2, AGAIN_MAX_NS);
		settle(f, now_ns);
		return false;
	}
	f->rate = rate > f->rate ? f->rate + (rate - f->rate) / SMOOTH
				 : f->rate - (f->rate - rate) / SMOOTH;
	return now_ns >= f->again_ns && try_more(f, now_ns);
}

bool bs_flows_brought(struct bs_flows *f, uint64_t now_ns, uint64_t bytes, bool full)
{
	uint64_t ns = now_ns - f->since_ns;

	if (f->first_ns == 0) {
		f->first_ns = now_ns;
		f->settle_ns = now_ns + SETTLE_NS;
	} else {
		f->first_bytes += bytes;
	}
	if (f->since_ns == 0) {
		if (full || now_ns >= f->settle_ns) {
			f->since_ns = now_ns;
			f->bytes = 0;
		}
		return false;
	}
	f->bytes += bytes;
	if (ns < SAMPLE_NS || f->bytes < (uint64_t)SAMPLE_BYTES * f->now)
		return false;
	f->since_ns = now_ns;
	bytes = f->bytes;
	f->bytes = 0;
	if (f->warm)
		return learn(f, now_ns, per_second(bytes, ns));
	f->warm = true;
	return false;
}

uint64_t bs_flows_rate(const struct bs_flows *f, uint64_t now_ns)
{
	if (f->rate)
		return f->rate;
	if (f->first_ns == 0 || now_ns < f->first_ns + GUESS_NS)
		return 0;
	return per_second(f->first_bytes, now_ns - f->first_ns);
}
