/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the operations (nnlook.c, nnchange.c) have of the exchange (namenode.c). */
#ifndef BS_HDFS_NNPRIV_H
#define BS_HDFS_NNPRIV_H

#include "base/buf.h"
#include "base/mem.h"
#include "hdfs/namenode.h"

struct bs_nn_call {
	const char *method; /* a literal */
	const char *op;	    /* a literal */
	const char *path;
	struct bs_buf query; /* "&NAME=VALUE…", escaped */
	bool redirects;	     /* noredirect=true is asked for; a Location comes all the same */
	struct bs_buf body;  /* of the answer */
	char *location;	     /* of an older NameNode's redirect, or NULL */
	bool lost;	     /* an attempt may have been done, though its answer was lost */
	struct bs_hdfs_exception failure; /* of the last answer */
	unsigned int login;		  /* who we said that we are; counts the changes */
};

/* Checks path. 0, or its error; bs_nn_call_done is right in both cases. */
int bs_nn_call_init(struct bs_nn_call *c, const char *method, const char *op, const char *path,
		    struct bs_error *err);
void bs_nn_call_done(struct bs_nn_call *c);
#define bs_autocall __attribute__((cleanup(bs_nn_call_done))) struct bs_nn_call

void bs_nn_add(struct bs_nn_call *c, const char *name, const char *value);
void bs_nn_add_u64(struct bs_nn_call *c, const char *name, uint64_t value);

/* The whole exchange: 0 and body, or what it failed with. */
int bs_nn_exchange(struct bs_nn *nn, struct bs_nn_call *c, struct bs_error *err);

/* Of an operation that is done at a DataNode: the same, and a location. */
int bs_nn_where(struct bs_nn *nn, struct bs_nn_call *c, struct bs_error *err);

#endif
