/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/auth_config.h"

#include <errno.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define KEY_MAX 1024
#define SECRET_MAX (64u << 10)

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void bs_auth_found_done(struct bs_auth_found *f)
{
	wipe(&f->user);
	wipe(&f->secret);
	free(f->helper);
	f->helper = NULL;
}

bool bs_auth_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= 128 && name[0] != '.' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       len;
}

/* --- which entry ----------------------------------------------------------------------------- */

/* All names of docker's own registry are one. */
static bool is_hub(const char *host)
{
	return bs_streq(host, "docker.io") || bs_streq(host, "index.docker.io") ||
	       bs_streq(host, "registry-1.docker.io");
}

/* Label by label, so that '*' does not cross a dot. */
static bool glob_host(const char *pattern, const char *host)
{
	for (;;) {
		size_t p = strcspn(pattern, ".:"), h = strcspn(host, ".:");
		bs_autofree char *pl = strndup(pattern, p), *hl = strndup(host, h);

		if (!pl || !hl || fnmatch(pl, hl, FNM_NOESCAPE) != 0 || pattern[p] != host[h])
			return false;
		if (pattern[p] == '\0')
			return true;
		if (pattern[p] == ':')
			return bs_streq(pattern + p, host + h);
		pattern += p + 1;
		host += h + 1;
	}
}

size_t bs_auth_covers(const char *key, const char *host, const char *repository, bool globs)
{
	bs_autofree char *k = NULL;
	const char *rest;
	char *path;
	size_t len;

	if (strlen(key) > KEY_MAX)
		return 0;
	rest = bs_str_after(key, "https://");
	rest = rest ? rest : bs_str_after(key, "http://");
	k = strdup(rest ? rest : key);
	if (!k)
		return 0;
	path = strchr(k, '/');
	if (path)
		*path++ = '\0';
	if (!(is_hub(k) && is_hub(host)) && !bs_streq(k, host) && !(globs && glob_host(k, host)))
		return 0;
	len = path ? strlen(path) : 0;
	while (len && path[len - 1] == '/')
		path[--len] = '\0';
	if (len == 0 || bs_streq(path, "v1") || bs_streq(path, "v2"))
		return 1;
	if (strncmp(repository, path, len) != 0 ||
	    (repository[len] != '\0' && repository[len] != '/'))
		return 0;
	return 1 + len;
}

/* The value of the best key in an object; NULL: none. */
static const struct bs_json *best(const struct bs_json *o, const char *host, const char *repository,
				  bool globs)
{
	const struct bs_json *found = NULL;
	size_t score = 0;

	if (!bs_json_is(o, BS_JSON_OBJECT))
		return NULL;
	for (size_t i = 0; i < o->n_items; i++) {
		size_t s = bs_auth_covers(o->keys[i], host, repository, globs);

		/* an empty entry only says that a helper has it */
		if (s > score &&
		    !(bs_json_is(o->items[i], BS_JSON_OBJECT) && bs_json_n(o->items[i]) == 0)) {
			score = s;
			found = o->items[i];
		}
	}
	return found;
}

/* --- what it says ---------------------------------------------------------------------------- */

/* base64 of "user:password". */
static int split_auth(const char *code, struct bs_auth_found *ret)
{
	size_t len = strlen(code), out;
	char *plain, *colon;
	int n;

	if (len == 0 || len % 4 || len > SECRET_MAX)
		return -EINVAL;
	plain = malloc(len / 4 * 3 + 1);
	if (!plain)
		return -ENOMEM;
	n = EVP_DecodeBlock((unsigned char *)plain, (const unsigned char *)code, (int)len);
	if (n < 0) {
		free(plain);
		return -EINVAL;
	}
	out = (size_t)n;
	out -= code[len - 1] == '=' ? (code[len - 2] == '=' ? 2 : 1) : 0;
	while (out && plain[out - 1] == '\0') /* as docker does */
		out--;
	plain[out] = '\0';
	colon = strchr(plain, ':');
	if (colon && strlen(plain) == out) {
		ret->user = strndup(plain, (size_t)(colon - plain));
		ret->secret = strdup(colon + 1);
	}
	explicit_bzero(plain, out);
	free(plain);
	if (!colon || !ret->user || !ret->secret || !ret->user[0]) {
		bs_auth_found_done(ret);
		return -EINVAL;
	}
	return 0;
}

