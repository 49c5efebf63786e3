/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* URLs, by libcurl's parser. Pure; any thread. */
#ifndef BS_NET_URL_H
#define BS_NET_URL_H

#include <stdbool.h>

struct bs_buf;

/*
 * The absolute URL of location as seen from base (both foreign). -EINVAL: no http or
 * https URL, too long, or with a user name in it; -EPERM: from https to http.
 */
int bs_url_resolve(const char *base, const char *location, char **ret);

/* Scheme, host and port are the same. */
bool bs_url_same_origin(const char *a, const char *b);

/* Appends "NAME=VALUE", escaped, with '?' or '&' before it. */
int bs_url_add_query(struct bs_buf *url, const char *name, const char *value);
/* Appends text with all but unreserved characters escaped. */
int bs_url_add_escaped(struct bs_buf *b, const char *text);

#endif
