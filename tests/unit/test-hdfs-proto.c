/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/mem.h"
#include "hdfs/blocks.h"
#include "hdfs/token.h"
#include "hdfs/xfer.h"

static void crc32c_is_the_known_one(void **state)
{
	uint8_t bytes[5000];
	uint32_t each[9];

	/* RFC 3720 B.4, and the check value of the catalogue */
	memset(bytes, 0, 32);
	assert_int_equal(bs_crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, 32);
	assert_int_equal(bs_crc32c(0, bytes, 32), 0x62a8ab43);
	assert_int_equal(bs_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(bs_crc32c_table(0, "123456789", 9), 0xe3069283);
	assert_int_equal(bs_crc32c(bs_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	assert_int_equal(bs_crc32c(0, "", 0), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t len = 0; len < 100; len++)
		assert_int_equal(bs_crc32c(0, bytes + len, len),
				 bs_crc32c_table(0, bytes + len, len));
	for (size_t n = 0; n <= BS_ARRAY_LEN(each); n++) {
		bs_crc32c_each(bytes, 513, n, each);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(each[i], bs_crc32c_table(0, bytes + i * 513, 513));
	}
}

static void varints_are_bounded(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int result;
		uint64_t value;
	} cases[] = {
		{ "\0", 1, 0, 0 },
		{ "\x7f", 1, 0, 127 },
		{ "\x80\x01", 2, 0, 128 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 0, UINT64_MAX },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, -EBADMSG, 0 },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, -EBADMSG, 0 },
		{ "\x80", 1, -EAGAIN, 0 },
		{ "", 0, -EAGAIN, 0 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_wire w = bs_wire(cases[i].bytes, cases[i].len);
		uint64_t v = 0;

		assert_int_equal(bs_wire_varint(&w, &v), cases[i].result);
		assert_true(v == cases[i].value);
		assert_int_equal(w.end - w.p, cases[i].result ? cases[i].len : 0);
	}
}

static void fields_end_where_the_message_does(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x08", 1 },			    /* no value */
		{ "\x0a\x02x", 3 },		    /* bytes are cut */
		{ "\x0a\xff\xff\xff\xff\x0fx", 7 }, /* a length of 4 GiB */
		{ "\x09\1\2\3", 4 },		    /* fixed64 is cut */
		{ "\x0d\1\2\3", 4 },		    /* fixed32 is cut */
		{ "\x0b\x0c", 2 },		    /* a group */
		{ "\x00\x01", 2 },		    /* field 0 */
	};
	struct bs_wire_field f;
	struct bs_wire w = bs_wire("\x08\x05\x12\x03"
				   "abc\x1d\x01\0\0\0",
				   12);

	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_true(f.number == 1 && f.value == 5);
	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_true(f.number == 2 && f.bytes.len == 3 && memcmp(f.bytes.p, "abc", 3) == 0);
	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_true(f.number == 3 && f.value == 1);
	assert_int_equal(bs_wire_next(&w, &f), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		w = bs_wire(bad[i].bytes, bad[i].len);
		assert_int_equal(bs_wire_next(&w, &f), -EBADMSG);
	}
}

static void vints_go_both_ways(void **state)
{
	static const int64_t values[] = { 0,	1,    127,  128,  255,	   256,	      -1,
					  -112, -113, -256, -257, 1 << 20, INT64_MAX, INT64_MIN };

	for (size_t i = 0; i < BS_ARRAY_LEN(values); i++) {
		bs_autobuf b = BS_BUF_INIT(64);
		struct bs_wire w;
		int64_t got;

		bs_wire_put_vint(&b, values[i]);
		w = bs_wire(bs_buf_str(&b), b.len);
		assert_int_equal(bs_wire_vint(&w, &got), 0);
		assert_true(got == values[i] && w.p == w.end);
		w = bs_wire(bs_buf_str(&b), b.len - 1);
		assert_int_equal(bs_wire_vint(&w, &got), -EBADMSG);
	}
}

static void tokens_go_both_ways(void **state)
{
	const struct bs_span id = { (const uint8_t *)"\0\1\2", 3 },
			     pw = { (const uint8_t *)"\xff\xfe", 2 },
			     kind = { (const uint8_t *)"K", 1 }, service = { NULL, 0 };
	bs_autofree char *text = bs_token_encode(id, pw, kind, service);
	struct bs_token t;

	assert_non_null(text);
	assert_int_equal(bs_token_decode(text, &t), 0);
	assert_int_equal(t.identifier.len, 3);
	assert_memory_equal(t.identifier.p, id.p, 3);
	assert_memory_equal(t.password.p, pw.p, 2);
	assert_int_equal(t.service.len, 0);
	assert_false(bs_token_is_empty(&t));
	bs_token_done(&t);
	assert_int_equal(bs_token_decode("AAAAAA", &t), 0); /* of an insecure cluster */
	assert_true(bs_token_is_empty(&t));
	bs_token_done(&t);
	assert_int_equal(bs_token_decode("AAAA_A==", &t), -EINVAL);
	assert_int_equal(bs_token_decode("AAA", &t), -EINVAL);
	assert_int_equal(bs_token_decode("A", &t), -EINVAL);
	assert_int_equal(bs_token_decode("AA!A", &t), -EINVAL);
	assert_int_equal(bs_token_decode("", &t), -EINVAL);
}

