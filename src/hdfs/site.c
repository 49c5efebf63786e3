/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/site.h"

#include <errno.h>
#include <expat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"

#define DEPTH_MAX 16u
#define SUBSTITUTIONS_MAX 20u /* as Hadoop's */
#define SPACES " \t\r\n"

struct property {
	char *name, *value;
	bool is_final;
};

struct bs_site {
	struct bs_map map;
};

struct bs_site *bs_site_new(void)
{
	struct bs_site *s = calloc(1, sizeof(*s));

	if (s)
		bs_map_init(&s->map);
	return s;
}

static void property_free(struct property *p)
{
	free(p->name);
	free(p->value);
	free(p);
}

struct bs_site *bs_site_free(struct bs_site *s)
{
	struct property *p;
	size_t pos = 0;

	if (!s)
		return NULL;
	while ((p = bs_map_next(&s->map, &pos)))
		property_free(p);
	bs_map_done(&s->map);
	free(s);
	return NULL;
}

/* --- a file ---------------------------------------------------------------------------------- */

enum element { OTHER, CONFIGURATION, PROPERTY, NAME, VALUE, FINAL };

struct reading {
	XML_Parser parser;
	struct bs_site *site;
	enum element stack[DEPTH_MAX];
	unsigned int depth;
	struct bs_buf name, value, is_final;
	const char *bad; /* what is wrong, or NULL */
	int error;
};

static void refuse(struct reading *rd, int error, const char *why)
{
	if (!rd->error) {
		rd->error = error;
		rd->bad = why;
	}
	(void)XML_StopParser(rd->parser, XML_FALSE);
}

static enum element element_of(const struct reading *rd, const char *name)
{
	enum element parent = rd->depth ? rd->stack[rd->depth - 1] : OTHER;

	if (rd->depth == 0)
		return bs_streq(name, "configuration") ? CONFIGURATION : OTHER;
	if (parent == CONFIGURATION)
		return bs_streq(name, "property")	 ? PROPERTY
		       : bs_streq(name, "configuration") ? CONFIGURATION
							 : OTHER;
	if (parent != PROPERTY)
		return OTHER;
	return bs_streq(name, "name")	 ? NAME
	       : bs_streq(name, "value") ? VALUE
	       : bs_streq(name, "final") ? FINAL
					 : OTHER;
}

/* Hadoop takes them as attributes too. */
static void read_attributes(struct reading *rd, const char **attributes)
{
	for (; attributes[0]; attributes += 2) {
		struct bs_buf *to = bs_streq(attributes[0], "name")    ? &rd->name
				    : bs_streq(attributes[0], "value") ? &rd->value
				    : bs_streq(attributes[0], "final") ? &rd->is_final
								       : NULL;

		if (to)
			(void)bs_buf_adds(to, attributes[1]);
	}
}

static void on_start(void *cookie, const char *name, const char **attributes)
{
	struct reading *rd = cookie;
	enum element e = element_of(rd, name);

	if (rd->depth == 0 && e != CONFIGURATION) {
		refuse(rd, -EINVAL, "no <configuration>");
		return;
	}
	if (rd->depth == DEPTH_MAX) {
		refuse(rd, -EINVAL, "elements are nested too deep");
		return;
	}
	rd->stack[rd->depth++] = e;
	if (e == PROPERTY) {
		bs_buf_clear(&rd->name);
		bs_buf_clear(&rd->value);
		bs_buf_clear(&rd->is_final);
		read_attributes(rd, attributes);
	}
}

static char *trimmed(const char *text)
{
	size_t len;

	text += strspn(text, SPACES);
	len = strlen(text);
	while (len && strchr(SPACES, text[len - 1]))
		len--;
	return strndup(text, len);
}

static int put(struct reading *rd)
{
	struct property *old, *p;
	bs_autofree char *is_final = trimmed(bs_buf_str(&rd->is_final));

	if (rd->name.error || rd->value.error || rd->is_final.error || !is_final)
		return rd->name.error == -E2BIG || rd->value.error == -E2BIG ? -EINVAL : -ENOMEM;
	if (rd->name.len == 0)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->name = trimmed(bs_buf_str(&rd->name));
	p->value = trimmed(bs_buf_str(&rd->value));
	p->is_final = bs_streq(is_final, "true");
	old = p->name ? bs_map_get(&rd->site->map, p->name, strlen(p->name)) : NULL;
	if (old && old->is_final) {
		property_free(p);
		return 0;
	}
	if (!p->name || !p->value || rd->site->map.n >= BS_SITE_PROPERTIES_MAX ||
	    bs_map_put(&rd->site->map, p->name, strlen(p->name), p) < 0) {
		property_free(p);
		return rd->site->map.n >= BS_SITE_PROPERTIES_MAX ? -EINVAL : -ENOMEM;
	}
	if (old)
		property_free(old);
	return 0;
}

