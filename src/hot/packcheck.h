/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Proves a whole pack as its bytes come, from a repository or from a file: the head, and
 * every segment against the image's table. One thread at a time.
 */
#ifndef BS_HOT_PACKCHECK_H
#define BS_HOT_PACKCHECK_H

#include <stddef.h>

#include "base/mem.h"

struct bs_digest;
struct bs_error;
struct bs_hot;
struct bs_pack;
struct bs_packcheck;
struct bs_table;

/* All are the caller's until it is freed; of hot the sizes count. */
int bs_packcheck_new(const struct bs_table *table, const struct bs_digest *table_digest,
		     const struct bs_hot *hot, struct bs_packcheck **ret, struct bs_error *err);
struct bs_packcheck *bs_packcheck_free(struct bs_packcheck *c);
DEFINE_BS_AUTO(packcheck, struct bs_packcheck, bs_packcheck_free)

/* The next bytes; cookie is the bs_packcheck (a bs_repo_sink). What failed says bs_packcheck_end. */
int bs_packcheck_feed(void *cookie, const void *data, size_t len);

/*
 * That was all of it: 0 and the pack's head (the check's own); or what was the first thing
 * wrong, as bs_pack_read and bs_pack_decode say it. stopped: why nothing more comes, which
 * counts only when nothing was wrong before.
 */
int bs_packcheck_end(struct bs_packcheck *c, int stopped, const struct bs_pack **ret,
		     struct bs_error *err);

#endif
