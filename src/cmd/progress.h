/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What a long command shows on standard error while it works: on a terminal a bar
 * with bytes, rate and time left, else one line at the end of each phase.
 */
#ifndef BS_CMD_PROGRESS_H
#define BS_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct bs_progress {
	bool quiet, tty;
	char what[96];	/* "reading layers" */
	uint64_t total; /* bytes; 0: not known */
	uint64_t done;
	uint64_t begin_ns, drawn_ns;
	bool open; /* a phase has begun */
};

void bs_progress_init(struct bs_progress *p, bool quiet);
/* Ends the phase before. */
void bs_progress_begin(struct bs_progress *p, const char *what, uint64_t total);
/* done: bytes of this phase so far. Any thread, one at a time. */
void bs_progress_set(struct bs_progress *p, uint64_t done);
/* A line for people. */
void bs_progress_note(struct bs_progress *p, const char *text);
/* Ends the last phase; failed: without saying that it is done. */
void bs_progress_end(struct bs_progress *p, bool failed);

#endif
