/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/packcheck.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "hot/pack.h"
#include "hot/store.h"
#include "image/frames.h"

struct bs_packcheck {
	const struct bs_table *table;
	const struct bs_digest *table_digest;
	const struct bs_hot *hot;
	struct bs_framer *f;
	struct bs_pack *pack; /* once the head is there */
	uint8_t *buf, *out;   /* the head, then one segment; its blocks */
	size_t have;	      /* in buf */
	uint32_t segment;     /* that comes */
	struct bs_error err;
};

struct bs_packcheck *bs_packcheck_free(struct bs_packcheck *c)
{
	if (!c)
		return NULL;
	(void)bs_framer_free(c->f);
	(void)bs_pack_free(c->pack);
	free(c->buf);
	free(c->out);
	free(c);
	return NULL;
}

int bs_packcheck_new(const struct bs_table *table, const struct bs_digest *table_digest,
		     const struct bs_hot *hot, struct bs_packcheck **ret, struct bs_error *err)
{
	bs_auto(packcheck) struct bs_packcheck *c = calloc(1, sizeof(*c));

	if (!c)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	c->table = table;
	c->table_digest = table_digest;
	c->hot = hot;
	c->f = bs_framer_new(0);
	c->buf = malloc(BS_MAX((size_t)hot->head_len, (size_t)BS_PACK_SEGMENT_DATA_MAX));
	c->out = malloc(BS_PACK_SEGMENT_BYTES_MAX);
	if (!c->f || !c->buf || !c->out)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	*ret = bs_take(&c);
	return 0;
}

static int take_head(struct bs_packcheck *c)
{
	return bs_hot_use_head(c->hot, (const char *)c->buf, c->table, c->table_digest, &c->pack,
			       &c->err);
}

static int take_segment(struct bs_packcheck *c)
{
	int r = bs_pack_decode(c->f, c->pack, c->table, c->segment, c->buf, c->out);

	if (r < 0)
		return bs_fail(&c->err, r,
			       "hot pack: segment %u of %u has other bytes than the image",
			       c->segment, c->pack->n_segments);
	c->segment++;
	return 0;
}

int bs_packcheck_feed(void *cookie, const void *data, size_t len)
{
	struct bs_packcheck *c = cookie;
	const uint8_t *p = data;

	while (len > 0) {
		size_t want, n;
		int r;

		if (c->err.code)
			return c->err.code;
		if (c->pack && c->segment == c->pack->n_segments)
			return bs_fail(&c->err, -EBADMSG,
				       "hot pack: there is data behind the last segment");
		want = c->pack ? c->pack->segments[c->segment].len : (size_t)c->hot->head_len;
		n = BS_MIN(len, want - c->have);
		memcpy(c->buf + c->have, p, n);
		c->have += n;
		p += n;
		len -= n;
		if (c->have < want)
			continue;
		r = c->pack ? take_segment(c) : take_head(c);
		if (r < 0)
			return r;
		c->have = 0;
	}
	return 0;
}

int bs_packcheck_end(struct bs_packcheck *c, int stopped, const struct bs_pack **ret,
		     struct bs_error *err)
{
	if (c->err.code) {
		if (err)
			*err = c->err;
		return c->err.code;
	}
	if (stopped < 0)
		return stopped;
	if (!c->pack || c->segment < c->pack->n_segments)
		return bs_fail(err, -EBADMSG, "hot pack: it is cut off");
	*ret = c->pack;
	return 0;
}
