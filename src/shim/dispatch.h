/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* From a command line to the one function that carries it out. */
#ifndef BS_SHIM_DISPATCH_H
#define BS_SHIM_DISPATCH_H

/* The whole program; returns its exit code, unless the runtime took its place. */
int bs_dispatch(int argc, char **argv);

#endif
