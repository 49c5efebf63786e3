/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/config.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "oci/bundle.h"

/* The members of runtime-spec's config.md, by object. */
static const char *const top_members[] = { "ociVersion", "root",       "mounts",  "process",
					   "hostname",	 "domainname", "hooks",	  "annotations",
					   "linux",	 "solaris",    "windows", "vm",
					   "zos" };
static const char *const root_members[] = { "path", "readonly" };

static int refuse_variants(const struct bs_json *v, const char *path, const char *const *names,
			   size_t n, struct bs_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *variant = bs_json_variant(v, names[i]);

		if (variant)
			return bs_fail(err, -EINVAL,
				       "config.json: member '%s%s' differs from '%s' only in case, "
				       "and runtimes may take it for that",
				       path, variant, names[i]);
	}
	return 0;
}

/* The member when it is of that type; absent ones are NULL, which optional allows. */
static int get(const struct bs_json *v, const char *path, const char *key, enum bs_json_type type,
	       bool optional, const struct bs_json **ret, struct bs_error *err)
{
	const struct bs_json *m = bs_json_get(v, key);

	if (!m && !optional)
		return bs_fail(err, -EINVAL, "config.json: member '%s%s' is missing", path, key);
	if (m && m->type == BS_JSON_NULL && optional)
		m = NULL;
	if (m && m->type != type)
		return bs_fail(err, -EINVAL, "config.json: member '%s%s' is of type %s, not %s",
			       path, key, bs_json_type_name(m->type), bs_json_type_name(type));
	*ret = m;
	return 0;
}

static int read_root(struct bs_config *c, struct bs_error *err)
{
	const struct bs_json *root, *path, *readonly;
	int r = get(c->doc, "", "root", BS_JSON_OBJECT, false, &root, err);

	if (r == 0)
		r = refuse_variants(root, "root.", root_members, BS_ARRAY_LEN(root_members), err);
	if (r == 0)
		r = get(root, "root.", "path", BS_JSON_STRING, false, &path, err);
	if (r == 0)
		r = get(root, "root.", "readonly", BS_JSON_BOOL, true, &readonly, err);
	if (r < 0)
		return r;
	if (path->len == 0)
		return bs_fail(err, -EINVAL, "config.json: member 'root.path' is empty");
	c->root_path = path->text;
	c->root_readonly = readonly && readonly->truth;
	return 0;
}

int bs_config_parse(const char *text, size_t len, struct bs_config *ret, struct bs_error *err)
{
	bs_autoconfig c = { 0 };
	int r = bs_json_parse("config.json", text, len, BS_CONFIG_BYTES_MAX, &c.doc, err);

	if (r < 0)
		return r;
	if (c.doc->type != BS_JSON_OBJECT)
		return bs_fail(err, -EINVAL, "config.json holds no object");
	r = refuse_variants(c.doc, "", top_members, BS_ARRAY_LEN(top_members), err);
	if (r == 0)
		r = read_root(&c, err);
	if (r == 0)
		r = get(c.doc, "", "annotations", BS_JSON_OBJECT, true, &c.annotations, err);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct bs_config){ 0 };
	return 0;
}

void bs_config_done(struct bs_config *c)
{
	c->doc = bs_json_free(c->doc);
}

int bs_config_write(const struct bs_config *c, struct bs_buf *out, struct bs_error *err)
{
	int r = bs_json_write(c->doc, out);

	return r < 0 ? bs_fail_errno(err, r, "write config.json anew") : 0;
}
