/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotdonor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "cache/blob.h"
#include "hot/pack.h"
#include "hot/translate.h"
#include "rootfs/hotkept.h"
#include "rootfs/images.h"
#include "rootfs/share.h"

struct bs_hotdonor {
	struct bs_cached *image;
	struct bs_pack *pack; /* as the donor has it */
	struct bs_pack_origin *origins;
};

/* --- finding one ---------------------------------------------------------------------------- */

/* When its entry came to know a pack of the workload; -ENOENT. */
static int64_t known_since(struct bs_images *im, const struct bs_digest *image,
			   const char *workload)
{
	char hex[BS_DIGEST_TEXT_LEN], id[HOT_ID_LEN + 1];
	bs_autofree char *name = bs_hot_file(bs_hot_id(image, workload, id), "json");
	bs_autofree char *path = name ? bs_strf("%s/%s", bs_digest_hex(image, hex), name) : NULL;
	struct stat st;

	if (!path || fstatat(bs_images_dirfd(im), path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	return BS_MAX((int64_t)st.st_mtim.tv_sec, INT64_C(0));
}

struct bs_cached *bs_hotdonor_find(struct bs_images *im, const struct bs_digest *image,
				   const char *workload, struct bs_hot *ret)
{
	unsigned int left = SHARE_ENTRIES_MAX;
	struct bs_digest other, best = { 0 };
	struct bs_cached *found = NULL;
	const struct dirent *de;
	int64_t last = -1;
	DIR *d = bs_opendir_at(bs_images_dirfd(im), ".");

	if (!d)
		return NULL;
	for (; left > 0 && (de = readdir(d)); left--) {
		int64_t since;

		if (!bs_images_digest(de->d_name, &other) || bs_digest_eq(&other, image))
			continue;
		since = known_since(im, &other, workload);
		if (since <= last)
			continue;
		last = since;
		best = other;
	}
	(void)closedir(d);
	if (last >= 0)
		found = bs_images_cached(im, &best);
	return found && bs_hot_find_kept(found, workload, ret) == 0 ? found : NULL;
}

/* --- using it --------------------------------------------------------------------------------- */

int bs_hotdonor_open(struct bs_cached *donor, struct bs_cached *image, struct bs_pack **pack,
		     struct bs_hotdonor **ret, struct bs_error *err)
{
	bs_auto(hotdonor) struct bs_hotdonor *d = calloc(1, sizeof(*d));
	struct bs_pack *translated;
	int r;

	if (!d)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_pack_translate(*pack, bs_cached_table(donor), bs_cached_table(image), &translated,
			      &d->origins);
	if (r < 0)
		return bs_fail_errno(err, r, "hot pack of another image");
	d->image = donor;
	d->pack = *pack;
	*pack = translated;
	*ret = bs_take(&d);
	return 0;
}

struct bs_hotdonor *bs_hotdonor_free(struct bs_hotdonor *d)
{
	if (!d)
		return NULL;
	bs_hotdonor_end(d);
	free(d);
	return NULL;
}

struct bs_cached *bs_hotdonor_image(const struct bs_hotdonor *d)
{
	return d->image;
}

/* The unit that was proven last: extents of one lie side by side. */
struct proven {
	void *scratch;
	uint8_t *bytes; /* BS_UNIT_BYTES_MAX */
	struct bs_unit unit;
	uint32_t i;
	bool is_proven;
};

/* Whatever the disk made of it since it came: it is proven again. */
static bool prove(struct bs_blob *b, uint32_t i, struct proven *p)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);

	if (p->unit.blob_len > 0 && p->i == i)
		return p->is_proven;
	g->ops->unit(g->cookie, i, &p->unit);
	p->i = i;
	p->is_proven = bs_blob_has(b, i) &&
		       bs_blob_read_range(b, p->unit.blob_off, p->bytes, p->unit.blob_len) == 0 &&
		       g->ops->verify(g->cookie, p->scratch, i, p->bytes) == 0;
	return p->is_proven;
}

static bool read_proven(struct bs_blob *b, uint64_t off, uint32_t len, struct proven *p,
			uint8_t *out)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);

	while (len > 0) {
		uint32_t n;

		if (!prove(b, g->ops->find(g->cookie, off), p))
			return false;
		n = (uint32_t)BS_MIN(p->unit.blob_off + p->unit.blob_len - off, len);
		memcpy(out, p->bytes + (off - p->unit.blob_off), n);
		out += n;
		off += n;
		len -= n;
	}
	return true;
}

static uint64_t copy(struct bs_hotdonor *d, struct bs_cached *image, const struct bs_pack *pack,
		     struct proven *p, uint8_t *buf)
{
	uint64_t copied = 0;

	for (uint32_t k = 0; k < pack->n_extents; k++) {
		const struct bs_extent *e = &pack->extents[k];
		const uint32_t len = e->n_blocks * BS_BLOCK_BYTES;

		if (bs_blob_has_range(image->blob, (uint64_t)e->block * BS_BLOCK_BYTES, len) ||
		    !read_proven(d->image->blob, (uint64_t)d->origins[k].block * BS_BLOCK_BYTES,
				 len, p, buf))
			continue;
		if (bs_blob_store_blocks(image->blob, e->block, e->n_blocks, buf) < 0)
			break; /* the disk is full: the stream says so */
		copied += e->n_blocks;
	}
	return copied;
}

uint64_t bs_hotdonor_copy(struct bs_hotdonor *d, struct bs_cached *image,
			  const struct bs_pack *pack)
{
	bs_autofree uint8_t *bytes = malloc(BS_UNIT_BYTES_MAX),
			    *buf = malloc(BS_PACK_SEGMENT_BYTES_MAX);
	struct proven p = { .scratch = bs_images_scratch_new(), .bytes = bytes };
	uint64_t copied = 0;

	if (p.scratch && bytes && buf)
		copied = copy(d, image, pack, &p, buf);
	if (p.scratch)
		bs_images_scratch_free(p.scratch);
	return copied;
}

void bs_hotdonor_end(struct bs_hotdonor *d)
{
	d->pack = bs_pack_free(d->pack);
	free(d->origins);
	d->origins = NULL;
}

int bs_hotdonor_decode(const struct bs_hotdonor *d, void *framer, const struct bs_pack *pack,
		       uint32_t segment, const void *data, void *out)
{
	int r = bs_pack_decode(framer, d->pack, bs_cached_table(d->image), segment, data, out);

	if (r == 0)
		bs_pack_pick(pack, d->origins, segment, out);
	return r;
}
