/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/profile.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "hot/format.h"

#define LEVEL 9
#define BYTES_MAX                                                                                  \
	(sizeof(struct bs_disk_profile) + BS_PROFILE_RANGES_MAX * sizeof(struct bs_disk_range) +   \
	 (1u << 20))
static_assert(ZSTD_COMPRESSBOUND(BYTES_MAX) <= BS_PROFILE_DATA_MAX, "any profile can be read");

struct bs_profile *bs_profile_new(const struct bs_digest *table, uint64_t blob_blocks)
{
	struct bs_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->table = *table;
	p->blob_blocks = blob_blocks;
	return p;
}

struct bs_profile *bs_profile_free(struct bs_profile *p)
{
	if (p)
		free(p->ranges);
	free(p);
	return NULL;
}

/* --- the bytes ------------------------------------------------------------------------------- */

static int unpack(const void *data, size_t len, uint8_t **ret, size_t *ret_len,
		  struct bs_error *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(data, len);
	bs_autofree uint8_t *bytes = NULL;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
	    ZSTD_getDictID_fromFrame(data, len) != 0 ||
	    ZSTD_findFrameCompressedSize(data, len) != len)
		return bs_fail(err, -EBADMSG,
			       "profile: it is not one zstd frame that states its size");
	if (size > BYTES_MAX)
		return bs_fail(err, -EFBIG, "profile: %llu bytes are too many", size);
	bytes = malloc(BS_MAX((size_t)size, sizeof(struct bs_disk_profile)));
	if (!bytes)
		return bs_fail(err, -ENOMEM, "profile: out of memory");
	if (ZSTD_decompress(bytes, size, data, len) != size)
		return bs_fail(err, -EBADMSG, "profile: it does not decompress");
	*ret_len = (size_t)size;
	*ret = bs_take(&bytes);
	return 0;
}

static int read_head(struct bs_profile *p, const struct bs_disk_profile *h, size_t len,
		     struct bs_error *err)
{
	uint64_t ranges = (uint64_t)le32toh(h->n_ranges) * sizeof(struct bs_disk_range);
	uint64_t extra = le64toh(h->extra_len);

	if (len < sizeof(*h) || memcmp(h->magic, BS_DISK_PROFILE_MAGIC, sizeof(h->magic)) != 0)
		return bs_fail(err, -EBADMSG, "profile: it does not begin as one");
	if (le32toh(h->version) != BS_DISK_HOT_VERSION || (le32toh(h->must) & ~BS_DISK_HOT_MUST))
		return bs_fail(err, -EPROTONOSUPPORT,
			       "profile: its format (version %u, features %#x) is newer than this "
			       "program: upgrade bootseer",
			       le32toh(h->version), le32toh(h->must));
	if (memcmp(h->table, p->table.b, sizeof(h->table)) != 0 ||
	    le64toh(h->blob_blocks) != p->blob_blocks)
		return bs_fail(err, -EBADMSG, "profile: it is of another image");
	p->n_runs = le32toh(h->n_runs);
	p->n_ranges = le32toh(h->n_ranges);
	p->window_ms = le32toh(h->window_ms);
	if (p->n_runs < 1 || p->n_runs > BS_PROFILE_RUNS_MAX || p->n_ranges > BS_PROFILE_RANGES_MAX)
		return bs_fail(err, -EBADMSG,
			       "profile: %u recordings with %u ranges: too many, "
			       "or none",
			       p->n_runs, p->n_ranges);
	if (ranges > len - sizeof(*h) || extra != len - sizeof(*h) - ranges || (extra && !h->may))
		return bs_fail(err, -EBADMSG, "profile: it does not have the length its head says");
	return 0;
}

static bool continues(const struct bs_profile_range *a, const struct bs_profile_range *b)
{
	return (uint64_t)a->block + a->n_blocks == b->block && a->at_ms == b->at_ms &&
	       a->runs == b->runs;
}

