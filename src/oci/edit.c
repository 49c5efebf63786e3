/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/edit.h"

#include <errno.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/path.h"
#include "oci/config.h"

int bs_edit_annotation(struct bs_config *c, const char *key, const char *value,
		       struct bs_error *err)
{
	struct bs_json *annotations;
	int r;

	if (bs_json_is(bs_json_get(c->doc, "annotations"), BS_JSON_NULL))
		bs_json_remove(c->doc, "annotations");
	annotations = bs_json_make(c->doc, "annotations", BS_JSON_OBJECT);
	if (!annotations)
		return bs_fail(err, -ENOMEM, "set annotation '%s': out of memory", key);
	r = bs_json_set(annotations, key, bs_json_new_str(value));
	if (r < 0)
		return bs_fail_errno(err, r, "set annotation '%s'", key);
	c->annotations = annotations;
	return 0;
}

int bs_edit_bind(struct bs_config *c, const char *source, const char *target, unsigned int flags,
		 struct bs_error *err)
{
	const char *const options[] = {
		"bind",
		"rprivate",
		"nosuid",
		"nodev",
		flags & BS_BIND_WRITABLE ? "rw" : "ro",
		flags & BS_BIND_NOEXEC ? "noexec" : NULL,
		flags & BS_BIND_NOATIME ? "noatime" : NULL,
	};
	struct bs_json *mounts, *m = bs_json_new(BS_JSON_OBJECT), *list;
	int r;

	if (bs_json_is(bs_json_get(c->doc, "mounts"), BS_JSON_NULL))
		bs_json_remove(c->doc, "mounts");
	mounts = bs_json_make(c->doc, "mounts", BS_JSON_ARRAY);
	if (!mounts) {
		(void)bs_json_free(m);
		return bs_fail(err, -EINVAL, "config.json: member 'mounts' is no list");
	}
	r = bs_json_append(mounts, m);
	if (r == 0)
		r = bs_json_set(m, "destination", bs_json_new_str(target));
	if (r == 0)
		r = bs_json_set(m, "type", bs_json_new_str("bind"));
	if (r == 0)
		r = bs_json_set(m, "source", bs_json_new_str(source));
	list = r == 0 ? bs_json_make(m, "options", BS_JSON_ARRAY) : NULL;
	r = list ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < BS_ARRAY_LEN(options); i++) {
		if (options[i])
			r = bs_json_append(list, bs_json_new_str(options[i]));
	}
	return r < 0 ? bs_fail_errno(err, r, "add a mount at '%s'", target) : 0;
}

void bs_edit_unbind(struct bs_config *c, const char *dir)
{
	struct bs_json *mounts = bs_json_get(c->doc, "mounts");

	for (size_t i = bs_json_n(mounts); i-- > 0;) {
		const char *source = bs_json_str(bs_json_get(bs_json_at(mounts, i), "source"));

		if (source && bs_path_is_below(source, dir))
			bs_json_remove_at(mounts, i);
	}
}
