/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How the shim tells of failure: as runc does, one line on standard error, one in
 * --log, exit code 1. Engines read meaning into such texts ("executable file not
 * found" makes podman and docker answer 127), so ours are kept free of their words.
 */
#ifndef BS_SHIM_REPORT_H
#define BS_SHIM_REPORT_H

#include <stddef.h>

struct bs_args;
struct bs_error;

/* Opens what --log names and sets what is shown; a log that cannot be opened is done without. */
void bs_report_init(const struct bs_args *a);

/* Says what failed; returns 1. */
int bs_report_failure(const struct bs_error *err);

/* Replaces the words that engines look for, in place, never making the text longer. */
void bs_report_neutral(char *text);

#endif
