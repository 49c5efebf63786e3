/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Changes to a config.json, one function each; all may be made again without harm. */
#ifndef BS_OCI_EDIT_H
#define BS_OCI_EDIT_H

struct bs_config;
struct bs_error;

/* Sets an annotation. */
int bs_edit_annotation(struct bs_config *c, const char *key, const char *value,
		       struct bs_error *err);

enum bs_edit_bind_flags {
	BS_BIND_WRITABLE = 1u << 0,
	BS_BIND_NOEXEC = 1u << 1,
	BS_BIND_NOATIME = 1u << 2,
};

/* Adds a bind mount behind all others; nosuid and nodev. The runtime sets what is named here. */
int bs_edit_bind(struct bs_config *c, const char *source, const char *target, unsigned int flags,
		 struct bs_error *err);
/* Takes out the mounts whose source is dir or below it. */
void bs_edit_unbind(struct bs_config *c, const char *dir);

#endif
