/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/place.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "hdfs/path.h"
#include "hdfs/site.h"

#define HTTP_PORT "9870"
#define HTTPS_PORT "9871"
#define RPC_PORT "8020"
#define NAMENODES_MAX 16u

void bs_hdfs_place_done(struct bs_hdfs_place *p)
{
	free(p->name);
	free(p->path);
	bs_strv_done(&p->endpoints);
	bs_strv_done(&p->services);
	*p = (struct bs_hdfs_place){ 0 };
}

/* "NAME", "HOST:PORT", "[V6]:PORT"; what goes into a URL and a file's key. */
static bool authority_ok(const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
	const char *rest = text;
	uint32_t port;

	if (*text == '[') {
		size_t n = strspn(text + 1, "0123456789abcdefABCDEF:.");

		if (n < 2 || text[n + 1] != ']')
			return false;
		rest = text + n + 2;
	} else {
		rest = text + strspn(text, plain);
		if (rest == text)
			return false;
	}
	return !*rest || (*rest == ':' && bs_parse_u32(rest + 1, &port) == 0 && port > 0 &&
			  port <= UINT16_MAX);
}

/* The host alone, in brackets if it is a V6 address; the length. */
static size_t host_len(const char *authority)
{
	const char *end = *authority == '[' ? strchr(authority, ']') : NULL;

	return end ? (size_t)(end + 1 - authority) : strcspn(authority, ":");
}

static bool has_port(const char *authority)
{
	return authority[host_len(authority)] == ':';
}

static char *get(const struct bs_site *site, const char *key, const char *ns, const char *nn)
{
	bs_autofree char *name = bs_strf("%s%s%s%s%s", key, ns ? "." : "", ns ? ns : "",
					 nn ? "." : "", nn ? nn : "");

	return name ? bs_site_get(site, name) : NULL;
}

static bool wants_https(const struct bs_site *site)
{
	bs_autofree char *policy = get(site, "dfs.http.policy", NULL, NULL);

	return policy && bs_streq(policy, "HTTPS_ONLY");
}

/* The HTTP address of a NameNode whose RPC address may be known. */
static int add_namenode(struct bs_hdfs_place *p, const struct bs_site *site, const char *ns,
			const char *nn, const char *rpc)
{
	const char *key = p->https ? "dfs.namenode.https-address" : "dfs.namenode.http-address";
	bs_autofree char *http = get(site, key, ns, nn);
	const char *port = p->https ? HTTPS_PORT : HTTP_PORT;
	int r;

	/* 0.0.0.0 is where it listens, not where it is */
	if (http && (!authority_ok(http) || strncmp(http, "0.0.0.0", 7) == 0)) {
		const char *given = has_port(http) ? http + host_len(http) + 1 : port;
		bs_autofree char *listens = http;

		http = NULL;
		if (!rpc || strncmp(listens, "0.0.0.0", 7) != 0)
			return -EINVAL;
		http = bs_strf("%.*s:%s", (int)host_len(rpc), rpc, given);
		if (!http)
			return -ENOMEM;
	}
	if (!http && rpc)
		http = bs_strf("%.*s:%s", (int)host_len(rpc), rpc, port);
	if (!http)
		return -ENOENT;
	if (!authority_ok(http))
		return -EINVAL;
	r = has_port(http) ? bs_strv_add(&p->endpoints, http)
			   : bs_strv_addf(&p->endpoints, "%s:%s", http, port);
	if (r == 0 && rpc)
		r = has_port(rpc) ? bs_strv_add(&p->services, rpc)
				  : bs_strv_addf(&p->services, "%s:" RPC_PORT, rpc);
	return r < 0 ? r : bs_strv_add(&p->services, p->endpoints.v[p->endpoints.n - 1]);
}

static bool is_service(const struct bs_site *site, const char *authority)
{
	bs_autofree char *all = get(site, "dfs.nameservices", NULL, NULL);
	bs_autostrv names = { 0 };

	return all && bs_strv_split(&names, all, ", \t\r\n") == 0 && bs_strv_has(&names, authority);
}

static int add_service(struct bs_hdfs_place *p, const struct bs_site *site, const char *ns,
		       struct bs_error *err)
{
	bs_autofree char *list = get(site, "dfs.ha.namenodes", ns, NULL);
	bs_autostrv names = { 0 };
	int r = 0;

	if (bs_strv_addf(&p->services, "ha-hdfs:%s", ns) < 0 ||
	    bs_strv_addf(&p->services, "ha-%s:%s", p->https ? "swebhdfs" : "webhdfs", ns) < 0 ||
	    (list && bs_strv_split(&names, list, ", \t\r\n") < 0))
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	if (names.n > NAMENODES_MAX)
		return bs_fail(err, -EINVAL, "dfs.ha.namenodes.%s: more than %u NameNodes", ns,
			       NAMENODES_MAX);
	if (names.n == 0 && bs_strv_add(&names, "") < 0)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		const char *nn = *names.v[i] ? names.v[i] : NULL;
		bs_autofree char *rpc = get(site, "dfs.namenode.rpc-address", ns, nn);

