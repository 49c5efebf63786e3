/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The blob worker: an unprivileged, sandboxed process that reads all that is foreign
 * and serves all blobs of the node. One at a time; killed and replaced at any time.
 *
 * Threads, all started before READY: this one (control socket), N FUSE servers, the
 * network loop, the unpackers, and a few that prepare images, since that waits for the
 * network. Locks are those of the modules; none is held over a call to another.
 */
#ifndef BS_DAEMON_WORKER_H
#define BS_DAEMON_WORKER_H

struct bs_conf;

/* The whole life of the process, which is still root; returns its exit code. */
int bs_worker_main(const struct bs_conf *conf, int control);

#endif
