/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* delete: the runtime's first, with its result; then what we did is taken back. */
#ifndef BS_SHIM_DELETE_H
#define BS_SHIM_DELETE_H

struct bs_args;
struct bs_conf;
struct bs_runc;

/* An exit code, when the runtime could not be run. */
int bs_delete(const struct bs_conf *conf, const struct bs_runc *r, const struct bs_args *a);

#endif