		if (rpc && !authority_ok(rpc))
			return bs_fail(err, -EINVAL,
				       "dfs.namenode.rpc-address.%s%s%s: '%s' is no "
				       "address",
				       ns, nn ? "." : "", nn ? nn : "", rpc);
		r = add_namenode(p, site, ns, nn, rpc);
		if (r < 0)
			return bs_fail(err, r,
				       "name service '%s': no address of NameNode '%s' in "
				       "hdfs-site.xml (dfs.namenode.%s-address.%s%s%s)",
				       ns, nn ? nn : "", p->https ? "https" : "http", ns,
				       nn ? "." : "", nn ? nn : "");
	}
	return 0;
}

static bool same_rpc(const char *a, const char *b)
{
	size_t n = host_len(a);

	return n == host_len(b) && strncmp(a, b, n) == 0 &&
	       bs_streq(has_port(a) ? a + n + 1 : RPC_PORT, has_port(b) ? b + n + 1 : RPC_PORT);
}

/* A NameNode by its RPC address. */
static int add_rpc(struct bs_hdfs_place *p, const struct bs_site *site, const char *authority)
{
	bs_autofree char *rpc = get(site, "dfs.namenode.rpc-address", NULL, NULL);
	bs_autofree char *fs = get(site, "fs.defaultFS", NULL, NULL);
	const char *rest = fs ? bs_str_after(fs, "hdfs://") : NULL;
	bool ours;

	if (!rpc && rest) /* as Hadoop has it */
		rpc = strndup(rest, strcspn(rest, "/"));
	/* its own HTTP address counts if it is the NameNode of these files */
	ours = rpc && same_rpc(rpc, authority);
	return add_namenode(p, ours ? site : NULL, NULL, NULL, authority);
}

static int add_endpoints(struct bs_hdfs_place *p, const struct bs_site *site, const char *scheme,
			 const char *authority, struct bs_error *err)
{
	int r;

	p->https = bs_streq(scheme, "swebhdfs") || (bs_streq(scheme, "hdfs") && wants_https(site));
	if (!authority_ok(authority))
		return bs_fail(err, -EINVAL, "'%s' is no HDFS name service and no HOST[:PORT]",
			       authority);
	if (!has_port(authority) && is_service(site, authority))
		return add_service(p, site, authority, err);
	if (bs_streq(scheme, "hdfs")) {
		r = add_rpc(p, site, authority);
	} else {
		r = has_port(authority) ? bs_strv_add(&p->endpoints, authority)
					: bs_strv_addf(&p->endpoints, "%s:%s", authority,
						       p->https ? HTTPS_PORT : HTTP_PORT);
		if (r == 0)
			r = bs_strv_add(&p->services, p->endpoints.v[0]);
	}
	return r < 0 ? bs_fail_errno(err, r, "'%s'", authority) : 0;
}

static const char *scheme_of(const char *url, const char **ret_rest)
{
	static const char *const schemes[] = { "hdfs", "webhdfs", "swebhdfs" };

	for (size_t i = 0; i < BS_ARRAY_LEN(schemes); i++) {
		const char *rest = bs_str_after(url, schemes[i]);

		rest = rest ? bs_str_after(rest, "://") : NULL;
		if (rest) {
			*ret_rest = rest;
			return schemes[i];
		}
	}
	return NULL;
}

/* hdfs:///: the authority of fs.defaultFS, and its scheme. */
static int default_fs(const struct bs_site *site, const char **scheme, char **authority,
		      struct bs_error *err)
{
	bs_autofree char *fs = get(site, "fs.defaultFS", NULL, NULL);
	const char *rest = NULL;

	*scheme = fs ? scheme_of(fs, &rest) : NULL;
	if (!*scheme)
		return bs_fail(err, -EINVAL,
			       "hdfs:///: there is no fs.defaultFS of HDFS in "
			       "core-site.xml (see HADOOP_CONF_DIR)");
	free(*authority);
	*authority = strndup(rest, strcspn(rest, "/"));
	return *authority ? 0 : bs_fail(err, -ENOMEM, "HDFS: out of memory");
}

int bs_hdfs_place(const char *url, const struct bs_site *site, struct bs_hdfs_place *ret,
		  struct bs_error *err)
{
	bs_autoplace p = { 0 };
	const char *rest = NULL, *scheme = scheme_of(url, &rest);
	bs_autofree char *authority = NULL;
	int r;

	if (!scheme)
		return bs_fail(err, -EINVAL, "'%s': not hdfs://, webhdfs:// or swebhdfs://", url);
	authority = strndup(rest, strcspn(rest, "/"));
	if (!authority)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	rest += strlen(authority);
	p.path = bs_path_clean(*rest ? rest : "/");
	if (!p.path)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	r = bs_hdfs_path_check(p.path);
	if (r < 0)
		return bs_fail_errno(err, r, "'%s': HDFS can have no such path", url);
	if (!*authority) {
		r = default_fs(site, &scheme, &authority, err);
		if (r < 0)
			return r;
	}
	r = add_endpoints(&p, site, scheme, authority, err);
	if (r < 0)
		return r;
	p.name = bs_strf("%s://%s", scheme, authority);
	if (!p.name)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	*ret = p;
	p = (struct bs_hdfs_place){ 0 };
	return 0;
}
