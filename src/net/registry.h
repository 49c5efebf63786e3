/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A registry's repository, shared among the files that implement it: registry.c
 * (manifests, tags, opening), blob.c (whole blobs), range.c (ranges), push.c (uploads),
 * attach.c (referrers).
 */
#ifndef BS_NET_REGISTRY_H
#define BS_NET_REGISTRY_H

#include <pthread.h>

#include "base/buf.h"
#include "net/call.h"
#include "net/repo.h"
#include "net/session.h"

struct bs_registry {
	struct bs_repo repo;
	struct bs_session *session;
	char *host, *path;	    /* path: the repository's name */
	char *pull, *push, *remove; /* scopes */
	bool impatient;
	uint64_t answer_ns;	 /* for the answer to an upload, whatever its size */
	pthread_mutex_t lock;	 /* guards the rest */
	struct bs_list landings; /* where blobs were redirected to, latest last */
	unsigned int n_landings;
	uint64_t no_referrers_until_ns;
	struct { /* blobs that were sent whole when a range was asked for */
		struct bs_digest blob;
		uint64_t until_ns;
	} no_ranges[8];
};

static inline struct bs_registry *bs_registry_of(struct bs_repo *r)
{
	return BS_CONTAINER_OF(r, struct bs_registry, repo);
}

/* --- one exchange with an answer in memory, repeated when that may help --------------------- */

struct bs_request {
	const char *method;
	char *url; /* taken over; NULL: out of memory */
	const char *scope;
	const char *headers[4]; /* NULL behind the last */
	const void *body;	/* or fd */
	int fd;
	uint64_t fd_off, body_len;
	bool has_body;
	uint64_t answer_ns; /* for the answer once the body is out; 0: as before each byte */
	enum bs_lane lane;
	size_t max;	/* of the answer; 0: not wanted */
	bool once;	/* do not repeat */
	bool impatient; /* do not repeat after silence */
	void (*progress)(void *cookie, uint64_t sent);
	void *cookie;
};

struct bs_exchange {
	struct bs_call call; /* with the last answer's status and headers */
	struct bs_buf body;
};

/* The result as call.h says (-EFBIG: the answer is larger than max). x is to be freed always. */
int bs_registry_send(struct bs_registry *r, struct bs_request *q, struct bs_exchange *x);
void bs_exchange_done(struct bs_exchange *x);

/*
 * How long a server may take over an upload of so many bytes before it answers: it may hash
 * them, and copy them to where they stay.
 */
uint64_t bs_registry_answer_ns(const struct bs_registry *r, uint64_t bytes);

/* "BASE/v2/NAME/" + formatted rest; malloc'ed. */
char *bs_registry_url(const struct bs_registry *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Fills err with the repository's name, what was done and the call's text; returns code. */
int bs_registry_fail(struct bs_registry *r, struct bs_error *err, int code, const char *what,
		     const struct bs_call *c);

/* --- where redirects of blobs led ------------------------------------------------------------- */

char *bs_registry_landing(struct bs_registry *r, const struct bs_digest *d); /* malloc'ed or NULL */
/* A transfer ended well there. url NULL: no redirect led away, forget an older one. */
void bs_registry_landed(struct bs_registry *r, const struct bs_digest *d, const char *url);
/* url is of no use; a newer one is kept. */
void bs_registry_strayed(struct bs_registry *r, const struct bs_digest *d, const char *url);

/* --- the operations -------------------------------------------------------------------------- */

int bs_registry_get_blob(struct bs_repo *repo, const struct bs_digest *d, uint64_t size,
			 bs_repo_sink *sink, void *cookie, struct bs_error *err);
void bs_registry_read(struct bs_repo *repo, struct bs_range *rg);
int bs_registry_has_blob(struct bs_repo *repo, const struct bs_digest *d, struct bs_error *err);
int bs_registry_put_blob(struct bs_repo *repo, const struct bs_digest *d, int fd, uint64_t size,
			 void (*progress)(void *cookie, uint64_t sent), void *cookie,
			 struct bs_error *err);
int bs_registry_mount_blob(struct bs_repo *repo, const struct bs_digest *d, const char *from_name,
			   struct bs_error *err);
int bs_registry_put_manifest(struct bs_repo *repo, const char *tag, const char *media_type,
			     const char *bytes, size_t len, struct bs_error *err);
int bs_registry_get_referrers(struct bs_repo *repo, const struct bs_digest *subject,
			      struct bs_manifest *ret, struct bs_error *err);
int bs_registry_delete_manifest(struct bs_repo *repo, const struct bs_digest *d,
				const struct bs_digest *subject, struct bs_error *err);
int bs_registry_get_manifest(struct bs_repo *repo, const char *ref, struct bs_manifest *ret,
			     struct bs_error *err);

#endif
