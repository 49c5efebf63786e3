/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The limit of open files: raised by processes that hold many, put back in what they
 * start (base/spawn does it), since programs exist that select(2) or that close all
 * numbers up to it.
 */
#ifndef BS_BASE_NOFILE_H
#define BS_BASE_NOFILE_H

/* The soft limit becomes the hard one; what cannot be had must do. Before any thread. */
void bs_nofile_raise(void);

/* As it was before bs_nofile_raise; async-signal-safe. */
void bs_nofile_restore(void);

#endif
