/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/warmlist.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"

#define MAGIC "bswarm1\n"
#define MAGIC_LEN 8u

struct wire_run {
	uint64_t off;
	uint32_t len;
	uint16_t path_len;
	uint16_t zero;
};
static_assert(sizeof(struct wire_run) == 16, "run");

void bs_warmlist_init(struct bs_warmlist *w)
{
	memcpy(w->data, MAGIC, MAGIC_LEN);
	w->len = MAGIC_LEN;
	w->path_off = w->path_len = 0;
}

bool bs_warmlist_empty(const struct bs_warmlist *w)
{
	return w->len == MAGIC_LEN;
}

/* "a/b": components only, with its NUL at the end of len bytes and nowhere before. */
static bool path_ok(const char *path, size_t len)
{
	size_t n;

	if (len < 2 || len > PATH_MAX || memchr(path, '\0', len) != path + len - 1)
		return false;
	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (!bs_path_name_ok(path, n))
			return false;
		if (!path[n])
			return true;
	}
}

static bool place_ok(uint64_t off, uint64_t len)
{
	return len > 0 && off <= INT64_MAX && len <= INT64_MAX - off;
}

int bs_warmlist_add(struct bs_warmlist *w, const char *path, uint64_t off, uint64_t len)
{
	const size_t path_len = strlen(path) + 1;
	const bool again = path_len == w->path_len &&
			   memcmp(w->data + w->path_off, path, path_len) == 0;
	const uint64_t n_runs = bs_div_up(len, BS_WARMLIST_RUN_BYTES_MAX);
	size_t at = w->len;

	if (!path_ok(path, path_len) || !place_ok(off, len) ||
	    n_runs > BS_WARMLIST_BYTES_MAX / 4 / sizeof(struct wire_run))
		return -EINVAL;
	if (n_runs * sizeof(struct wire_run) + (again ? 0 : path_len) > sizeof(w->data) - at)
		return -E2BIG;
	for (uint64_t i = 0; i < n_runs; i++) {
		const uint64_t part = BS_MIN(len, (uint64_t)BS_WARMLIST_RUN_BYTES_MAX);
		const bool named = i == 0 && !again;
		const struct wire_run run = { .off = htole64(off),
					      .len = htole32((uint32_t)part),
					      .path_len = htole16(named ? (uint16_t)path_len : 0) };

		memcpy(w->data + at, &run, sizeof(run));
		at += sizeof(run);
		if (named) {
			memcpy(w->data + at, path, path_len);
			w->path_off = at;
			w->path_len = path_len;
			at += path_len;
		}
		off += part;
		len -= part;
	}
	w->len = at;
	return 0;
}

/* The run at r->at: 1, 0 at the end, -EBADMSG. */
static int read_run(struct bs_warmlist_reader *r)
{
	const uint8_t *p = r->data + r->at;
	const size_t left = r->len - r->at;
	struct wire_run run;
	size_t path_len;

	if (left == 0)
		return 0;
	if (left < sizeof(run))
		return -EBADMSG;
	memcpy(&run, p, sizeof(run));
	path_len = le16toh(run.path_len);
	r->last.off = le64toh(run.off);
	r->last.len = le32toh(run.len);
	if (run.zero || !place_ok(r->last.off, r->last.len) ||
	    r->last.len > BS_WARMLIST_RUN_BYTES_MAX || path_len > left - sizeof(run))
		return -EBADMSG;
	r->at += sizeof(run) + path_len;
	if (path_len == 0)
		return r->last.path ? 1 : -EBADMSG;
	p += sizeof(run);
	if (!path_ok((const char *)p, path_len) ||
	    (r->path_len == path_len && memcmp(r->last.path, p, path_len) == 0))
		return -EBADMSG;
	r->last.path = (const char *)p;
	r->path_len = path_len;
	return 1;
}

int bs_warmlist_open(struct bs_warmlist_reader *r, const void *data, size_t len)
{
	const struct bs_warmlist_reader first = { .data = data, .len = len, .at = MAGIC_LEN };
	int rc;

	if (len <= MAGIC_LEN || len > BS_WARMLIST_BYTES_MAX || memcmp(data, MAGIC, MAGIC_LEN) != 0)
		return -EBADMSG;
	*r = first;
	while ((rc = read_run(r)) > 0)
		;
	*r = first;
	return rc;
}

bool bs_warmlist_next(struct bs_warmlist_reader *r, struct bs_warmlist_run *ret)
{
	if (read_run(r) <= 0)
		return false;
	*ret = r->last;
	return true;
}
