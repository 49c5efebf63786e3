/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A hash map from byte strings to pointers, open addressing, keys not copied: the
 * caller keeps each key's bytes alive and unchanged while it is in the map.
 * The hash is seeded at random (SipHash-2-4), since keys may be hostile.
 * Not thread-safe.
 */
#ifndef BS_BASE_MAP_H
#define BS_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct bs_map_slot {
	const void *key; /* NULL: never used; key with NULL value: deleted */
	size_t len;
	uint64_t hash;
	void *value;
};

struct bs_map {
	struct bs_map_slot *slots;
	size_t n_slots; /* a power of two, or 0 */
	size_t n;	/* live entries */
	size_t used;	/* live and deleted ones */
	uint64_t seed[2];
};

void bs_map_init(struct bs_map *m);
void bs_map_done(struct bs_map *m); /* frees no keys and no values */

/* value must not be NULL. Replaces an equal key. 0 or -ENOMEM. */
int bs_map_put(struct bs_map *m, const void *key, size_t len, void *value);
void *bs_map_get(const struct bs_map *m, const void *key, size_t len);
void *bs_map_remove(struct bs_map *m, const void *key, size_t len);

/* Walks all values: start with *pos = 0; NULL at the end. Order is not defined. */
void *bs_map_next(const struct bs_map *m, size_t *pos);

#endif
