/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Which capabilities each role keeps, and why: one table in caps.c. Single-threaded
 * callers only (capabilities are per thread).
 */
#ifndef BS_KERN_CAPS_H
#define BS_KERN_CAPS_H

#include <stdint.h>

enum bs_role {
	BS_ROLE_SUPERVISOR,
	BS_ROLE_WORKER,
	BS_ROLE_KEEPER,
	BS_ROLE_UNPACKER, /* a child of the supervisor */
	BS_ROLE_WARMER,	  /* another */
	BS_ROLE_MAX
};

/* Bit n: capability n (linux/capability.h). */
uint64_t bs_caps_of(enum bs_role role);

/*
 * Leaves the role's capabilities in the bounding set, and those of the roles that it
 * starts. Needs CAP_SETPCAP in effect; -EPERM else.
 */
int bs_caps_bound(enum bs_role role);

/*
 * Leaves the role's capabilities (those of them that we have) in the permitted and
 * effective sets and none in the inheritable and ambient ones. 0 or -errno.
 */
int bs_caps_limit(enum bs_role role);

#endif
