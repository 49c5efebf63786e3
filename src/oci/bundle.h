/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* An OCI bundle: a directory, held by its descriptor, with config.json in it. */
#ifndef BS_OCI_BUNDLE_H
#define BS_OCI_BUNDLE_H

#include <stddef.h>

struct bs_error;

#define BS_CONFIG_BYTES_MAX (16u << 20)

struct bs_bundle {
	char *path; /* resolved, absolute */
	int fd;
	char *config; /* the file's name in fd, or an absolute path */
};

/* config: NULL for config.json, else a file relative to the working directory (crun --config). */
int bs_bundle_open(const char *path, const char *config, struct bs_bundle *ret,
		   struct bs_error *err);
void bs_bundle_done(struct bs_bundle *b);
#define bs_autobundle __attribute__((cleanup(bs_bundle_done))) struct bs_bundle

int bs_bundle_read(const struct bs_bundle *b, char **ret, size_t *ret_len, struct bs_error *err);

/* Replaces the config at once, with the mode and owner that it had. */
int bs_bundle_write(const struct bs_bundle *b, const char *text, size_t len, struct bs_error *err);

#endif
