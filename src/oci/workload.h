/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What tells apart the things that are started from one image, for their hot packs. */
#ifndef BS_OCI_WORKLOAD_H
#define BS_OCI_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>

struct bs_error;
struct bs_json;

#define BS_WORKLOAD_MAX 128u /* bytes */

/*
 * 1 … BS_WORKLOAD_MAX bytes: letters, digits and any of . _ : / @ + -, but no '-' at the
 * beginning, where it would be an option, and no digest, which would be a pack's.
 */
bool bs_workload_ok(const char *name);

/* The same with an error that says what is wrong with the name: -EINVAL. */
int bs_workload_check(const char *name, struct bs_error *err);

/*
 * The name made of a command (process.args, may be NULL): that of its program and 16
 * digits of a hash of all arguments, in which each run of digits counts as one "0", so
 * that ranks, ports and dates make no difference. Writes at most size bytes with NUL (64 do).
 */
void bs_workload_of_args(const struct bs_json *args, char *buf, size_t size);

#endif
