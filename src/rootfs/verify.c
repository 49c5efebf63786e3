/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fd.h"
#include "cache/blob.h"
#include "rootfs/images.h"

static void verify_image(struct bs_cached *i, void *scratch, void *buf, uint64_t *frames,
			 uint64_t *wrong)
{
	uint32_t n = bs_blob_geometry(i->blob)->n_units;

	for (uint32_t k = 0; k < n; k++) {
		int r = bs_blob_prove(i->blob, k, scratch, buf);

		*frames += r != 0;
		*wrong += r < 0;
	}
}

int bs_images_verify(struct bs_images *im, uint64_t *ret_images, uint64_t *ret_frames,
		     uint64_t *ret_wrong, struct bs_error *err)
{
	void *scratch = bs_images_scratch_new(), *buf = malloc(BS_UNIT_BYTES_MAX);
	DIR *d = scratch && buf ? bs_opendir_at(bs_images_dirfd(im), ".") : NULL;
	const struct dirent *de;

	*ret_images = *ret_frames = *ret_wrong = 0;
	while (d && (de = readdir(d))) {
		struct bs_cached *i = bs_images_by_name(im, de->d_name);

		if (!i)
			continue;
		(*ret_images)++;
		verify_image(i, scratch, buf, ret_frames, ret_wrong);
	}
	if (scratch)
		bs_images_scratch_free(scratch);
	free(buf);
	if (!d)
		return bs_fail(err, -ENOMEM, "look through the cache");
	(void)closedir(d);
	return 0;
}
