/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/xfer.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "hdfs/blocks.h"

#define VERSION_28 28
#define OP_READ_BLOCK 81
#define REQUEST_MAX (128u << 10)
#define HEADER_MAX 1024u /* it has 25 bytes today */
#define SUM_LEN 4u

static void put_token(struct bs_buf *to, uint32_t number, const struct bs_token *t)
{
	bs_autobuf b = BS_BUF_INIT(REQUEST_MAX);

	bs_wire_put_bytes(&b, 1, t->identifier.p, t->identifier.len);
	bs_wire_put_bytes(&b, 2, t->password.p, t->password.len);
	bs_wire_put_bytes(&b, 3, t->kind.p, t->kind.len);
	bs_wire_put_bytes(&b, 4, t->service.p, t->service.len);
	bs_wire_put_message(to, number, &b);
}

/* BaseHeaderProto: which block, and the right to it. */
static void put_base(struct bs_buf *to, uint32_t number, const struct bs_block *block)
{
	bs_autobuf b = BS_BUF_INIT(REQUEST_MAX);
	bs_autobuf id = BS_BUF_INIT(REQUEST_MAX);

	bs_wire_put_text(&id, 1, block->pool);
	bs_wire_put_u64(&id, 2, block->id);
	bs_wire_put_u64(&id, 3, block->generation);
	bs_wire_put_u64(&id, 4, block->len);
	bs_wire_put_message(&b, 1, &id);
	put_token(&b, 2, &block->token);
	bs_wire_put_message(to, number, &b);
}

void bs_xfer_put_read(struct bs_buf *b, const struct bs_block *block, const char *client,
		      uint64_t off, uint64_t len)
{
	static const uint8_t head[] = { 0, VERSION_28, OP_READ_BLOCK };
	bs_autobuf header = BS_BUF_INIT(REQUEST_MAX);
	bs_autobuf op = BS_BUF_INIT(REQUEST_MAX);

	put_base(&header, 1, block);
	bs_wire_put_text(&header, 2, client);
	bs_wire_put_message(&op, 1, &header);
	bs_wire_put_u64(&op, 2, off);
	bs_wire_put_u64(&op, 3, len);
	bs_wire_put_u64(&op, 4, 1);
	if (op.error < 0 && b->error == 0)
		b->error = op.error;
	(void)bs_buf_add(b, head, sizeof(head));
	bs_wire_put_varint(b, op.len);
	(void)bs_buf_add(b, bs_buf_str(&op), op.len);
}

void bs_xfer_put_status(struct bs_buf *b, enum bs_xfer_status status)
{
	bs_wire_put_varint(b, 2);
	bs_wire_put_u64(b, 1, (uint64_t)status);
}

/* ReadOpChecksumInfoProto */
static int read_sums(struct bs_span message, struct bs_xfer_reply *ret)
{
	struct bs_wire w = bs_wire(message.p, message.len);
	struct bs_wire_field f;
	bool has_kind = false, has_chunk = false, has_first = false;
	int r;

	while ((r = bs_wire_next(&w, &f)) > 0) {
		struct bs_wire inner = bs_wire(f.bytes.p, f.bytes.len);

		if (f.number == 2 && f.type == BS_WIRE_VARINT) {
			ret->first = f.value;
			has_first = true;
		}
		if (f.number != 1 || f.type != BS_WIRE_BYTES)
			continue;
		while ((r = bs_wire_next(&inner, &f)) > 0) {
			if (f.type != BS_WIRE_VARINT)
				continue;
			if (f.number == 1 && f.value <= BS_XFER_SUM_CRC32C) {
				ret->sum = (enum bs_xfer_sum)f.value;
				has_kind = true;
			} else if (f.number == 2 && f.value > 0 && f.value <= BS_XFER_CHUNK_MAX) {
				ret->chunk = (uint32_t)f.value;
				has_chunk = true;
			}
		}
		if (r < 0)
			return r;
	}
	ret->has_sums = has_kind && has_chunk && has_first;
	return r < 0 || !ret->has_sums ? -EBADMSG : 0;
}

