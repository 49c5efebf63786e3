/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Serving a FUSE connection whose descriptor is mounted already (kern/fusedev.h): a fixed
 * number of threads that read the device and call the operations.
 *
 * A server can take over from a dead one: the kernel says INIT once in the life of a
 * connection, so its words are said again to the library, and what the dead one had taken
 * is asked for again (bs_fusedev_resend).
 *
 * The one user of the library's session; who links this links libfuse.
 */
#ifndef BS_KERN_FUSESERVE_H
#define BS_KERN_FUSESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_fuseserve;
struct fuse_lowlevel_ops;
struct fuse_session;

struct bs_fuseserve_options {
	int fuse_fd;   /* taken over */
	bool takeover; /* the connection had a server before that answered FUSE_INIT */
	unsigned int n_threads;
	uint32_t max_readahead; /* said for the kernel in a takeover */
	const struct fuse_lowlevel_ops *ops;
	size_t ops_size;
	void *cookie; /* of ops: fuse_req_userdata */
	/* around a thread's service, or NULL; begin < 0: the thread does not serve */
	int (*begin)(void *cookie);
	void (*end)(void *cookie);
};

/*
 * Starts the threads and returns once the kernel and we have agreed (INIT). -ETIMEDOUT: the
 * kernel did not ask within 10 s. After a failure the process has to end.
 */
int bs_fuseserve_start(const struct bs_fuseserve_options *o, struct bs_fuseserve **ret,
		       struct bs_error *err);

/* Until the connection is gone (unmounted), which all threads see. */
void bs_fuseserve_join(struct bs_fuseserve *fs);

/* For what is said to the kernel unasked. */
struct fuse_session *bs_fuseserve_session(struct bs_fuseserve *fs);

#endif
