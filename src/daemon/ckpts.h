/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Mounts of checkpoint trees, as the supervisor sees to them; private to src/daemon. See ckpts.c. */
#ifndef BS_DAEMON_CKPTS_H
#define BS_DAEMON_CKPTS_H

#include "daemon/super.h"

#define CKPTS_KEPT "ckpt-" /* what the names begin with under which their descriptors are kept */
#define CKPTS_MAX 256u	   /* on a node */
#define CKPT_KEPT_MAX 5u   /* descriptors of each: see ckpt_keep */

struct bs_json;

#define ID_LEN 16 /* of a mount's name */

enum ckpt_state { STARTING, SERVING, ENDING };

struct ckpt {
	struct bs_list all;
	char id[ID_LEN + 1];
	char *source, *options;
	bool read_only;
	bool for_nobody; /* not held by containers */
	enum ckpt_state state;
	int mnt;		/* -EBADF: not kept open */
	int fuse_fd, memory_fd; /* what the next server goes on with; -EBADF: there is none */
	uint32_t generation;	/* of the server, from 1 */
	bool again;		/* one that takes over is starting, or to be started: */
	uint64_t again_ns;	/* then; 0: it is starting */
	unsigned int tries;	/* that failed in a row */
	unsigned int deaths;	/* in a row */
	uint64_t died_ns;
	struct bs_child process;
	struct watch link;
	uint64_t started_ns, deadline_ns; /* of STARTING and ENDING, and again */
	bool said_unmounted;
	struct bs_strv holders; /* containers */
	struct bs_list asks;	/* clients that wait, for the mount or a status */
};

struct ask {
	struct bs_list all;
	struct client *client;
	uint32_t client_id, link_id; /* link_id 0: for the mount */
	uint64_t deadline_ns;
	char *container;
};

/* --- of ckpts.c and ckptrecord.c -------------------------------------------------------------- */
struct ckpt *ckpt_new(struct super *s, const char *id);
struct ckpt *ckpt_find(struct super *s, const char *id);
/* Ends its server, if that has not ended, fails who waits, and forgets it. */
void ckpt_forget(struct super *s, struct ckpt *c);
/* The same, but a server that lives goes on until its mount is unmounted everywhere. */
void ckpt_let_go(struct super *s, struct ckpt *c);
/* Tells its server to end once nobody has a file open. */
void ckpt_end(struct super *s, struct ckpt *c);
/* Starts the next server, with what the last has left; tries again by itself. */
void ckpt_go_on(struct super *s, struct ckpt *c);
void ckpt_link_ready(struct super *s, struct watch *w, uint32_t events);
void ckpt_keep(struct super *s, struct ckpt *c,
	       void (*put)(struct super *s, const char *name, int fd));
/* Closes one of its descriptors, which is kept no longer. */
void ckpt_drop(struct super *s, struct ckpt *c, int *fd);
/* None is kept; those that are open stay. */
void ckpt_drop_names(struct super *s, const struct ckpt *c);
/* Its members. */
int ckpt_describe(struct bs_json *v, const struct ckpt *c);
int ckpt_write_record(struct super *s, const struct ckpt *c);
void ckpt_remove_record(struct super *s, const struct ckpt *c);

/* --- for the others -------------------------------------------------------------------------- */
void ckpts_request(struct super *s, struct client *c, struct bs_msg *m);
/* Asks a mount's server for what it counts. */
void ckpts_status(struct super *s, struct client *c, struct bs_msg *m);
int ckpts_put(struct super *s, struct bs_json *array);
/* The container has no use for any of them any more. */
void ckpts_released(struct super *s, const char *container);
void ckpts_client_gone(struct super *s, const struct client *c);
/* Takes over one of the descriptors that a keeper held; then, once, all that came. */
void ckpts_adopt(struct super *s, const char *name, int fd);
/* none_lives: whoever kept them had all processes ended. */
void ckpts_settle(struct super *s, bool none_lives);
bool ckpts_is_of_process(const char *kept_name);
void ckpts_keep_all(struct super *s, void (*put)(struct super *s, const char *name, int fd));
/* Those of containers that are gone. */
void ckpts_sweep(struct super *s);
void ckpts_expire(struct super *s, uint64_t now_ns);
bool ckpts_waiting(const struct super *s); /* whether a deadline may come due */

#endif
