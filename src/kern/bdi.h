/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Readahead of file-backed EROFS mounts: read_ahead_kb of their "bdi" in sysfs, erofs-N.
 * Nothing that a mount shows says which N is its own, so one lists before the mount and
 * looks for the one that is new after it. Mounts on loop devices have none.
 *
 * The kernel copies the number when a file is opened: files that are open, and mappings
 * of them, keep what was set then. So it is set before anybody has the mount.
 *
 * With one page a fault asks for its page and a read for its range, which is what a
 * recording wants to see; with 0 a read asks for one page after the other.
 */
#ifndef BS_KERN_BDI_H
#define BS_KERN_BDI_H

#include <stddef.h>
#include <stdint.h>

#define BS_BDI_NAME_LEN 32	  /* with the NUL */
#define BS_BDI_MAX 65536u	  /* mounts of a node */
#define BS_BDI_READAHEAD_KIB 128u /* the kernel's own */
#define BS_BDI_EXACT_KIB 4u
#define BS_BDI_WHOLE_KIB 512u /* of content that is a local file, see tests/bench/README */

struct bs_bdi_list {
	uint64_t *numbers; /* ascending */
	size_t n, cap;
};

/* The directory /sys/class/bdi, which the others take. -errno. */
int bs_bdi_open(void);

/* -errno with *ret unchanged. */
int bs_bdi_list(int classfd, struct bs_bdi_list *ret);
void bs_bdi_list_done(struct bs_bdi_list *l);
#define bs_autobdilist __attribute__((cleanup(bs_bdi_list_done))) struct bs_bdi_list

/*
 * The one that is there and was not before. -ENOENT: none is; -EAGAIN: several are (others
 * mount, too), and whose is whose cannot be told.
 */
int bs_bdi_find_new(int classfd, const struct bs_bdi_list *before, char ret[BS_BDI_NAME_LEN]);

/* name: as bs_bdi_find_new gives it, -EINVAL for any other. -ENOENT: it is unmounted. */
int bs_bdi_set_readahead(int classfd, const char *name, uint32_t kib);
int bs_bdi_get_readahead(int classfd, const char *name, uint32_t *ret_kib);

#endif