static void on_end(void *cookie, const char *name)
{
	struct reading *rd = cookie;
	int r;

	/* expat may still call when it was stopped */
	if (rd->error || rd->stack[--rd->depth] != PROPERTY)
		return;
	r = put(rd);
	if (r < 0)
		refuse(rd, r, "too many or too long properties");
}

static void on_text(void *cookie, const char *text, int len)
{
	struct reading *rd = cookie;
	enum element e = rd->depth ? rd->stack[rd->depth - 1] : OTHER;
	struct bs_buf *to = e == NAME ? &rd->name : e == VALUE ? &rd->value : &rd->is_final;

	if (e == NAME || e == VALUE || e == FINAL)
		(void)bs_buf_add(to, text, (size_t)len);
}

static void on_doctype(void *cookie, const char *name, const char *system, const char *public,
		       int has_internal)
{
	refuse(cookie, -EINVAL, "a document type is not accepted");
}

int bs_site_add(struct bs_site *s, const char *what, const char *bytes, size_t len,
		struct bs_error *err)
{
	struct reading rd = { .site = s,
			      .name = BS_BUF_INIT(BS_SITE_VALUE_MAX),
			      .value = BS_BUF_INIT(BS_SITE_VALUE_MAX),
			      .is_final = BS_BUF_INIT(64) };
	enum XML_Status status;
	int r = 0;

	if (len > BS_SITE_FILE_MAX)
		return bs_fail(err, -EFBIG, "%s: too big", what);
	rd.parser = XML_ParserCreate(NULL);
	if (!rd.parser)
		return bs_fail(err, -ENOMEM, "%s: out of memory", what);
	XML_SetUserData(rd.parser, &rd);
	XML_SetElementHandler(rd.parser, on_start, on_end);
	XML_SetCharacterDataHandler(rd.parser, on_text);
	XML_SetStartDoctypeDeclHandler(rd.parser, on_doctype);
	status = XML_Parse(rd.parser, bytes, (int)len, 1);
	if (rd.error)
		r = bs_fail(err, rd.error, "%s, line %lu: %s", what,
			    XML_GetCurrentLineNumber(rd.parser), rd.bad);
	else if (status != XML_STATUS_OK)
		r = bs_fail(err, -EINVAL, "%s, line %lu: %s", what,
			    XML_GetCurrentLineNumber(rd.parser),
			    XML_ErrorString(XML_GetErrorCode(rd.parser)));
	XML_ParserFree(rd.parser);
	bs_buf_done(&rd.name);
	bs_buf_done(&rd.value);
	bs_buf_done(&rd.is_final);
	return r;
}

int bs_site_load(const char *dir, struct bs_site **ret, struct bs_error *err)
{
	static const char *const files[] = { "core-site.xml", "hdfs-site.xml" };
	const char *env = secure_getenv("HADOOP_CONF_DIR");
	bs_auto(site) struct bs_site *s = bs_site_new();

	if (!s)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	if (!dir)
		dir = env && *env ? env : "/etc/hadoop/conf";
	for (size_t i = 0; i < BS_ARRAY_LEN(files); i++) {
		bs_autofree char *name = bs_strf("%s/%s", dir, files[i]);
		bs_autofree char *bytes = NULL;
		size_t len;
		int r;

		if (!name)
			return bs_fail(err, -ENOMEM, "HDFS: out of memory");
		r = bs_read_file_at(AT_FDCWD, name, 0, BS_SITE_FILE_MAX, &bytes, &len);
		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r < 0)
			return bs_fail_errno(err, r, "'%s'", name);
		r = bs_site_add(s, name, bytes, len, err);
		if (r < 0)
			return r;
	}
	*ret = bs_take(&s);
	return 0;
}

/* --- values ---------------------------------------------------------------------------------- */

static const struct property *find(const struct bs_site *s, const char *name, size_t len)
{
	return s ? bs_map_get(&s->map, name, len) : NULL;
}

/* Replaces the first ${name} that can be: 1, 0 when there is none, -ENOMEM. */
static int substitute(const struct bs_site *s, char **text)
{
	const char *at = *text;

	while ((at = strstr(at, "${"))) {
		size_t len = strcspn(at + 2, "}$ ");
		const struct property *p = find(s, at + 2, len);
		char *changed;

		if (at[2 + len] != '}' || !p || len == 0) {
			at += 2;
			continue;
		}
		if (strlen(*text) + strlen(p->value) > BS_SITE_VALUE_MAX)
			return 0;
		changed = bs_strf("%.*s%s%s", (int)(at - *text), *text, p->value, at + len + 3);
		if (!changed)
			return -ENOMEM;
		free(*text);
		*text = changed;
		return 1;
	}
	return 0;
}

char *bs_site_get(const struct bs_site *s, const char *name)
{
	const struct property *p = find(s, name, strlen(name));
	char *text = p ? bs_strf("%s", p->value) : NULL;

	for (unsigned int i = 0; text && i < SUBSTITUTIONS_MAX; i++) {
		int r = substitute(s, &text);

		if (r < 0) {
			free(text);
			return NULL;
		}
		if (r == 0)
			break;
	}
	return text;
}
