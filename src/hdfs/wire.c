/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/wire.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

static size_t left(const struct bs_wire *w)
{
	return (size_t)(w->end - w->p);
}

uint64_t bs_wire_le64(const uint8_t *p)
{
	return (uint64_t)bs_wire_le32(p) | (uint64_t)bs_wire_le32(p + 4) << 32;
}

uint32_t bs_wire_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t bs_wire_be32(const uint8_t *p)
{
	return (uint32_t)bs_wire_be16(p) << 16 | bs_wire_be16(p + 2);
}

uint16_t bs_wire_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

int bs_wire_varint(struct bs_wire *w, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < 10; i++) {
		uint8_t byte;

		if (i >= left(w))
			return -EAGAIN;
		byte = w->p[i];
		if (i == 9 && byte > 1)
			return -EBADMSG;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			w->p += i + 1;
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int take(struct bs_wire *w, uint64_t len, struct bs_span *ret)
{
	if (len > left(w))
		return -EBADMSG;
	*ret = (struct bs_span){ w->p, (size_t)len };
	w->p += len;
	return 0;
}

static int read_value(struct bs_wire *w, struct bs_wire_field *f)
{
	struct bs_span s;
	uint64_t len;
	int r;

	switch (f->type) {
	case BS_WIRE_VARINT:
		return bs_wire_varint(w, &f->value) < 0 ? -EBADMSG : 0;
	case BS_WIRE_FIXED64:
		r = take(w, 8, &s);
		if (r == 0)
			f->value = bs_wire_le64(s.p);
		return r;
	case BS_WIRE_FIXED32:
		r = take(w, 4, &s);
		if (r == 0)
			f->value = bs_wire_le32(s.p);
		return r;
	case BS_WIRE_BYTES:
		return bs_wire_varint(w, &len) < 0 ? -EBADMSG : take(w, len, &f->bytes);
	}
	return -EBADMSG;
}

int bs_wire_next(struct bs_wire *w, struct bs_wire_field *ret)
{
	struct bs_wire_field f = { 0 };
	uint64_t tag;
	int r;

	if (left(w) == 0)
		return 0;
	if (bs_wire_varint(w, &tag) < 0 || tag > UINT32_MAX || tag >> 3 == 0)
		return -EBADMSG;
	f.number = (uint32_t)(tag >> 3);
	f.type = (enum bs_wire_type)(tag & 7);
	r = read_value(w, &f);
	if (r < 0)
		return r;
	*ret = f;
	return 1;
}

/* One byte for -112..127, else a byte that says sign and length, and big endian behind. */
int bs_wire_vint(struct bs_wire *w, int64_t *ret)
{
	uint64_t v = 0;
	int8_t first;
	unsigned int n;
	bool negative;

	if (left(w) == 0)
		return -EBADMSG;
	first = (int8_t)*w->p;
	if (first >= -112) {
		w->p++;
		*ret = first;
		return 0;
	}
	negative = first < -120;
	n = (unsigned int)(negative ? -120 - first : -112 - first);
	if (left(w) < n + 1)
		return -EBADMSG;
	for (unsigned int i = 1; i <= n; i++)
		v = v << 8 | w->p[i];
	w->p += n + 1;
	*ret = (int64_t)(negative ? ~v : v);
	return 0;
}

int bs_wire_vbytes(struct bs_wire *w, struct bs_span *ret)
{
	int64_t len;
	int r = bs_wire_vint(w, &len);

	if (r < 0)
		return r;
	return len < 0 ? -EBADMSG : take(w, (uint64_t)len, ret);
}

void bs_wire_put_varint(struct bs_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	(void)bs_buf_add(b, bytes, n);
}

void bs_wire_put_u64(struct bs_buf *b, uint32_t number, uint64_t v)
{
	bs_wire_put_varint(b, (uint64_t)number << 3 | BS_WIRE_VARINT);
	bs_wire_put_varint(b, v);
}

void bs_wire_put_bytes(struct bs_buf *b, uint32_t number, const void *bytes, size_t len)
{
	bs_wire_put_varint(b, (uint64_t)number << 3 | BS_WIRE_BYTES);
	bs_wire_put_varint(b, len);
	(void)bs_buf_add(b, bytes, len);
}

void bs_wire_put_text(struct bs_buf *b, uint32_t number, const char *text)
{
	bs_wire_put_bytes(b, number, text, strlen(text));
}

void bs_wire_put_message(struct bs_buf *b, uint32_t number, const struct bs_buf *message)
{
	if (message->error < 0 && b->error == 0)
		b->error = message->error;
	bs_wire_put_bytes(b, number, bs_buf_str(message), message->len);
}

void bs_wire_put_vint(struct bs_buf *b, int64_t v)
{
	uint64_t u = v < 0 ? ~(uint64_t)v : (uint64_t)v;
	uint8_t bytes[9];
	unsigned int n = 0;

	if (v >= -112 && v <= 127) {
		bytes[0] = (uint8_t)v;
		(void)bs_buf_add(b, bytes, 1);
		return;
	}
	for (uint64_t rest = u; rest; rest >>= 8)
		n++;
	bytes[0] = (uint8_t)((v < 0 ? -120 : -112) - (int)n);
	for (unsigned int i = 0; i < n; i++)
		bytes[n - i] = (uint8_t)(u >> (8 * i));
	(void)bs_buf_add(b, bytes, n + 1);
}
