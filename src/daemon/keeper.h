/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The keeper: a sleeping process that holds copies of the supervisor's descriptors
 * under names. When the supervisor's end of the link closes without QUIT, it starts
 * another supervisor and hands everything over.
 */
#ifndef BS_DAEMON_KEEPER_H
#define BS_DAEMON_KEEPER_H

#include "daemon/ckpts.h"

/* Descriptors: images of a node, and a few, beside those of checkpoint mounts. */
#define BS_KEEPER_MAX (1024u + CKPTS_MAX * CKPT_KEPT_MAX)

/* The whole life of the process; config may be NULL. Returns its exit code. */
int bs_keeper_main(const char *config, int link);

#endif
