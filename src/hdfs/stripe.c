/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/stripe.h"

#include "base/mem.h"

#define FILES_AUTO 16u
#define ATIME_MARK (UINT64_C(693) << 52) /* far in the future, and no overflow of int64_t */

bool bs_stripe_unit_ok(uint64_t unit)
{
	return unit >= BS_STRIPE_UNIT_MIN && unit <= BS_STRIPE_UNIT_MAX &&
	       unit % BS_STRIPE_UNIT_MIN == 0;
}

uint64_t bs_stripe_units(uint64_t len, uint32_t unit)
{
	return bs_div_up(len, unit);
}

uint32_t bs_stripe_unit_len(uint64_t len, uint32_t unit, uint64_t u)
{
	if (u >= bs_stripe_units(len, unit))
		return 0;
	return (uint32_t)BS_MIN((uint64_t)unit, len - u * unit);
}

struct bs_stripe_at bs_stripe_slot(uint64_t slot, uint32_t files, uint32_t unit)
{
	return (struct bs_stripe_at){ .file = (uint32_t)(slot % files),
				      .off = slot / files * unit };
}

uint64_t bs_stripe_file_len(uint64_t len, uint32_t files, uint32_t unit, uint32_t k)
{
	uint64_t whole = len / unit, tail = len % unit;
	uint64_t n = whole / files + (k < whole % files);

	return n * unit + (k == whole % files ? tail : 0);
}

uint32_t bs_stripe_files_used(uint64_t len, uint32_t files, uint32_t unit)
{
	return (uint32_t)BS_MIN((uint64_t)files, bs_stripe_units(len, unit));
}

uint32_t bs_stripe_files(uint64_t datanodes)
{
	if (datanodes == 0)
		return 1;
	if (datanodes > FILES_AUTO)
		return FILES_AUTO;
	/* as many for each, else one has more to do than the others */
	return (uint32_t)(datanodes * BS_MIN(UINT64_C(2), FILES_AUTO / datanodes));
}

uint64_t bs_stripe_atime(uint64_t size)
{
	return ATIME_MARK + size;
}

bool bs_stripe_atime_size(uint64_t atime_ms, uint64_t *ret)
{
	if (atime_ms < ATIME_MARK || atime_ms - ATIME_MARK > BS_STRIPE_SIZE_MAX)
		return false;
	*ret = atime_ms - ATIME_MARK;
	return true;
}
