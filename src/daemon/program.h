/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Where the running program lies: its parts are started from there, so that they are new after an upgrade. */
#ifndef BS_DAEMON_PROGRAM_H
#define BS_DAEMON_PROGRAM_H

/*
 * The absolute path of this program's file, of what replaced it, or "/proc/self/exe"
 * when nothing is there any more. Static; single-threaded programs only.
 */
const char *bs_program_path(void);

#endif
