/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* /proc/self/mountinfo (proc(5)): one entry, its fields unescaped. */
#ifndef BS_KERN_MOUNTINFO_H
#define BS_KERN_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line longer than this is no answer to anything: -E2BIG. */
#define BS_MOUNTINFO_LINE_MAX (1u << 20)

struct bs_mountinfo {
	uint64_t id, parent;
	char *root, *point, *fstype, *source;
	char *options; /* of the mount: "rw,nosuid" */
	char *super;   /* of the filesystem; commas in values still as "\054" */
	bool shared;   /* has a peer group */
	char *line;    /* what the others point into; owned */
};

/* One line without its newline. -EBADMSG when it is none. */
int bs_mountinfo_parse(const char *line, size_t len, struct bs_mountinfo *ret);
void bs_mountinfo_done(struct bs_mountinfo *m);
#define bs_automountinfo __attribute__((cleanup(bs_mountinfo_done))) struct bs_mountinfo

/*
 * The id of the mount that fd (O_PATH will do) lies on; ret_is_root: fd is the root of
 * that mount. -EOPNOTSUPP before Linux 5.8.
 */
int bs_mountinfo_id(int fd, uint64_t *ret_id, bool *ret_is_root);

/* The entry with that id in our mount namespace. -ENOENT: not there. */
int bs_mountinfo_find(uint64_t id, struct bs_mountinfo *ret);

/* Turns "\054" and its like into bytes, in place. */
void bs_mountinfo_unescape(char *text);

/* The MOUNT_ATTR_* flags that options ("ro,nosuid,…") stand for; unknown words are left out. */
uint64_t bs_mountinfo_attrs(const char *options);

#endif
