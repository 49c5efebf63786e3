/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Reading credential files and the replies of helpers: foreign bytes in, nothing run. Pure. */
#ifndef BS_NET_AUTH_CONFIG_H
#define BS_NET_AUTH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct bs_error;
struct bs_json;

#define BS_AUTH_FILE_MAX (4u << 20)
#define BS_AUTH_REPLY_MAX (256u << 10)

struct bs_auth_found {
	char *user, *secret; /* user "": an identity token */
	char *helper;	     /* or the helper to ask: docker-credential-NAME */
};
void bs_auth_found_done(struct bs_auth_found *f);

/*
 * Does key, as people write it ("https://HOST/v1/", "HOST/PATH"), cover repository at
 * host? 0: no; else the more the longer its path is. globs: '*' within labels of the
 * host, as kubelet has it.
 */
size_t bs_auth_covers(const char *key, const char *host, const char *repository, bool globs);

/*
 * Looks into docker's config.json, containers' auth.json or the older form with the hosts
 * at the top (what names it). 0, -ENOENT nothing for it, -EINVAL bad.
 */
int bs_auth_from_config(const char *what, const char *text, size_t len, const char *host,
			const char *repository, bool globs, struct bs_auth_found *ret,
			struct bs_error *err);

/* What docker-credential-NAME get wrote. */
int bs_auth_from_helper(const char *what, const char *text, size_t len, struct bs_auth_found *ret,
			struct bs_error *err);

/* The reply of a kubelet credential provider (credentialprovider.kubelet.k8s.io/v1). */
int bs_auth_from_provider(const char *what, const char *text, size_t len, const char *host,
			  const char *repository, struct bs_auth_found *ret, struct bs_error *err);

/* A name that is safe as part of a program's file name. */
bool bs_auth_name_ok(const char *name);

#endif
