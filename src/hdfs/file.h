/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Reading files of one HDFS.
 *
 * A file that is open stays the one that it was: when another takes its name, blocks that are
 * not known yet cannot be had any more, and reads of them give -ESTALE, never the other's bytes.
 *
 * Threads: any; calls block, and several may read one file at once.
 */
#ifndef BS_HDFS_FILE_H
#define BS_HDFS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"

struct bs_error;
struct bs_file;
struct bs_hdfs_status;
struct bs_nn;
struct bs_reader;

struct bs_file_options {
	struct bs_nn *nn;	  /* outlives it */
	struct bs_reader *reader; /* outlives it */
	uint64_t deadline_ns;	  /* of one read with all its attempts; 0: 60 s */
};

/* -EISDIR, and what bs_nn_status gives. */
int bs_file_open(const struct bs_file_options *o, const char *path, struct bs_file **ret,
		 struct bs_error *err);
struct bs_file *bs_file_free(struct bs_file *f);
DEFINE_BS_AUTO(file, struct bs_file, bs_file_free)

const struct bs_hdfs_status *bs_file_status(const struct bs_file *f);

/*
 * Reads what there is of len bytes at off: less only at the end of the file. -EIO no replica has
 * right bytes; -ESTALE; -ETIMEDOUT; else as in hdfs/read.h. buf may be written to in any case.
 */
ssize_t bs_file_pread(struct bs_file *f, void *buf, size_t len, uint64_t off, struct bs_error *err);

#endif
