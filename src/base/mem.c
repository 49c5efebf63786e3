/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

int bs_grow(void *array, size_t *cap, size_t want, size_t size)
{
	void *old, *grown;
	size_t n = *cap;

	if (want <= n)
		return 0;
	if (n < 16)
		n = 16;
	while (n < want) {
		if (__builtin_mul_overflow(n, 2, &n))
			return -ENOMEM;
	}
	/* the caller's pointer has another type than void *: copy its bytes */
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, n, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*cap = n;
	return 0;
}
