/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The DataNodes' data transfer protocol, version 28: messages in and out. Pure.
 *
 * A read: the request, a reply, then packets, the last one without data, then our status.
 * A packet: its length (4 bytes, big endian; data, sums and these four), the length of its
 * header (2), the header, the sums, the data. Data begin at a multiple of the chunk before
 * the offset that was asked for, and end at one behind, or at the block's end.
 */
#ifndef BS_HDFS_XFER_H
#define BS_HDFS_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hdfs/wire.h"

struct bs_block;
struct bs_buf;

#define BS_XFER_REPLY_MAX (64u << 10)
#define BS_XFER_PACKET_MAX (16u << 20)
#define BS_XFER_CHUNK_MAX (1u << 20)

enum bs_xfer_status {
	BS_XFER_SUCCESS = 0,
	BS_XFER_ERROR = 1,
	BS_XFER_ERROR_CHECKSUM = 2,
	BS_XFER_ERROR_ACCESS_TOKEN = 5,
	BS_XFER_CHECKSUM_OK = 6,
};

enum bs_xfer_sum { BS_XFER_SUM_NONE = 0, BS_XFER_SUM_CRC32 = 1, BS_XFER_SUM_CRC32C = 2 };

/* OP_READ_BLOCK of len bytes at off of block. */
void bs_xfer_put_read(struct bs_buf *b, const struct bs_block *block, const char *client,
		      uint64_t off, uint64_t len);
/* ClientReadStatusProto. */
void bs_xfer_put_status(struct bs_buf *b, enum bs_xfer_status status);

struct bs_xfer_reply {
	uint64_t status;
	struct bs_span message;
	bool has_sums; /* the rest is there */
	enum bs_xfer_sum sum;
	uint32_t chunk; /* bytes per sum */
	uint64_t first; /* where in the block the data begin */
};

/* At the beginning of bytes: its length, 0 when more bytes are needed, -EBADMSG. */
ssize_t bs_xfer_reply(const void *bytes, size_t len, struct bs_xfer_reply *ret);

struct bs_xfer_packet {
	size_t sums_len, data_len; /* of what follows the header */
	int64_t off, seqno;
	bool last;
};

/* The same for what is before the sums of a packet. */
ssize_t bs_xfer_packet(const void *bytes, size_t len, struct bs_xfer_packet *ret);

/*
 * Whether data have the sums that stand before them. The data begin at a chunk's begin. The
 * kind and chunk are a reply's.
 */
bool bs_xfer_sums_ok(enum bs_xfer_sum sum, uint32_t chunk, const uint8_t *sums, size_t sums_len,
		     const uint8_t *data, size_t len);

/* "a wrong access token"; for people. */
const char *bs_xfer_status_text(uint64_t status);

#endif
