/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What is the wrapped runtime's alone: commands that we do not touch, and the two
 * whose output gets a word about us.
 */
#ifndef BS_SHIM_PASSTHROUGH_H
#define BS_SHIM_PASSTHROUGH_H

struct bs_args;
struct bs_runc;

/* Both return an exit code; the first only when the runtime could not be run. */
int bs_passthrough(const struct bs_runc *r, const struct bs_args *a);
int bs_passthrough_version(const struct bs_runc *r, const struct bs_args *a);
int bs_passthrough_features(const struct bs_runc *r, const struct bs_args *a);

#endif
