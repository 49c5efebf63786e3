/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/share.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "cache/blob.h"
#include "image/table.h"
#include "rootfs/images.h"

#define TABLE_DATA_MAX (512u << 20)

struct search {
	struct bs_images *images;
	struct bs_cached *image;
	struct bs_map wanted; /* root of each missing frame -> its struct bs_frame in our table */
	struct bs_alias *found;
	size_t n, cap;
};

static int want_missing(struct search *s)
{
	const struct bs_table *t = bs_cached_table(s->image);
	uint32_t i = bs_blob_next_missing(s->image->blob, 0);

	for (; i < t->n_frames; i = bs_blob_next_missing(s->image->blob, i + 1)) {
		struct bs_frame *fr = &t->frames[i];
		int r = bs_map_put(&s->wanted, fr->root.b, sizeof(fr->root.b), fr);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Frames of an entry's table that we want. The entry is loaded only when there is one. */
static void match(struct search *s, const char *name, const struct bs_table *theirs)
{
	const struct bs_table *ours = bs_cached_table(s->image);
	struct bs_cached *other = NULL;

	for (uint32_t k = 0; k < theirs->n_frames; k++) {
		const struct bs_frame *fr;

		fr = bs_map_get(&s->wanted, theirs->frames[k].root.b, sizeof(fr->root.b));
		if (!fr || fr->n_blocks != theirs->frames[k].n_blocks)
			continue;
		if (!other)
			other = bs_images_by_name(s->images, name);
		/* its present bits decide; a table on disk alone proves nothing */
		if (!other || other == s->image ||
		    bs_cached_table(other)->n_frames != theirs->n_frames)
			return;
		if (bs_grow(&s->found, &s->cap, s->n + 1, sizeof(*s->found)) < 0)
			return;
		s->found[s->n++] = (struct bs_alias){ (uint32_t)(fr - ours->frames), k, other };
		(void)bs_map_remove(&s->wanted, fr->root.b, sizeof(fr->root.b));
	}
}

static void look_at(struct search *s, const char *name)
{
	bs_autofd int dir = openat(bs_images_dirfd(s->images), name,
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	bs_auto(table) struct bs_table *t = NULL;
	bs_autofree char *bytes = NULL;
	size_t len;

	if (dir < 0 || bs_read_regular_at(dir, "table", TABLE_DATA_MAX, &bytes, &len) < 0 ||
	    bs_table_read(bytes, len, &t, NULL) < 0)
		return;
	match(s, name, t);
}

static int by_frame(const void *a, const void *b)
{
	const struct bs_alias *x = a, *y = b;

	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

void bs_images_share(struct bs_images *im, struct bs_cached *i)
{
	struct search s = { .images = im, .image = i };
	const struct dirent *de;
	unsigned int left = SHARE_ENTRIES_MAX;
	DIR *d;

	bs_map_init(&s.wanted);
	d = want_missing(&s) == 0 ? bs_opendir_at(bs_images_dirfd(im), ".") : NULL;
	while (d && s.wanted.n > 0 && left > 0 && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		left--;
		look_at(&s, de->d_name);
	}
	if (d)
		(void)closedir(d);
	bs_map_done(&s.wanted);
	if (s.n > 0)
		qsort(s.found, s.n, sizeof(*s.found), by_frame);
	bs_cached_set_aliases(i, s.found, s.n);
}