static uint64_t *new_bits(const struct bs_profile *p)
{
	return calloc(bs_div_up(p->blob_blocks, 64) + 1, sizeof(uint64_t));
}

/* Sets the block's bit; false: it was set. */
static bool see(uint64_t *bits, uint64_t block)
{
	bool was = bits[block / 64] >> (block % 64) & 1;

	bits[block / 64] |= UINT64_C(1) << (block % 64);
	return !was;
}

static const char *check_range(const struct bs_profile *p, uint32_t i, uint64_t *bits)
{
	const struct bs_profile_range *g = &p->ranges[i];

	if (g->n_blocks < 1 || g->block >= p->blob_blocks ||
	    g->n_blocks > p->blob_blocks - g->block)
		return "it is empty, or beyond the end of the blob";
	if (g->at_ms > p->window_ms || (i > 0 && g->at_ms < g[-1].at_ms))
		return "its time descends, or is after the recording's end";
	if (g->runs == 0 || (uint64_t)g->runs >> p->n_runs)
		return "it was needed by no recording, or by one that there is not";
	if (i > 0 && continues(&g[-1], g))
		return "it is one with that before it";
	for (uint64_t b = g->block; b < (uint64_t)g->block + g->n_blocks; b++) {
		if (!see(bits, b))
			return "it has a block that is in another too";
	}
	return NULL;
}

static int read_ranges(struct bs_profile *p, const uint8_t *at, struct bs_error *err)
{
	bs_autofree uint64_t *bits = new_bits(p);

	p->ranges = malloc((p->n_ranges + (size_t)1) * sizeof(*p->ranges));
	if (!bits || !p->ranges)
		return bs_fail(err, -ENOMEM, "profile: out of memory");
	p->cap = p->n_ranges + (size_t)1;
	for (uint32_t i = 0; i < p->n_ranges; i++) {
		struct bs_disk_range d;
		const char *wrong;

		memcpy(&d, at + (size_t)i * sizeof(d), sizeof(d));
		p->ranges[i] = (struct bs_profile_range){ le32toh(d.block), le32toh(d.n_blocks),
							  le32toh(d.at_ms), le32toh(d.runs) };
		wrong = check_range(p, i, bits);
		if (wrong)
			return bs_fail(err, -EBADMSG, "profile: range %u: %s", i, wrong);
	}
	return 0;
}

int bs_profile_read(const void *data, size_t len, const struct bs_digest *table,
		    uint64_t blob_blocks, struct bs_profile **ret, struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p = bs_profile_new(table, blob_blocks);
	bs_autofree uint8_t *bytes = NULL;
	struct bs_disk_profile h = { 0 };
	size_t n;
	int r;

	if (!p)
		return bs_fail(err, -ENOMEM, "profile: out of memory");
	r = unpack(data, len, &bytes, &n, err);
	if (r < 0)
		return r;
	memcpy(&h, bytes, BS_MIN(n, sizeof(h)));
	r = read_head(p, &h, n, err);
	if (r < 0)
		return r;
	r = read_ranges(p, bytes + sizeof(h), err);
	if (r < 0)
		return r;
	*ret = bs_take(&p);
	return 0;
}

static uint8_t *disk_form(const struct bs_profile *p, size_t *ret_len)
{
	size_t len = sizeof(struct bs_disk_profile) + p->n_ranges * sizeof(struct bs_disk_range);
	struct bs_disk_profile h = {
		.version = htole32(BS_DISK_HOT_VERSION),
		.n_runs = htole32(p->n_runs),
		.n_ranges = htole32(p->n_ranges),
		.window_ms = htole32(p->window_ms),
		.blob_blocks = htole64(p->blob_blocks),
	};
	uint8_t *out = malloc(len);

	if (!out)
		return NULL;
	memcpy(h.magic, BS_DISK_PROFILE_MAGIC, sizeof(h.magic));
	memcpy(h.table, p->table.b, sizeof(h.table));
	memcpy(out, &h, sizeof(h));
	for (uint32_t i = 0; i < p->n_ranges; i++) {
		const struct bs_profile_range *g = &p->ranges[i];
		struct bs_disk_range d = { htole32(g->block), htole32(g->n_blocks),
					   htole32(g->at_ms), htole32(g->runs) };

		memcpy(out + sizeof(h) + (size_t)i * sizeof(d), &d, sizeof(d));
	}
	*ret_len = len;
	return out;
}

