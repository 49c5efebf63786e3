/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Messages of the control sockets: shim, tools and hooks to the supervisor, and the
 * supervisor to its workers. One message is one SOCK_SEQPACKET datagram of at most
 * BS_MSG_BYTES_MAX bytes, with descriptors beside it (SCM_RIGHTS).
 *
 *   header  magic u32 "BSM1", version u16, type u16, id u32, n_fields u16, zero u16
 *   fields  tag u16, len u32, then len bytes (numbers: 8, little-endian; texts: no NUL),
 *           then one NUL that len does not count
 *
 * The reader takes any bytes: bounded, no pointers followed before they are checked.
 */
#ifndef BS_CTL_MSG_H
#define BS_CTL_MSG_H

#include <stddef.h>
#include <stdint.h>

struct bs_error;

#define BS_MSG_VERSION 1u
#define BS_MSG_BYTES_MAX 65536u
#define BS_MSG_FIELDS_MAX 64u
#define BS_MSG_FDS_MAX 8u

/*
 * Requests, and the one reply to each: with its id, or with 0 to whatever is asked, when
 * the connection is refused.
 */
enum bs_msg_type {
	BS_MSG_REPLY = 1, /* RESULT, TEXT on failure, and what the request's row says */
	/* to the supervisor, from shim and tools */
	BS_MSG_HELLO,	/* -> PROGRAM version */
	BS_MSG_ACQUIRE, /* CONTAINER, DIGEST, SOURCE…, WAIT_NS, WORKLOAD, RECORD, HOT_ONLY 1: the rest of the image is not to be fetched -> fd: EROFS mount, the caller's own copy; COMPLETE */
	BS_MSG_RELEASE, /* CONTAINER */
	BS_MSG_STATUS,	/* -> JSON */
	BS_MSG_COMPLETE, /* DIGEST, SOURCE…: fetch the rest now -> when done */
	BS_MSG_UNPACK, /* as ACQUIRE, when EROFS or FUSE is not to be had -> PATH. To the worker: -> fds: tree, blob */
	BS_MSG_UPGRADE, /* replace the worker by the binary on disk */
	BS_MSG_VERIFY,	/* prove every frame in the cache again -> JSON */
	/* between supervisor and worker */
	BS_MSG_START, /* first to a worker: fds image directory, FUSE; EPOCH, TAKEOVER 0 or 1. To one of a checkpoint tree: SOURCE, OPTIONS */
	BS_MSG_READY, /* worker: requests are being served; one of a checkpoint tree: RESULT, TEXT */
	BS_MSG_PREPARE, /* DIGEST, SOURCE…, WAIT_NS, HOT_ONLY, fd: timeline -> fds: metadata and, when COMPLETE, the blob */
	BS_MSG_CREDENTIAL,  /* worker asks: HOST, NAME -> USER, SECRET */
	BS_MSG_OPEN_LAYOUT, /* worker asks: SOURCE "oci:DIR" -> fd of the directory */
	BS_MSG_EVENT,	    /* worker tells, no reply: TEXT to be logged at LEVEL */
	BS_MSG_COMPLETED,   /* worker tells, no reply: DIGEST is complete on this node */
	/* between supervisor and keeper; none has a reply */
	BS_MSG_KEEP, /* NAME + fd: hold it (replaces an equal name) */
	BS_MSG_DROP, /* NAME */
	BS_MSG_KEPT, /* keeper to a new supervisor: NAME + fd; without NAME: that was all */
	BS_MSG_QUIT, /* end, on purpose. From a server of a checkpoint tree: it was unmounted */
	/* from a child to the supervisor: RESULT, TEXT or fd of the mount */
	BS_MSG_MOUNTED,
	/* from shim and tools, and to the worker: NAME (a tag, or any digest that means an image),
	   SOURCE…, WAIT_NS -> DIGEST of the converted image for this machine */
	BS_MSG_RESOLVE,
	/* between supervisor and worker, too */
	BS_MSG_HOT, /* DIGEST, SOURCE…, WAIT_NS, WORKLOAD, RECORD 0 or 1, HOT_ONLY, fd: timeline: a start to be made hot -> STREAM 1 when a pack will come; FILE and fd of the metadata when it is to be recorded */
	BS_MSG_STREAMING, /* worker tells, no reply: DIGEST, WORKLOAD, STREAM 1: a hot pack begins to come, 0: it ended, or will not */
	BS_MSG_WARM, /* to the worker, no reply: DIGEST, fd: where the warmer PID hears what has come of its pack */
	BS_MSG_RECORDED, /* to the worker, no reply: DIGEST, WORKLOAD: the container that is recorded has ended; RESULT not 0: there is none, nobody took the recording's mount */
	/* from shim and tools: a checkpoint tree of HDFS as a mount */
	BS_MSG_CKPT_MOUNT, /* SOURCE, OPTIONS, READ_ONLY 0 or 1, WAIT_NS, TIMELINE, CONTAINER: who holds it until RELEASE; without one it lasts until it is unmounted -> fd: mount, the caller's own copy; NAME of it in the status */
	BS_MSG_CKPT_STATUS, /* NAME -> JSON: what its server counts. To the server, too */
	BS_MSG_HOT_READY, /* CONTAINER (its id): what it needs to start has been read: its recording ends */
	BS_MSG_TYPE_MAX
};

