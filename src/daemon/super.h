/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The supervisor: one thread, root with few capabilities, small. It holds what must
 * outlive everything else (the listening socket, /dev/fuse, the mounts), starts and
 * restarts the worker, answers shim and tools, and never reads a foreign byte: what it
 * reads is messages of root's programs and bounded messages of the worker.
 *
 *        clients ──▶ supervisor ◀──link──▶ keeper (holds copies of the descriptors,
 *                     │  │  │               starts a new supervisor when this one dies;
 *              worker ◀  │  ▶ children      this one starts a new keeper when that dies)
 *                        ▼
 *              kept: listen, fuse, fuse mount, mount of each image
 *
 * It never waits: sockets are non-blocking, whatever may block (opening a file that the
 * worker serves, a credential helper) is done by a child with a deadline.
 *
 * super.h is private to src/daemon.
 */
#ifndef BS_DAEMON_SUPER_H
#define BS_DAEMON_SUPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"
#include "base/limit.h"
#include "base/list.h"
#include "base/spawn.h"
#include "ctl/conf.h"
#include "ctl/msg.h"
#include "daemon/pending.h"
#include "kern/bdi.h"

struct super;

/* Something in the epoll set; embedded in what it stands for. */
struct watch {
	int fd;
	void (*ready)(struct super *s, struct watch *w, uint32_t events);
};

struct client {
	struct bs_list all;
	struct watch watch;
	bool gone; /* freed at the end of the round */
};

#define IMAGE_KNOWN_MAX 64u
#define KEPT_NAME_LEN (BS_DIGEST_TEXT_LEN + BS_BDI_NAME_LEN + 16)

enum image_state { IMAGE_IDLE, IMAGE_PREPARING, IMAGE_MOUNTING, IMAGE_MOUNTED };

/* An image that was asked for since this supervisor (or its keeper) was started. */
struct held_image {
	struct bs_list all;
	char digest[BS_DIGEST_TEXT_LEN];
	enum image_state state;
	int mnt;		     /* the mount, -EBADF while there is none */
	bool lazy;		     /* mnt reads through FUSE */
	bool complete;		     /* the worker said so: the next mount needs no FUSE */
	struct bs_list preparations; /* struct preparation: not answered yet */
	unsigned int n_preparations;
	struct pending mount; /* no request: who waits here waits for the mount alone */
	struct bs_digest known[IMAGE_KNOWN_MAX]; /* of sources that the worker was told */
	unsigned int n_known;
	uint64_t used_ns;
	unsigned int leases;
	unsigned int n_hots;	   /* struct hot that point here */
	bool to_warm;		   /* a hot pack comes, or came, that no warmer knows of */
	struct child *warmer;	   /* that reads what comes into the page cache */
	char bdi[BS_BDI_NAME_LEN]; /* of a lazy mount; "": not known */
	uint32_t readahead_kib;	   /* set on it; UINT32_MAX: not known */
};

/*
 * A PREPARE of one image. Who names other places than those before gets one of its own, so
 * that nobody has to wait for a source that another named.
 */
struct preparation {
	struct bs_list in_image;
	struct held_image *image;
	struct pending ask;			 /* whose failure is that of those who wait */
	struct bs_msg from;			 /* SOURCEs …: to ask once more */
	struct bs_digest asked[IMAGE_KNOWN_MAX]; /* of its sources */
	unsigned int n_asked;
};

/* A container's use of an image; also a file RUN_DIR/leases/CONTAINER. */
struct lease {
	struct bs_list all;
	char *container;
	struct held_image *image;
	uint64_t granted_ns;
};

/* A short-lived process of ours that does what may block. */
struct child {
	struct bs_list all;
	struct bs_child process;
	struct watch watch; /* its socket */
	uint64_t deadline_ns;
	/* what came over the socket, or NULL when it ended (or was ended) without a word */
	void (*ended)(struct super *s, struct child *c, struct bs_msg *m);
	void *cookie;
	uint32_t id;
};

/* A request passed on to the worker for a client. */
struct forwarded {
	struct bs_list all;
	uint32_t worker_id;
	struct client *client;
	uint32_t client_id;
	enum bs_msg_type type;
	uint64_t deadline_ns;
};

struct super {
	const struct bs_conf *conf;
	const char *config_file;
	struct bs_conf conf_again; /* what conf points to when it was read once more */
	int epoll;
	int run_fd, leases_fd, ckpts_fd, images_fd, unpacked_fd;
	uint64_t epoch;
	uint64_t keeper_next_ns; /* when a keeper that could not be started is tried again */
	uint32_t next_id;
	uint64_t starts; /* ACQUIREs so far */
	bool stop;
	struct watch signals, listen, keeper, worker;
	struct bs_child keeper_process, worker_process; /* pid 0: not a child of ours */
	struct watch old_worker; /* pidfd of a dead supervisor's: must be gone before ours starts */
	int fuse_fd, fuse_mnt;
	int bdi_fd;	   /* of /sys/class/bdi */
	bool fuse_used;	   /* a server answered INIT on it */
	bool fuse_tried;   /* and failed: this machine has none */
	bool listen_given; /* the socket is a service manager's: it stays when we end */
	bool worker_ready;
	bool worker_replaced; /* it was told to go, the next one is the binary on disk */
	uint64_t worker_started_ns, worker_next_ns;    /* not to be started before */
	unsigned int worker_restarts, worker_failures; /* failures: since it last was ready */
	int spare_fd;		  /* given up to refuse a connection when there is no other */
	uint64_t accept_next_ns;  /* 0, or when connections are accepted again */
	struct bs_limit refusals; /* of lines about it */
	uint64_t leases_next_ns;  /* when they are swept again */
	struct bs_list clients, images, leases, children, forwarded, unpacks, pending, hots,
		recorded, ckpts;
};

