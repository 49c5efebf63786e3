/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The grammar is that of the distribution project's reference package:
 *   host       domain name, IPv4 or [IPv6], with an optional :port
 *   name       components of [a-z0-9]+ joined by '.', '_', '__' or '-'+, at most 255 bytes
 *   tag        [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}
 * The first component is a host only if it has a '.', a ':' or a capital letter, or is
 * "localhost"; else the host is docker.io, and a name of one component lies in library/.
 */
#include "config.h"

#include "oci/ref.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"

#define TEXT_MAX 8192
#define HOST_MAX 260
#define NAME_MAX_LEN 255
#define TAG_MAX_LEN 128

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_alnum(char c)
{
	return is_lower(c) || is_upper(c) || is_digit(c);
}

bool bs_ref_tag_ok(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > TAG_MAX_LEN || (!is_alnum(s[0]) && s[0] != '_'))
		return false;
	for (size_t i = 1; i < len; i++) {
		if (!is_alnum(s[i]) && !strchr("_.-", s[i]))
			return false;
	}
	return true;
}

/* The length of a separator at s: '.', '_', "__" or any number of '-'; 0: there is none. */
static size_t separator(const char *s)
{
	if (s[0] == '_')
		return s[1] == '_' ? 2 : 1;
	return s[0] == '.' ? 1 : strspn(s, "-");
}

static bool name_ok(const char *s)
{
	if (strlen(s) > NAME_MAX_LEN)
		return false;
	for (;;) {
		if (!is_lower(*s) && !is_digit(*s))
			return false;
		while (is_lower(*s) || is_digit(*s))
			s++;
		if (*s == '\0')
			return true;
		if (*s == '/') {
			s++;
			continue;
		}
		if (separator(s) == 0)
			return false;
		s += separator(s);
	}
}

static bool domain_ok(const char *s, size_t len)
{
	size_t start = 0;

	if (len == 0)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && (is_alnum(s[i]) || s[i] == '-'))
			continue;
		if (i < len && s[i] != '.')
			return false;
		if (i == start || i - start > 63 || s[start] == '-' || s[i - 1] == '-')
			return false;
		start = i + 1;
	}
	return true;
}

static bool port_ok(const char *s)
{
	uint32_t port;

	return strlen(s) <= 5 && bs_parse_u32(s, &port) == 0 && port > 0 && port <= 65535;
}

static bool ipv6_ok(const char *s, size_t len)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &addr) == 1;
}

static bool host_ok(const char *s)
{
	const char *end;

	if (strlen(s) > HOST_MAX)
		return false;
	if (s[0] == '[') {
		end = strchr(s, ']');
		if (!end || !ipv6_ok(s + 1, (size_t)(end - s - 1)))
			return false;
		end++;
	} else {
		end = s + strcspn(s, ":");
		if (!domain_ok(s, (size_t)(end - s)))
			return false;
	}
	return *end == '\0' || (*end == ':' && port_ok(end + 1));
}

/* Does the first component of a name without scheme mean a host? */
static bool is_host(const char *s, size_t len)
{
	if (len == strlen("localhost") && memcmp(s, "localhost", len) == 0)
		return true;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.' || s[i] == ':' || is_upper(s[i]))
			return true;
	}
	return false;
}

/* --- pieces -------------------------------------------------------------------------------- */

/* Cuts "@sha256:…" off the end of text. */
static int take_digest(char *text, struct bs_ref *ref, struct bs_error *err)
{
	char *at = strrchr(text, '@');

	if (!at)
		return 0;
	if (ref->kind != BS_REF_REGISTRY && (!bs_str_after(at + 1, "sha256:") || strchr(at, '/')))
		return 0; /* a directory may have an '@' in its name */
	if (bs_digest_parse(at + 1, strlen(at + 1), &ref->digest) < 0)
		return bs_fail(err, -EINVAL,
			       "'%s': '%s' is no digest (sha256: and 64 lower-case hex digits)",
			       text, at + 1);
	ref->has_digest = true;
	*at = '\0';
	return 0;
}