enum bs_msg_tag {
	BS_TAG_RESULT = 1, /* number: errno, 0 is success */
	BS_TAG_TEXT,
	BS_TAG_PROGRAM,
	BS_TAG_CONTAINER,
	BS_TAG_DIGEST,
	BS_TAG_SOURCE, /* repeated, in order of preference */
	BS_TAG_WAIT_NS,
	BS_TAG_COMPLETE,
	BS_TAG_JSON,
	BS_TAG_PATH,
	BS_TAG_TAKEOVER,
	BS_TAG_EPOCH,
	BS_TAG_HOST,
	BS_TAG_NAME,
	BS_TAG_USER,
	BS_TAG_SECRET,
	BS_TAG_TIMELINE, /* id of the start this belongs to */
	BS_TAG_PID,
	BS_TAG_RESTARTS,
	BS_TAG_WORKLOAD,
	BS_TAG_RECORD,
	BS_TAG_FILE, /* of the FUSE filesystem */
	BS_TAG_STREAM,
	BS_TAG_LEVEL, /* enum bs_log_level */
	BS_TAG_HOT_ONLY,
	BS_TAG_OPTIONS, /* of mount.bootseer-hdfs(8) */
	BS_TAG_READ_ONLY,
	BS_TAG_MAX
};

struct bs_msg_field {
	uint16_t tag;
	uint32_t len;
	const char *data; /* into buf; texts have a NUL behind */
};

struct bs_msg {
	uint16_t type;
	uint32_t id;
	uint16_t n_fields;
	uint16_t n_fds;
	struct bs_msg_field fields[BS_MSG_FIELDS_MAX];
	int fds[BS_MSG_FDS_MAX]; /* owned by the message */
	char *buf;
	size_t len, cap;
};

void bs_msg_init(struct bs_msg *m, enum bs_msg_type type, uint32_t id);
void bs_msg_done(struct bs_msg *m); /* closes the descriptors */
#define bs_automsg __attribute__((cleanup(bs_msg_done))) struct bs_msg

/* Building: -E2BIG over the bounds. Text must hold no NUL. The fd is duplicated. */
int bs_msg_add_text(struct bs_msg *m, enum bs_msg_tag tag, const char *text);
int bs_msg_add_u64(struct bs_msg *m, enum bs_msg_tag tag, uint64_t v);
int bs_msg_add_fd(struct bs_msg *m, int fd);
/* A text of any length: what does not fit well goes beside the message, in a sealed memfd. */
int bs_msg_add_long(struct bs_msg *m, enum bs_msg_tag tag, const char *text);

/* Reading: NULL / -ENOENT when absent; -EBADMSG for a number of another length. */
const char *bs_msg_text(const struct bs_msg *m, enum bs_msg_tag tag, size_t nth);
int bs_msg_u64(const struct bs_msg *m, enum bs_msg_tag tag, uint64_t *ret);
/* What bs_msg_add_long added, malloc'ed; -ENOENT; -EFBIG over max; -EINVAL not sealed. */
int bs_msg_long(struct bs_msg *m, enum bs_msg_tag tag, size_t max, char **ret);
/* Takes descriptor i out of the message; -ENOENT when there is none. */
int bs_msg_take_fd(struct bs_msg *m, size_t i);

/* The bytes of m as they go over the socket; for tests and fuzzing. -EBADMSG: not a message. */
int bs_msg_decode(const void *bytes, size_t len, struct bs_msg *ret);
int bs_msg_encode(struct bs_msg *m, const void **ret, size_t *ret_len);

/* -EAGAIN on a non-blocking socket; -ECONNRESET when the other side is gone. */
int bs_msg_send(int sock, struct bs_msg *m);
int bs_msg_send_now(int sock, struct bs_msg *m); /* -EAGAIN instead of waiting, on any socket */
int bs_msg_recv(int sock, struct bs_msg *ret);

#endif
