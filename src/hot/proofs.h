/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The hashes of a pack that has come, to prove its blocks again in another one: with the frames
 * that they are of not being here, nobody could make their proofs from nothing.
 *
 * They stand in a sparse file, each segment's where the pack has them. Nothing of the file is
 * believed: what is made of it is checked against the table.
 */
#ifndef BS_HOT_PROOFS_H
#define BS_HOT_PROOFS_H

#include <stdint.h>

#include "base/mem.h"
#include "hot/pack.h"

struct bs_proofs;

/* Segment i, data as it came and was proven; fd: the file. 0 or -errno. */
int bs_proofs_keep(int fd, const struct bs_pack *p, const struct bs_table *table, uint32_t i,
		   const void *data);

/* Those of pack p; table and fd are borrowed. NULL: out of memory. */
struct bs_proofs *bs_proofs_new(const struct bs_pack *p, const struct bs_table *table, int fd);
struct bs_proofs *bs_proofs_free(struct bs_proofs *p);
DEFINE_BS_AUTO(proofs, struct bs_proofs, bs_proofs_free)

/* A block of the blob that is here, proven, into out: 0 or -errno. */
typedef int bs_proofs_block_fn(void *cookie, uint64_t block, void *out);

/*
 * The blocks of a frame that mask says, each at its place in blocks (the frame's size), and
 * their proof in ret (as bs_frame_proof_make). 0; -ENODATA: not all that it takes is there.
 */
int bs_proofs_make(struct bs_proofs *p, struct bs_framer *f, uint32_t frame, uint32_t mask,
		   bs_proofs_block_fn *block, void *cookie, void *blocks, struct bs_digest *ret);

#endif
