/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A picture is a grid of points; what falls on the same point is drawn once, so that the
 * file stays small however many ranges there are.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/human.h"
#include "base/str.h"
#include "cmd/ctl-hot.h"
#include "hot/profile.h"
#include "image/tree.h"

#define WIDTH 800u /* of the grid */
#define HEIGHT 320u
#define LEFT 90u
#define TOP 60u
#define GAP 90u /* between the two */
#define TICKS 5u
#define SVG_MAX (64u << 20)

struct picture {
	struct bs_buf *out;
	uint32_t top;
	uint64_t x_max, y_max; /* at least 1 */
	bool point[WIDTH][HEIGHT];
};

static uint32_t scale(uint64_t v, uint64_t max, uint32_t size)
{
	return (uint32_t)BS_MIN((uint64_t)((double)v / (double)max * size), (uint64_t)size - 1);
}

/* A line from (x, y) to (x_end, y_end), both of which it does not reach unless it is a point. */
static void draw(struct picture *p, uint64_t x, uint64_t x_end, uint64_t y, uint64_t y_end)
{
	const uint32_t from = scale(x, p->x_max, WIDTH);
	const uint32_t to = scale(x_end > x ? x_end - 1 : x, p->x_max, WIDTH);
	const double slope = (double)(y_end - y) / (to - from + 1);

	for (uint32_t col = from; col <= to; col++) {
		const double low = (double)y + slope * (col - from);
		const uint32_t a = scale((uint64_t)low, p->y_max, HEIGHT);
		const double last = BS_MAX(low, low + slope - 1);
		const uint32_t b = scale((uint64_t)last, p->y_max, HEIGHT);

		for (uint32_t row = a; row <= b; row++)
			p->point[col][row] = true;
	}
}

static void text(struct picture *p, double x, double y, const char *anchor, const char *s)
{
	(void)bs_buf_addf(p->out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", x, y, anchor);
	for (; *s; s++) {
		if (strchr("<>&\"'", *s))
			(void)bs_buf_addf(p->out, "&#%d;", *s);
		else if ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f)
			(void)bs_buf_add(p->out, s, 1);
		else
			(void)bs_buf_adds(p->out, "?");
	}
	(void)bs_buf_adds(p->out, "</text>\n");
}

static void write_points(struct picture *p)
{
	(void)bs_buf_adds(p->out, "<path stroke=\"#0a58ca\" stroke-width=\"2\" d=\"");
	for (uint32_t col = 0; col < WIDTH; col++) {
		for (uint32_t row = 0; row < HEIGHT;) {
			uint32_t n = 0;

			while (row + n < HEIGHT && p->point[col][row + n])
				n++;
			if (n > 0)
				(void)bs_buf_addf(p->out, "M%u %uv-%u", LEFT + col,
						  p->top + HEIGHT - row, n + 1);
			row += n + (n == 0);
		}
	}
	(void)bs_buf_adds(p->out, "\"/>\n");
}

typedef const char *label_fn(uint64_t v, char buf[BS_HUMAN_LEN]);

static const char *label_ms(uint64_t ms, char buf[BS_HUMAN_LEN])
{
	return ms ? bs_clock_human(ms * BS_NS_PER_MS, buf, BS_HUMAN_LEN) : "0";
}

static const char *label_blocks(uint64_t blocks, char buf[BS_HUMAN_LEN])
{
	return bs_human_bytes(blocks * BS_BLOCK_SIZE, buf);
}

static void write_axes(struct picture *p, const char *title, const char *x_name, label_fn *x_label)
{
	const double bottom = p->top + HEIGHT;
	char buf[BS_HUMAN_LEN];

	text(p, LEFT, p->top - 12., "start", title);
	(void)bs_buf_addf(p->out,
			  "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"none\" "
			  "stroke=\"#888\"/>\n",
			  LEFT, p->top, WIDTH, HEIGHT);
	for (uint32_t i = 0; i <= TICKS; i++) {
		const double x = LEFT + WIDTH * (double)i / TICKS;
		const double y = bottom - HEIGHT * (double)i / TICKS;

		(void)bs_buf_addf(p->out, "<path stroke=\"#888\" d=\"M%.0f %.0fv5M%u %.0fh-5\"/>\n",
				  x, bottom, LEFT, y);
		text(p, x, bottom + 18, "middle", x_label(p->x_max * i / TICKS, buf));
		text(p, LEFT - 8., y + 4, "end", label_blocks(p->y_max * i / TICKS, buf));
	}
	text(p, LEFT + WIDTH / 2., bottom + 36, "middle", x_name);
}

int ctl_hot_svg(const struct bs_profile *profile, const char *title, char **ret, size_t *ret_len,
		struct bs_error *err)
{
	bs_autobuf out = BS_BUF_INIT(SVG_MAX);
	bs_autofree struct picture *time = calloc(1, sizeof(*time)),
				   *order = calloc(1, sizeof(*order));
	uint64_t before = 0;

	if (!time || !order)
		return bs_fail(err, -ENOMEM, "picture: out of memory");
	time->out = order->out = &out;
	time->top = TOP;
	order->top = TOP + HEIGHT + GAP;
	time->y_max = order->y_max = BS_MAX(profile->blob_blocks, UINT64_C(1));
	if (profile->n_ranges > 0) /* they do not descend */
		time->x_max = profile->ranges[profile->n_ranges - 1].at_ms;
	time->x_max++;
	order->x_max = BS_MAX(bs_profile_blocks(profile, 0), UINT64_C(1));
	for (uint32_t i = 0; i < profile->n_ranges; i++) {
		const struct bs_profile_range *r = &profile->ranges[i];
		const uint64_t end = (uint64_t)r->block + r->n_blocks;

		draw(time, r->at_ms, r->at_ms, r->block, end);
		draw(order, before, before + r->n_blocks, r->block, end);
		before += r->n_blocks;
	}
	(void)bs_buf_addf(&out,
			  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
			  "font-family=\"sans-serif\" font-size=\"12\">\n"
			  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
			  LEFT + WIDTH + 40, 2 * HEIGHT + TOP + GAP + 50);
	text(time, LEFT, 24, "start", title);
	write_axes(time, "where in the image's blob, over time", "since the start", label_ms);
	write_points(time);
	write_axes(order, "where in the image's blob, in the order of the pack",
		   "bytes of the pack before, uncompressed", label_blocks);
	write_points(order);
	(void)bs_buf_adds(&out, "</svg>\n");
	if (out.error)
		return bs_fail_errno(err, out.error, "picture");
	*ret_len = out.len;
	*ret = bs_buf_take(&out);
	return 0;
}
