/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/edit.h"

#include <errno.h>

#include "base/error.h"
#include "base/json.h"
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
