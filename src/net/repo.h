/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A repository: manifests by tag or digest and blobs by digest, wherever they lie
 * (OCI distribution-spec 1.1, "repository"). Implementations: a registry (net/registry),
 * an OCI layout directory (net/layout), one on HDFS (hdfs/store).
 *
 * All calls but bs_repo_read block and may be made from any thread, several at
 * once. Errors, beside real system errnos: -ENOENT the thing is not there,
 * -EACCES credentials are missing or refused, -EHOSTUNREACH no connection,
 * -ETIMEDOUT stalled or over the deadline, -EREMOTEIO the server failed (5xx) or the
 * connection broke, perhaps amid the answer, -EAGAIN asked to come back later (429, 503 with
 * Retry-After), -EBADMSG an answer that came whole and is of wrong length, range or digest,
 * -EFBIG above the bound, -EOPNOTSUPP.
 */
#ifndef BS_NET_REPO_H
#define BS_NET_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

struct bs_error;
struct bs_loop;

/* A manifest as the source gave it; its bytes are verified when it was asked for by digest. */
struct bs_manifest {
	char *bytes; /* owned, NUL behind */
	size_t len;
	char *media_type; /* owned; never NULL ("" when unknown) */
	struct bs_digest digest;
};
void bs_manifest_done(struct bs_manifest *m);

#define BS_MANIFEST_MAX (4u << 20) /* distribution-spec: registries accept at least 4 MiB */

/* Who goes first. A demand read never waits behind the others. */
enum bs_lane { BS_LANE_DEMAND, BS_LANE_HOT, BS_LANE_BACKGROUND, BS_LANE_MAX };

/*
 * One asynchronous read of a byte range of a blob. The caller owns it and buf and
 * keeps both until done was called, exactly once, on the loop's thread or one that the
 * repository reads with (or before bs_repo_read returns, on the caller's): done must not block.
 */
struct bs_range {
	struct bs_digest blob;
	uint64_t off;
	size_t len; /* > 0 */
	void *buf;  /* len bytes */
	enum bs_lane lane;
	const void *whose; /* tells images apart (net/yield.h); compared only, NULL: nobody waits */
	bool fresh; /* an answer was no good: no remembered way to the blob, no kept connection */
	void (*done)(struct bs_range *rg);
	/*
	 * NULL, or called where got has grown, on the loop's thread and before done; must not
	 * block. Not every implementation does. got may shrink again: an answer that broke off is
	 * begun anew, so what is in buf is certain only at the end.
	 */
	void (*progress)(struct bs_range *rg);
	void *cookie;
	/* set before done */
	int result;		 /* 0: buf holds all len bytes; else -errno as above */
	uint64_t retry_after_ns; /* with -EAGAIN: how long the server asked to wait; 0 unknown */
	/* bs_clock_ns: asked for; its turn came (atomic, 0 before); the answer began; all was there */
	uint64_t asked_ns, started_ns, answered_ns, ended_ns;
	size_t got;	/* atomic: bytes so far */
	char text[160]; /* cause, for people; "" on success */
	/* of the implementation */
	void *impl;
};

/* How a manifest is asked for. */
struct bs_look {
	enum bs_lane lane;
	/* bs_clock_ns: after it nobody waits for an answer, -ETIMEDOUT. 0: as long as a request may take */
	uint64_t deadline_ns;
};
#define BS_LOOK_NEEDED ((struct bs_look){ .lane = BS_LANE_DEMAND })

/* Gives the next bytes of a blob; 0, or -errno which stops the transfer. */
typedef int bs_repo_sink(void *cookie, const void *data, size_t len);

struct bs_repo; /* reference-counted, thread-safe */

struct bs_repo_ops {
	const char *scheme;
	int (*get_manifest)(struct bs_repo *r, const char *ref, const struct bs_look *look,
			    struct bs_manifest *ret, struct bs_error *err);
	int (*get_blob)(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
			bs_repo_sink *sink, void *cookie, struct bs_error *err);
	void (*read)(struct bs_repo *r, struct bs_range *rg);
	int (*has_blob)(struct bs_repo *r, const struct bs_digest *d, struct bs_error *err);
	int (*put_blob)(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
			void (*progress)(void *cookie, uint64_t sent), void *cookie,
			struct bs_error *err);
	int (*try_push)(struct bs_repo *r, struct bs_error *err);
	int (*mount_blob)(struct bs_repo *r, const struct bs_digest *d, const char *from_name,
			  struct bs_error *err);
	int (*put_manifest)(struct bs_repo *r, const char *tag, const char *media_type,
			    const char *bytes, size_t len, struct bs_error *err);
	/* may be NULL */
	int (*put_manifest_over)(struct bs_repo *r, const char *tag, const struct bs_digest *was,
				 const char *media_type, const char *bytes, size_t len,
				 struct bs_error *err);
	int (*list_tags)(struct bs_repo *r, void (*each)(void *cookie, const char *tag),
			 void *cookie, struct bs_error *err);
	int (*get_referrers)(struct bs_repo *r, const struct bs_digest *subject,
			     struct bs_manifest *ret, struct bs_error *err);
	int (*delete_manifest)(struct bs_repo *r, const struct bs_digest *d,
			       const struct bs_digest *subject, struct bs_error *err);
	void (*favour)(struct bs_repo *r, const struct bs_digest *d); /* may be NULL */
	void (*free)(struct bs_repo *r);
};

/* What implementations embed as their first member. */
struct bs_repo {
	const struct bs_repo_ops *ops;
	unsigned int refs;	  /* atomic */
	char *name;		  /* for messages: "docker://HOST/REPO", "oci:DIR" */
	uint64_t silent_until_ns; /* atomic */
};

