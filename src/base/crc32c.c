/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Without the instruction: eight tables, eight bytes a step ("slicing by 8", Kounavis and
 * Berry 2005), made at the first use.
 */
#include "config.h"

#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLY 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? (c >> 1) ^ POLY : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++) {
		for (int t = 1; t < 8; t++)
			table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 0xff];
	}
}

uint32_t bs_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t c = ~crc;

	(void)pthread_once(&once, make_table);
	for (; len >= 8; len -= 8, p += 8) {
		uint32_t low = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				    (uint32_t)p[3] << 24);

		c = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
		    table[4][low >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
		    table[0][p[7]];
	}
	for (; len; len--, p++)
		c = (c >> 8) ^ table[0][(c ^ *p) & 0xff];
	return ~c;
}

#ifdef __x86_64__

#define WAYS 3

static uint64_t word(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

__attribute__((target("sse4.2"))) static uint32_t one_sse(uint32_t crc, const uint8_t *p,
							  size_t len)
{
	uint64_t c = ~crc;

	for (; len >= 8; len -= 8, p += 8)
		c = __builtin_ia32_crc32di(c, word(p));
	for (; len; len--, p++)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return ~(uint32_t)c;
}

__attribute__((target("sse4.2"))) static void three_sse(const uint8_t *p, size_t len, uint32_t *ret)
{
	uint64_t a = UINT32_MAX, b = UINT32_MAX, c = UINT32_MAX;
	const uint8_t *q = p + len, *r = q + len;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		a = __builtin_ia32_crc32di(a, word(p + i));
		b = __builtin_ia32_crc32di(b, word(q + i));
		c = __builtin_ia32_crc32di(c, word(r + i));
	}
	for (; i < len; i++) {
		a = __builtin_ia32_crc32qi((uint32_t)a, p[i]);
		b = __builtin_ia32_crc32qi((uint32_t)b, q[i]);
		c = __builtin_ia32_crc32qi((uint32_t)c, r[i]);
	}
	ret[0] = ~(uint32_t)a;
	ret[1] = ~(uint32_t)b;
	ret[2] = ~(uint32_t)c;
}

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

uint32_t bs_crc32c(uint32_t crc, const void *data, size_t len)
{
	return has_instruction() ? one_sse(crc, data, len) : bs_crc32c_table(crc, data, len);
}

void bs_crc32c_each(const void *data, size_t len, size_t n, uint32_t *ret)
{
	const uint8_t *p = data;
	size_t i = 0;

	if (has_instruction()) {
		for (; i + WAYS <= n; i += WAYS, p += WAYS * len)
			three_sse(p, len, ret + i);
	}
	for (; i < n; i++, p += len)
		ret[i] = bs_crc32c(0, p, len);
}

#else

uint32_t bs_crc32c(uint32_t crc, const void *data, size_t len)
{
	return bs_crc32c_table(crc, data, len);
}

void bs_crc32c_each(const void *data, size_t len, size_t n, uint32_t *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = bs_crc32c(0, (const uint8_t *)data + i * len, len);
}

#endif
