/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A blob whose content is a function of the offset, in units of 1 to 32 blocks, and its
 * data (each byte's bits flipped), for the tests of the cache.
 */
#ifndef BS_TESTS_CACHE_MODEL_H
#define BS_TESTS_CACHE_MODEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/blob.h"

#define MODEL_BLOCK 4096u
#define MODEL_UNITS 200u

struct model {
	struct bs_unit units[MODEL_UNITS];
	uint64_t bytes;
	uint32_t n_verified; /* calls */
};

static inline uint8_t model_byte(uint64_t off)
{
	uint64_t x = off * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)(x >> 56 ^ off >> 12);
}

static inline void model_content(uint64_t off, void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = model_byte(off + i);
}

static inline void model_unit(void *cookie, uint32_t i, struct bs_unit *ret)
{
	*ret = ((struct model *)cookie)->units[i];
}

static inline uint32_t model_find(void *cookie, uint64_t off)
{
	struct model *m = cookie;
	uint32_t i = 0;

	while (off >= m->units[i].blob_off + m->units[i].blob_len)
		i++;
	return i;
}

static inline int model_verify(void *cookie, void *scratch, uint32_t i, const void *bytes)
{
	struct model *m = cookie;
	const struct bs_unit *u = &m->units[i];

	__atomic_fetch_add(&m->n_verified, 1, __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < u->blob_len; k++) {
		if (((const uint8_t *)bytes)[k] != model_byte(u->blob_off + k))
			return -EBADMSG;
	}
	return 0;
}

static inline int model_decode(void *cookie, void *scratch, uint32_t i, const void *data, void *out)
{
	const struct bs_unit *u = &((struct model *)cookie)->units[i];

	for (uint32_t k = 0; k < u->blob_len; k++)
		((uint8_t *)out)[k] = (uint8_t) ~((const uint8_t *)data)[k];
	return model_verify(cookie, scratch, i, out);
}

static const struct bs_blob_ops model_ops = {
	.unit = model_unit,
	.find = model_find,
	.decode = model_decode,
	.verify = model_verify,
};

static inline void model_init(struct model *m, struct bs_blob_geometry *ret)
{
	uint64_t at = 0;

	m->n_verified = 0;
	for (uint32_t i = 0; i < MODEL_UNITS; i++) {
		uint32_t len = (i * 7 % 32 + 1) * MODEL_BLOCK;

		m->units[i] = (struct bs_unit){ at, at, len, len };
		at += len;
	}
	m->bytes = at;
	*ret = (struct bs_blob_geometry){ &model_ops, m, at, MODEL_UNITS };
}

/* --- the directory of a blob -------------------------------------------------------------------- */

#define MODEL_DIR "/tmp/bootseer-unit-XXXXXX"

/* Makes one, whose path is put in dir; its descriptor. */
static inline int model_dir_make(char dir[sizeof(MODEL_DIR)])
{
	strcpy(dir, MODEL_DIR);
	return mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Closes and removes it, with what a blob has left there; not 0: something else is there. */
static inline int model_dir_remove(const char *dir, int fd)
{
	static const char *const names[] = { "blob", "present", "blocks", "state" };

	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++)
		(void)unlinkat(fd, names[i], 0);
	(void)close(fd);
	return rmdir(dir);
}

#endif
