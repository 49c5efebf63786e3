/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cache/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define FILE_NAME "blocks"

/* The bits first to first + n - 1 that lie in the word of first. */
static uint64_t word_mask(uint64_t first, uint64_t n)
{
	uint64_t mask = n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;

	return mask << (first % 64);
}

/* How many of them that are. */
static uint64_t in_word(uint64_t first, uint64_t n)
{
	return BS_MIN(n, 64 - first % 64);
}

static int map_file(struct bs_blocks *b, int flags)
{
	bs_autofd int fd = openat(b->dirfd, FILE_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags,
				  0600);
	struct stat st;
	void *map;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (!(flags & O_CREAT) && (size_t)st.st_size != b->map_bytes))
		return -EINVAL;
	/* a hole in the file would be SIGBUS on a full disk: take its blocks now */
	r = posix_fallocate(fd, 0, (off_t)b->map_bytes);
	map = r == 0 ? mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		     : MAP_FAILED;
	if (map == MAP_FAILED) {
		r = r ? -r : -errno;
		(void)unlinkat(b->dirfd, FILE_NAME, 0);
		return r;
	}
	b->map = map;
	atomic_store_explicit(&b->bits, map, memory_order_release);
	return 0;
}

int bs_blocks_open(struct bs_blocks *b, int dirfd, uint64_t n, bool believe)
{
	*b = (struct bs_blocks){ .dirfd = dirfd, .n = n };
	b->map_bytes = BS_MAX(bs_div_up(n, 64) * 8, (size_t)8);
	(void)pthread_mutex_init(&b->lock, NULL);
	if (believe && map_file(b, 0) == 0)
		return 0;
	if (unlinkat(dirfd, FILE_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

void bs_blocks_done(struct bs_blocks *b)
{
	if (b->map)
		(void)munmap(b->map, b->map_bytes);
	(void)pthread_mutex_destroy(&b->lock);
}

bool bs_blocks_have(struct bs_blocks *b, uint64_t first, uint64_t n)
{
	_Atomic uint64_t *bits = atomic_load_explicit(&b->bits, memory_order_acquire);

	if (!bits)
		return n == 0;
	for (uint64_t k; n > 0; first += k, n -= k) {
		uint64_t mask;

		k = in_word(first, n);
		mask = word_mask(first, k);
		if ((atomic_load_explicit(&bits[first / 64], memory_order_acquire) & mask) != mask)
			return false;
	}
	return true;
}

int bs_blocks_set(struct bs_blocks *b, uint64_t first, uint64_t n)
{
	_Atomic uint64_t *bits;
	int r = 0;

	if (!atomic_load_explicit(&b->bits, memory_order_acquire)) {
		(void)pthread_mutex_lock(&b->lock);
		if (!b->bits)
			r = map_file(b, O_CREAT | O_EXCL);
		(void)pthread_mutex_unlock(&b->lock);
		if (r < 0)
			return r;
	}
	bits = atomic_load_explicit(&b->bits, memory_order_acquire);
	for (uint64_t k; n > 0; first += k, n -= k) {
		k = in_word(first, n);
		atomic_fetch_or_explicit(&bits[first / 64], word_mask(first, k),
					 memory_order_release);
	}
	return 0;
}

void bs_blocks_clear(struct bs_blocks *b, uint64_t first, uint64_t n)
{
	_Atomic uint64_t *bits = atomic_load_explicit(&b->bits, memory_order_acquire);

	for (uint64_t k; bits && n > 0; first += k, n -= k) {
		k = in_word(first, n);
		atomic_fetch_and_explicit(&bits[first / 64], ~word_mask(first, k),
					  memory_order_release);
	}
}
