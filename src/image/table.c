/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/table.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/format.h"

#define LEN_BITS 24u
#define LEN_MASK ((1u << LEN_BITS) - 1)

struct bs_table *bs_table_free(struct bs_table *t)
{
	if (t)
		free(t->frames);
	free(t);
	return NULL;
}

static const char *check_frame(const struct bs_frame *f)
{
	if (f->n_blocks < 1 || f->n_blocks > BS_FRAME_BLOCKS_MAX)
		return "it has no blocks, or more than 32";
	if (f->len < 1 || f->len > BS_FRAME_DATA_MAX)
		return "its length in data is out of range";
	return NULL;
}

static int read_head(const struct bs_disk_table *h, size_t len, struct bs_error *err)
{
	uint64_t extra, want;

	if (len < sizeof(*h) || memcmp(h->magic, BS_DISK_TABLE_MAGIC, sizeof(h->magic)) != 0)
		return bs_fail(err, -EBADMSG, "table: it does not begin as one");
	if (le32toh(h->version) != BS_DISK_VERSION || (le32toh(h->must) & ~BS_DISK_MUST))
		return bs_fail(err, -EPROTONOSUPPORT,
			       "table: its format (version %u, features %#x) is newer than this "
			       "program: upgrade bootseer",
			       le32toh(h->version), le32toh(h->must));
	if (le32toh(h->n_frames) > BS_TABLE_FRAMES_MAX)
		return bs_fail(err, -EFBIG, "table: %u frames are more than %u",
			       le32toh(h->n_frames), BS_TABLE_FRAMES_MAX);
	extra = le64toh(h->extra_len);
	want = sizeof(*h) + (uint64_t)le32toh(h->n_frames) * sizeof(struct bs_disk_frame);
	if (want > len || extra != len - want)
		return bs_fail(err, -EBADMSG, "table: it does not have the length its head says");
	if (extra && !h->may)
		return bs_fail(err, -EBADMSG,
			       "table: it has an extra part that no feature explains");
	return 0;
}

static int read_frames(struct bs_table *t, const uint8_t *data, struct bs_error *err)
{
	for (uint32_t i = 0; i < t->n_frames; i++) {
		struct bs_frame *f = &t->frames[i];
		struct bs_disk_frame d;
		const char *wrong;

		memcpy(&d, data + i * sizeof(d), sizeof(d));
		f->first_block = t->blob_blocks;
		f->off = t->data_len;
		f->n_blocks = le32toh(d.len_blocks) >> LEN_BITS;
		f->len = le32toh(d.len_blocks) & LEN_MASK;
		memcpy(f->root.b, d.root, sizeof(d.root));
		wrong = check_frame(f);
		if (wrong)
			return bs_fail(err, -EBADMSG, "table: frame %u: %s", i, wrong);
		t->blob_blocks += f->n_blocks;
		t->data_len += f->len;
	}
	return 0;
}

static struct bs_table *new_table(uint32_t n_frames)
{
	struct bs_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->n_frames = n_frames;
	t->frames = malloc((n_frames + (size_t)1) * sizeof(*t->frames));
	return t->frames ? t : bs_table_free(t);
}

int bs_table_read(const void *data, size_t len, struct bs_table **ret, struct bs_error *err)
{
	bs_auto(table) struct bs_table *t = NULL;
	struct bs_disk_table h = { 0 };
	int r;

	memcpy(&h, data, BS_MIN(len, sizeof(h)));
	r = read_head(&h, len, err);
	if (r < 0)
		return r;
	t = new_table(le32toh(h.n_frames));
	if (!t)
		return bs_fail(err, -ENOMEM, "table: out of memory");
	r = read_frames(t, (const uint8_t *)data + sizeof(h), err);
	if (r < 0)
		return r;
	if (t->blob_blocks != le64toh(h.blob_blocks) || t->data_len != le64toh(h.data_len))
		return bs_fail(err, -EBADMSG,
			       "table: its frames do not add up to the blob and data of its head");
	*ret = bs_take(&t);
	return 0;
}

uint32_t bs_table_find(const struct bs_table *t, uint64_t block)
{
	uint32_t low = 0, high = t->n_frames - 1;

	while (low < high) {
		uint32_t mid = low + (high - low + 1) / 2;

		if (t->frames[mid].first_block <= block)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

int bs_table_write(const struct bs_frame *frames, uint32_t n, void **ret, size_t *ret_len,
		   struct bs_error *err)
{
	size_t len = sizeof(struct bs_disk_table) + (size_t)n * sizeof(struct bs_disk_frame);
	uint64_t blob_blocks = 0, data_len = 0;
	bs_autofree uint8_t *out = NULL;
	struct bs_disk_table h = {
		.version = htole32(BS_DISK_VERSION),
		.n_frames = htole32(n),
	};

	if (n > BS_TABLE_FRAMES_MAX)
		return bs_fail(err, -EFBIG, "table: %u frames are more than %u", n,
			       BS_TABLE_FRAMES_MAX);
	out = malloc(len);
	if (!out)
		return bs_fail(err, -ENOMEM, "table: out of memory");
	for (uint32_t i = 0; i < n; i++) {
		const char *wrong = check_frame(&frames[i]);
		struct bs_disk_frame d;

		if (wrong)
			return bs_fail(err, -EINVAL, "table: frame %u: %s", i, wrong);
		d.len_blocks = htole32(frames[i].n_blocks << LEN_BITS | frames[i].len);
		memcpy(d.root, frames[i].root.b, sizeof(d.root));
		memcpy(out + sizeof(h) + i * sizeof(d), &d, sizeof(d));
		blob_blocks += frames[i].n_blocks;
		data_len += frames[i].len;
	}
	memcpy(h.magic, BS_DISK_TABLE_MAGIC, sizeof(h.magic));
	h.blob_blocks = htole64(blob_blocks);
	h.data_len = htole64(data_len);
	memcpy(out, &h, sizeof(h));
	*ret = bs_take(&out);
	*ret_len = len;
	return 0;
}
