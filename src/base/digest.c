/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

#define FILE_CHUNK ((size_t)1 << 20)

struct bs_sha256 {
	EVP_MD_CTX *ctx;
};

/* Fetched once and kept: an implicit fetch at every start costs more than hashing 4 KiB. */
static const EVP_MD *sha256(void)
{
	static EVP_MD *md;
	EVP_MD *got = __atomic_load_n(&md, __ATOMIC_ACQUIRE), *none = NULL;

	if (got)
		return got;
	got = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!got)
		abort(); /* no libcrypto is built without it */
	if (__atomic_compare_exchange_n(&md, &none, got, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return got;
	EVP_MD_free(got);
	return none;
}

struct bs_sha256 *bs_sha256_new(void)
{
	struct bs_sha256 *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->ctx = EVP_MD_CTX_new();
	if (!h->ctx || EVP_DigestInit_ex2(h->ctx, sha256(), NULL) != 1)
		return bs_sha256_free(h);
	return h;
}

struct bs_sha256 *bs_sha256_free(struct bs_sha256 *h)
{
	if (h)
		EVP_MD_CTX_free(h->ctx);
	free(h);
	return NULL;
}

void bs_sha256_update(struct bs_sha256 *h, const void *data, size_t len)
{
	if (EVP_DigestUpdate(h->ctx, data, len) != 1)
		abort();
}

void bs_sha256_final(struct bs_sha256 *h, struct bs_digest *ret)
{
	if (EVP_DigestFinal_ex(h->ctx, ret->b, NULL) != 1 ||
	    EVP_DigestInit_ex2(h->ctx, NULL, NULL) != 1)
		abort();
}

void bs_digest_of(const void *data, size_t len, struct bs_digest *ret)
{
	if (EVP_Digest(data, len, ret->b, NULL, sha256(), NULL) != 1)
		abort();
}

int bs_digest_of_file(int fd, uint64_t max, struct bs_digest *ret, uint64_t *ret_size)
{
	struct bs_sha256 *hash = bs_sha256_new();
	bs_autofree char *chunk = malloc(FILE_CHUNK);
	ssize_t n = -ENOMEM;
	uint64_t at = 0;

	while (hash && chunk &&
	       (n = bs_pread_full(fd, chunk, BS_MIN((uint64_t)FILE_CHUNK, max - at), at)) > 0) {
		bs_sha256_update(hash, chunk, (size_t)n);
		at += (uint64_t)n;
	}
	if (n == 0) {
		bs_sha256_final(hash, ret);
		*ret_size = at;
	}
	(void)bs_sha256_free(hash);
	return (int)n;
}

bool bs_digest_eq(const struct bs_digest *a, const struct bs_digest *b)
{
	return memcmp(a->b, b->b, BS_SHA256_LEN) == 0;
}

static void put_hex(const struct bs_digest *d, char *to)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < BS_SHA256_LEN; i++) {
		*to++ = hex[d->b[i] >> 4];
		*to++ = hex[d->b[i] & 15];
	}
	*to = '\0';
}

const char *bs_digest_hex(const struct bs_digest *d, char buf[BS_DIGEST_TEXT_LEN])
{
	put_hex(d, buf);
	return buf;
}

const char *bs_digest_text(const struct bs_digest *d, char buf[BS_DIGEST_TEXT_LEN])
{
	memcpy(buf, "sha256:", 7);
	put_hex(d, buf + 7);
	return buf;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int bs_digest_parse(const char *text, size_t len, struct bs_digest *ret)
{
	struct bs_digest d;

	if (len != 7 + 2 * BS_SHA256_LEN || memcmp(text, "sha256:", 7) != 0)
		return -EINVAL;
	for (size_t i = 0; i < BS_SHA256_LEN; i++) {
		int hi = nibble(text[7 + 2 * i]), lo = nibble(text[8 + 2 * i]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		d.b[i] = (uint8_t)(hi << 4 | lo);
	}
	*ret = d;
	return 0;
}
