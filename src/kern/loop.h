/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Loop devices, for kernels whose EROFS wants block devices. loop(4). */
#ifndef BS_KERN_LOOP_H
#define BS_KERN_LOOP_H

#include <stdbool.h>

struct bs_error;

/*
 * A free loop device over the file, read-only, that goes by itself when its last user
 * does. direct: do not cache the file's pages (they are cached above). Returns the
 * device's descriptor; keep it until the device is mounted.
 */
int bs_loop_device_attach(const char *file, bool direct, struct bs_error *err);

#endif