ssize_t bs_xfer_reply(const void *bytes, size_t len, struct bs_xfer_reply *ret)
{
	struct bs_wire w = bs_wire(bytes, len);
	struct bs_xfer_reply reply = { .status = UINT64_MAX };
	struct bs_wire_field f;
	uint64_t size;
	int r = bs_wire_varint(&w, &size);

	if (r == -EAGAIN)
		return 0;
	if (r < 0 || size > BS_XFER_REPLY_MAX)
		return -EBADMSG;
	if (size > (uint64_t)(w.end - w.p))
		return 0;
	w.end = w.p + size;
	while ((r = bs_wire_next(&w, &f)) > 0) {
		if (f.number == 1 && f.type == BS_WIRE_VARINT)
			reply.status = f.value;
		else if (f.number == 5 && f.type == BS_WIRE_BYTES)
			reply.message = f.bytes;
		else if (f.number == 4 && f.type == BS_WIRE_BYTES && read_sums(f.bytes, &reply) < 0)
			return -EBADMSG;
	}
	if (r < 0 || reply.status == UINT64_MAX)
		return -EBADMSG;
	*ret = reply;
	return w.end - (const uint8_t *)bytes;
}

static int read_header(struct bs_wire w, uint64_t *ret_data_len, struct bs_xfer_packet *ret)
{
	enum { OFF = 1, SEQNO = 2, LAST = 4, LEN = 8, ALL = 15 };
	struct bs_wire_field f;
	int r, seen = 0;

	while ((r = bs_wire_next(&w, &f)) > 0) {
		if (f.number == 1 && f.type == BS_WIRE_FIXED64) {
			ret->off = (int64_t)f.value;
			seen |= OFF;
		} else if (f.number == 2 && f.type == BS_WIRE_FIXED64) {
			ret->seqno = (int64_t)f.value;
			seen |= SEQNO;
		} else if (f.number == 3 && f.type == BS_WIRE_VARINT) {
			ret->last = f.value != 0;
			seen |= LAST;
		} else if (f.number == 4 && f.type == BS_WIRE_FIXED32) {
			*ret_data_len = f.value;
			seen |= LEN;
		}
	}
	return r < 0 || seen != ALL || ret->off < 0 ? -EBADMSG : 0;
}

ssize_t bs_xfer_packet(const void *bytes, size_t len, struct bs_xfer_packet *ret)
{
	const uint8_t *p = bytes;
	struct bs_xfer_packet packet = { 0 };
	uint64_t data_len = 0, size;
	size_t header;

	if (len < 6)
		return 0;
	size = bs_wire_be32(p);
	header = bs_wire_be16(p + 4);
	if (size < 4 || size - 4 > BS_XFER_PACKET_MAX || header > HEADER_MAX)
		return -EBADMSG;
	if (len < 6 + header)
		return 0;
	if (read_header(bs_wire(p + 6, header), &data_len, &packet) < 0 || data_len > size - 4)
		return -EBADMSG;
	packet.data_len = (size_t)data_len;
	packet.sums_len = (size_t)(size - 4 - data_len);
	*ret = packet;
	return (ssize_t)(6 + header);
}

static bool crc32_ok(uint32_t chunk, const uint8_t *sums, const uint8_t *data, size_t len)
{
	for (; len; sums += SUM_LEN) {
		size_t n = BS_MIN(len, (size_t)chunk);

		if (crc32(0, data, (uInt)n) != bs_wire_be32(sums))
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static bool crc32c_ok(uint32_t chunk, const uint8_t *sums, const uint8_t *data, size_t len)
{
	uint32_t got[64];

	for (size_t whole = len / chunk; whole;) {
		size_t n = BS_MIN(whole, BS_ARRAY_LEN(got));

		bs_crc32c_each(data, chunk, n, got);
		for (size_t i = 0; i < n; i++, sums += SUM_LEN) {
			if (got[i] != bs_wire_be32(sums))
				return false;
		}
		data += n * chunk;
		whole -= n;
	}
	return len % chunk == 0 || bs_crc32c(0, data, len % chunk) == bs_wire_be32(sums);
}

bool bs_xfer_sums_ok(enum bs_xfer_sum sum, uint32_t chunk, const uint8_t *sums, size_t sums_len,
		     const uint8_t *data, size_t len)
{
	if (sum == BS_XFER_SUM_NONE)
		return sums_len == 0;
	if (sums_len != bs_div_up(len, chunk) * SUM_LEN)
		return false;
	return sum == BS_XFER_SUM_CRC32 ? crc32_ok(chunk, sums, data, len)
					: crc32c_ok(chunk, sums, data, len);
}

const char *bs_xfer_status_text(uint64_t status)
{
	static const char *const texts[] = {
		[0] = "success",
		[1] = "an error",
		[2] = "a wrong checksum",
		[3] = "an invalid request",
		[4] = "it exists already",
		[5] = "a wrong or expired access token",
		[6] = "checksums are right",
		[7] = "not supported",
		[8] = "it restarts",
	};

	return status < BS_ARRAY_LEN(texts) ? texts[status] : "an unknown status";
}
