/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotbuild.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomicfile.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "cache/blob.h"
#include "cache/fill.h"
#include "hot/pack.h"
#include "hot/profile.h"
#include "hot/proofs.h"
#include "hot/recording.h"
#include "image/table.h"
#include "rootfs/hotagain.h"
#include "rootfs/hotkept.h"
#include "rootfs/images.h"

struct source {
	struct bs_cached *image;
	struct bs_fill *fill;
	void *scratch;
	struct bs_pack *old; /* that was streamed beside the recording, or NULL */
	struct bs_proofs *proofs;
	int proofs_fd;
};

static int give_frame(void *cookie, uint32_t frame, void *out, struct bs_error *err)
{
	struct source *s = cookie;
	int r = bs_fill_bring(s->fill, s->image->blob, s->image->origin, frame, s->scratch, out,
			      err);

	return r < 0 ? bs_error_context(err, "frame %u", frame), r : 0;
}

static int give_block(void *cookie, uint64_t block, void *out)
{
	const struct source *s = cookie;
	const uint64_t off = block * BS_BLOCK_BYTES;

	return bs_blob_has_range(s->image->blob, off, BS_BLOCK_BYTES)
		       ? bs_blob_read_range(s->image->blob, off, out, BS_BLOCK_BYTES)
		       : -ENODATA;
}

/* What the old pack brought alone. */
static int give_some(void *cookie, struct bs_framer *f, uint32_t frame, uint32_t mask, void *out,
		     struct bs_digest *proof)
{
	struct source *s = cookie;

	if (!s->proofs || bs_blob_has(s->image->blob, frame))
		return -ENODATA;
	return bs_proofs_make(s->proofs, f, frame, mask, give_block, s, out, proof);
}

/* The old pack's proofs, if they were kept: without them more is fetched. */
static void open_proofs(struct source *s, const struct bs_hot *old)
{
	char id[HOT_ID_LEN + 1];
	bs_autofree char *name = bs_hot_file(bs_hot_id(&s->image->digest, old->workload, id),
					     "proofs");
	bs_autofree char *head = bs_hot_kept_head(s->image, id, old);

	if (!name || !head ||
	    bs_pack_read(head, old->head_len, bs_cached_table(s->image),
			 &bs_cached_artifact(s->image)->table.digest, &s->old, NULL) < 0)
		return;
	s->proofs_fd = bs_open_regular_at(bs_cached_dirfd(s->image), name);
	if (s->proofs_fd >= 0)
		s->proofs = bs_proofs_new(s->old, bs_cached_table(s->image), s->proofs_fd);
}

static int read_recording(struct bs_cached *image, struct bs_recording *recording,
			  struct bs_profile **ret, struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p =
		bs_profile_new(&bs_cached_artifact(image)->table.digest,
			       image->blob_bytes / BS_BLOCK_BYTES);
	bs_autofree struct bs_profile_event *events = NULL;
	uint32_t window_ms;
	size_t n;
	int r;

	if (!p)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_recording_events(recording, &events, &n, &window_ms, err);
	if (r < 0) /* what cannot be read back stays so: the next start is recorded */
		return r == -ENOMEM ? r : -EBADMSG;
	r = bs_profile_add_run(p, events, n, window_ms);
	if (r < 0)
		return bs_fail_errno(err, r, "profile");
	if (p->n_ranges == 0)
		return bs_fail(err, -ENODATA, "the container read nothing");
	*ret = bs_take(&p);
	return 0;
}

static int write_pack(const struct bs_hotbuild_options *from, const struct bs_profile *p,
		      struct bs_hotbuild *b, struct bs_error *err)
{
	struct bs_cached *image = from->image;
	struct source s = { .image = image,
			    .fill = from->fill,
			    .proofs_fd = -EBADF,
			    .scratch = bs_images_scratch_new() };
	struct bs_pack_write_options o = { .table = bs_cached_table(image),
					   .table_digest = &bs_cached_artifact(image)->table.digest,
					   .frame = give_frame,
					   .some = give_some,
					   .cookie = &s };
	bs_autofree struct bs_extent *extents = calloc(p->n_ranges, sizeof(*extents));
	uint64_t len;
	int r = -ENOMEM;

	for (uint32_t i = 0; extents && i < p->n_ranges; i++)
		extents[i] = (struct bs_extent){ p->ranges[i].block, p->ranges[i].n_blocks };
	if (from->again)
		open_proofs(&s, &from->again->hot);
	b->pack_fd = bs_atomicfile_open(bs_cached_dirfd(image), 0600);
	if (b->pack_fd < 0)
		r = bs_fail_errno(err, b->pack_fd, "make the pack's file in the cache");
	else if (!extents || !s.scratch)
		r = bs_fail(err, -ENOMEM, "out of memory");
	else
		r = bs_pack_write(extents, p->n_ranges, &o, b->pack_fd, &b->hot.head_len, &len,
				  err);
	if (s.scratch)
		bs_images_scratch_free(s.scratch);
	(void)bs_proofs_free(s.proofs);
	(void)bs_pack_free(s.old);
	(void)bs_close(s.proofs_fd);
	return r;
}

int bs_hotbuild_make(const struct bs_hotbuild_options *o, struct bs_hotbuild *ret,
		     struct bs_error *err)
{
	bs_auto(profile) struct bs_profile *p = NULL;
	int r = read_recording(o->image, o->recording, &p, err);

	if (r == 0 && o->again)
		r = bs_hotagain_merge(o->again, o->percent, &p, err);
	if (r < 0)
		return r;
	ret->hot.image = (struct bs_descriptor){ o->image->digest,
						 bs_cached_manifest_len(o->image) };
	(void)snprintf(ret->hot.workload, sizeof(ret->hot.workload), "%s", o->workload);
	r = bs_profile_write(p, &ret->profile, &ret->profile_len, err);
	return r < 0 ? r : write_pack(o, p, ret, err);
}

int bs_hotbuild_keep(struct bs_hotbuild *b, const struct bs_cached *image, const char *id,
		     struct bs_error *err)
{
	bs_autofree char *pack = bs_hot_file(id, "pack"), *text = NULL;
	size_t len;
	int r;

	if (!pack)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = bs_hot_describe(&b->hot, b->profile, b->profile_len, b->pack_fd, err);
	if (r == 0)
		r = bs_hot_write(&b->hot, &text, &len, err);
	if (r < 0)
		return r;
	r = bs_hot_write_file(image, id, "profile", b->profile, b->profile_len);
	if (r == 0)
		r = bs_atomicfile_publish(b->pack_fd, bs_cached_dirfd(image), pack, false);
	if (r == 0)
		r = bs_hot_write_file(image, id, "json", text, len);
	return r < 0 ? bs_fail_errno(err, r, "keep the hot pack in the cache") : 0;
}

void bs_hotbuild_done(struct bs_hotbuild *b)
{
	free(b->profile);
	b->profile = NULL;
	b->pack_fd = bs_close(b->pack_fd);
}