int bs_profile_write(const struct bs_profile *p, void **ret, size_t *ret_len, struct bs_error *err)
{
	size_t len = 0, cap, n;
	bs_autofree uint8_t *bytes = disk_form(p, &len), *out = NULL;

	cap = ZSTD_compressBound(len);
	out = malloc(cap);
	if (!bytes || !out)
		return bs_fail(err, -ENOMEM, "profile: out of memory");
	n = ZSTD_compress(out, cap, bytes, len, LEVEL);
	if (ZSTD_isError(n))
		return bs_fail(err, -ENOMEM, "profile: %s", ZSTD_getErrorName(n));
	*ret = bs_take(&out);
	*ret_len = n;
	return 0;
}

/* --- recordings -------------------------------------------------------------------------------- */

static int append(struct bs_profile *p, const struct bs_profile_range *g)
{
	struct bs_profile_range *last = p->n_ranges ? &p->ranges[p->n_ranges - 1] : NULL;

	if (last && continues(last, g)) {
		last->n_blocks += g->n_blocks;
		return 0;
	}
	if (p->n_ranges == BS_PROFILE_RANGES_MAX)
		return -EFBIG;
	if (bs_grow(&p->ranges, &p->cap, p->n_ranges + (size_t)1, sizeof(*p->ranges)) < 0)
		return -ENOMEM;
	p->ranges[p->n_ranges++] = *g;
	return 0;
}

/* A block of either, with its place in the run that needed it first. */
struct need {
	uint32_t block, at_ms, runs;
	uint32_t order;
};

