/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdfs/stripe.h"
#include "hdfs/wire.h"

#define MAGIC "{\"bootseer\":\"stripe\",\"version\":"
#define FORMAT 1u
#define SUMS_MAGIC "BSSUMS1\n"
#define SUMS_HEAD 16u

bool bs_stripes_is(const void *bytes, size_t len)
{
	return len == BS_STRIPES_BYTES && memcmp(bytes, MAGIC, sizeof(MAGIC) - 1) == 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static int get_u64(const struct bs_json *v, const char *key, uint64_t min, uint64_t max,
		   uint64_t *ret)
{
	uint64_t n;

	if (bs_json_u64(bs_json_get(v, key), &n) < 0 || n < min || n > max)
		return -EBADMSG;
	*ret = n;
	return 0;
}

static int get_u32(const struct bs_json *v, const char *key, uint32_t min, uint32_t max,
		   uint32_t *ret)
{
	uint64_t n = 0;
	int r = get_u64(v, key, min, max, &n);

	if (r == 0)
		*ret = (uint32_t)n;
	return r;
}

static bool hex_ok(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

static int get_id(const struct bs_json *v, const char *key, char *ret)
{
	const char *text = bs_json_str(bs_json_get(v, key));

	if (!text || !hex_ok(text, BS_STRIPES_ID_LEN))
		return -EBADMSG;
	memcpy(ret, text, BS_STRIPES_ID_LEN + 1);
	return 0;
}

static int get_crc(const struct bs_json *v, const char *key, uint32_t *ret)
{
	const char *text = bs_json_str(bs_json_get(v, key));
	uint32_t crc = 0;

	if (!text || !hex_ok(text, 8))
		return -EBADMSG;
	for (; *text; text++)
		crc = crc << 4 | (uint32_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
	*ret = crc;
	return 0;
}

static int read_segments(const struct bs_json *list, struct bs_stripes *s)
{
	if (!bs_json_is(list, BS_JSON_ARRAY) || bs_json_n(list) > BS_STRIPES_SEGMENTS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < bs_json_n(list); i++) {
		const struct bs_json *v = bs_json_at(list, i);
		struct bs_segment *seg = &s->segments[i];

		if (!bs_json_is(v, BS_JSON_OBJECT) || get_id(v, "id", seg->id) < 0 ||
		    get_u64(v, "len", 1, BS_STRIPE_SIZE_MAX, &seg->len) < 0 ||
		    get_u32(v, "files", 1, BS_STRIPE_FILES_MAX, &seg->files) < 0 ||
		    get_crc(v, "sums", &seg->sums) < 0 ||
		    bs_sums_bytes(bs_stripe_units(seg->len, s->unit)) > BS_STRIPES_SUMS_MAX)
			return -EBADMSG;
		for (uint32_t k = 0; k < i; k++) {
			if (bs_streq(s->segments[k].id, seg->id))
				return -EBADMSG;
		}
		s->n_segments++;
	}
	return 0;
}

static int read_run(const struct bs_json *v, struct bs_stripes_run *ret)
{
	uint64_t n[4];

	if (!bs_json_is(v, BS_JSON_ARRAY) || bs_json_n(v) != 4)
		return -EBADMSG;
	for (size_t i = 0; i < 4; i++) {
		if (bs_json_u64(bs_json_at(v, i), &n[i]) < 0 || n[i] > BS_STRIPE_SIZE_MAX)
			return -EBADMSG;
	}
	*ret = (struct bs_stripes_run){
		.first = n[0], .n = n[1], .segment = (uint32_t)n[2], .slot = n[3]
	};
	return n[2] < BS_STRIPES_SEGMENTS_MAX ? 0 : -EBADMSG;
}

static int check_map(const struct bs_stripes *s)
{
	bool used[BS_STRIPES_SEGMENTS_MAX] = { 0 };
	uint64_t end = 0, units = bs_stripe_units(s->size, s->unit);

	for (uint32_t i = 0; i < s->n_map; i++) {
		const struct bs_stripes_run *r = &s->map[i];
		uint64_t slots;

		if (r->segment >= s->n_segments)
			return -EBADMSG;
		slots = bs_stripe_units(s->segments[r->segment].len, s->unit);
		/* nothing here is over 2^50, so that no sum overflows */
		if (r->n == 0 || r->first < end || r->first + r->n > units ||
		    r->slot + r->n > slots)
			return -EBADMSG;
		end = r->first + r->n;
		used[r->segment] = true;
	}
	for (uint32_t i = 0; i < s->n_segments; i++) {
		if (!used[i])
			return -EBADMSG;
	}
	return 0;
}

static int read_members(const struct bs_json *v, struct bs_stripes *s)
{
	const struct bs_json *map = bs_json_get(v, "map");
	int r = get_u64(v, "size", 0, BS_STRIPE_SIZE_MAX, &s->size);

	if (r == 0)
		r = get_u32(v, "unit", BS_STRIPE_UNIT_MIN, BS_STRIPE_UNIT_MAX, &s->unit);
	if (r == 0 && !bs_stripe_unit_ok(s->unit))
		r = -EBADMSG;
	if (r == 0)
		r = get_u64(v, "generation", 1, BS_STRIPE_SIZE_MAX, &s->generation);
	if (r == 0)
		r = get_id(v, "writer", s->writer);
	if (r == 0)
		r = read_segments(bs_json_get(v, "segments"), s);
	if (r == 0 && (!bs_json_is(map, BS_JSON_ARRAY) || bs_json_n(map) > BS_STRIPES_MAP_MAX))
		r = -EBADMSG;
	for (size_t i = 0; r == 0 && i < bs_json_n(map); i++)
		r = read_run(bs_json_at(map, i), &s->map[s->n_map++]);
	return r == 0 ? check_map(s) : r;
}

int bs_stripes_read(const void *bytes, size_t len, struct bs_stripes *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_stripes s = { 0 };
	uint64_t version;
	int r;

	if (!bs_stripes_is(bytes, len))
		return bs_fail(err, -EBADMSG, "no manifest of a striped file");
	r = bs_json_parse("manifest", bytes, len, BS_STRIPES_BYTES, &v, err);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return bs_fail(err, -EBADMSG, "a damaged manifest");
	if (bs_json_u64(bs_json_get(v, "version"), &version) < 0)
		return bs_fail(err, -EBADMSG, "a manifest without a version");
	if (version != FORMAT)
		return bs_fail(err, -EPROTONOSUPPORT,
			       "a striped file of format %" PRIu64 ", which needs a newer bootseer",
			       version);
	r = read_members(v, &s);
	if (r < 0)
		return bs_fail(err, r, "a manifest whose numbers cannot be");
	*ret = s;
	return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

int bs_stripes_write(const struct bs_stripes *s, void *to)
{
	bs_autobuf b = BS_BUF_INIT(BS_STRIPES_BYTES - 1);
	struct bs_stripes check;

	(void)bs_buf_addf(&b,
			  MAGIC "%u,\"size\":%" PRIu64 ",\"unit\":%u,\"generation\":%" PRIu64
				",\"writer\":\"%s\",\"segments\":[",
			  FORMAT, s->size, s->unit, s->generation, s->writer);
	for (uint32_t i = 0; i < s->n_segments; i++) {
		const struct bs_segment *g = &s->segments[i];

		(void)bs_buf_addf(&b,
				  "%s{\"id\":\"%s\",\"len\":%" PRIu64
				  ",\"files\":%u,\"sums\":\"%08x\"}",
				  i ? "," : "", g->id, g->len, g->files, g->sums);
	}
	(void)bs_buf_adds(&b, "],\"map\":[");
	for (uint32_t i = 0; i < s->n_map; i++) {
		const struct bs_stripes_run *r = &s->map[i];

		(void)bs_buf_addf(&b, "%s[%" PRIu64 ",%" PRIu64 ",%u,%" PRIu64 "]", i ? "," : "",
				  r->first, r->n, r->segment, r->slot);
	}
	(void)bs_buf_adds(&b, "]}");
	if (b.error)
		return b.error == -E2BIG ? -EINVAL : b.error;
	memset(to, ' ', BS_STRIPES_BYTES);
	memcpy(to, b.data, b.len);
	((char *)to)[BS_STRIPES_BYTES - 1] = '\n';
	return bs_stripes_read(to, BS_STRIPES_BYTES, &check, NULL) == 0 ? 0 : -EINVAL;
}

/* --- the map --------------------------------------------------------------------------------- */

const struct bs_segment *bs_stripes_find(const struct bs_stripes *s, uint64_t u, uint64_t *ret_slot,
					 uint64_t *ret_n)
{
	for (uint32_t i = 0; i < s->n_map; i++) {
		const struct bs_stripes_run *r = &s->map[i];

		if (u >= r->first + r->n)
			continue;
		if (u < r->first) {
			*ret_n = r->first - u;
			return NULL;
		}
		*ret_slot = r->slot + (u - r->first);
		*ret_n = r->first + r->n - u;
		return &s->segments[r->segment];
	}
	*ret_n = UINT64_MAX - u;
	return NULL;
}

struct map {
	struct bs_stripes_run v[3 * BS_STRIPES_MAP_MAX];
	uint32_t n;
};

static int put(struct map *m, struct bs_stripes_run r)
{
	struct bs_stripes_run *last = m->n ? &m->v[m->n - 1] : NULL;

	if (r.n == 0)
		return 0;
	if (last && last->first + last->n == r.first && last->segment == r.segment &&
	    last->slot + last->n == r.slot) {
		last->n += r.n;
		return 0;
	}
	if (m->n == BS_ARRAY_LEN(m->v))
		return -E2BIG;
	m->v[m->n++] = r;
	return 0;
}

/* The part of old from unit from on, before unit to. */
static struct bs_stripes_run part(struct bs_stripes_run old, uint64_t from, uint64_t to)
{
	uint64_t first = BS_MAX(old.first, from), end = BS_MIN(old.first + old.n, to);

	return (struct bs_stripes_run){ .first = first,
					.n = end > first ? end - first : 0,
					.segment = old.segment,
					.slot = old.slot + (first - old.first) };
}

/* Segments that no run has go; then all has to fit. */
static int tidy(struct bs_stripes *s, const struct map *m, const struct bs_segment *all, uint32_t n)
{
	uint32_t to[BS_STRIPES_SEGMENTS_MAX + 1];

	s->n_segments = s->n_map = 0;
	if (m->n > BS_STRIPES_MAP_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < n; i++) {
		bool used = false;

		for (uint32_t k = 0; k < m->n; k++)
			used = used || m->v[k].segment == i;
		if (!used)
			continue;
		if (s->n_segments == BS_STRIPES_SEGMENTS_MAX)
			return -E2BIG;
		to[i] = s->n_segments;
		s->segments[s->n_segments++] = all[i];
	}
	for (uint32_t k = 0; k < m->n; k++) {
		s->map[k] = m->v[k];
		s->map[k].segment = to[m->v[k].segment];
	}
	s->n_map = m->n;
	return 0;
}

int bs_stripes_add(struct bs_stripes *s, const struct bs_segment *seg,
		   const struct bs_stripes_run *runs, uint32_t n_runs)
{
	struct bs_segment all[BS_STRIPES_SEGMENTS_MAX + 1];
	struct map m = { 0 };
	uint64_t at = 0, slot = 0;
	int r = 0;

	if (n_runs > BS_STRIPES_MAP_MAX)
		return -E2BIG;
	memcpy(all, s->segments, sizeof(s->segments));
	all[s->n_segments] = *seg;
	for (uint32_t i = 0; r == 0 && i <= n_runs; i++) {
		uint64_t first = i < n_runs ? runs[i].first : UINT64_MAX;

		for (uint32_t k = 0; r == 0 && k < s->n_map; k++)
			r = put(&m, part(s->map[k], at, first));
		if (r < 0 || i == n_runs)
			break;
		r = put(&m, (struct bs_stripes_run){ .first = first,
						     .n = runs[i].n,
						     .segment = s->n_segments,
						     .slot = slot });
		slot += runs[i].n;
		at = first + runs[i].n;
	}
	return r < 0 ? r : tidy(s, &m, all, s->n_segments + 1);
}

void bs_stripes_cut(struct bs_stripes *s)
{
	struct bs_segment all[BS_STRIPES_SEGMENTS_MAX];
	uint64_t units = bs_stripe_units(s->size, s->unit);
	struct map m = { 0 };

	memcpy(all, s->segments, sizeof(all));
	for (uint32_t k = 0; k < s->n_map; k++)
		(void)put(&m, part(s->map[k], 0, units)); /* never more than there were */
	(void)tidy(s, &m, all, s->n_segments);
}

/* --- sums ------------------------------------------------------------------------------------ */

size_t bs_sums_bytes(uint64_t slots)
{
	return SUMS_HEAD + 4 * (size_t)slots;
}

static void put_le32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

void bs_sums_write(uint32_t unit, const uint32_t *crc, uint32_t n, void *to)
{
	uint8_t *at = to;

	memcpy(at, SUMS_MAGIC, 8);
	put_le32(at + 8, unit);
	put_le32(at + 12, n);
	for (uint32_t i = 0; i < n; i++)
		put_le32(at + SUMS_HEAD + 4 * (size_t)i, crc[i]);
}

int bs_sums_read(const void *bytes, size_t len, uint32_t crc32c, uint32_t unit, uint64_t n,
		 uint32_t *ret, struct bs_error *err)
{
	const uint8_t *at = bytes;

	if (len != bs_sums_bytes(n) || memcmp(at, SUMS_MAGIC, 8) != 0 ||
	    bs_wire_le32(at + 8) != unit || bs_wire_le32(at + 12) != n)
		return bs_fail(err, -EBADMSG, "no sums of that segment");
	if (bs_crc32c(0, bytes, len) != crc32c)
		return bs_fail(err, -EBADMSG, "damaged sums");
	for (uint64_t i = 0; i < n; i++)
		ret[i] = bs_wire_le32(at + SUMS_HEAD + 4 * i);
	return 0;
}