/* Cuts ":TAG" off the end of text; a ':' before the last '/' is none. */
static int take_tag(char *text, struct bs_ref *ref, struct bs_error *err)
{
	char *colon = strrchr(text, ':');

	if (!colon || strchr(colon, '/'))
		return 0;
	if (!bs_ref_tag_ok(colon + 1))
		return bs_fail(err, -EINVAL,
			       "'%s': '%s' is no tag (at most %d of A-Z a-z 0-9 _ . -)", text,
			       colon + 1, TAG_MAX_LEN);
	ref->tag = bs_strf("%s", colon + 1);
	*colon = '\0';
	return ref->tag ? 0 : bs_fail(err, -ENOMEM, "out of memory");
}

static int parse_registry(const char *shown, char *text, struct bs_ref *ref, struct bs_error *err)
{
	char *slash;
	int r;

	if (shown[0] == '/' || shown[0] == '.')
		return bs_fail(err, -EINVAL, "'%s' is no image: a directory is given as 'oci:%s'",
			       shown, shown);
	r = take_digest(text, ref, err);
	/* "host:5000" alone would read as a name with a tag: names win, as docker has it */
	if (r == 0)
		r = take_tag(text, ref, err);
	if (r < 0)
		return r;
	slash = strchr(text, '/');
	if (slash && is_host(text, (size_t)(slash - text))) {
		*slash = '\0';
		if (!host_ok(text))
			return bs_fail(err, -EINVAL, "'%s': '%s' is no host", shown, text);
		ref->host = bs_strf("%s", bs_streq(text, "index.docker.io") ? "docker.io" : text);
		text = slash + 1;
	} else if (slash && text[0] == '[') {
		*slash = '\0';
		return bs_fail(err, -EINVAL, "'%s': '%s' is no host", shown, text);
	} else {
		ref->host = bs_strf("docker.io");
	}
	if (!ref->host)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (bs_streq(ref->host, "docker.io") && !strchr(text, '/'))
		ref->name = bs_strf("library/%s", text);
	else
		ref->name = bs_strf("%s", text);
	if (!ref->name)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (!name_ok(ref->name))
		return bs_fail(err, -EINVAL,
			       "'%s': '%s' is no repository name (at most %d of a-z 0-9, single . "
			       "_ or - between them, parts divided by '/')",
			       shown, text, NAME_MAX_LEN);
	return 0;
}

static int parse_dir(const char *shown, char *text, struct bs_ref *ref, struct bs_error *err)
{
	int r = 0;

	if (ref->kind == BS_REF_LAYOUT) {
		r = take_digest(text, ref, err);
		if (r == 0)
			r = take_tag(text, ref, err);
	}
	if (r < 0)
		return r;
	if (*text == '\0')
		return bs_fail(err, -EINVAL, "'%s': no directory is named", shown);
	ref->dir = bs_strf("%s", text);
	return ref->dir ? 0 : bs_fail(err, -ENOMEM, "out of memory");
}

/* No name on HDFS has a ':', so that one begins a tag; those of the host are none. */
static int parse_hdfs(const char *shown, char *text, struct bs_ref *ref, struct bs_error *err)
{
	char *path = strchr(strstr(text, "://") + 3, '/');
	int r = path ? take_digest(path, ref, err) : 0;

	if (r == 0 && path)
		r = take_tag(path, ref, err);
	if (r < 0)
		return r;
	/* one way to write it: policy holds it against the directories that it allows */
	if (!path || bs_streq(path, "/") || !bs_path_is_clean(path) || strchr(path, ':'))
		return bs_fail(err, -EINVAL,
			       "'%s': a directory of HDFS is written as hdfs://HOST/DIR, without "
			       "'/' behind, ':' or empty, '.' or '..' parts in it",
			       shown);
	ref->dir = bs_strf("%s", text);
	return ref->dir ? 0 : bs_fail(err, -ENOMEM, "out of memory");
}

/* --- the whole ------------------------------------------------------------------------------- */

