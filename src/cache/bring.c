/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Units for who is in no hurry: nothing of it counts as a reader's. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cache/fillpriv.h"

/* One attempt at one source, into data: 0 and unit_buf is right, or -errno. */
static int ask(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t unit,
	       size_t source, void *data, void *scratch, void *unit_buf, struct bs_error *err)
{
	const struct bs_blob_geometry *g = bs_blob_geometry(b);
	bs_auto(repo) struct bs_repo *repo = NULL;
	struct bs_range rg;
	struct bs_unit u;
	size_t n_sources;
	int r;

	bs_fill_unit(b, unit, &u);
	repo = bs_origin_pick(o, source, &n_sources);
	if (!repo)
		return bs_fail(err, -EHOSTUNREACH, "no source is known");
	rg = (struct bs_range){ .blob = *bs_origin_data(o),
				.off = u.data_off,
				.len = u.data_len,
				.buf = data,
				.lane = BS_LANE_BACKGROUND };
	r = bs_repo_read_wait(repo, &rg);
	if (r < 0)
		return bs_fail(err, r, "%s: %s", repo->name, rg.text);
	if (g->ops->decode(g->cookie, scratch, unit, data, unit_buf) < 0) {
		COUNT(f, bad_units, 1);
		return bs_fail(err, -EBADMSG, "%s: wrong bytes", repo->name);
	}
	bs_origin_right(o, unit, source);
	bs_fill_keep(f, b, unit, unit_buf, u.data_len);
	return 0;
}

int bs_fill_bring(struct bs_fill *f, struct bs_blob *b, struct bs_origin *o, uint32_t unit,
		  void *scratch, void *unit_buf, struct bs_error *err)
{
	const size_t start = bs_origin_start(o);
	bs_autofree void *data = NULL;
	size_t n_sources;
	struct bs_unit u;
	int r;

	bs_fill_unit(b, unit, &u);
	if (bs_blob_check(b, unit, scratch, unit_buf) &&
	    bs_blob_read_range(b, u.blob_off, unit_buf, u.blob_len) == 0)
		return 0;
	data = malloc(u.data_len);
	if (!data)
		return bs_fail(err, -ENOMEM, "out of memory");
	(void)bs_repo_unref(bs_origin_pick(o, start, &n_sources));
	r = ask(f, b, o, unit, start, data, scratch, unit_buf, err);
	for (size_t i = 1; r < 0 && i < n_sources; i++)
		r = ask(f, b, o, unit, start + i, data, scratch, unit_buf, err);
	return r;
}
