/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Files of the checkpoint tree that say what they are by an attribute, as symbolic links do. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "hdfs/namenode.h"
#include "hdfs/targets.h"
#include "hdfs/writerpriv.h"

/* An empty file at path; its name has the attempt's number behind. malloc'ed. */
static int make_empty(struct bs_ckpt *c, const char *path, char **ret, struct bs_error *err)
{
	struct bs_put_job job = { .put = { .path = path,
					   .body = "",
					   .block_size = c->o.unit,
					   .mode = 0644,
					   .patience_ns = c->o.deadline_ns } };
	int r = bs_ckpt_replication(c, &job.put.replication, err);

	if (r < 0)
		return r;
	bs_put_begin(c->putter, &job);
	r = bs_put_end(&job, err);
	if (r < 0)
		return r;
	*ret = bs_strf("%s.%d", path, r);
	return *ret ? 0 : bs_ckpt_no_memory(err);
}

static int make_in(struct bs_ckpt *c, const char *segment, const char *path,
		   const struct bs_ckpt_mark *m, struct bs_error *err)
{
	bs_autofree char *name = bs_strf("%s/link", segment);
	bs_autofree char *made = NULL;
	int r = name ? make_empty(c, name, &made, err) : bs_ckpt_no_memory(err);

	if (r == 0)
		r = bs_nn_set_xattr(c->o.nn, made, m->name, m->value, strlen(m->value), true, false,
				    err);
	if (r == 0)
		r = bs_nn_set_mode(c->o.nn, made, m->mode, err);
	bs_ckpt_step(c, "link");
	return r < 0 ? r : bs_nn_rename(c->o.nn, made, path, false, err);
}

int bs_ckpt_make_marked(struct bs_ckpt *c, const char *path, const struct bs_ckpt_mark *m,
			struct bs_error *err)
{
	bs_auto(writer) struct bs_writer *w = NULL;
	bs_autofree char *dir = bs_ckpt_parent(path);
	bs_autofree char *segment = NULL;
	char id[BS_STRIPES_ID_LEN + 1];
	int r = bs_ckpt_may_change(c, path, err);

	if (r < 0)
		return r;
	w = bs_ckpt_writer_of(c, path);
	if (w)
		return bs_fail(err, -EEXIST, "'%s' is there already", path);
	r = bs_ckpt_new_id(id);
	segment = r == 0 && dir ? bs_ckpt_hidden(dir, id, NULL) : NULL;
	if (!segment)
		return bs_ckpt_no_memory(err);
	r = bs_targets_learn(bs_putter_targets(c->putter), segment, err);
	if (r >= 0)
		r = bs_ckpt_make_hidden(c, dir, err);
	if (r == 0)
		r = bs_nn_mkdirs(c->o.nn, segment, 0700, err);
	if (r < 0)
		return r;
	r = make_in(c, segment, path, m, err);
	(void)bs_nn_delete(c->o.nn, segment, true, NULL);
	return r;
}