/* --- supervisor.c -------------------------------------------------------------------------- */
int super_watch(struct super *s, struct watch *w);
void super_unwatch(struct super *s, struct watch *w);
/* Opens and makes the directories of the cache, anew when they are open. */
int super_open_cache(struct super *s, struct bs_error *err);
/* SIGKILL through the pidfd, which never means another process. */
void super_kill(const struct bs_child *c);

/* --- kept.c: what the keeper, and a service manager, hold for us ------------------------------ */
void kept_put(struct super *s, const char *name, int fd);
void kept_drop(struct super *s, const char *name);
/* Takes over what a service manager gave: the listening socket, what it held for us. */
int kept_adopt_given(struct super *s, struct bs_error *err);
/* Takes over what a keeper holds; link is its socket. */
int kept_adopt(struct super *s, int link, struct bs_error *err);
/* Starts a keeper and gives it everything. */
int kept_start_keeper(struct super *s, struct bs_error *err);
void kept_quit_keeper(struct super *s);
/* Starts a keeper when there is none and its time has come. */
void kept_tend_keeper(struct super *s);

/* --- workers.c ---------------------------------------------------------------------------------- */
/* Starts the worker when none runs and its time has come; makes the FUSE connection first. */
void workers_tend(struct super *s);
void workers_stop(struct super *s); /* SIGKILL; workers_tend starts another */
/* The next one is the program on disk, with the configuration of now; if that has an error, none is. */
int workers_replace(struct super *s, struct bs_error *err);
/* Sends to the worker if it is ready. */
bool workers_send(struct super *s, struct bs_msg *m);

/* --- mounts.c: images, from asked for to mounted ------------------------------------------------- */
void mounts_acquire(struct super *s, struct client *c, struct bs_msg *m);
struct held_image *mounts_get(struct super *s, const char *digest, bool make);
void mounts_completed(struct super *s, const char *digest);
void mounts_new_worker(struct super *s);
/* Grants a the image's mount if there is one; else a goes on waiting. */
void mounts_grant_if_mounted(struct super *s, struct held_image *i, struct waiter *a);
/* Grants a mount of its own. */
void mounts_grant_own(struct super *s, struct held_image *i, struct waiter *a, int mnt);
/* The name under which the image's mount is kept. */
const char *mounts_kept_name(const struct held_image *i, char buf[KEPT_NAME_LEN]);
void mounts_adopt(struct super *s, const char *name, int fd);
void mounts_drop_lazy(struct super *s); /* their FUSE connection is lost */
void mounts_expire(struct super *s, uint64_t now_ns);

/* --- leases.c: which container uses which image -------------------------------------------------- */
/* With its file; replaces an older one of the container's. */
bool leases_add(struct super *s, const char *container, struct held_image *i);
void leases_release(struct super *s, const char *container);
/* What a supervisor before us, or before a reboot of everything but the run directory, knew. */
void leases_read(struct super *s);
/* Ends those of containers that are gone, at the start and now and then. */
void leases_sweep(struct super *s, uint64_t now_ns);

/* --- resolves.c: names that are to be digests ---------------------------------------------------- */
void resolves_request(struct super *s, struct client *c, struct bs_msg *m);

/* --- unpacks.c: images as directories ----------------------------------------------------------------- */
void unpacks_request(struct super *s, struct client *c, struct bs_msg *m);

/* --- children.c ------------------------------------------------------------------------------------- */
/* Starts the job ROLE for ARG (jobs.h) with a socket at 3 and fds from 4 on. */
int children_start(struct super *s, const char *role, const char *arg, const int *fds, size_t n,
		   uint64_t deadline_ns,
		   void (*ended)(struct super *s, struct child *c, struct bs_msg *m), void *cookie,
		   uint32_t id, struct bs_error *err);
void children_expire(struct super *s, uint64_t now_ns);

/* --- clients.c ---------------------------------------------------------------------------------------- */
int clients_listen(struct super *s); /* from now on connections are accepted */
void clients_reply(struct super *s, struct client *c, uint32_t id, int result, const char *text);
void clients_send(struct super *s, struct client *c, struct bs_msg *m);
void clients_sweep(struct super *s);
/* The worker's answer to something that was passed on; NULL: it died. */
void clients_forwarded(struct super *s, uint32_t worker_id, struct bs_msg *m);
void clients_expire(struct super *s, uint64_t now_ns);

#endif