static const char file0[] = "HDTS\0\2"
			    "\1x\1i\1p\x05other\1s"
			    "\2al\2id\2pw\x15HDFS_DELEGATION_TOKEN\xahdfs:8020/\0";

static void token_files_are_searched(void **state)
{
	static const char *const services[] = { "ha-hdfs:x", "hdfs:8020/" }, *const none[] = {
		"s"
	};
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *text = NULL;
	struct bs_token t;

	assert_int_equal(bs_token_from_file("f", file0, sizeof(file0) - 1, services, 2, &text,
					    &err),
			 0);
	assert_int_equal(bs_token_decode(text, &t), 0);
	assert_memory_equal(t.identifier.p, "id", 2);
	bs_token_done(&t);
	/* another kind of token is not ours, whatever it is made out to */
	assert_int_equal(bs_token_from_file("f", file0, sizeof(file0) - 1, none, 1, &text, &err),
			 -ENOENT);
	for (size_t len = 0; len < sizeof(file0) - 2; len++) {
		bs_autofree char *some = NULL;

		assert_int_not_equal(bs_token_from_file("f", file0, len, none, 1, &some, &err), 0);
	}
	assert_int_equal(bs_token_from_file("f", "HDTS\2\0", 6, none, 1, &text, &err), -EINVAL);
	assert_int_equal(bs_token_from_file("f", "HDTS\0\x8f\x7f", 7, none, 1, &text, &err),
			 -EINVAL);
	assert_int_equal(bs_token_from_file("f", "HDTS\1\1\0", 7, none, 1, &text, &err), -EINVAL);
}

static void requests_are_framed(void **state)
{
	char pool[] = "BP-1";
	struct bs_block block = { .pool = pool, .id = 1, .generation = 2, .len = 3 };
	bs_autobuf b = BS_BUF_INIT(4096);
	struct bs_wire w;
	struct bs_wire_field f;
	uint64_t len;

	bs_xfer_put_read(&b, &block, "me", 5, 6);
	assert_int_equal(b.error, 0);
	assert_memory_equal(b.data, "\0\x1c\x51", 3);
	w = bs_wire(b.data + 3, b.len - 3);
	assert_int_equal(bs_wire_varint(&w, &len), 0);
	assert_int_equal(len, w.end - w.p);
	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_true(f.number == 2 && f.value == 5);
	assert_int_equal(bs_wire_next(&w, &f), 1);
	assert_true(f.number == 3 && f.value == 6);
}

static size_t put_packet(char *to, uint32_t size, int64_t off, uint32_t data_len)
{
	bs_autobuf b = BS_BUF_INIT(128);
	char head[] = "\x09"
		      "OOOOOOOO"
		      "\x11"
		      "SSSSSSSS"
		      "\x18\1\x25"
		      "LLLL";
	size_t len = sizeof(head) - 1;
	const uint8_t plen[] = { (uint8_t)(size >> 24),
				 (uint8_t)(size >> 16),
				 (uint8_t)(size >> 8),
				 (uint8_t)size,
				 0,
				 (uint8_t)len };

	memcpy(head + 1, &off, 8);
	memset(head + 10, 0, 8);
	memcpy(head + 21, &data_len, 4);
	(void)bs_buf_add(&b, plen, sizeof(plen));
	(void)bs_buf_add(&b, head, len);
	memcpy(to, b.data, b.len);
	return b.len;
}

static void packets_are_bounded(void **state)
{
	struct bs_xfer_packet p;
	char bytes[64];
	size_t len = put_packet(bytes, 4 + 8 + 1024, 512, 1024);

	for (size_t i = 0; i < len; i++)
		assert_int_equal(bs_xfer_packet(bytes, i, &p), 0);
	assert_int_equal(bs_xfer_packet(bytes, len, &p), len);
	assert_true(p.off == 512 && p.data_len == 1024 && p.sums_len == 8 && p.last);
	len = put_packet(bytes, 4 + 1024, 0, 1025); /* data beyond the packet */
	assert_int_equal(bs_xfer_packet(bytes, len, &p), -EBADMSG);
	len = put_packet(bytes, 3, 0, 0);
	assert_int_equal(bs_xfer_packet(bytes, len, &p), -EBADMSG);
	len = put_packet(bytes, BS_XFER_PACKET_MAX + 5, 0, 0);
	assert_int_equal(bs_xfer_packet(bytes, len, &p), -EBADMSG);
	len = put_packet(bytes, 4 + 1024, 0, UINT32_MAX);
	assert_int_equal(bs_xfer_packet(bytes, len, &p), -EBADMSG);
	len = put_packet(bytes, 4 + 1024, -1, 1);
	assert_int_equal(bs_xfer_packet(bytes, len, &p), -EBADMSG);
}

