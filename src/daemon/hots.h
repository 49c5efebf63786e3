/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Starts of workloads, as the supervisor sees to them; private to src/daemon. See hots.c. */
#ifndef BS_DAEMON_HOTS_H
#define BS_DAEMON_HOTS_H

#include "daemon/super.h"

/*
 * The mount of a start that is being recorded, held until that is over: then the kernel may
 * read ahead on it. While it is held no other mount can have its bdi's name.
 */
struct recorded_mount {
	struct bs_list all;
	int mnt;
	char bdi[BS_BDI_NAME_LEN];
	uint64_t until_ns;
	/* NULL for one that a supervisor before us held */
	char *container, *workload;
	char digest[BS_DIGEST_TEXT_LEN];
};

#define HOTS_KEPT "hot:" /* what the names of kept starts begin with */

/* Asks the worker about a start that m (ACQUIRE) tells of; a waits for the answer, too. */
void hots_ask(struct super *s, struct held_image *i, struct waiter *a, const struct bs_msg *m,
	      uint64_t wait_ns);
void hots_forget(struct waiter *a);    /* it is gone */
void hots_new_worker(struct super *s); /* what streamed goes on with it */
void hots_expire(struct super *s, uint64_t now_ns);
/* The worker says so. */
void hots_streaming(struct super *s, const char *digest, const char *workload, bool on);
void hots_mounted(struct super *s, struct held_image *i); /* a lazy mount that is new */
void hots_unused(struct held_image *i);			  /* no container has the image */
/* Takes over the mount of a recorded start, see struct recorded_mount. */
void hots_hold_recorded(struct super *s, const char *bdi, int mnt);
/* The container is gone: what it was recorded for, is all that there will be. */
void hots_released(struct super *s, const char *container);
/* The same for one that is ready, by its id: whether it was recorded. */
bool hots_ready(struct super *s, const char *id);
/* Takes over a start whose pack came to a worker of another supervisor. */
void hots_adopt(struct super *s, const char *name, int fd);
/* Gives all such starts to a new keeper. */
void hots_keep_all(struct super *s, void (*put)(struct super *s, const char *name, int fd));
/* The name under which it is kept. */
const char *hots_recorded_name(const struct recorded_mount *r, char buf[KEPT_NAME_LEN]);
/* The image's readahead as it should be now. */
void hots_readahead(struct super *s, struct held_image *i);

#endif
