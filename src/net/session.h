/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How one registry wants to be spoken to: per scope (a repository and what is done with it)
 * its challenge and an authorization. All repositories of a host with the same options share
 * one session, so that a token is fetched once whoever waits for it.
 *
 * Credentials are asked for at each token request and kept no longer; those of Basic are
 * asked for again after five minutes, for another scope, or when the registry refuses them.
 */
#ifndef BS_NET_SESSION_H
#define BS_NET_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/http.h"

struct bs_error;
struct bs_registry_options;
struct bs_session;

/* Any thread. host as users write it; "docker.io" is spoken to at registry-1.docker.io. */
int bs_session_get(const struct bs_registry_options *o, const char *host, struct bs_session **ret,
		   struct bs_error *err);
struct bs_session *bs_session_ref(struct bs_session *s);
struct bs_session *bs_session_unref(struct bs_session *s);
DEFINE_BS_AUTO(session, struct bs_session, bs_session_unref)

const char *bs_session_base(const struct bs_session *s); /* "https://HOST" */
const struct bs_http_peer *bs_session_peer(const struct bs_session *s);
struct bs_loop *bs_session_loop(const struct bs_session *s);

/* --- the loop's thread only ------------------------------------------------------------------ */

struct bs_auth_wait {
	struct bs_list link;
	void (*fn)(struct bs_auth_wait *w);
	int result;
	char *value;	 /* of Authorization, NULL: send none; the waiter's to free */
	uint64_t serial; /* names this authorization; 0 for none */
	bool secret;	 /* it came from credentials */
	uint64_t retry_after_ns;
	char text[160];
};

/*
 * Gets an authorization for scope and calls w->fn, perhaps at once. refused: the serial
 * of the one that the registry did not accept, 0 if it was not asked yet.
 */
void bs_session_authorize(struct bs_session *s, const char *scope, uint64_t refused,
			  struct bs_auth_wait *w);

/* Learns what scope wants from a WWW-Authenticate. true: there is a scheme that we know. */
bool bs_session_challenge(struct bs_session *s, const char *scope, const char *www_authenticate);

/* The registry refused serial for good: the next request of scope asks what is wanted. */
void bs_session_refused(struct bs_session *s, const char *scope, uint64_t serial);

/* --- parser of a token server's reply, for its fuzz target too -------------------------------- */

#define BS_TOKEN_REPLY_MAX (256u << 10)
int bs_token_parse(const char *text, size_t len, char **ret_token, uint64_t *ret_life_s,
		   struct bs_error *err);

#endif
