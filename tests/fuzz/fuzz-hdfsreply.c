/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What a NameNode answers over WebHDFS. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "hdfs/reply.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_blocks(const struct bs_blocks *b)
{
	uint64_t end = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct bs_block *k = &b->v[i];

		if (k->off < end || k->n_replicas > BS_REPLICAS_MAX || !k->pool)
			abort();
		end = k->off + k->len;
		if (k->len && bs_blocks_find(b, k->off) != k)
			abort();
		for (unsigned int j = 0; j < k->n_replicas; j++) {
			if (!k->replicas[j].address || strpbrk(k->replicas[j].host, "/?#@"))
				abort();
		}
	}
	(void)bs_blocks_find(b, UINT64_MAX);
}

static void check_small(const char *text, size_t size)
{
	bs_autofree char *location = NULL, *token = NULL, *value = NULL, *names = NULL;
	struct bs_hdfs_summary summary;
	struct bs_hdfs_defaults defaults;
	struct bs_hdfs_space space;
	size_t len;
	int64_t n;
	bool b;

	(void)bs_reply_summary(text, size, &summary, NULL);
	(void)bs_reply_defaults(text, size, &defaults, NULL);
	(void)bs_reply_space(text, size, &space, NULL);
	(void)bs_reply_bool(text, size, &b, NULL);
	(void)bs_reply_long(text, size, &n, NULL);
	(void)bs_reply_location(text, size, &location, NULL);
	(void)bs_reply_token(text, size, &token, NULL);
	(void)bs_reply_xattr(text, size, &value, NULL);
	if (bs_reply_xattr_names(text, size, &names, &len, NULL) == 0 && len && names[len - 1])
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *text = (const char *)data;
	bs_auto(blocks) struct bs_blocks *blocks = NULL;
	struct bs_hdfs_exception e;
	struct bs_hdfs_status s = { 0 };
	struct bs_hdfs_list l = { 0 };

	if (bs_reply_status(text, size, &s, NULL) == 0 && (!s.name || strchr(s.name, '/')))
		abort();
	bs_hdfs_status_done(&s);
	(void)bs_reply_list(text, size, &l, NULL);
	bs_hdfs_list_done(&l);
	if (bs_reply_blocks(text, size, &blocks, NULL) == 0)
		check_blocks(blocks);
	check_small(text, size);
	bs_reply_exception(403, text, size, &e);
	if (e.code >= 0 || strlen(e.name) >= sizeof(e.name))
		abort();
	return 0;
}
