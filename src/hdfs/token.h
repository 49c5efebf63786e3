/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Hadoop's tokens: as text for URLs and JSON (base64 of the Writable form), and the files
 * that carry them (HADOOP_TOKEN_FILE_LOCATION), of format 0 (Writable) and 1 (protobuf).
 */
#ifndef BS_HDFS_TOKEN_H
#define BS_HDFS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdfs/wire.h"

struct bs_buf;
struct bs_error;

#define BS_TOKEN_TEXT_MAX (64u << 10)
#define BS_TOKEN_FILE_MAX (1u << 20)
#define BS_TOKEN_FILE_TOKENS_MAX 1024u

struct bs_token {
	uint8_t *bytes; /* owned; what the spans point into */
	struct bs_span identifier, password, kind, service;
};
void bs_token_done(struct bs_token *t);

/* No identifier, no password: what an insecure cluster gives. */
bool bs_token_is_empty(const struct bs_token *t);

/* From the text form (URL-safe base64 or the ordinary one, padded or not). -EINVAL, -ENOMEM. */
int bs_token_decode(const char *text, struct bs_token *ret);

/* The text form, URL-safe and without padding; malloc'ed, NULL: out of memory. */
char *bs_token_encode(struct bs_span identifier, struct bs_span password, struct bs_span kind,
		      struct bs_span service);

/*
 * Looks into a token file's bytes (what names it) for a delegation token for HDFS whose service
 * is one of services. The text form, malloc'ed. -ENOENT: none is for them; -EINVAL: bad.
 */
int bs_token_from_file(const char *what, const void *bytes, size_t len, const char *const *services,
		       size_t n_services, char **ret, struct bs_error *err);

#endif