static int parse(const char *text, struct bs_ref *ref, struct bs_error *err)
{
	bs_autofree char *copy = NULL;
	const char *rest = text;
	size_t len = strlen(text);

	if (len > TEXT_MAX)
		return bs_fail(err, -EINVAL, "an image's name of %zu bytes: the bound is %d", len,
			       TEXT_MAX);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return bs_fail(err, -EINVAL,
				       "an image's name with a control character at byte %zu", i);
	}
	if (bs_ref_is_hdfs(text)) {
		ref->kind = BS_REF_HDFS;
		rest = text;
	} else if ((rest = bs_str_after(text, "oci:"))) {
		ref->kind = BS_REF_LAYOUT;
	} else if ((rest = bs_str_after(text, "rootfs:"))) {
		ref->kind = BS_REF_ROOTFS;
	} else {
		ref->kind = BS_REF_REGISTRY;
		rest = bs_str_after(text, "docker://");
		if (!rest && strstr(text, "://"))
			return bs_fail(
				err, -EINVAL,
				"'%s': known are docker://HOST/NAME, oci:DIR, hdfs://HOST/DIR "
				"and rootfs:DIR",
				text);
		rest = rest ? rest : text;
	}
	copy = bs_strf("%s", rest);
	if (!copy)
		return bs_fail(err, -ENOMEM, "out of memory");
	if (ref->kind == BS_REF_REGISTRY)
		return parse_registry(text, copy, ref, err);
	if (ref->kind == BS_REF_HDFS)
		return parse_hdfs(text, copy, ref, err);
	return parse_dir(text, copy, ref, err);
}

int bs_ref_parse(const char *text, struct bs_ref *ret, struct bs_error *err)
{
	struct bs_ref ref = { 0 };
	int r = parse(text, &ref, err);

	if (r < 0)
		bs_ref_done(&ref);
	else
		*ret = ref;
	return r;
}

bool bs_ref_is_hdfs(const char *text)
{
	return bs_str_after(text, "hdfs://") || bs_str_after(text, "webhdfs://") ||
	       bs_str_after(text, "swebhdfs://");
}

bool bs_ref_is_full(const char *text)
{
	const char *rest, *slash;

	if (bs_ref_is_hdfs(text)) {
		slash = strchr(strstr(text, "://") + 3, '/');
		return slash && slash[1];
	}
	if ((rest = bs_str_after(text, "oci:")) || (rest = bs_str_after(text, "rootfs:")))
		return *rest != '\0';
	rest = bs_str_after(text, "docker://");
	rest = rest ? rest : text;
	slash = strchr(rest, '/');
	return slash && slash > rest && is_host(rest, (size_t)(slash - rest));
}

void bs_ref_done(struct bs_ref *r)
{
	free(r->host);
	free(r->name);
	free(r->dir);
	free(r->tag);
	*r = (struct bs_ref){ 0 };
}

char *bs_ref_reference(const struct bs_ref *r)
{
	char text[BS_DIGEST_TEXT_LEN];

	if (r->has_digest)
		return bs_strf("%s", bs_digest_text(&r->digest, text));
	return bs_strf("%s", r->tag ? r->tag : "latest");
}

char *bs_ref_text(const struct bs_ref *r, bool without_tag)
{
	char text[BS_DIGEST_TEXT_LEN];
	bs_autobuf b = BS_BUF_INIT(2 * TEXT_MAX);

	if (r->kind == BS_REF_REGISTRY)
		(void)bs_buf_addf(&b, "docker://%s/%s", r->host, r->name);
	else
		(void)bs_buf_addf(&b, "%s%s",
				  r->kind == BS_REF_LAYOUT   ? "oci:"
				  : r->kind == BS_REF_ROOTFS ? "rootfs:"
							     : "",
				  r->dir);
	if (!without_tag && r->tag)
		(void)bs_buf_addf(&b, ":%s", r->tag);
	if (!without_tag && r->has_digest)
		(void)bs_buf_addf(&b, "@%s", bs_digest_text(&r->digest, text));
	return bs_buf_take(&b);
}
