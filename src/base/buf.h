/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A growing byte buffer with a hard cap that is given at the start.
 *
 * The first failure (-ENOMEM, or -E2BIG over the cap) sticks: later calls return
 * it and change nothing, so a builder may append freely and check once at the end.
 * data always has a NUL behind len. Not thread-safe.
 */
#ifndef BS_BASE_BUF_H
#define BS_BASE_BUF_H

#include <stddef.h>

struct bs_buf {
	char *data; /* NULL while empty */
	size_t len;
	size_t cap;
	size_t max;
	int error; /* sticky, negative errno */
};

#define BS_BUF_INIT(MAX) ((struct bs_buf){ .max = (MAX) })

void bs_buf_done(struct bs_buf *b);
#define bs_autobuf __attribute__((cleanup(bs_buf_done))) struct bs_buf

int bs_buf_add(struct bs_buf *b, const void *bytes, size_t len);
int bs_buf_adds(struct bs_buf *b, const char *text);
int bs_buf_addf(struct bs_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for len more bytes and returns where they go (NULL on failure); bs_buf_commit adds them. */
void *bs_buf_reserve(struct bs_buf *b, size_t len);
void bs_buf_commit(struct bs_buf *b, size_t len);

/* The text ("" while empty); owned by the buffer. */
const char *bs_buf_str(const struct bs_buf *b);

/* Hands the bytes over (malloc'ed, NUL behind; never NULL unless an error stuck). */
char *bs_buf_take(struct bs_buf *b);

/* Forgets the content, keeps the memory and clears the error. */
void bs_buf_clear(struct bs_buf *b);

#endif
