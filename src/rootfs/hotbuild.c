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
#include "hot/recording.h"
#include "image/table.h"
#include "rootfs/hotagain.h"
#include "rootfs/hotkept.h"
#include "rootfs/images.h"

struct source {
	struct bs_cached *image;
	struct bs_fill *fill;
	void *scratch;
};

static int give_frame(void *cookie, uint32_t frame, void *out, struct bs_error *err)
{
	struct source *s = cookie;
	int r = bs_fill_bring(s->fill, s->image->blob, s->image->origin, frame, s->scratch, out,
			      err);

	return r < 0 ? bs_error_context(err, "frame %u", frame), r : 0;
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
	if (r < 0)
		return r;
	r = bs_profile_add_run(p, events, n, window_ms);
	if (r < 0)
		return bs_fail_errno(err, r, "profile");
	if (p->n_ranges == 0)
		return bs_fail(err, -ENODATA, "the container read nothing");
	*ret = bs_take(&p);
	return 0;
}

static int write_pack(struct bs_cached *image, struct bs_fill *fill, const struct bs_profile *p,
		      struct bs_hotbuild *b, struct bs_error *err)
{
	struct source s = { .image = image, .fill = fill, .scratch = bs_images_scratch_new() };
	struct bs_pack_write_options o = { .table = bs_cached_table(image),
					   .table_digest = &bs_cached_artifact(image)->table.digest,
					   .frame = give_frame,
					   .cookie = &s };
	bs_autofree struct bs_extent *extents = calloc(p->n_ranges, sizeof(*extents));
	uint64_t len;
	int r = -ENOMEM;

	for (uint32_t i = 0; extents && i < p->n_ranges; i++)
		extents[i] = (struct bs_extent){ p->ranges[i].block, p->ranges[i].n_blocks };
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
	return r < 0 ? r : write_pack(o->image, o->fill, p, ret, err);
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