static void replies_are_bounded(void **state)
{
	static const char ok[] = "\x0e\x08\0\x22\x0a\x0a\x05\x08\2\x10\x80\4\x10\x80\x08",
			  no[] = "\x07\x08\5\x2a\3bad",
			  cut[] = "\x0d\x08\0\x22\x0a\x0a\x05\x08\2\x10\x80\4\x10\x00",
			  no_chunk[] = "\x0c\x08\0\x22\x08\x0a\x04\x08\2\x10\0\x10\0";
	struct bs_xfer_reply r;

	for (size_t i = 0; i < sizeof(ok) - 1; i++)
		assert_int_equal(bs_xfer_reply(ok, i, &r), 0);
	assert_int_equal(bs_xfer_reply(ok, sizeof(ok) - 1, &r), sizeof(ok) - 1);
	assert_true(r.has_sums && r.sum == BS_XFER_SUM_CRC32C && r.chunk == 512 && r.first == 1024);
	assert_int_equal(bs_xfer_reply(no, sizeof(no) - 1, &r), sizeof(no) - 1);
	assert_true(r.status == BS_XFER_ERROR_ACCESS_TOKEN && r.message.len == 3 && !r.has_sums);
	assert_int_equal(bs_xfer_reply("\x00", 1, &r), -EBADMSG); /* no status */
	assert_int_equal(bs_xfer_reply("\xff\xff\xff\x7f", 4, &r), -EBADMSG);
	assert_int_equal(bs_xfer_reply(cut, sizeof(cut) - 1, &r), -EBADMSG);
	/* it would be divided by */
	assert_int_equal(bs_xfer_reply(no_chunk, sizeof(no_chunk) - 1, &r), -EBADMSG);
}

static void put_be(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void wrong_sums_are_seen(void **state)
{
	enum { CHUNK = 512, LEN = 70 * CHUNK + 100, N = 71 };
	static uint8_t data[LEN], sums[N * 4];
	const enum bs_xfer_sum kinds[] = { BS_XFER_SUM_CRC32, BS_XFER_SUM_CRC32C };

	for (size_t i = 0; i < LEN; i++)
		data[i] = (uint8_t)(i * 31 + i / 300);
	for (size_t k = 0; k < BS_ARRAY_LEN(kinds); k++) {
		for (size_t i = 0; i < N; i++) {
			size_t n = BS_MIN((size_t)CHUNK, (size_t)LEN - i * CHUNK);
			const uint8_t *at = data + i * CHUNK;

			put_be(sums + 4 * i, kinds[k] == BS_XFER_SUM_CRC32
						     ? (uint32_t)crc32(0, at, (uInt)n)
						     : bs_crc32c(0, at, n));
		}
		assert_true(bs_xfer_sums_ok(kinds[k], CHUNK, sums, sizeof(sums), data, LEN));
		assert_false(bs_xfer_sums_ok(kinds[k], CHUNK, sums, sizeof(sums) - 4, data, LEN));
		for (size_t at = 0; at < LEN; at += 997) {
			data[at] ^= 1;
			assert_false(
				bs_xfer_sums_ok(kinds[k], CHUNK, sums, sizeof(sums), data, LEN));
			data[at] ^= 1;
		}
		data[LEN - 1] ^= 0x80;
		assert_false(bs_xfer_sums_ok(kinds[k], CHUNK, sums, sizeof(sums), data, LEN));
		data[LEN - 1] ^= 0x80;
	}
	assert_true(bs_xfer_sums_ok(BS_XFER_SUM_NONE, CHUNK, NULL, 0, data, LEN));
	assert_false(bs_xfer_sums_ok(BS_XFER_SUM_NONE, CHUNK, sums, 4, data, LEN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(crc32c_is_the_known_one),
		UNIT_TEST(varints_are_bounded),
		UNIT_TEST(fields_end_where_the_message_does),
		UNIT_TEST(vints_go_both_ways),
		UNIT_TEST(tokens_go_both_ways),
		UNIT_TEST(token_files_are_searched),
		UNIT_TEST(requests_are_framed),
		UNIT_TEST(packets_are_bounded),
		UNIT_TEST(replies_are_bounded),
		UNIT_TEST(wrong_sums_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
