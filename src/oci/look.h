/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A first look at a config.json: is there anything in it for us?
 *
 * It takes any bytes and is generous where runtimes are: member names in any case,
 * each of several equal members, whatever stands around. So what it does not find is
 * not there for any runtime, and the file may go on untouched and unread. What it
 * finds is only a reason to read the file properly (oci/config), never to act.
 */
#ifndef BS_OCI_LOOK_H
#define BS_OCI_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define BS_LOOK_ROOTS_MAX 16u

struct bs_look {
	bool annotation;      /* a dev.bootseer.* annotation */
	bool too_many;	      /* more root.path members than we keep */
	struct bs_strv roots; /* all that may be root.path */
};

/* 0 or -ENOMEM. */
int bs_look(const char *text, size_t len, struct bs_look *ret);
void bs_look_done(struct bs_look *l);

#endif
