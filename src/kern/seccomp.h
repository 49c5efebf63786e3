/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The system calls that a role may make; every other one fails with EPERM. */
#ifndef BS_KERN_SECCOMP_H
#define BS_KERN_SECCOMP_H

#include "kern/caps.h"

struct bs_error;

/* Installs the role's allow-list for this thread and all it will start. Sets no_new_privs. */
int bs_seccomp_apply(enum bs_role role, struct bs_error *err);

#endif
