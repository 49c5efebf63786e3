/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What a DataNode sends: a reply, then packets. */
#include "config.h"

#include <stdlib.h>

#include "base/buf.h"
#include "hdfs/blocks.h"
#include "hdfs/xfer.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void packets(const unsigned char *data, size_t size, const struct bs_xfer_reply *reply)
{
	struct bs_xfer_packet p;
	ssize_t n;

	while ((n = bs_xfer_packet(data, size, &p)) > 0) {
		if (p.data_len > BS_XFER_PACKET_MAX || (size_t)n > size)
			abort();
		if (size - (size_t)n < p.sums_len + p.data_len)
			return;
		if (reply->has_sums)
			(void)bs_xfer_sums_ok(reply->sum, reply->chunk, data + n, p.sums_len,
					      data + n + p.sums_len, p.data_len);
		data += (size_t)n + p.sums_len + p.data_len;
		size -= (size_t)n + p.sums_len + p.data_len;
	}
}

static void integers(const unsigned char *data, size_t size)
{
	bs_autobuf b = BS_BUF_INIT(64);
	struct bs_wire w = bs_wire(data, size);
	int64_t n, again;

	if (bs_wire_vint(&w, &n) < 0)
		return;
	bs_wire_put_vint(&b, n);
	w = bs_wire(bs_buf_str(&b), b.len);
	if (bs_wire_vint(&w, &again) < 0 || again != n || w.p != w.end)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct bs_xfer_reply reply = { 0 };
	ssize_t n = bs_xfer_reply(data, size, &reply);

	if (n > 0 && (size_t)n > size)
		abort();
	if (n > 0)
		packets(data + n, size - (size_t)n, &reply);
	integers(data, size);
	return 0;
}