static int by_time(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Where each block is in needs, plus one; 0: nowhere. */
struct index {
	uint32_t *of;
	struct need *needs;
	size_t n, cap;
};

static void index_done(struct index *x)
{
	free(x->of);
	free(x->needs);
}

static int index_add(struct index *x, uint32_t block, uint32_t at_ms, uint32_t runs)
{
	struct need *w;

	if (x->of[block] != 0) {
		w = &x->needs[x->of[block] - 1];
		w->runs |= runs;
		w->at_ms = BS_MIN(w->at_ms, at_ms);
		return 0;
	}
	if (bs_grow(&x->needs, &x->cap, x->n + 1, sizeof(*x->needs)) < 0)
		return -ENOMEM;
	x->needs[x->n] = (struct need){ block, at_ms, runs, (uint32_t)x->n };
	x->of[block] = (uint32_t)++x->n;
	return 0;
}

/* newer: recordings that come after those of p; what only older ones needed than there may be goes. */
static int index_profile(struct index *x, const struct bs_profile *p, uint32_t newer)
{
	for (uint32_t i = 0; i < p->n_ranges; i++) {
		const struct bs_profile_range *g = &p->ranges[i];
		const uint32_t runs = (uint32_t)((uint64_t)g->runs << newer);

		for (uint32_t k = 0; runs != 0 && k < g->n_blocks; k++) {
			if (index_add(x, g->block + k, g->at_ms, runs) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int index_run(struct index *x, const struct bs_profile *p,
		     const struct bs_profile_event *events, size_t n, uint32_t window_ms)
{
	bs_autofree uint64_t *bits = new_bits(p);

	if (!bits)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t end = BS_MIN((uint64_t)events[i].block + events[i].n_blocks,
				      p->blob_blocks);

		for (uint64_t b = events[i].block; events[i].at_ms <= window_ms && b < end; b++) {
			if (see(bits, b) && index_add(x, (uint32_t)b, events[i].at_ms, 1) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* p becomes what is in the index. */
static int take_index(struct bs_profile *p, struct index *x, uint32_t newer, uint32_t window_ms)
{
	struct bs_profile merged = *p;
	int r = 0;

	if (x->n > 0) /* there may be no array */
		qsort(x->needs, x->n, sizeof(*x->needs), by_time);
	merged.ranges = NULL;
	merged.n_ranges = 0;
	merged.cap = 0;
	merged.n_runs = BS_MIN(p->n_runs + newer, BS_PROFILE_RUNS_MAX);
	merged.window_ms = BS_MAX(p->window_ms, window_ms);
	for (size_t i = 0; i < x->n && r == 0; i++)
		r = append(&merged,
			   &(struct bs_profile_range){ x->needs[i].block, 1, x->needs[i].at_ms,
						       x->needs[i].runs });
	if (r < 0) {
		free(merged.ranges);
		return r;
	}
	free(p->ranges);
	*p = merged;
	return 0;
}

int bs_profile_add_run(struct bs_profile *p, const struct bs_profile_event *events, size_t n,
		       uint32_t window_ms)
{
	__attribute__((cleanup(index_done))) struct index x = {
		.of = calloc(p->blob_blocks + 1, sizeof(*x.of)),
	};

	if (!x.of || index_profile(&x, p, 1) < 0 || index_run(&x, p, events, n, window_ms) < 0)
		return -ENOMEM;
	return take_index(p, &x, 1, window_ms);
}

int bs_profile_merge(struct bs_profile *p, const struct bs_profile *newer)
{
	__attribute__((cleanup(index_done))) struct index x = {
		.of = calloc(p->blob_blocks + 1, sizeof(*x.of)),
	};

	if (!bs_digest_eq(&p->table, &newer->table) || p->blob_blocks != newer->blob_blocks)
		return -EINVAL;
	if (!x.of || index_profile(&x, p, newer->n_runs) < 0 || index_profile(&x, newer, 0) < 0)
		return -ENOMEM;
	return take_index(p, &x, newer->n_runs, newer->window_ms);
}

int bs_profile_keep_runs(struct bs_profile *p, uint32_t n)
{
	const uint32_t kept = (uint32_t)((UINT64_C(1) << n) - 1);
	struct bs_profile less = *p;
	int r = 0;

	if (n >= p->n_runs)
		return 0;
	less.ranges = NULL;
	less.n_ranges = 0;
	less.cap = 0;
	less.n_runs = n;
	for (uint32_t i = 0; i < p->n_ranges && r == 0; i++) {
		struct bs_profile_range g = p->ranges[i];

		g.runs &= kept;
		if (g.runs != 0)
			r = append(&less, &g);
	}
	if (r < 0) {
		free(less.ranges);
		return r;
	}
	free(p->ranges);
	*p = less;
	return 0;
}

uint64_t bs_profile_blocks(const struct bs_profile *p, uint32_t min_runs)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_ranges; i++) {
		if ((uint32_t)__builtin_popcount(p->ranges[i].runs) >= min_runs)
			n += p->ranges[i].n_blocks;
	}
	return n;
}

int64_t bs_profile_beside(const struct bs_profile *p, const struct bs_profile *other)
{
	bs_autofree uint64_t *bits = new_bits(other);
	int64_t n = 0;

	if (!bits)
		return -ENOMEM;
	for (uint32_t i = 0; i < other->n_ranges; i++) {
		for (uint32_t k = 0; k < other->ranges[i].n_blocks; k++)
			(void)see(bits, (uint64_t)other->ranges[i].block + k);
	}
	for (uint32_t i = 0; i < p->n_ranges; i++) {
		for (uint32_t k = 0; k < p->ranges[i].n_blocks; k++) {
			const uint64_t b = (uint64_t)p->ranges[i].block + k;

			n += b >= other->blob_blocks || see(bits, b);
		}
	}
	return n;
}
