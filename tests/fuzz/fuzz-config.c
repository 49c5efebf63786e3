/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * config.json: the first look must see what the strict reading finds, or a container
 * that is ours would be started without us. Annotations, edits, the state file.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "oci/annot.h"
#include "oci/config.h"
#include "oci/edit.h"
#include "oci/look.h"
#include "oci/state.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool has_ours(const struct bs_json *annotations)
{
	for (size_t i = 0; i < bs_json_n(annotations); i++) {
		if (bs_str_after(annotations->keys[i], BS_ANNOT_PREFIX))
			return true;
	}
	return false;
}

static void check(const struct bs_config *c, const struct bs_look *l)
{
	bs_autostrv unknown = { 0 }, names = { 0 };
	struct bs_annot a;

	/* half a surrogate pair is "?" to the one and U+FFFD to the other */
	if (!l->too_many && !strchr(c->root_path, '?') && !bs_strv_has(&l->roots, c->root_path))
		abort();
	if (has_ours(c->annotations) && !l->annotation)
		abort();
	(void)bs_annot_read(c->annotations, &a, &unknown, NULL);
	(void)bs_annot_image_names(c->annotations, &names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *text = (const char *)data;
	bs_autobuf out = BS_BUF_INIT(64 << 20);
	bs_autoconfig c = { 0 }, again = { 0 };
	bs_autostate s = { 0 };
	struct bs_look l;

	(void)bs_state_parse(text, size, &s, NULL);
	if (bs_look(text, size, &l) < 0)
		return 0;
	if (bs_config_parse(text, size, &c, NULL) == 0) {
		check(&c, &l);
		if (bs_edit_annotation(&c, BS_ANNOT_SERVED, "x", NULL) < 0 ||
		    bs_config_write(&c, &out, NULL) < 0 ||
		    bs_config_parse(bs_buf_str(&out), out.len, &again, NULL) < 0 ||
		    !bs_json_equal(c.doc, again.doc))
			abort();
	}
	bs_look_done(&l);
	return 0;
}
