/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* An OCI layout in a directory as a repository, net/repo.h. */
#ifndef BS_NET_LAYOUT_H
#define BS_NET_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct bs_error;
struct bs_repo;

/*
 * An OCI layout (image-spec, image-layout.md), all of it beneath dirfd, which is
 * duplicated. create: make what is missing.
 */
int bs_layout_open(int dirfd, const char *shown_name, bool create, struct bs_repo **ret,
		   struct bs_error *err);

/*
 * The directory of a layout's path may be replaced by another while the layout is open. fn
 * opens what the path names now (a descriptor or -errno) and may block; it is asked when
 * something is not there (a range: at most once a second), on the thread that looks for it,
 * and not when something is put. free_cookie is called at the layout's end. Before the repository
 * is shared.
 */
void bs_layout_follow(struct bs_repo *r, int (*fn)(void *cookie), void *cookie,
		      void (*free_cookie)(void *cookie));

/*
 * A range of which nothing comes for so long is given up, -ETIMEDOUT (net/layout_reads.h); 0: 15 s.
 * Before the repository is shared.
 */
void bs_layout_set_stall(struct bs_repo *r, uint64_t ns);

#endif
