/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/layout_index.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#define REF_NAME "org.opencontainers.image.ref.name"

int bs_layout_index_parse(const char *shown, const char *bytes, size_t len, struct bs_json **ret,
			  struct bs_error *err)
{
	bs_auto(json) struct bs_json *index = NULL;
	int r = bs_json_parse("index.json", bytes, len, BS_LAYOUT_INDEX_MAX, &index, err);

	if (r < 0) {
		(void)bs_error_context(err, "%s", shown);
		return r;
	}
	if (!bs_json_is(index, BS_JSON_OBJECT) || !bs_json_make(index, "manifests", BS_JSON_ARRAY))
		return bs_fail(err, -EBADMSG, "%s: index.json is no image index", shown);
	*ret = bs_take(&index);
	return 0;
}

const char *bs_layout_index_tag(const struct bs_json *entry)
{
	return bs_json_str(bs_json_get(bs_json_get(entry, "annotations"), REF_NAME));
}

static bool entry_is(const struct bs_json *entry, const struct bs_digest *d)
{
	char text[BS_DIGEST_TEXT_LEN];
	const char *other = bs_json_str(bs_json_get(entry, "digest"));

	return other && bs_streq(other, bs_digest_text(d, text));
}

/* "docker.io/library/x:TAG", as some tools write the whole name. */
static bool names_tag(const char *name, const char *tag)
{
	const char *colon = strrchr(name, ':');

	return colon && strchr(name, '/') && bs_streq(colon + 1, tag);
}

/*
 * The entry for a tag: that which is named so; else the only one that is named "NAME:tag";
 * else, for "latest", the only image that has no name at all.
 */
const struct bs_json *bs_layout_index_find(const struct bs_json *index, const char *tag)
{
	const struct bs_json *list = bs_json_get(index, "manifests");
	const struct bs_json *full = NULL, *unnamed = NULL;
	size_t n_full = 0, n_unnamed = 0;

	for (size_t i = 0; i < bs_json_n(list); i++) {
		const struct bs_json *entry = bs_json_at(list, i);
		const char *name = bs_layout_index_tag(entry);

		if (name && bs_streq(name, tag))
			return entry;
		if (name && names_tag(name, tag)) {
			full = entry;
			n_full++;
		} else if (!name && !bs_json_get(entry, "artifactType")) {
			unnamed = entry;
			n_unnamed++;
		}
	}
	if (n_full == 1)
		return full;
	return n_full == 0 && n_unnamed == 1 && bs_streq(tag, "latest") ? unnamed : NULL;
}

static void remove_entries(struct bs_json *index, const char *tag, const struct bs_digest *d)
{
	struct bs_json *list = bs_json_get(index, "manifests");

	for (size_t i = bs_json_n(list); i-- > 0;) {
		const struct bs_json *entry = bs_json_at(list, i);
		const char *name = bs_layout_index_tag(entry);

		/* the tag's old entry, and an unnamed one of the same manifest */
		if (tag ? (name && bs_streq(name, tag)) || (!name && entry_is(entry, d))
			: entry_is(entry, d) && !name)
			bs_json_remove_at(list, i);
	}
}

static bool is_listed(const struct bs_json *index, const struct bs_digest *d)
{
	const struct bs_json *list = bs_json_get(index, "manifests");

	for (size_t i = 0; i < bs_json_n(list); i++) {
		if (entry_is(bs_json_at(list, i), d))
			return true;
	}
	return false;
}

/* Under its tag, and in no other way. */
static bool is_tagged(const struct bs_json *index, const struct bs_layout_entry *e)
{
	const struct bs_json *list = bs_json_get(index, "manifests");
	bool tagged = false;

	for (size_t i = 0; i < bs_json_n(list); i++) {
		const struct bs_json *entry = bs_json_at(list, i);
		const char *name = bs_layout_index_tag(entry);
		const char *type = bs_json_str(bs_json_get(entry, "mediaType"));

		if (!entry_is(entry, e->digest)) {
			if (name && bs_streq(name, e->tag))
				return false;
			continue;
		}
		if (!name)
			return false;
		tagged = tagged ||
			 (bs_streq(name, e->tag) && type && bs_streq(type, e->media_type));
	}
	return tagged;
}

static int new_entry(const struct bs_layout_entry *e, struct bs_json **ret)
{
	bs_auto(json) struct bs_json *entry = bs_json_new(BS_JSON_OBJECT);
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_json *annotations;

	if (!entry || bs_json_set(entry, "mediaType", bs_json_new_str(e->media_type)) < 0 ||
	    bs_json_set(entry, "digest", bs_json_new_str(bs_digest_text(e->digest, text))) < 0 ||
	    bs_json_set(entry, "size", bs_json_new_u64(e->len)) < 0)
		return -ENOMEM;
	if (e->artifact_type &&
	    bs_json_set(entry, "artifactType", bs_json_new_str(e->artifact_type)) < 0)
		return -ENOMEM;
	if (e->tag) {
		annotations = bs_json_make(entry, "annotations", BS_JSON_OBJECT);
		if (!annotations || bs_json_set(annotations, REF_NAME, bs_json_new_str(e->tag)) < 0)
			return -ENOMEM;
	}
	*ret = bs_take(&entry);
	return 0;
}

static bool is_other(const struct bs_json *index, const struct bs_layout_entry *e)
{
	const struct bs_json *entry = bs_layout_index_find(index, e->tag);

	return e->was ? !entry || !entry_is(entry, e->was) : entry != NULL;
}

int bs_layout_index_add(struct bs_json *index, const struct bs_layout_entry *e)
{
	bs_auto(json) struct bs_json *entry = NULL;
	int r;

	if (e->tag ? is_tagged(index, e) : is_listed(index, e->digest))
		return 0;
	if (e->guarded && is_other(index, e))
		return -EEXIST;
	r = new_entry(e, &entry);
	if (r < 0)
		return r;
	remove_entries(index, e->tag, e->digest);
	r = bs_json_append(bs_json_get(index, "manifests"), bs_take(&entry));
	return r < 0 ? r : 1;
}

int bs_layout_index_remove(struct bs_json *index, const struct bs_digest *d)
{
	struct bs_json *list = bs_json_get(index, "manifests");
	size_t n = bs_json_n(list);

	for (size_t i = n; i-- > 0;)
		if (entry_is(bs_json_at(list, i), d))
			bs_json_remove_at(list, i);
	return bs_json_n(list) < n;
}
