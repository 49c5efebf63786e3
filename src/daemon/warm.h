/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The warmer: reads into the page cache what a hot pack brought, through the image's
 * mount, so that the container that starts finds it there. While the pack arrives the
 * kernel reads nothing ahead (kern/bdi.h): without the warmer each block costs a fault
 * and a question to the FUSE server.
 *
 *   worker ──lists of runs (hot/warmlist.h)──▶ warmer ──fadvise──▶ mount ──▶ worker
 *
 * A process of its own: it waits for the worker, so the worker must not wait for it.
 * It is told what to read by the worker, which may be anybody's: see kern/sandbox.h.
 * Only what has landed may be in a list; all else it would fetch as if there were demand.
 *
 * It ends by itself: with the lists' socket, after a time, and when memory is short. A
 * read that the FUSE server does not answer holds it up: until the worker that comes next
 * is given the request again, until the alarm that it has set for the end of its time, or
 * until it is killed, which works while it waits for a page or for a place in FUSE's
 * queue. Nobody may wait for its end; whoever starts it looks at its pidfd.
 */
#ifndef BS_DAEMON_WARM_H
#define BS_DAEMON_WARM_H

#include <stdint.h>

#include "base/clock.h"

#define BS_WARM_NS_MAX (300 * BS_NS_PER_S)

/*
 * The whole life of the process, which is still root and single-threaded; returns what
 * may be its exit code. records: a SOCK_SEQPACKET socket, on which lists come; mnt: the
 * mount. Afterwards the process is in its sandbox and can do nothing but exit.
 */
int bs_warm_run(int records, int mnt);

/* The same for at most so long and so many bytes: 0, or -errno: it was not set up, or was lied to. */
int bs_warm_run_within(int records, int mnt, uint64_t for_ns, uint64_t bytes_max);

#endif
