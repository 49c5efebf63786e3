/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What tells apart the things that are started from one image, for their hot packs. */
#ifndef BS_OCI_WORKLOAD_H
#define BS_OCI_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>

struct bs_json;

#define BS_WORKLOAD_MAX 128u /* bytes */

/* 1 … BS_WORKLOAD_MAX bytes: letters, digits and any of . _ : / @ + - */
bool bs_workload_ok(const char *name);

/*
 * The name made of a command (process.args, may be NULL): that of its program and 16
 * digits of a hash of all arguments, in which each run of digits counts as one "0", so
 * that ranks, ports and dates make no difference. Writes at most size bytes with NUL (64 do).
 */
void bs_workload_of_args(const struct bs_json *args, char *buf, size_t size);

#endif