static int set_pair(struct bs_auth_found *ret, const char *user, const char *secret)
{
	ret->user = strdup(user);
	ret->secret = strdup(secret);
	if (ret->user && ret->secret)
		return 0;
	bs_auth_found_done(ret);
	return -ENOMEM;
}

static int read_entry(const struct bs_json *entry, struct bs_auth_found *ret)
{
	const char *token = bs_json_str(bs_json_get(entry, "identitytoken"));
	const char *auth = bs_json_str(bs_json_get(entry, "auth"));
	const char *user = bs_json_str(bs_json_get(entry, "username"));
	const char *password = bs_json_str(bs_json_get(entry, "password"));

	if (token && *token)
		return set_pair(ret, "", token);
	if (auth && *auth)
		return split_auth(auth, ret);
	if (user && *user && password)
		return set_pair(ret, user, password);
	return -ENOENT;
}

/* The helper for host: that of credHelpers, else credsStore. NULL: none. */
static const char *find_helper(const struct bs_json *v, const char *host, const char *repository)
{
	const char *helper = bs_json_str(
		best(bs_json_get(v, "credHelpers"), host, repository, false));

	return helper ? helper : bs_json_str(bs_json_get(v, "credsStore"));
}

int bs_auth_from_config(const char *what, const char *text, size_t len, const char *host,
			const char *repository, bool globs, struct bs_auth_found *ret,
			struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_auth_found found = { 0 };
	const struct bs_json *auths, *entry;
	const char *helper;
	int r = bs_json_parse(what, text, len, BS_AUTH_FILE_MAX, &v, err);

	if (r < 0)
		return r;
	if (!bs_json_is(v, BS_JSON_OBJECT))
		return bs_fail(err, -EINVAL, "%s is no JSON object", what);
	helper = find_helper(v, host, repository);
	if (helper && *helper) {
		if (!bs_auth_name_ok(helper))
			return bs_fail(err, -EINVAL, "%s: '%.60s' is no name of a helper", what,
				       helper);
		found.helper = strdup(helper);
		if (!found.helper)
			return bs_fail(err, -ENOMEM, "%s: out of memory", what);
	}
	auths = bs_json_get(v, "auths");
	entry = best(auths ? auths : v, host, repository, globs);
	r = entry ? read_entry(entry, &found) : -ENOENT;
	if (r == -EINVAL)
		(void)bs_fail(err, r, "%s: the entry for %.100s is no base64 of USER:PASSWORD",
			      what, host);
	if (r == -ENOENT && found.helper)
		r = 0;
	if (r == 0)
		*ret = found;
	else
		bs_auth_found_done(&found);
	return r;
}

int bs_auth_from_helper(const char *what, const char *text, size_t len, struct bs_auth_found *ret,
			struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const char *user, *secret;
	int r = bs_json_parse(what, text, len, BS_AUTH_REPLY_MAX, &v, err);

	if (r < 0)
		return r;
	user = bs_json_str(bs_json_get(v, "Username"));
	secret = bs_json_str(bs_json_get(v, "Secret"));
	if (!user || !secret || !*secret)
		return bs_fail(err, -EINVAL, "%s: no Username and Secret in its answer", what);
	r = set_pair(ret, bs_streq(user, "<token>") ? "" : user, secret);
	return r < 0 ? bs_fail(err, r, "%s: out of memory", what) : 0;
}

int bs_auth_from_provider(const char *what, const char *text, size_t len, const char *host,
			  const char *repository, struct bs_auth_found *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const struct bs_json *entry;
	const char *kind, *user, *password;
	int r = bs_json_parse(what, text, len, BS_AUTH_REPLY_MAX, &v, err);

	if (r < 0)
		return r;
	kind = bs_json_str(bs_json_get(v, "kind"));
	if (!kind || !bs_streq(kind, "CredentialProviderResponse"))
		return bs_fail(err, -EINVAL, "%s: its answer is no CredentialProviderResponse",
			       what);
	entry = best(bs_json_get(v, "auth"), host, repository, true);
	if (!entry)
		return -ENOENT;
	user = bs_json_str(bs_json_get(entry, "username"));
	password = bs_json_str(bs_json_get(entry, "password"));
	if (!user || !*user || !password)
		return bs_fail(err, -EINVAL, "%s: no username and password for %.100s", what, host);
	r = set_pair(ret, user, password);
	return r < 0 ? bs_fail(err, r, "%s: out of memory", what) : 0;
}
