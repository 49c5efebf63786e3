/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "cmd/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/log.h"
#include "base/mem.h"

#define REDRAW_NS (100 * BS_NS_PER_MS)
#define LINE_MAX_BYTES 300

void bs_progress_init(struct bs_progress *p, bool quiet)
{
	*p = (struct bs_progress){ .quiet = quiet, .tty = !quiet && isatty(STDERR_FILENO) };
}

static unsigned int columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20 ? w.ws_col : 80;
}

static void draw(struct bs_progress *p, uint64_t now)
{
	unsigned int width = columns(), bar, full;
	uint64_t ns = now - p->begin_ns;
	char done[BS_HUMAN_LEN], total[BS_HUMAN_LEN], per_s[BS_HUMAN_LEN], text[160], left[32] = "";

	bs_human_bytes(p->done, done);
	bs_human_bytes(p->total, total);
	bs_human_rate(p->done, ns, per_s);
	if (p->total > p->done && p->done > 0) {
		uint64_t s = (uint64_t)((double)(p->total - p->done) / (double)p->done *
					(double)ns / 1e9) +
			     1;

		(void)snprintf(left, sizeof(left), "  %llu:%02llu left",
			       (unsigned long long)(s / 60), (unsigned long long)(s % 60));
	}
	(void)snprintf(text, sizeof(text), " %s%s%s  %s%s", done, p->total ? " of " : "",
		       p->total ? total : "", per_s, left);
	fprintf(stderr, "\r\033[K%.*s", (int)(width - 1), p->what);
	bar = (unsigned int)snprintf(NULL, 0, "%s%s", p->what, text) + 4;
	if (p->total && bar + 10 < width) {
		bar = BS_MIN(width - bar, 40u);
		full = (unsigned int)((double)bar *
				      BS_MIN(1.0, (double)p->done / (double)p->total));
		fputs(" [", stderr);
		for (unsigned int i = 0; i < bar; i++)
			fputc(i < full ? '#' : '.', stderr);
		fputc(']', stderr);
	}
	fputs(text, stderr);
	fflush(stderr);
}

static void finish(struct bs_progress *p)
{
	uint64_t now = bs_clock_ns();
	char bytes[BS_HUMAN_LEN], per_s[BS_HUMAN_LEN], time[32];

	if (p->tty)
		fputs("\r\033[K", stderr);
	fprintf(stderr, "%s: %s in %s, %s\n", p->what, bs_human_bytes(p->done, bytes),
		bs_clock_human(now - p->begin_ns, time, sizeof(time)),
		bs_human_rate(p->done, now - p->begin_ns, per_s));
	p->open = false;
}

void bs_progress_begin(struct bs_progress *p, const char *what, uint64_t total)
{
	if (p->quiet)
		return;
	if (p->open)
		finish(p);
	(void)snprintf(p->what, sizeof(p->what), "%s", what);
	p->total = total;
	p->done = 0;
	p->begin_ns = bs_clock_ns();
	p->drawn_ns = 0;
	p->open = true;
}

void bs_progress_set(struct bs_progress *p, uint64_t done)
{
	uint64_t now;

	p->done = done;
	if (!p->tty || !p->open)
		return;
	now = bs_clock_ns();
	if (now - p->drawn_ns < REDRAW_NS)
		return;
	p->drawn_ns = now;
	draw(p, now);
}

void bs_progress_note(struct bs_progress *p, const char *text)
{
	if (p->tty)
		fputs("\r\033[K", stderr);
	bs_log_warning("%s", text);
}

void bs_progress_end(struct bs_progress *p, bool failed)
{
	if (p->quiet || !p->open)
		return;
	if (!failed)
		finish(p);
	else if (p->tty)
		fputs("\r\033[K", stderr);
	p->open = false;
}
