/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/pace.h"

#include "base/clock.h"
#include "base/mem.h"

#define SAMPLE_NS BS_NS_PER_S
#define SAMPLE_MIN (16u << 10) /* bytes from which a shorter time says something, too */
#define FORGET 8u	       /* a sample that is smaller takes away this part of the distance */

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)bytes * BS_NS_PER_S / (ns ? ns : 1));
}

void bs_pace_host_begin(struct bs_pace_host *p, uint64_t now_ns)
{
	p->since_ns = now_ns;
	p->bytes = 0;
}

void bs_pace_host_brought(struct bs_pace_host *p, uint64_t now_ns, uint64_t bytes, bool rests)
{
	uint64_t ns = now_ns > p->since_ns ? now_ns - p->since_ns : 0, sample;

	p->bytes += bytes;
	if (ns < SAMPLE_NS && (!rests || p->bytes < SAMPLE_MIN))
		return;
	sample = per_second(p->bytes, ns);
	if (sample >= p->rate)
		p->rate = sample;
	else
		p->rate -= (p->rate - sample) / FORGET;
	bs_pace_host_begin(p, now_ns);
}

void bs_pace_begin(struct bs_pace *p, uint64_t now_ns, uint64_t bytes)
{
	*p = (struct bs_pace){ .since_ns = now_ns, .bytes = bytes };
}

bool bs_pace_stalled(struct bs_pace *p, const struct bs_pace_host *host, uint64_t now_ns,
		     uint64_t window_ns, uint64_t bytes, unsigned int running)
{
	uint64_t ns = now_ns - p->since_ns, asked;

	p->peers = BS_MAX(p->peers, running);
	if (ns < window_ns)
		return false;
	asked = host ? BS_MIN(host->rate / BS_PACE_PART, (uint64_t)BS_PACE_MAX) : 0;
	asked = BS_MAX(asked / p->peers, (uint64_t)BS_PACE_MIN);
	/* after a much longer time it is we who slept, and what was sent meanwhile is unread */
	if (ns < 2 * window_ns && per_second(bytes - p->bytes, ns) < asked)
		return true;
	bs_pace_begin(p, now_ns, bytes);
	return false;
}
