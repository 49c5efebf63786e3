/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How much memory there is to be had: of the node, and within the limits of our control
 * groups (both hierarchies), page cache counted as free. All files are opened first, so
 * that it can be asked in a sandbox; nothing is allocated then.
 */
#ifndef BS_KERN_MEMORY_H
#define BS_KERN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define BS_MEMORY_GROUPS_MAX 8u /* innermost ones, with a limit */

struct bs_memory {
	int meminfo;
	int pressure; /* -EBADF: the kernel does not say */
	struct {
		int max, current, stat;
	} groups[BS_MEMORY_GROUPS_MAX];
	unsigned int n_groups;
	bool v1; /* of all groups */
};

struct bs_memory_state {
	uint64_t total, available;     /* bytes, of the node */
	uint64_t group_room;	       /* of the group with the least; UINT64_MAX: no limit */
	unsigned int pressure_percent; /* of the last 10 s, somebody waited for memory */
};

/* proc and cgroup: directories such as /proc, /sys/fs/cgroup (-EBADF: none); not kept. */
int bs_memory_open(int proc, int cgroup, struct bs_memory *ret);
void bs_memory_done(struct bs_memory *m);
#define bs_automemory __attribute__((cleanup(bs_memory_done))) struct bs_memory

/* -errno: meminfo cannot be read. A group that cannot be read has no limit. */
int bs_memory_look(const struct bs_memory *m, struct bs_memory_state *ret);

#endif
