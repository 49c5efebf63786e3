/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int b)
{
	return (x << b) | (x >> (64 - b));
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

/* SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012). */
static uint64_t siphash(const uint64_t seed[2], const void *key, size_t len)
{
	uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
			  seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u };
	const uint8_t *p = key;
	uint64_t last = (uint64_t)len << 56, word;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)p[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void bs_map_init(struct bs_map *m)
{
	*m = (struct bs_map){ 0 };
	/* without entropy the seed stays 0: slower under attack, never wrong */
	(void)!getrandom(m->seed, sizeof(m->seed), GRND_NONBLOCK);
}

void bs_map_done(struct bs_map *m)
{
	free(m->slots);
	m->slots = NULL;
	m->n_slots = m->n = m->used = 0;
}

/* The slot that holds the key, or the first one free for it; needs a free slot. */
static struct bs_map_slot *find(const struct bs_map *m, const void *key, size_t len, uint64_t hash)
{
	struct bs_map_slot *reuse = NULL;

	for (size_t i = hash & (m->n_slots - 1);; i = (i + 1) & (m->n_slots - 1)) {
		struct bs_map_slot *s = &m->slots[i];

		if (!s->key)
			return reuse ? reuse : s;
		if (!s->value) {
			if (!reuse)
				reuse = s;
		} else if (s->hash == hash && s->len == len && memcmp(s->key, key, len) == 0) {
			return s;
		}
	}
}

static int resize(struct bs_map *m, size_t n_slots)
{
	struct bs_map old = *m;

	m->slots = calloc(n_slots, sizeof(*m->slots));
	if (!m->slots) {
		m->slots = old.slots;
		return -ENOMEM;
	}
	m->n_slots = n_slots;
	m->used = m->n;
	for (size_t i = 0; i < old.n_slots; i++) {
		struct bs_map_slot *s = &old.slots[i];

		if (s->key && s->value)
			*find(m, s->key, s->len, s->hash) = *s;
	}
	free(old.slots);
	return 0;
}

int bs_map_put(struct bs_map *m, const void *key, size_t len, void *value)
{
	uint64_t hash = siphash(m->seed, key, len);
	struct bs_map_slot *s;

	if (m->used + 1 > m->n_slots / 4 * 3) {
		size_t n_slots = 32;
		int r;

		while (n_slots / 2 < m->n + 1)
			n_slots *= 2;
		r = resize(m, n_slots);
		if (r < 0)
			return r;
	}
	s = find(m, key, len, hash);
	if (!s->key)
		m->used++;
	if (!s->key || !s->value)
		m->n++;
	*s = (struct bs_map_slot){ key, len, hash, value };
	return 0;
}

void *bs_map_get(const struct bs_map *m, const void *key, size_t len)
{
	struct bs_map_slot *s;

	if (m->n == 0)
		return NULL;
	s = find(m, key, len, siphash(m->seed, key, len));
	return s->key ? s->value : NULL;
}

void *bs_map_remove(struct bs_map *m, const void *key, size_t len)
{
	struct bs_map_slot *s;
	void *value;

	if (m->n == 0)
		return NULL;
	s = find(m, key, len, siphash(m->seed, key, len));
	if (!s->key || !s->value)
		return NULL;
	value = s->value;
	s->key = "";
	s->len = 0;
	s->value = NULL;
	m->n--;
	return value;
}

void *bs_map_next(const struct bs_map *m, size_t *pos)
{
	while (*pos < m->n_slots) {
		struct bs_map_slot *s = &m->slots[(*pos)++];

		if (s->key && s->value)
			return s->value;
	}
	return NULL;
}
