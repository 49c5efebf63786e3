/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Small tar archives in memory, each header as it is wanted, and how a tree looks. */
#ifndef BS_TESTS_TARBUILD_H
#define BS_TESTS_TARBUILD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

struct bs_error;
struct bs_layer;
struct bs_nodes;

#define TAR_MAX (256u << 20)

struct tar {
	struct bs_buf out;
	struct bs_buf pax; /* records for the next entry */
	unsigned int mode;
	unsigned long long mtime;
	unsigned int uid, gid;
	unsigned int major, minor;
	size_t fed; /* by tar_input */
};

#define TAR_INIT                                                                                   \
	((struct tar){ .out = BS_BUF_INIT(TAR_MAX), .pax = BS_BUF_INIT(1u << 20), .mode = 0644 })

void tar_done(struct tar *t);
#define autotar __attribute__((cleanup(tar_done))) struct tar

/* A pax record for the next entry. */
void tar_record(struct tar *t, const char *key, const void *value, size_t len);
void tar_add(struct tar *t, const char *name, char type, const char *link, const void *data,
	     size_t len);
void tar_dir(struct tar *t, const char *name);
void tar_file(struct tar *t, const char *name, const char *text);
void tar_link(struct tar *t, const char *name, const char *to);
void tar_symlink(struct tar *t, const char *name, const char *to);
void tar_end(struct tar *t);

/* Reads it as it is. */
int tar_parse(struct tar *t, struct bs_layer **ret, struct bs_error *err);
/* Ends it and reads it as a layer. */
int tar_layer(struct tar *t, struct bs_layer **ret, struct bs_error *err);

/* One line a name: "d a", "f a/x=content", "l a/s>target", "c dev", … "+" before further names. */
char *tree_text(const struct bs_nodes *t);

#endif
