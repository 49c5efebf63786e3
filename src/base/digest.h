/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * SHA-256 by libcrypto, which uses the processor's instructions, and its text
 * form "sha256:<64 lower-case hex digits>" (OCI image-spec, descriptor.md).
 */
#ifndef BS_BASE_DIGEST_H
#define BS_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BS_SHA256_LEN 32
#define BS_DIGEST_TEXT_LEN 72 /* "sha256:" + 64 + NUL */

struct bs_digest {
	uint8_t b[BS_SHA256_LEN];
};

/* A running hash; one thread at a time. */
struct bs_sha256;

struct bs_sha256 *bs_sha256_new(void); /* NULL: out of memory */
struct bs_sha256 *bs_sha256_free(struct bs_sha256 *h);
void bs_sha256_update(struct bs_sha256 *h, const void *data, size_t len);
/* Gives the digest and starts anew. */
void bs_sha256_final(struct bs_sha256 *h, struct bs_digest *ret);

/* In one go; aborts only if libcrypto has no SHA-256 at all. */
void bs_digest_of(const void *data, size_t len, struct bs_digest *ret);

/* Of the first max bytes of a file, or all that it has: *ret_size. 0 or -errno. */
int bs_digest_of_file(int fd, uint64_t max, struct bs_digest *ret, uint64_t *ret_size);

bool bs_digest_eq(const struct bs_digest *a, const struct bs_digest *b);

/* "sha256:…" in a caller's buffer; returns buf. */
const char *bs_digest_text(const struct bs_digest *d, char buf[BS_DIGEST_TEXT_LEN]);

/* Only the 64 digits (buf as above). */
const char *bs_digest_hex(const struct bs_digest *d, char buf[BS_DIGEST_TEXT_LEN]);

/* Strict; -EINVAL for anything but sha256 in lower case. len as given, no NUL needed. */
int bs_digest_parse(const char *text, size_t len, struct bs_digest *ret);

#endif
