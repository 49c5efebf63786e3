/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * bootseer-ckpt: the process that serves one checkpoint mount. It is shut in as the blob
 * worker is (kern/sandbox.h), but outlives the supervisor: it ends when its mount is gone, or
 * when it is told to and nobody has a file open.
 */
#ifndef BS_DAEMON_CKPTWORKER_H
#define BS_DAEMON_CKPTWORKER_H

struct bs_conf;

/* control: the socket to the supervisor; the FUSE device, mounted, is the next descriptor. */
int bs_ckptworker_main(const struct bs_conf *conf, int control);

#endif