struct bs_repo *bs_repo_ref(struct bs_repo *r);
struct bs_repo *bs_repo_unref(struct bs_repo *r);
DEFINE_BS_AUTO(repo, struct bs_repo, bs_repo_unref)

/*
 * For who has several places to ask: one that hangs must not cost each request its time.
 * note takes what a request came to, and returns it; after silence (-ETIMEDOUT,
 * -EHOSTUNREACH) was_silent says for a minute that others should be asked before.
 */
int bs_repo_note(struct bs_repo *r, int result);
bool bs_repo_was_silent(const struct bs_repo *r);
bool bs_repo_is_silence(int result);

/* ref: a tag, or "sha256:…" (then the bytes are checked against it). */
int bs_repo_get_manifest(struct bs_repo *r, const char *ref, struct bs_manifest *ret,
			 struct bs_error *err);

/* The same for who can do without: behind those who cannot, and for so long only. */
int bs_repo_look_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			  struct bs_manifest *ret, struct bs_error *err);

/* Streams the whole blob of size bytes to sink; digest and size are verified, -EBADMSG else. */
int bs_repo_get_blob(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
		     bs_repo_sink *sink, void *cookie, struct bs_error *err);

/* The same into memory (malloc'ed, NUL behind), size <= max. */
int bs_repo_get_blob_mem(struct bs_repo *r, const struct bs_digest *d, uint64_t size, size_t max,
			 char **ret, struct bs_error *err);

/*
 * Starts a range read: ONE attempt, with what belongs to it (token refresh on 401
 * and 403, redirects resolved again when they expired, a stalled connection given
 * up). Repeating and other sources are the caller's. Never blocks for network or disk.
 */
void bs_repo_read(struct bs_repo *r, struct bs_range *rg);
/* The same, and waits for it: its result. done and cookie are not the caller's. */
int bs_repo_read_wait(struct bs_repo *r, struct bs_range *rg);

int bs_repo_has_blob(struct bs_repo *r, const struct bs_digest *d,
		     struct bs_error *err); /* 1, 0, -errno */

/*
 * Puts size bytes of fd (from its offset 0, by pread) as blob d; does nothing when
 * it is there. Interrupted or failed: nothing half-made is visible. progress may be NULL.
 */
int bs_repo_put_blob(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
		     void (*progress)(void *cookie, uint64_t sent), void *cookie,
		     struct bs_error *err);
int bs_repo_put_blob_mem(struct bs_repo *r, const struct bs_digest *d, const void *data, size_t len,
			 struct bs_error *err);

/* Many at once will read blob d, which is there: what keeps copies keeps more. Best effort. */
void bs_repo_favour(struct bs_repo *r, const struct bs_digest *d);

/*
 * Whether we may put something there, for who has much to do before: 0, or why not. An upload
 * is begun and taken back; nothing is left of it.
 */
int bs_repo_try_push(struct bs_repo *r, struct bs_error *err);

/* Makes blob d of repository from_name (same registry) ours. 1 done, 0 not possible, -errno. */
int bs_repo_mount_blob(struct bs_repo *r, const struct bs_digest *d, const char *from_name,
		       struct bs_error *err);

/* tag NULL: by digest only. Every blob it names must be there before. */
int bs_repo_put_manifest(struct bs_repo *r, const char *tag, const char *media_type,
			 const char *bytes, size_t len, struct bs_error *err);

/*
 * The same, if the tag names manifest was by then, or nothing when that is NULL; else -EEXIST.
 * Registries have no such request: there it is put, and who wants to know has looked before.
 */
int bs_repo_put_manifest_over(struct bs_repo *r, const char *tag, const struct bs_digest *was,
			      const char *media_type, const char *bytes, size_t len,
			      struct bs_error *err);

int bs_repo_list_tags(struct bs_repo *r, void (*each)(void *cookie, const char *tag), void *cookie,
		      struct bs_error *err);

/*
 * The image index of what refers to subject: the referrers API, else the tag
 * "sha256-<hex>" (distribution-spec, "Referrers Tag Schema"). -ENOENT: nothing does.
 */
int bs_repo_get_referrers(struct bs_repo *r, const struct bs_digest *subject,
			  struct bs_manifest *ret, struct bs_error *err);

/*
 * Takes away manifest d, its tags, and its mention in the list under the tag of subject (may
 * be NULL) where there is one. -ENOENT: it is gone already, and by now the mention too;
 * -EOPNOTSUPP: the server does not delete manifests. Blobs are left to the store's own
 * clearing up; in a layout the manifest's bytes, too.
 */
int bs_repo_delete_manifest(struct bs_repo *r, const struct bs_digest *d,
			    const struct bs_digest *subject, struct bs_error *err);

/* --- a registry's repository; net/layout.h has a directory's -------------------------------- */

/* User name and secret for a host; both malloc'ed. -ENOENT: anonymous. An empty user: secret is an identity token. */
typedef int bs_credential_fn(void *cookie, const char *host, char **ret_user, char **ret_secret,
			     struct bs_error *err);

struct bs_registry_options {
	struct bs_loop *loop;	       /* outlives the repository */
	bool tls_verify;	       /* false: also no check of certificates */
	bool plain_http;	       /* http:// instead of https:// */
	const char *ca_file;	       /* PEM, NULL: the system's */
	const char *proxy;	       /* NULL: as the environment says (libcurl) */
	bs_credential_fn *credentials; /* may be NULL; asked again when the server refuses */
	void *credentials_cookie;
	/* Whoever asks knows other places, or has else to do: a silent server is not asked again. */
	bool impatient;
};

/* host "HOST[:PORT]", name "a/b". "docker.io" is asked at registry-1.docker.io, as docker does. */
int bs_registry_open(const struct bs_registry_options *o, const char *host, const char *name,
		     struct bs_repo **ret, struct bs_error *err);

#endif
