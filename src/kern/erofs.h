/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Mounts an EROFS image whose metadata is a file and whose content is a second device,
 * also a file (Linux 6.12: file-backed mounts), else both through loop devices.
 */
#ifndef BS_KERN_EROFS_H
#define BS_KERN_EROFS_H

#include <stdbool.h>

struct bs_error;

/*
 * Both paths are resolved in the caller's view (/proc/self/fd/N is fine). direct: content
 * is read past its own page cache (directio), so that it is not cached twice. Opening
 * content that has a server asks it, so this can block as long as the server does: call it
 * from a process that may be killed. Returns the descriptor of a mount that is attached nowhere.
 * The caller has checked size and identity of both files: the kernel does not.
 */
int bs_erofs_mount(const char *meta, const char *content, bool direct, struct bs_error *err);

#endif
