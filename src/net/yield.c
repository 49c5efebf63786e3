/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/yield.h"

#include "base/clock.h"
#include "base/mem.h"

static bool is_known(const struct bs_yield_share *y, uint64_t now_ns)
{
	return y->whole > 0 && now_ns < y->measured_ns + BS_YIELD_AGAIN_NS;
}

void bs_yield_brought(struct bs_yield_share *y, uint64_t now_ns, uint64_t bytes, bool runs)
{
	if (is_known(y, now_ns))
		return;
	if (!runs) { /* what comes then is what somebody wanted, not what may come */
		y->since_ns = 0;
		return;
	}
	if (y->since_ns == 0) {
		y->since_ns = now_ns;
		return;
	}
	y->bytes += bytes;
	if (now_ns >
	    y->since_ns) { /* the caller's time may be a little older than of another call */
		y->ran_ns += now_ns - y->since_ns;
		y->since_ns = now_ns;
	}
	if (y->ran_ns < BS_YIELD_MEASURE_NS)
		return;
	y->whole = BS_MAX((uint64_t)((unsigned __int128)y->bytes * BS_NS_PER_S / y->ran_ns),
			  UINT64_C(1));
	y->measured_ns = now_ns;
	y->since_ns = y->ran_ns = y->bytes = 0;
}

uint64_t bs_yield_rate(const struct bs_yield_share *y, unsigned int percent, uint64_t now_ns)
{
	if (percent == 0 || percent >= 100 || !is_known(y, now_ns))
		return 0;
	return BS_MAX((uint64_t)((unsigned __int128)y->whole * percent / 100), BS_YIELD_RATE_MIN);
}

void bs_yield_refill(struct bs_yield_budget *b, uint64_t now_ns, uint64_t rate)
{
	const unsigned __int128 add = (unsigned __int128)(now_ns - b->filled_ns) * rate /
				      BS_NS_PER_S;

	if (rate && add == 0) /* fractions add up */
		return;
	if (rate == 0 || add >= (unsigned __int128)(b->bytes < 0 ? -b->bytes : 0))
		b->bytes = 0;
	else
		b->bytes += (int64_t)add;
	b->filled_ns = now_ns;
}

void bs_yield_demand_ended(struct bs_yield_pause *y, uint64_t now_ns)
{
	y->demand_ns = now_ns;
}

uint64_t bs_yield_wait(struct bs_yield_pause *y, uint64_t now_ns, unsigned int before)
{
	const uint64_t quiet_ns = y->demand_ns ? y->demand_ns + BS_YIELD_QUIET_NS : 0;
	uint64_t end_ns;

	if (before == 0 && now_ns >= quiet_ns) {
		y->paused_ns = 0;
		return 0;
	}
	if (y->paused_ns == 0)
		y->paused_ns = now_ns;
	end_ns = y->paused_ns + BS_YIELD_PAUSE_NS;
	if (now_ns >= end_ns)
		return 0;
	/* when the last of them ends, the caller asks again */
	if (before == 0)
		end_ns = BS_MIN(end_ns, quiet_ns);
	return end_ns - now_ns;
}

void bs_yield_started(struct bs_yield_pause *y)
{
	y->paused_ns = 0;
}

static bool is_demand(const struct bs_yield_image *i, uint64_t now_ns)
{
	return i->running > 0 || (i->ended_ns && now_ns < i->ended_ns + BS_YIELD_QUIET_NS);
}

/* The image's place, or one for it; NULL: all are others'. */
static struct bs_yield_image *place(struct bs_yield_demand *d, uint64_t now_ns, const void *whose)
{
	for (unsigned int i = 0; i < BS_YIELD_IMAGES; i++) {
		if (d->images[i].whose == whose)
			return &d->images[i];
	}
	for (unsigned int i = 0; i < BS_YIELD_IMAGES; i++) {
		if (is_demand(&d->images[i], now_ns))
			continue;
		d->images[i] = (struct bs_yield_image){ .whose = whose };
		return &d->images[i];
	}
	return NULL;
}

void bs_yield_demand_began(struct bs_yield_demand *d, uint64_t now_ns, const void *whose)
{
	struct bs_yield_image *i = whose ? place(d, now_ns, whose) : NULL;

	d->all.running++;
	if (i)
		i->running++;
}

void bs_yield_demand_over(struct bs_yield_demand *d, uint64_t now_ns, const void *whose)
{
	struct bs_yield_image *i = whose ? place(d, now_ns, whose) : NULL;

	d->all.running--;
	d->all.ended_ns = now_ns;
	if (!i)
		return;
	i->running -= i->running > 0; /* it may have begun while there was no place for its image */
	i->ended_ns = now_ns;
}

bool bs_yield_makes_room(const struct bs_yield_demand *d, uint64_t now_ns, const void *whose)
{
	if (!is_demand(&d->all, now_ns))
		return false;
	for (unsigned int i = 0; whose && i < BS_YIELD_IMAGES; i++) {
		if (d->images[i].whose == whose)
			return !is_demand(&d->images[i], now_ns);
	}
	return true;
}

void bs_yield_room_over(struct bs_yield_demand *d, uint64_t now_ns, uint64_t ran_ns)
{
	d->rest_ns = now_ns + BS_MIN(ran_ns, BS_YIELD_QUIET_NS);
}

uint64_t bs_yield_room_wait(const struct bs_yield_demand *d, uint64_t now_ns)
{
	return d->rest_ns > now_ns ? d->rest_ns - now_ns : 0;
}
