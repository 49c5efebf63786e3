/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The config.json of a runtime bundle, from an image's config. */
#ifndef BS_CMD_SPEC_H
#define BS_CMD_SPEC_H

#include <stddef.h>

struct bs_error;
struct bs_json;
struct bs_user;

/* image: dev.bootseer.image, "docker://HOST/NAME@sha256:…". ret is malloc'ed. */
int ctl_spec_make(const struct bs_json *config, const struct bs_user *user, const char *image,
		  char **ret, size_t *ret_len, struct bs_error *err);

#endif
