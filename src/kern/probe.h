/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What this kernel and this process can do, found out by trying, never by version.
 * For `bootseerctl doctor` and for whoever must choose a fallback.
 */
#ifndef BS_KERN_PROBE_H
#define BS_KERN_PROBE_H

struct bs_error;

/* Each: 0 it works, else -errno with what did not. Leaves nothing behind. */
int bs_probe_erofs(struct bs_error *err);	/* the filesystem is there */
int bs_probe_fuse(struct bs_error *err);	/* /dev/fuse can be opened and mounted */
int bs_probe_fuse_resend(struct bs_error *err); /* a killed worker loses no request */
int bs_probe_overlay(struct bs_error *err);	/* an overlay over a detached mount */
int bs_probe_openat2(struct bs_error *err);	/* resolving beneath a directory */
int bs_probe_pidfd(struct bs_error *err);

/*
 * Mounts metadata and content as an image is mounted (bs_erofs_mount) and lets go.
 * Both paths as there.
 */
int bs_probe_erofs_files(const char *meta, const char *content, struct bs_error *err);

#endif
