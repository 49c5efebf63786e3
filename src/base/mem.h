/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Ownership of heap memory and checked sizes.
 *
 * bs_autofree frees a local when it goes out of scope; bs_take hands it over.
 * DEFINE_BS_AUTO makes the same for a module's own destructor.
 */
#ifndef BS_BASE_MEM_H
#define BS_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void bs_free_at(void *p)
{
	free(*(void **)p);
}

#define bs_autofree __attribute__((cleanup(bs_free_at)))

/* Moves the pointer out of *p, which becomes NULL. */
#define bs_take(p)                                                                                 \
	({                                                                                         \
		__typeof__(*(p)) taken_ = *(p);                                                    \
		*(p) = NULL;                                                                       \
		taken_;                                                                            \
	})

/* bs_auto_NAME for locals of type TYPE *; FREE takes a TYPE * and NULL. */
#define DEFINE_BS_AUTO(NAME, TYPE, FREE)                                                           \
	static inline void bs_auto_##NAME##_at(TYPE **p)                                           \
	{                                                                                          \
		(void)FREE(*p);                                                                    \
	}
#define bs_auto(NAME) __attribute__((cleanup(bs_auto_##NAME##_at)))

#define BS_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BS_MIN(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ < b_ ? a_ : b_;                                                                 \
	})
#define BS_MAX(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ > b_ ? a_ : b_;                                                                 \
	})
#define BS_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline bool bs_add_u64(uint64_t a, uint64_t b, uint64_t *ret_sum)
{
	return !__builtin_add_overflow(a, b, ret_sum);
}

static inline bool bs_mul_u64(uint64_t a, uint64_t b, uint64_t *ret_product)
{
	return !__builtin_mul_overflow(a, b, ret_product);
}

/* a / b rounded up; b > 0; never overflows. */
static inline uint64_t bs_div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/*
 * Makes room for at least want elements of size bytes in *array, whose capacity
 * is *cap; doubles, starts at 16. 0, or -ENOMEM (also when want * size overflows)
 * with *array unchanged.
 */
int bs_grow(void *array, size_t *cap, size_t want, size_t size);

#endif
