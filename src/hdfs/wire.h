/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Protocol buffers on the wire, and Hadoop's own ("Writable") integers: as much as the
 * DataNodes' protocol and token files need. Readers never look behind their end. Pure.
 */
#ifndef BS_HDFS_WIRE_H
#define BS_HDFS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_buf;

struct bs_span { /* borrowed bytes */
	const uint8_t *p;
	size_t len;
};

/* What is left to read. */
struct bs_wire {
	const uint8_t *p, *end;
};
static inline struct bs_wire bs_wire(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	return (struct bs_wire){ p, len ? p + len : p };
}

enum bs_wire_type {
	BS_WIRE_VARINT = 0,
	BS_WIRE_FIXED64 = 1,
	BS_WIRE_BYTES = 2,
	BS_WIRE_FIXED32 = 5
};

struct bs_wire_field {
	uint32_t number;
	enum bs_wire_type type;
	uint64_t value; /* of all types but BYTES */
	struct bs_span bytes;
};

/* The next field of a message: 1, 0 at its end, -EBADMSG. Groups are not known. */
int bs_wire_next(struct bs_wire *w, struct bs_wire_field *ret);

/* One varint: 0, -EAGAIN more bytes are needed, -EBADMSG longer than ten bytes or 64 bits. */
int bs_wire_varint(struct bs_wire *w, uint64_t *ret);

/* Writable: an integer of variable length (WritableUtils), and bytes with theirs before. */
int bs_wire_vint(struct bs_wire *w, int64_t *ret);
int bs_wire_vbytes(struct bs_wire *w, struct bs_span *ret);

uint32_t bs_wire_be32(const uint8_t *p);
uint16_t bs_wire_be16(const uint8_t *p);
uint64_t bs_wire_le64(const uint8_t *p);
uint32_t bs_wire_le32(const uint8_t *p);

/* Append to b, whose error sticks. */
void bs_wire_put_varint(struct bs_buf *b, uint64_t v);
void bs_wire_put_u64(struct bs_buf *b, uint32_t number, uint64_t v);
void bs_wire_put_bytes(struct bs_buf *b, uint32_t number, const void *bytes, size_t len);
void bs_wire_put_text(struct bs_buf *b, uint32_t number, const char *text);
/* A message that was built before; an error of it goes over to b. */
void bs_wire_put_message(struct bs_buf *b, uint32_t number, const struct bs_buf *message);
void bs_wire_put_vint(struct bs_buf *b, int64_t v);

#endif
